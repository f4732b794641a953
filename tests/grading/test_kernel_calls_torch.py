"""Kernels get memory between borders; what they wrote, inside and outside, comes back to the judge."""

import numpy as np
import pytest

from llminfer.grading.guarded_buffers import Guarded
from llminfer.grading.isolation import strongest
from llminfer.grading.results import Status
from llminfer.grading.sessions import Reply, Session, Task
from llminfer.grading.spec import Case, Limits

pytestmark = pytest.mark.slow
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def same(place):
    tl.store(place, tl.load(place))
"""
BODIES = {
    "right": "out.copy_(2 * x)",
    "writes one before": "torch.as_strided(out, (1,), (1,), out.storage_offset() - 1).fill_(7)",
    "writes one behind": "torch.as_strided(out, (1,), (1,), out.storage_offset() + out.numel()).fill_(7)",
    "writes into its input": "out.copy_(2 * x); x.zero_()",
    "returns something": "return out",
    "starts no kernel": "out.copy_(2 * x)",
    "looks at the device": "raise KeyError(str(x.device), str(x.dtype), x.is_contiguous(), out.isnan().all().item())",
}


@pytest.fixture(scope="module")
def replies(tmp_path_factory) -> dict[str, tuple[dict, Reply]]:
    """Every body before one worker, because importing torch takes seconds."""
    path = tmp_path_factory.mktemp("kernel") / "f.py"
    cases = "\n".join(f"    if case == {name!r}: {body}" for name, body in BODIES.items())
    path.write_text(
        f"{KERNEL}\n\ndef f(x, bits, out, case):\n    if case != 'starts no kernel': same[(1,)](x)\n{cases}\n"
    )
    rng, found = np.random.default_rng(0), {}
    task = Task("f", "kernel", path, limits=Limits(seconds=30.0), outputs=("out",))
    with Session(task, strongest()) as session:
        assert session.load().status is Status.OK
        for name in BODIES:
            arrays = {
                "x": np.arange(6, dtype=np.float32).reshape(2, 3),
                "bits": np.array([True, False]),
                "out": np.full((2, 3), np.nan, np.float32),
            }
            given = {key: Guarded.around(array, rng) for key, array in arrays.items()}
            found[name] = given, session.call(Case({**given, "case": name}))
    return found


def borders(given: dict, reply: Reply) -> list[bool]:
    after = {**reply.arguments_after, **(reply.value or {})}
    return [after[name].same_borders(buffer) for name, buffer in given.items()]


def test_what_was_written_comes_back_between_its_borders(replies):
    given, reply = replies["right"]
    assert reply.status is Status.OK
    np.testing.assert_array_equal(reply.value["out"].array, [[0, 2, 4], [6, 8, 10]])
    np.testing.assert_array_equal(reply.arguments_after["x"].array, given["x"].array)
    assert set(reply.arguments_after) == {"x", "bits", "case"}
    assert borders(given, reply) == [True, True, True]


@pytest.mark.parametrize("name", ["writes one before", "writes one behind"])
def test_what_was_written_outside_shows(replies, name):
    given, reply = replies[name]
    assert borders(given, reply) == [True, True, False]
    assert np.isnan(reply.value["out"].array).all()


def test_what_was_written_into_an_input_shows(replies):
    _, reply = replies["writes into its input"]
    assert not reply.arguments_after["x"].array.any()


@pytest.mark.parametrize("name", ["returns something", "starts no kernel"])
def test_what_is_no_kernel_is_no_answer(replies, name):
    assert replies[name][1].status is Status.BAD_REPLY
    assert replies[name][1].value is None


def test_a_kernel_sees_contiguous_tensors_and_poison_in_its_outputs(replies):
    _, reply = replies["looks at the device"]
    assert reply.error.endswith("'torch.float32', True, True)")
