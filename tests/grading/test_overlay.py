"""The library without answers: only what an exercise asks for is missing, and everything else is there."""

import ast
import inspect
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llminfer.core.public_names import all_places
from llminfer.grading import overlay as overlays
from llminfer.grading.overlay import PACKAGE, WORKER_FILES, overlay, stubbed, stubbed_sources
from llminfer.grading.spec import all_exercises

SOURCE = '''
import functools

def before(): return 1

class Keeper:
    """Keeps."""

    size = 3

    def __init__(self, n):
        # the answer is in this comment
        self.n = n

    @property
    def twice(self) -> int:
        """Doubled."""

        # and in this one
        return self.n * 2  # and in this

    def inner(self):
        def helper():
            return 1
        return helper

    def bare(self):
        """Only a docstring."""

@functools.cache
def wanted(
    a: int,
    b: str = """x
y""",
) -> int:
    """What it does.

    On lines.
    """
    for _ in range(3):
        a += len(
            b
        )
    return a

def short(a): return a + 1  # easy

def with_one_line_docstring(a): "doc"; return a

if True:
    def inside():
        return "ü" * 3

def after(): return 2
'''


def found_in(source: str) -> dict:
    names: dict = {}
    exec(compile(source, "overlay", "exec"), names)
    return names


@pytest.mark.parametrize("name", ["wanted", "short", "with_one_line_docstring", "inside"])
def test_a_stub_says_what_it_is_and_every_other_line_stays(name):
    source = stubbed(SOURCE, [name])
    names = found_in(source)
    with pytest.raises(NotImplementedError, match="this is your exercise"):
        names[name](*[1] * inspect.unwrap(names[name]).__code__.co_argcount)
    [before] = [node for node in ast.walk(ast.parse(SOURCE)) if getattr(node, "name", "") == name]
    lines = source.splitlines()
    assert len(lines) == len(SOURCE.splitlines())
    for number, (old, new) in enumerate(zip(SOURCE.splitlines(), lines, strict=True), start=1):
        assert old == new or before.lineno <= number <= before.end_lineno
    assert names["after"].__code__.co_firstlineno == found_in(SOURCE)["after"].__code__.co_firstlineno


def test_signature_decorators_and_docstring_stay():
    wanted = found_in(stubbed(SOURCE, ["wanted"]))["wanted"]
    assert wanted.__wrapped__.__annotations__ == {"a": int, "b": str, "return": int}
    assert wanted.__doc__ == "What it does.\n\n    On lines.\n    "


def test_of_a_class_every_method_is_a_stub_and_comments_go():
    source = stubbed(SOURCE, ["Keeper"])
    keeper = found_in(source)["Keeper"]
    assert (keeper.__doc__, keeper.size) == ("Keeps.", 3)
    assert "answer" not in source
    assert "and in this" not in source
    for method in (keeper.__init__, keeper.inner, keeper.twice.fget):
        with pytest.raises(NotImplementedError):
            method(*[None] * method.__code__.co_argcount)


def test_one_method_can_be_named():
    keeper = found_in(stubbed(SOURCE, ["Keeper.twice"]))["Keeper"](4)
    assert keeper.inner()() == 1
    with pytest.raises(NotImplementedError):
        _ = keeper.twice


@pytest.mark.parametrize(
    "name", ["llminfer.basics.norms.nothing", "llminfer.basics.nowhere.rmsnorm", "basics.norms.rmsnorm", "rmsnorm"]
)
def test_a_name_that_is_not_there_is_refused(name):
    with pytest.raises(ValueError, match="nothing|in full"):
        stubbed_sources([name])


def in_overlay(folder: Path, program: str) -> str:
    """What a program prints that imports the library from an overlay."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-s", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


STUBS = sorted({exercise.stubs for exercise in all_exercises()} | {()})


@pytest.mark.slow
@pytest.mark.parametrize("stubs", STUBS, ids=lambda stubs: ", ".join(stubs) or "nothing")
def test_under_every_overlay_every_public_name_loads_and_the_answers_are_stubs(stubs):
    places = [(place.module, place.name) for place in all_places()]
    program = f"""
import importlib, pathlib, llminfer
loaded = [getattr(importlib.import_module(module), name) for module, name in {places!r}]
print(pathlib.Path(llminfer.__file__).parent.parent)
"""
    folder = overlay(stubs)
    assert in_overlay(folder, program).strip() == str(folder)
    for path, source in stubbed_sources(stubs).items():
        assert (folder / "llminfer" / path.relative_to(PACKAGE)).read_text(encoding="utf-8") == source
        assert source.count("this is your exercise") >= 1


def test_what_uses_an_answer_meets_the_stub():
    program = """
import numpy as np
from llminfer.basics import rmsnorm_residual, layernorm, rmsnorm
layernorm(np.ones((1, 2)), np.ones(2), np.zeros(2))
for function in (rmsnorm, rmsnorm_residual):
    try:
        function(np.ones((1, 2)), np.ones(2)) if function is rmsnorm else function(*[np.ones((1, 2))] * 2, np.ones(2))
    except NotImplementedError as problem:
        print(problem)
"""
    assert in_overlay(overlay(["llminfer.basics.norms.rmsnorm"]), program).count("this is your exercise") == 2


def test_neither_the_judge_nor_the_exercises_are_in_it():
    folder = overlay() / "llminfer"
    inside = {path.name for path in (folder / "grading").iterdir() if path.name != "__pycache__"}
    assert inside == set(WORKER_FILES)
    assert not (folder / "cli.py").exists()
    assert not list(folder.rglob("*judge*"))
    originals = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if "grading" not in path.parts}
    copies = {path.relative_to(folder) for path in folder.rglob("*.py") if "grading" not in path.parts}
    assert originals - copies == {Path("cli.py")}
    assert copies <= originals


def test_it_is_made_once_and_again_when_the_library_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path / "cache"))
    package = tmp_path / "llminfer"
    (package / "grading").mkdir(parents=True)
    (package / "basics.py").write_text("def f():\n    return 1\n")
    (package / "grading" / "worker.py").write_text("")
    monkeypatch.setattr(overlays, "PACKAGE", package)
    monkeypatch.setattr(overlays, "WORKER_FILES", ("worker.py",))
    first = overlay(["llminfer.basics.f"])
    made = first.stat().st_ino
    assert overlay(["llminfer.basics.f"]) == first
    assert first.stat().st_ino == made
    assert overlay() != first
    before = (package / "basics.py").stat()
    (package / "basics.py").write_text("def f():\n    return 2\n")
    os.utime(package / "basics.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert overlay(["llminfer.basics.f"]) != first
    assert list((first / "llminfer" / "__pycache__").glob("basics.*.pyc"))
    assert not [path for path in first.parent.iterdir() if path.name.startswith(".")]


def test_overlays_that_nobody_asked_for_in_a_day_are_deleted(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path))
    kept, old = overlay(), overlay(["llminfer.basics.norms.layernorm"])
    long_ago = time.time() - 2 * overlays.UNUSED_S
    os.utime(old, (long_ago, long_ago))
    overlay(["llminfer.basics.norms.rmsnorm"])
    assert kept.is_dir()
    assert not old.exists()
