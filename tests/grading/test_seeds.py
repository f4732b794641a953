"""Hidden inputs hang on the secret, the student and the exercise; on nothing else, and not on the version."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from llminfer.grading.seeds import draw_rng, hidden_rng, team, visible_rng

SECRET = b"0123456789abcdef0123456789abcdef"


def first(rng: np.random.Generator) -> int:
    return int(rng.integers(2**62))


def by_the_definition(key: bytes, message: bytes) -> bytes:
    """HMAC-SHA256 as RFC 2104 writes it."""
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in padded) + inner).digest()


def test_the_seed_is_the_hmac_of_student_and_exercise_then_of_the_group(centred):
    key = by_the_definition(SECRET, b"ada\x003.9/centred")
    expected = np.random.default_rng(int.from_bytes(by_the_definition(key, b"any"), "big"))
    assert first(hidden_rng(SECRET, "ada", centred, "any")) == first(expected)


def test_each_student_group_exercise_and_secret_draws_its_own(centred):
    other = replace(centred, name="other")
    drawn = {
        first(hidden_rng(SECRET, "ada", centred, "any")),
        first(hidden_rng(SECRET, "bob", centred, "any")),
        first(hidden_rng(SECRET, "ada", centred, "small")),
        first(hidden_rng(SECRET, "ada", other, "any")),
        first(hidden_rng(SECRET[::-1], "ada", centred, "any")),
        first(visible_rng(centred, "any")),
        first(visible_rng(centred, "any", seed=1)),
        first(draw_rng("ada", centred)),
    }
    assert len(drawn) == 8


def test_an_empty_secret_is_refused(centred):
    with pytest.raises(ValueError, match="the class's secret is empty"):
        hidden_rng(b"", "ada", centred, "any")


def test_a_team_is_the_same_in_any_order_and_no_single_student():
    assert team(["bob", "ada"]) == team(("ada", "bob"))
    assert team(["ada", "bob"]) not in ("ada", "bob", team(["adab", "ob"]))
    assert team(["ada"]) == "ada"
