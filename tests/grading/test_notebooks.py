"""A module out of a notebook: what the entry needs and nothing else; a broken notebook gives none."""

import json

import numpy as np
import pytest

from llminfer.grading.magic import grade_cells, load_ipython_extension
from llminfer.grading.notebooks import extract, gather, without_magics
from llminfer.grading.results import Status

CELLS = [
    "%matplotlib inline\nimport numpy as np\nimport antigravity",
    "SCALE = 2",
    "def mean(x):\n    return x.mean(axis=1, keepdims=True)",
    "def centred(x, by):\n    return x",
    "print('a long experiment')\nfor _ in range(3):\n    pass",
    '@np.errstate(all="ignore")\ndef centred(x, by):\n    "Right?"\n    return (x - mean(x)) * by * SCALE / 2',
    "centred(np.ones((2, 2)), 3",
]


def notebook(cells: list[str], tags: dict[int, list[str]] | None = None) -> bytes:
    found = [
        {
            "cell_type": "code",
            "metadata": {"tags": (tags or {}).get(place, [])},
            "source": text.splitlines(keepends=True),
        }
        for place, text in enumerate(cells)
    ]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# def centred"}, *found], "nbformat": 4}).encode()


def test_the_last_definition_counts_with_what_it_needs(centred):
    names: dict = {}
    source = extract(notebook(CELLS), centred)
    exec(source, names)
    np.testing.assert_array_equal(names["centred"](np.array([[1.0, 3.0]]), 2.0), [[-2.0, 2.0]])
    assert "antigravity" not in source
    assert "experiment" not in source


def test_tagged_cells_are_the_module(centred):
    source = extract(notebook(CELLS, {0: ["centred"], 3: ["other", "centred"]}), centred)
    assert source == "\nimport numpy as np\nimport antigravity\n\ndef centred(x, by):\n    return x"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"{}",
        b"[]",
        b'{"cells": 3}',
        b'{"cells": [3]}',
        b'{"cells": [{"cell_type": "code"}]}',
        b'{"cells": [{"cell_type": "code", "source": [1]}]}',
        b'{"cells": [{"cell_type": "code", "metadata": {"tags": 3}, "source": "x = 1"}]}',
        b'{"cells": [{"cell_type": "code", "metadata": [], "source": "def centred(): pass"}]}',
        b"[" * 100_000,
        notebook(["def centred(x, by:\n    return x"]),
        notebook(["from library import centred"]),
        notebook(["x = '" + "(" * 5000]),
    ],
)
def test_a_notebook_without_the_exercise_gives_nothing(raw, centred):
    assert extract(raw, centred) is None


def test_a_cell_that_is_python_is_left_as_it_is():
    cell = 'x = (7\n% 3)\ny = """\n%magic?\n"""'
    assert without_magics(cell) == cell
    assert without_magics("%time\nx = 1\nx?") == "\nx = 1\n"
    assert without_magics("%%bash\nls") == ""


def test_a_class_brings_its_helpers_and_constants():
    cells = [
        "A, B = 1, 2",
        "C: int = 3",
        "class Base:\n    pass",
        "class Pool(Base):\n    size = A\n    def f(self):\n        return C",
    ]
    source = gather(cells, "Pool")
    assert "A, B = 1, 2" in source
    assert "C: int = 3" in source
    assert "class Base" in source


@pytest.mark.slow
def test_what_a_cell_defines_is_graded_by_the_same_judge(centred):
    assert grade_cells(centred, CELLS).points == 5.0
    wrong = grade_cells(centred, ["def centred(x, by):\n    return x * by"])
    assert wrong.status is Status.WRONG
    assert "from centred import" not in wrong.failure.reproduction
    assert "centred(x=np.array(" in wrong.failure.reproduction
    with pytest.raises(ValueError, match="no cell that was run defines centred"):
        grade_cells(centred, ["x = 1"])


class Shell:
    """As much of IPython as the magic uses."""

    def __init__(self, cells: list[str]) -> None:
        self.user_ns, self.magics = {"In": cells}, {}

    def register_magic_function(self, function: object, kind: str, name: str) -> None:
        self.magics[kind, name] = function


@pytest.mark.slow
def test_the_magic_prints_the_report_and_no_traceback(capsys):
    shell = Shell(["def stable_softmax(x):\n    return x"])
    load_ipython_extension(shell)
    run = shell.magics["line", "llminfer"]
    run("grade stable_softmax")
    told = capsys.readouterr().out
    assert "3.1/stable_softmax" in told
    assert "What comes back is x, unchanged." in told
    for line, words in (
        ("", "usage"),
        ("grade", "usage"),
        ("grade nonsense", "error: there is no"),
        ("grade 3.1", "error"),
    ):
        run(line)
        assert words in capsys.readouterr().out
