"""The ladder: a level is believed for what it was seen to do, and says what it lacks."""

import ctypes
import os
import shutil
import subprocess
import sys
from dataclasses import fields

import pytest

from llminfer.grading import isolation, ladder
from llminfer.grading.isolation import Isolation, probe, strongest, tried

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the ladder is Linux's")]
PROPERTIES = [field.name for field in fields(Isolation) if field.type is bool]


def test_levels_come_strongest_first_and_the_last_always_works():
    levels = [found.level for found in probe()]
    assert levels == [level for level in ladder.LEVELS if level in levels]
    assert levels[-1] == "rlimits"


def tools_work(level: str) -> bool:
    """Whether this machine could have the level, found out without any of our code."""
    landlock = ctypes.CDLL(None).syscall(444, None, 0, 1) >= 4  # landlock_create_ruleset: its version; 4 has networks
    if level == "landlock":
        return landlock
    user = [] if os.geteuid() == 0 else ["--unshare-user" if level == "bwrap" else "--map-current-user"]
    commands = {
        "bwrap": ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--unshare-net", *user, "true"],
        "unshare": ["unshare", "--pid", "--net", "--ipc", "--uts", "--mount-proc", "--fork", *user, "true"],
    }
    done = shutil.which(level) and subprocess.run(commands[level], capture_output=True).returncode == 0
    return bool(done) and (level == "bwrap" or landlock)  # unshare leaves files to Landlock


@pytest.mark.parametrize("level", ["bwrap", "unshare", "landlock"])
def test_a_level_is_offered_wherever_its_tools_work(level):
    """Else a mistake of ours would only make every test of that level skip itself."""
    if not tools_work(level):
        pytest.skip(f"this machine cannot have {level}")
    assert tried(level) is not None


@pytest.mark.parametrize("level", ["bwrap", "unshare", "landlock"])
def test_a_level_that_works_keeps_what_it_promises(level):
    found = tried(level)
    if found is None:
        pytest.skip(f"{level} does not work on this machine")
    assert found == Isolation(level, True, True, True, True)
    assert found.boundary
    assert "no security boundary" not in found.sentence


def test_the_weakest_level_is_no_boundary_and_says_so():
    found = tried("rlimits")
    assert not found.files_hidden
    assert not found.network_closed
    assert "files readable, network open" in found.sentence
    assert "no security boundary" in found.sentence


def test_the_strongest_is_a_boundary_where_there_is_one():
    assert strongest() == next((found for found in probe() if found.boundary), probe()[0])


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_missing_property_has_its_words(name):
    good = Isolation("any", True, True, True, True)
    bad = Isolation("any", **{other: other != name for other in PROPERTIES})
    assert good.sentence != bad.sentence
    assert good.boundary
    assert bad.boundary == (name == "processes_contained")


@pytest.mark.parametrize("level", ["bwrap", "unshare", "landlock"])
def test_the_probe_notices_a_level_that_does_not_hold(level, monkeypatch):
    """The level's name with nothing behind it."""
    monkeypatch.setattr(ladder, "command", lambda level, view: list(ladder.WORKER))
    monkeypatch.setattr(isolation, "available", lambda level: True)
    nothing = {"user": None, "reads_all": False, "files": None, "calls": None, "processes": None, "supervised": False}
    monkeypatch.setattr(ladder, "orders", lambda level, view, processes: dict(nothing))
    found = tried.__wrapped__(level)
    assert not found.files_hidden
    assert not found.network_closed
    assert not found.processes_contained
    assert found.not_root == (os.geteuid() != 0)
    assert not found.boundary


def test_a_level_whose_tools_are_missing_or_refused_is_not_offered(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert tried.__wrapped__("bwrap") is None
    monkeypatch.undo()
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ladder._bwrap_help.cache_clear()
    assert tried.__wrapped__("bwrap") is None
    ladder._bwrap_help.cache_clear()


def test_other_systems_have_one_level_that_promises_nothing(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    found = [tried.__wrapped__(level) for level in ladder.LEVELS]
    assert found[:-1] == [None] * 4
    assert not found[-1].boundary
    assert not found[-1].processes_contained
