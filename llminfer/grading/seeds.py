"""Where a case's inputs come from: public seeds for what students see, one that only teachers have for the rest.

A hidden group is no hidden file. It is the same `cases(group, rng)` with a generator keyed by a secret, so that two
students meet different numbers, and the same student the same ones at every regrade. The version of the tests is
recorded beside the score and is not part of the key.
"""

import hashlib
import hmac
from collections.abc import Iterable

import numpy as np

from llminfer.grading.spec import Exercise


def visible_rng(exercise: Exercise, group: str, seed: int = 0) -> np.random.Generator:
    """The generator of a visible group, the same for everybody; another `seed` gives other cases of the same kind."""
    return _rng(hashlib.sha256(_joined("visible", exercise.id, group, str(seed))).digest())


def hidden_rng(secret: bytes, student: str, exercise: Exercise, group: str) -> np.random.Generator:
    """The generator of a hidden group: HMAC-SHA256 of student and exercise under the class's secret, then the group.

    Raises ValueError for an empty secret, under which everybody could draw the same numbers.
    """
    if not secret:
        raise ValueError("the class's secret is empty; `llminfer class init` makes one")
    key = hmac.digest(secret, _joined(student, exercise.id), "sha256")
    return _rng(hmac.digest(key, group.encode(), "sha256"))


def draw_rng(student: str, exercise: Exercise) -> np.random.Generator:
    """The generator of the numbers that a student is given to work with; no secret, since the student sees them."""
    return _rng(hashlib.sha256(_joined("draw", student, exercise.id)).digest())


def team(members: Iterable[str]) -> str:
    """One id for students who hand in together, whatever the order in which they are named."""
    return "\n".join(sorted(members))


def _joined(*parts: str) -> bytes:
    return "\0".join(parts).encode()


def _rng(digest: bytes) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(digest, "big"))
