"""A lint for kernel files: what Triton's interpreter forgives and a GPU does not, or the other way round.

- A loaded value says its type before anything is computed with it: the interpreter keeps bfloat16 as integers and
  computes on those bits without complaint. `.to(tl.float32)` for arithmetic, `.to(OPERAND)` before `tl.dot`,
  `.to(tl.int64)` for indices, which may also pass 2**31. Values that are only stored again may keep theirs.
- A masked load says what stands in for the rest (`other=`): 0 in the interpreter, anything on a GPU.
- `tl.dot` says its `input_precision`: by default a GPU cuts float32 operands to TF32, and the interpreter does not.
"""

import ast
from collections.abc import Iterator
from pathlib import Path


def kernel_faults(path: Path) -> tuple[str, ...]:
    """One line, with its place, for each thing in the `@triton.jit` functions of `path` that breaks a rule above."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kernels = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_jitted(node)]
    found = sorted((line, what, k.name) for k in kernels for line, what in (*_untyped(k), *_unsaid(k)))
    return tuple(f"{path.name}:{line}, in {kernel}: {what}" for line, what, kernel in found)


def _untyped(kernel: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Loaded values that are used, other than stored, before they say their type."""
    parents = {child: parent for parent in ast.walk(kernel) for child in ast.iter_child_nodes(parent)}
    loaded = {}  # name -> line of the load it holds
    remedy = "is used before it says its type; write .to(tl.float32), .to(OPERAND) or .to(tl.int64)"
    for node in ast.walk(kernel):
        if not _is_call_of(node, "load"):
            continue
        parent = parents[node]
        if isinstance(parent, ast.Assign) and all(isinstance(target, ast.Name) for target in parent.targets):
            loaded |= {target.id: node.lineno for target in parent.targets}
        elif not _says_type(node, parent, parents) and not _is_stored(node, parent):
            yield node.lineno, f"a loaded value {remedy}"
    for node in ast.walk(kernel):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in loaded:
            parent = parents[node]
            if not _says_type(node, parent, parents) and not _is_stored(node, parent):
                yield node.lineno, f"`{node.id}`, loaded in line {loaded[node.id]}, {remedy}"


def _unsaid(kernel: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Masked loads without `other`, products without `input_precision`."""
    for node in ast.walk(kernel):
        given = {keyword.arg for keyword in node.keywords} if isinstance(node, ast.Call) else set()
        if _is_call_of(node, "load") and "mask" in given and "other" not in given:
            yield node.lineno, "a masked load leaves the rest to chance; say other="
        if _is_call_of(node, "dot") and "input_precision" not in given:
            yield node.lineno, 'tl.dot may cut float32 to TF32; say input_precision="ieee", or what else is meant'


def _is_jitted(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).split("(")[0].endswith("jit") for decorator in function.decorator_list)


def _is_call_of(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _says_type(node: ast.AST, parent: ast.AST, parents: dict) -> bool:
    """`node` is what stands before `.to(type)`, and the type is not bfloat16 itself."""
    if not (isinstance(parent, ast.Attribute) and parent.attr == "to" and parent.value is node):
        return False
    call = parents[parent]
    return isinstance(call, ast.Call) and bool(call.args) and "bfloat16" not in ast.unparse(call.args[0])


def _is_stored(node: ast.AST, parent: ast.AST) -> bool:
    """`node` is the value that `tl.store` writes, unchanged."""
    return _is_call_of(parent, "store") and len(parent.args) > 1 and parent.args[1] is node
