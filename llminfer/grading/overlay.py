"""The library as a worker sees it: without answers.

An overlay is a folder with a package `llminfer` that lacks the judge, the exercises and their solutions, and in which
the functions that an exercise asks for are stubs. Everything else is the library, kernels of the same idea included.
"""

import ast
import compileall
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from llminfer.core.cache_folder import cache_folder
from llminfer.grading.student_code import STUB_MESSAGE

PACKAGE = Path(__file__).parents[1]
WORKER_FILES = (
    *("__init__.py", "worker.py", "wire.py", "guarded_buffers.py", "student_code.py"),
    *("kernel_calls_torch.py", "supervision.py", "confinement.py", "landlock.py", "system_calls.py", "observation.py"),
)
"""All of grading/ that a worker gets."""
UNUSED_S = 24 * 3600
"""An overlay that nobody asked for in this time is deleted when another is made."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def overlay(stubs: Sequence[str] = ()) -> Path:
    """The folder to put first on a worker's path. Made once for every state of the library and every set of stubs.

    stubs: dotted names in full, "llminfer.basics.norms.rmsnorm" or "llminfer.basics.steps.Segment.tokens"; of a class,
    every method becomes a stub. Raises ValueError for a name that the library does not define.
    """
    files = sorted(_files())
    folder = cache_folder() / "overlays" / _content_hash(files, stubs)
    if folder.is_dir():
        os.utime(folder)
        return folder
    sources = stubbed_sources(stubs)
    folder.parent.mkdir(parents=True, exist_ok=True)
    _delete_unused(folder.parent)
    made = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        for path in files:
            _place(path, made / "llminfer" / path.relative_to(PACKAGE), sources.get(path))
        compileall.compile_dir(made, quiet=2)  # a worker may write nothing, and would compile again and again
        made.chmod(0o755)
        with contextlib.suppress(OSError):  # another process has made the same one meanwhile
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def stubbed_sources(stubs: Sequence[str]) -> dict[Path, str]:
    """The files that hold the named functions, with stubs in their places."""
    names_in: dict[Path, list[str]] = {}
    for dotted in stubs:
        path, name = _module_and_name(dotted)
        names_in.setdefault(path, []).append(name)
    return {path: stubbed(path.read_text(encoding="utf-8"), names) for path, names in names_in.items()}


def stubbed(source: str, names: Sequence[str]) -> str:
    """The source with the bodies of the named definitions replaced; every other line keeps its number.

    Signatures and docstrings stay. Comments inside a body go, as they may tell the answer.
    """
    lines = source.splitlines(keepends=True)
    for name in names:
        found = list(_definitions(ast.parse(source), name.split(".")))
        if not found:
            raise ValueError(f"there is no function or class {name!r} to make a stub of")
        for function in found:
            _empty(lines, function)
    return "".join(lines)


def _definitions(tree: ast.AST, names: Sequence[str]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions that a name stands for: several where it is defined twice, all methods where it is a class."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, Definition):
            if not isinstance(node, ast.expr):
                yield from _definitions(node, names)  # inside `if` and `try`
        elif node.name == names[0] or names[0] == "*":
            if len(names) > 1:
                yield from _definitions(node, names[1:])
            elif isinstance(node, ast.ClassDef):
                yield from _definitions(node, ["*"])
            else:
                yield node


def _empty(lines: list[str], function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    body = function.body
    has_docstring = ast.get_docstring(function, clean=False) is not None
    if has_docstring and len(body) == 1:
        return
    first, last = body[1 if has_docstring else 0], body[-1]
    start = first.lineno - 1
    stub = f'raise NotImplementedError("{STUB_MESSAGE}")\n'
    if start == function.lineno - 1 or (has_docstring and start == body[0].end_lineno - 1):
        before = lines[start].encode()[: first.col_offset].decode()  # ast counts bytes
        lines[start] = before + stub
    else:
        indent = " " * first.col_offset
        top = body[0].end_lineno if has_docstring else start
        while not has_docstring and lines[top - 1].strip().startswith("#"):
            top -= 1
        lines[start] = indent + stub
        lines[top:start] = ["\n"] * (start - top)
    lines[start + 1 : last.end_lineno] = ["\n"] * (last.end_lineno - start - 1)


def _module_and_name(dotted: str) -> tuple[Path, str]:
    parts = dotted.split(".")
    for count in range(len(parts) - 1, 1, -1):
        path = PACKAGE.joinpath(*parts[1:count]).with_suffix(".py")
        if parts[0] == "llminfer" and path.is_file():
            return path, ".".join(parts[count:])
    raise ValueError(f"{dotted!r} names no file of the library; give the module in full: llminfer.basics.norms.rmsnorm")


def _files() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(PACKAGE):
        here = Path(folder)
        subfolders[:] = [name for name in subfolders if name != "__pycache__" and here / name != PACKAGE / "grading"]
        yield from (here / name for name in names if (here, name) != (PACKAGE, "cli.py"))
    yield from (PACKAGE / "grading" / name for name in WORKER_FILES)


def _content_hash(files: Sequence[Path], stubs: Sequence[str]) -> str:
    digest = hashlib.sha256(repr((sys.version, sorted(stubs))).encode())
    for path in files:
        found = path.stat()
        digest.update(f"{path.relative_to(PACKAGE)}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
        if path.suffix == ".py":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def _place(original: Path, copy: Path, source: str | None) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    if source is not None:
        copy.write_text(source, encoding="utf-8")
    elif original.suffix == ".py":
        shutil.copyfile(original, copy)
    else:
        try:
            os.link(original, copy)  # models are large
        except OSError:  # the cache is on another disk
            shutil.copyfile(original, copy)


def _delete_unused(folder: Path) -> None:
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED_S:
                shutil.rmtree(path, ignore_errors=True)
