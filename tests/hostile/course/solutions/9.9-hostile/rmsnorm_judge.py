"""Judge's side of the exercise that the hostile submissions pretend to solve."""

import numpy as np

from llminfer.basics.norms import rmsnorm
from llminfer.grading.spec import Case

VERSION = 1
TOKEN = "judge-side-token-c0ffee"  # must never be seen by a worker or in a report
HIDDEN_INPUT = 31337.0625
"""Stands in every hidden input and must not come back in a report."""


def reference(x, gain):
    return rmsnorm(x, gain)


def cases(group, rng):
    for rows, width in ((1, 1), (3, 7), (4, 16)):
        x = rng.normal(size=(rows, width)).astype(np.float32)
        if group == "unseen":
            x[0, 0] = HIDDEN_INPUT
        yield Case({"x": x, "gain": rng.normal(size=width).astype(np.float32)}, label=f"{rows} rows of {width}")
