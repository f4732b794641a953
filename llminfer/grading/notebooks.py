"""Out of a notebook comes the module that an exercise is graded as: its tagged cells, or what its entry needs.

A cell is tagged with the exercise's name. Without tags the last definition of the entry counts, and of everything else
what it uses: imports, functions, classes and constants at the top of other cells. Read, never run.
"""

import ast
import json
from collections.abc import Iterable, Sequence

from llminfer.grading.spec import Exercise

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BOUND = (*DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)


def extract(raw: bytes, exercise: Exercise) -> str | None:
    """The module's source from a notebook file; None if it is not in there or this is no notebook."""
    try:
        cells = json.loads(raw)["cells"]
        code = [(cell.get("metadata", {}).get("tags", []), _text(cell)) for cell in cells if _is_code(cell)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    tagged = [text for tags, text in code if isinstance(tags, list) and exercise.name in tags]
    if tagged:
        return "\n\n".join(map(without_magics, tagged))
    return gather([text for _, text in code], exercise.entry)


def gather(cells: Sequence[str], entry: str) -> str | None:
    """The last definition of `entry` in the cells, and what it needs of them, in the cells' order; None without it."""
    statements = [statement for cell in cells for statement in _statements(cell)]
    bound: dict[str, list[int]] = {}
    for place, (node, _) in enumerate(statements):
        for name in _bound_names(node):
            bound.setdefault(name, []).append(place)
    defining = [place for place in bound.get(entry, ()) if isinstance(statements[place][0], DEFINITIONS)]
    if not defining:
        return None
    needed, asked = set(), [defining[-1]]
    while asked:
        place = asked.pop()
        if place in needed:
            continue
        needed.add(place)
        for name in _used_names(statements[place][0]):
            asked += bound.get(name, ())[-1:]  # as in a running notebook, the last one counts
    return "\n\n\n".join(statements[place][1] for place in sorted(needed)) + "\n"


def without_magics(cell: str) -> str:
    """A cell without the lines that only IPython understands; one that is Python as it stands is left alone."""
    if cell.lstrip().startswith("%%") or _parsed(cell) is not None:
        return "" if cell.lstrip().startswith("%%") else cell
    lines = cell.splitlines()
    magic = [line.lstrip()[:1] in ("%", "!", "?") or line.rstrip().endswith("?") for line in lines]
    return "\n".join("" if is_magic else line for line, is_magic in zip(lines, magic, strict=True))


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_code(cell: dict) -> bool:
    return cell.get("cell_type") == "code"


def _text(cell: dict) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _statements(cell: str) -> list[tuple[ast.stmt, str]]:
    """The statements of a cell that bind a name, with their source; none of a cell that is no Python."""
    source = without_magics(cell)
    tree, lines, found = _parsed(source), source.splitlines(), []
    for node in tree.body if tree else ():
        if isinstance(node, BOUND):
            first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
            found.append((node, "\n".join(lines[first - 1 : node.end_lineno])))
    return found


def _bound_names(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, DEFINITIONS):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _used_names(node: ast.stmt) -> set[str]:
    """Every name in it, those in annotations written as text left aside."""
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
