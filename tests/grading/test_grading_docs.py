"""Every command in the two pages about grading works as it stands there, in their order."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from llminfer.grading.archive_writing import zipped
from llminfer.grading.course_file import load_course
from llminfer.grading.demo import make_demo
from llminfer.grading.handouts import handed_out

DOCS = Path(__file__).parents[2] / "docs"
ENDS = re.compile(r" +# ends with (\d+)\b.*$")


def script(page: str) -> str:
    """The page's commands as one program, which ends where a command does not end as the page says."""
    blocks = re.findall(r"^```bash\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = ["set -ex"]
    for line in "".join(blocks).splitlines():
        ending = ENDS.search(line)
        lines.append(f"{ENDS.sub('', line)} || code=$?; [ ${{code:-0}} = {ending[1]} ]; code=0" if ending else line)
    return "\n".join(lines)


def run(page: str, folder: Path) -> None:
    """Run a page in `folder`, with `llminfer` and `python` on the path."""
    programs = folder / "programs"
    programs.mkdir()
    for name, arguments in {"llminfer": "-m llminfer.cli ", "python": ""}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments}"$@"\n')
        (programs / name).chmod(0o755)
    own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-c", script(page)], cwd=folder, env=os.environ | own, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_the_students_page(tmp_path):
    course = load_course(make_demo(tmp_path / "demo"))
    (tmp_path / "hw1.zip").write_bytes(zipped(handed_out(course, course.find("hw1"))))
    run("grading-students.md", tmp_path)


@pytest.mark.slow
def test_the_teachers_page(tmp_path):
    run("grading-teachers.md", tmp_path)
    grades = (tmp_path / "demo" / "runs" / "hw1" / "grades.csv").read_text(encoding="utf-8")
    shown = (DOCS / "grading-teachers.md").read_text(encoding="utf-8")
    for student in ("cleo", "dan", "eve", "finn", "gus", "hana", "ivo"):
        total = re.search(rf"^{student},.*,([\d.]+),\w+,[^,]*$", grades, re.MULTILINE)[1]
        assert re.search(rf"^{student} .* {total}/18 ", shown, re.MULTILINE), f"{student}: {total}"
