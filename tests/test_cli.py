"""The command line where the machine is not as one would wish: one line that says what is wrong, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from llminfer import cli, doctor


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "llminfer.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def test_a_terminal_that_is_not_utf_8_is_written_to_all_the_same():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
    done = run("where", **plain)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rmsnorm" in done.stdout


def test_a_cache_that_is_a_file_ends_in_one_line(tmp_path):
    (tmp_path / "a file").write_text("")
    done = run("fetch", LLMINFER_CACHE=str(tmp_path / "a file"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error: ") == 1
    assert "set LLMINFER_CACHE to a folder of yours" in done.stderr


def test_what_the_system_refuses_ends_in_one_line(monkeypatch, capsys):
    def refuse(standalone_mode: bool) -> None:
        raise PermissionError(13, "Permission denied", "somewhere")

    monkeypatch.delenv("LLMINFER_TRACEBACK", raising=False)
    monkeypatch.setattr(cli, "app", refuse)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: [Errno 13] Permission denied: 'somewhere'\n"


def test_without_a_stdout_a_text_is_made_and_goes_nowhere(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    cli.generate("Once upon", max_tokens=2)


@pytest.mark.parametrize(
    ("home", "path", "shown"),
    [
        ("/home/me", "/home/me/.cache/x", "~/.cache/x"),
        ("/home/me", "/home/me", "~"),
        ("/home/me", "/home/melanie/x", "/home/melanie/x"),
        ("/", "/tmp/x", "~/tmp/x"),
    ],
)
def test_only_the_home_folder_itself_is_shortened(monkeypatch, home, path, shown):
    monkeypatch.setattr(Path, "home", lambda: Path(home))
    assert doctor._shown(Path(path)) == str(Path(shown))
