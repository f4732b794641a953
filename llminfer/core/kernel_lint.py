"""A lint for kernel files: every value a kernel loads says at once in which type it computes.

Triton's interpreter keeps bfloat16 as integers and computes on those bits without complaint, so a kernel that is right
on a GPU is silently wrong without one. Naming the type (`.to(tl.float32)` for arithmetic, `.to(OPERAND)` before
`tl.dot`, `.to(tl.int64)` for indices, which may also pass 2**31) closes that trap. Values that are only stored again
may keep theirs.
"""

import ast
from collections.abc import Iterator
from pathlib import Path


def load_faults(path: Path) -> tuple[str, ...]:
    """One line for each load in a `@triton.jit` function of `path` whose value is used before it says its type."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kernels = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_jitted(node)]
    return tuple(
        f"{path.name}:{line}: {what} in {kernel.name} is used before it says its type; "
        "write .to(tl.float32), .to(OPERAND) or .to(tl.int64) at the load"
        for kernel in kernels
        for line, what in _faults(kernel)
    )


def _faults(kernel: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    parents = {child: parent for parent in ast.walk(kernel) for child in ast.iter_child_nodes(parent)}
    loaded = {}  # name -> line of the load it holds
    for node in ast.walk(kernel):
        if not _is_load(node):
            continue
        parent = parents[node]
        if isinstance(parent, ast.Assign) and all(isinstance(target, ast.Name) for target in parent.targets):
            loaded |= {target.id: node.lineno for target in parent.targets}
        elif not _says_type(node, parent, parents) and not _is_stored(node, parent):
            yield node.lineno, "a loaded value"
    for node in ast.walk(kernel):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in loaded:
            parent = parents[node]
            if not _says_type(node, parent, parents) and not _is_stored(node, parent):
                yield node.lineno, f"`{node.id}`, loaded in line {loaded[node.id]},"


def _is_jitted(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).split("(")[0].endswith("jit") for decorator in function.decorator_list)


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"


def _says_type(node: ast.AST, parent: ast.AST, parents: dict) -> bool:
    """`node` is what stands before `.to(type)`, and the type is not bfloat16 itself."""
    if not (isinstance(parent, ast.Attribute) and parent.attr == "to" and parent.value is node):
        return False
    call = parents[parent]
    return isinstance(call, ast.Call) and bool(call.args) and "bfloat16" not in ast.unparse(call.args[0])


def _is_stored(node: ast.AST, parent: ast.AST) -> bool:
    """`node` is the value that `tl.store` writes, unchanged."""
    is_store = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr == "store"
    return is_store and len(parent.args) > 1 and parent.args[1] is node
