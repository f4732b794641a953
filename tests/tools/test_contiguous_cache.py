"""The benchmark's cache gives what computing everything anew gives, whatever the order of steps."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import install_import_hook

from llminfer.basics.config import MlaSpec, ModelConfig
from llminfer.basics.memory import Cache, NoCache, View
from llminfer.basics.parameters import weight_shapes
from llminfer.basics.transformer import Transformer

TOOLS = Path(__file__).parents[2] / "tools"
LLAMA = ModelConfig("llama", 3, 24, 6, 2, 4, 40, vocabulary=53, context=32)
CONFIGS = {
    "llama": LLAMA,
    "windows": replace(LLAMA, windows=(None, 3, 1)),
    "caps and sinks": replace(LLAMA, sinks=True, attention_soft_cap=2.0, windows=(4, None, 4)),
    "mla": replace(LLAMA, mla=MlaSpec(kv_rank=10, rope_width=4, nope_width=6, value_width=5)),
}
ROOM = 24


@pytest.fixture(scope="module")
def tool():
    with (
        pytest.MonkeyPatch.context() as patch,
        install_import_hook(["contiguous_cache"], "beartype.with_numeric_tower"),
    ):
        patch.syspath_prepend(str(TOOLS))
        import contiguous_cache

        yield contiguous_cache


@pytest.fixture(params=CONFIGS)
def model(request) -> Transformer:
    config, rng = CONFIGS[request.param], np.random.default_rng(3)
    return Transformer(config, {name: rng.standard_normal(shape) for name, shape in weight_shapes(config).items()})


def texts(count: int) -> dict[int, np.ndarray]:
    return {sequence: np.random.default_rng(sequence).integers(0, LLAMA.vocabulary, ROOM) for sequence in range(count)}


def random_steps(rng: np.random.Generator, sequences: int) -> Iterator[tuple[list[int], list[int]]]:
    """(sequences, new tokens of each): some sequences, in any order, a few tokens each, until one is full."""
    lengths = [0] * sequences
    while True:
        chosen = rng.permutation(sequences)[: rng.integers(1, sequences + 1)].tolist()
        if rng.random() < 0.5:
            chosen.sort()  # neighbours are common in a batch
        new = (
            rng.integers(1, 4, len(chosen)).tolist() if rng.random() < 0.5 else [int(rng.integers(1, 4))] * len(chosen)
        )
        for sequence, more in zip(chosen, new, strict=True):
            lengths[sequence] += more
        if max(lengths) > ROOM:
            return
        yield chosen, new


def take_step(model: Transformer, cache, texts, sequences, new) -> np.ndarray:
    starts = [cache.length(sequence) for sequence in sequences]
    places = [np.arange(start, start + more) for start, more in zip(starts, new, strict=True)]
    tokens = np.concatenate([texts[sequence][place] for sequence, place in zip(sequences, places, strict=True)])
    view = cache.step(sequences, new)
    hidden = model.hidden(tokens, np.concatenate(places), view)
    view.commit()
    return hidden


def recomputed(model: Transformer, text: np.ndarray) -> np.ndarray:
    return model.hidden(text, np.arange(len(text)), NoCache(model.config).step([0], [len(text)]))


def test_it_is_a_cache(tool):
    cache = tool.ContiguousCache(LLAMA, 2, ROOM)
    assert isinstance(cache, Cache)
    assert isinstance(cache.step([0], [1]), View)


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_steps_gives_what_recomputing_gives(tool, model, seed):
    said, cache = texts(4), tool.ContiguousCache(model.config, 4, ROOM, dtype="float64")
    for sequences, new in random_steps(np.random.default_rng(seed), 4):
        hidden = take_step(model, cache, said, sequences, new)
        expected = [recomputed(model, said[s][: cache.length(s)])[-n:] for s, n in zip(sequences, new, strict=True)]
        np.testing.assert_allclose(hidden, np.concatenate(expected), rtol=1e-9, atol=1e-9)


def test_a_batch_of_equal_length_is_attended_to_in_one_call(tool, monkeypatch):
    calls = []
    attend = tool.attend_in_blocks
    monkeypatch.setattr(tool, "attend_in_blocks", lambda q, *rest: calls.append(q.shape) or attend(q, *rest))
    cache = tool.ContiguousCache(LLAMA, 5, ROOM)
    zeros = [np.zeros((5, heads, 4), np.float32) for heads in (6, 2, 2)]
    cache.step(range(5), [1] * 5).attend(0, *zeros)
    assert calls == [(1, 5 * 6, 4)]


def test_what_was_not_committed_never_happened(tool):
    model = Transformer(LLAMA, {name: np.ones(shape) for name, shape in weight_shapes(LLAMA).items()})
    said, cache = texts(2), tool.ContiguousCache(LLAMA, 2, ROOM, dtype="float64")
    take_step(model, cache, said, [0, 1], [3, 3])
    model.hidden(np.zeros(4, int), np.arange(3, 7), cache.step([1], [4]))
    assert cache.length(1) == 3
    hidden = take_step(model, cache, said, [1], [2])
    np.testing.assert_allclose(hidden, recomputed(model, said[1][:5])[-2:], rtol=1e-9)


def test_of_a_chain_the_beginning_can_be_kept(tool):
    cache = tool.ContiguousCache(LLAMA, 3, ROOM)
    cache.step([2, 0], [3, 4]).commit(kept=np.array([0, 1, 3]))
    assert [cache.length(sequence) for sequence in range(3)] == [1, 0, 2]


def test_a_freed_sequence_starts_anew(tool):
    cache = tool.ContiguousCache(LLAMA, 1, ROOM)
    cache.step([0], [5]).commit()
    cache.free(0)
    assert cache.length(0) == 0


def test_a_view_is_closed_by_its_commit_and_by_the_next_step(tool):
    cache = tool.ContiguousCache(LLAMA, 1, ROOM)
    first = cache.step([0], [1])
    second = cache.step([0], [1])
    with pytest.raises(ValueError, match="another one was opened"):
        first.commit()
    second.commit()
    with pytest.raises(ValueError, match="committed"):
        second.attend(0, *(np.zeros((1, heads, 4), np.float32) for heads in (6, 2, 2)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [ROOM + 1]), "gets 25 more, but this cache has room for 24"),
        (([2], [1]), r"sequences 0\.\.1, got 2"),
        (([0], [2], np.array([-1, -1])), "not trees"),
        (([0, 0], [1, 1]), "only once"),
    ],
)
def test_a_step_that_cannot_be_taken_is_refused(tool, arguments, message):
    with pytest.raises(ValueError, match=message):
        tool.ContiguousCache(LLAMA, 2, ROOM).step(*arguments)
