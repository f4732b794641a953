"""Where downloads and measurements go."""

import sys
from pathlib import Path

import pytest

from llminfer.core.cache_folder import cache_folder


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    for name in ("LLMINFER_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_variable_names_the_folder_on_every_system(monkeypatch, tmp_path, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".cache/llminfer"),
        ("darwin", "Library/Caches/llminfer"),
        ("win32", "AppData/Local/llminfer/Cache"),
    ],
)
def test_each_system_has_its_customary_place(monkeypatch, tmp_path, platform, folder):
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == tmp_path / folder


def test_xdg_is_followed_when_absolute_and_ignored_when_relative(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "llminfer"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "llminfer"


def test_asking_creates_nothing(tmp_path):
    assert not cache_folder().exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows makes up a home for every name")
def test_the_home_of_nobody_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setenv("LLMINFER_CACHE", "~nobody-of-that-name/x")
    with pytest.raises(ValueError, match="LLMINFER_CACHE is .*; set it to a folder of yours"):
        cache_folder()
