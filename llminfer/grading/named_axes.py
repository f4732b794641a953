"""The names of the axes that a starter gives its arguments: `x: Float[np.ndarray, "T D"]` is ("T", "D")."""

import ast
from pathlib import Path


def named_axes(starter: Path, entry: str) -> dict[str, tuple[str, ...]]:
    """Argument -> its axes, for the arguments of the function `entry` that say so; read, not run."""
    tree = ast.parse(starter.read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry]
    arguments = [argument for node in found for argument in (*node.args.args, *node.args.kwonlyargs)]
    axes = {argument.arg: _axes(argument.annotation) for argument in arguments}
    return {name: names for name, names in axes.items() if names}


def _axes(annotation: ast.expr | None) -> tuple[str, ...]:
    """What stands in the quotes. Names with a sign of jaxtyping's, as "... D", fit no axis for certain."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return ()
    shape = annotation.slice.elts[-1]
    names = tuple(shape.value.split()) if isinstance(shape, ast.Constant) and isinstance(shape.value, str) else ()
    return names if all(name.isidentifier() for name in names) else ()
