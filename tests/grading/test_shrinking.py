"""A failing case becomes small, stays a failing case, and the way there has an end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.grading import shrinking
from llminfer.grading.named_axes import named_axes
from llminfer.grading.shrinking import TRIES, shrink
from llminfer.grading.spec import Call, Case

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def on_a_busy_machine(monkeypatch):
    """The net under slow kernels would decide here, not the number of tries."""
    monkeypatch.setattr(shrinking.shrink, "__defaults__", (None, TRIES, 600.0))


def softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def test_a_softmax_that_overflows_comes_down_to_one_number():
    def fails(case: Case) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.isnan(np.exp(case.arguments["x"]) / np.exp(case.arguments["x"]).sum(-1)[:, None]).any())

    found = shrink(Case({"x": (1e4 * RNG.normal(size=(7, 33))).astype(np.float32)}), fails)
    assert fails(found)
    assert found.arguments["x"].size == 1


def test_axes_of_one_name_are_cut_together():
    """T = E here, so that lengths alone would cut the width along with the tokens."""

    def fails(case: Case) -> bool | None:
        x, positions = case.arguments["x"], case.arguments["positions"]
        if len(x) != len(positions) or x.shape[1] != 4:
            return None
        return bool(positions[-1] > 2)

    case = Case({"x": RNG.normal(size=(4, 4)), "positions": np.array([0, 1, 3, 9])})
    found = shrink(case, fails, {"x": ("T", "E"), "positions": ("T",)})
    assert found.arguments["x"].shape == (1, 4)
    assert found.arguments["positions"].shape == (1,)


def test_axes_and_counts_of_one_length_are_cut_together():
    def fails(case: Case) -> bool | None:
        x, weights, count = case.arguments["x"], case.arguments["weights"]["w"], case.arguments["count"]
        return x.shape[1] >= 2 if x.shape[1] == len(weights) == count else None

    found = shrink(Case({"x": RNG.normal(size=(3, 30)), "weights": {"w": np.ones(30)}, "count": 30}), fails)
    assert found.arguments["x"].shape == (1, 2)
    assert found.arguments["weights"]["w"].shape == (2,)
    assert found.arguments["count"] == 2


def test_calls_that_do_not_matter_are_left_out():
    methods = RNG.choice(["push", "free", "fork"], 20)
    calls = tuple(Call(str(method), {"n": int(RNG.integers(2, 90))}) for method in methods)

    def fails(case: Case) -> bool:
        made = [call.method for call in case.calls]
        return "free" in made and "push" in made[made.index("free") :]

    found = shrink(Case({"blocks": 64}, calls), fails)
    assert [call.method for call in found.calls] == ["free", "push"]
    assert [call.arguments for call in found.calls] == [{"n": 1}, {"n": 1}]
    assert found.arguments == {"blocks": 1}


def test_texts_and_numbers_become_plain():
    case = Case({"text": "in the course of human events", "p": 0.8731, "k": 37})
    found = shrink(case, lambda case: "the" in case.arguments["text"] and case.arguments["k"] > 2)
    assert found.arguments == {"text": "the", "p": 1.0, "k": 3}


def test_0_is_not_tried_for_a_count():
    tried = []
    shrink(Case({"block": 48}), lambda case: tried.append(case.arguments["block"]) or True)
    assert min(tried) == 1


def test_the_tries_are_counted_and_what_is_no_case_is_not():
    asked = []

    def fails(case: Case) -> bool | None:
        if case.arguments["x"].shape[0] % 2:
            return None
        asked.append(case)
        return False

    case = Case({"x": RNG.normal(size=(24, 10))})
    assert shrink(case, fails, tries=3) is case
    assert len(asked) == 3


def test_the_same_case_is_found_again():
    case = Case({"x": RNG.normal(size=(9, 9)), "y": list(range(12))})

    def fails(case: Case) -> bool:
        return case.arguments["x"].sum() != 0 and 7 in case.arguments["y"]

    first, second = shrink(case, fails), shrink(case, fails)
    np.testing.assert_array_equal(first.arguments["x"], second.arguments["x"])
    assert first.arguments["y"] == second.arguments["y"] == [7]


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary(max_size=9),
            lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        ),
    )
)
def test_whatever_a_case_holds_it_has_an_end(arguments):
    shrink(Case(arguments, (Call("push", arguments),)), lambda case: True)


@pytest.mark.parametrize(
    ("annotation", "axes"),
    [
        ('Float[np.ndarray, "T H E"]', ("T", "H", "E")),
        ('Int[np.ndarray, "T"]', ("T",)),
        ('Float[np.ndarray, "... D"]', ()),
        ('Float[np.ndarray, "T 2F"]', ()),
        ("np.ndarray", ()),
        ("dict[str, int]", ()),
    ],
)
def test_names_of_axes_are_read_off_a_starter(annotation, axes, tmp_path):
    starter = tmp_path / "f.py"
    starter.write_text(f"def f(x: {annotation}, y: int) -> None:\n    raise NotImplementedError\n")
    assert named_axes(starter, "f") == ({"x": axes} if axes else {})
