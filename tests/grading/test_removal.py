"""What a submission left in its folder goes, whatever it is, and what it points to stays."""

import os
import sys
from pathlib import Path

import pytest

from llminfer.grading.removal import remove_tree


def test_files_folders_and_links_go_and_what_links_lead_to_stays(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "file").write_text("kept")
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "file").write_text("x")
    for name in ("a/link", "b"):
        (folder / name).symlink_to(outside, target_is_directory=True)
    (folder / "broken").symlink_to("nowhere")
    remove_tree(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "file").read_text() == "kept"


@pytest.mark.skipif(sys.platform == "win32", reason="paths have another limit there")
def test_a_path_that_is_too_long_to_be_named_goes(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    here = os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(3000):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    remove_tree(folder)
    assert not list(tmp_path.iterdir())


def test_what_is_closed_to_its_owner_goes(tmp_path):
    folder: Path = tmp_path / "folder"
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "closed" / "file").touch(mode=0)
    for path in (folder / "closed" / "inner", folder / "closed"):
        path.chmod(0)
    remove_tree(folder)
    assert not list(tmp_path.iterdir())
