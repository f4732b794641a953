"""The exact caches against the plainest one there is: for each sequence and layer a list of keys and values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llminfer.basics import ModelConfig, NoCache, Transformer, attend, load_model, preset
from llminfer.kv_cache import KVCache, SlidingWindowCache

WINDOW, ROLLBACK, CAPACITY, ROWS = 3, 2, 24, 3
CONFIG = ModelConfig("two layers", 2, 16, 4, 2, 4, 8, 11, 64, windows=(None, WINDOW))


class ListOfArrays:
    """What a cache must do, as plainly as can be: every key and value kept, every mask made token by token."""

    def __init__(self) -> None:
        self.tokens: dict[int, list] = {}  # sequence -> [(keys, values) by layer] for each token

    def expected(self, layer, q, k, v, sequences, lengths, parents):
        """Each token's attention over the stored tokens and its own ancestors, alone."""
        window, outputs, start = CONFIG.window(layer), [], 0
        for sequence, new in zip(sequences, lengths, strict=True):
            for token in range(start, start + new):
                path, at = [], token
                while at >= start:
                    path.insert(0, at)
                    at = at - 1 if parents is None else parents[at]
                past = [(keys[layer], values[layer]) for keys, values in self.tokens.get(sequence, [])]
                seen = (past + [(k[t], v[t]) for t in path])[-(window or 10**9) :]
                keys, values = (np.stack(arrays) for arrays in zip(*seen, strict=True))
                visible = np.ones((1, len(seen)), bool)
                outputs.append(attend(q[token : token + 1], keys, values, CONFIG.attention(layer), visible)[0])
            start += new
        return np.stack(outputs)


def draw_parents(data, lengths):
    """Trees: each token follows an earlier one of its sequence, or the stored ones."""
    parents, start = [], 0
    for new in lengths:
        parents += [data.draw(st.sampled_from([-1, *range(start, start + i)])) for i in range(new)]
        start += new
    return np.array(parents)


class CacheMachine(RuleBasedStateMachine):
    """Steps, trees, partial commits, rollbacks, forks and refusals in any order."""

    def make(self):
        return KVCache(CONFIG, ROWS, CAPACITY, "float64")

    def __init__(self) -> None:
        super().__init__()
        self.cache = self.make()
        self.model = ListOfArrays()
        self.longest: dict[int, int] = {}
        self.nbytes = self.cache.nbytes

    @rule(data=st.data())
    def step(self, data):
        ids = data.draw(st.lists(st.integers(10, 14), min_size=1, max_size=3, unique=True))
        lengths = [data.draw(st.integers(1, 7)) for _ in ids]
        parents = draw_parents(data, lengths) if data.draw(st.booleans()) else None
        fresh = [i for i in ids if i not in self.model.tokens]
        full = any(self.cache.length(i) + n > CAPACITY for i, n in zip(ids, lengths, strict=True))
        if full or len(fresh) + len(self.model.tokens) > ROWS:
            with pytest.raises(ValueError, match=r"capacity is 24|rows for 3 sequences"):
                self.cache.step(ids, lengths, parents)
            return
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        view = self.cache.step(ids, lengths, parents)
        T = sum(lengths)
        k, v = rng.normal(size=(2, T, 2, 2, 4))  # [T, L, K, E] each
        for layer in range(2):
            q = rng.normal(size=(T, 4, 4))
            expected = self.model.expected(layer, q, k[:, layer], v[:, layer], ids, lengths, parents)
            np.testing.assert_allclose(view.attend(layer, q, k[:, layer], v[:, layer]), expected, atol=1e-12)
        if data.draw(st.integers(0, 3)) == 0:
            return  # never committed: nothing happened
        kept = self.some_path(data, lengths, parents)
        self.refusals(view, kept, q, k, T)
        view.commit(kept)
        start = 0
        for sequence, new in zip(ids, lengths, strict=True):
            mine = [t for t in kept if start <= t < start + new]
            self.model.tokens.setdefault(sequence, []).extend((k[t], v[t]) for t in mine)
            before = self.longest.get(sequence, 0) if len(self.model.tokens[sequence]) > len(mine) else 0
            self.longest[sequence] = max(before, len(self.model.tokens[sequence]))
            start += new

    def refusals(self, view, kept, q, k, tokens):
        """What later steps of the machine would notice, had it left a trace."""
        with pytest.raises(ValueError, match=r"layer must lie in 0\.\.1"):
            view.attend(2, q, k[:, 0], k[:, 0])
        with pytest.raises(ValueError, match="kept must ascend"):
            view.commit(np.append(kept, tokens))
        if np.count_nonzero(kept < view.lengths[0]) > 1:  # without its first token a path would not join what is stored
            with pytest.raises(ValueError, match="cannot be kept without its parent"):
                view.commit(kept[1:])
        with pytest.raises(ValueError, match="only once"):
            self.cache.step([10, 10], [1, 1])

    def some_path(self, data, lengths, parents):
        kept, start = [], 0
        for new in lengths:
            end = data.draw(st.integers(start - 1, start + new - 1))
            path = []
            while end >= start:
                path.insert(0, end)
                end = end - 1 if parents is None else int(parents[end])
            kept += path
            start += new
        return np.array(kept, int)

    @precondition(lambda self: self.model.tokens)
    @rule(data=st.data())
    def truncate(self, data):
        sequence = data.draw(st.sampled_from(sorted(self.model.tokens)))
        length = data.draw(st.integers(0, self.cache.length(sequence) + 1))
        if self.may_truncate(sequence, length):
            self.cache.truncate(sequence, length)
            del self.model.tokens[sequence][length:]
        else:
            with pytest.raises(ValueError, match=f"sequence {sequence} "):
                self.cache.truncate(sequence, length)

    def may_truncate(self, sequence, length):
        return length <= len(self.model.tokens[sequence])

    @precondition(lambda self: self.model.tokens)
    @rule(data=st.data(), into=st.integers(10, 14))
    def fork(self, data, into):
        sequence = data.draw(st.sampled_from(sorted(self.model.tokens)))
        if into in self.model.tokens or len(self.model.tokens) == ROWS:
            with pytest.raises(ValueError, match=r"already|rows for 3"):
                self.cache.fork(sequence, into)
            return
        self.cache.fork(sequence, into)
        self.model.tokens[into] = list(self.model.tokens[sequence])
        self.longest[into] = self.longest[sequence]

    @rule(sequence=st.integers(10, 14))
    def free(self, sequence):
        self.cache.free(sequence)
        self.model.tokens.pop(sequence, None)

    @invariant()
    def lengths_agree_and_no_memory_was_taken(self):
        for sequence in range(10, 15):
            assert self.cache.length(sequence) == len(self.model.tokens.get(sequence, []))
        assert self.cache.nbytes == self.nbytes


class RingMachine(CacheMachine):
    """The same with a ring in the layer that has a window; rollback is refused exactly where it would be wrong."""

    def make(self):
        return SlidingWindowCache(CONFIG, ROWS, CAPACITY, ROLLBACK, "float64")

    def may_truncate(self, sequence, length):
        present = len(self.model.tokens[sequence])
        oldest = max(self.longest[sequence] - WINDOW - ROLLBACK, 0)
        return length <= present and (length in (0, present) or oldest <= max(length - WINDOW + 1, 0))


def of_length(machine, examples):
    case = type(machine.TestCase)(f"Test{machine.__name__}", (machine.TestCase,), {})
    case.settings = settings(max_examples=examples, stateful_step_count=20, deadline=None)
    return case


TestKVCache, TestSlidingWindowCache = of_length(CacheMachine, 10), of_length(RingMachine, 10)
TestKVCacheAtLength = pytest.mark.slow(of_length(CacheMachine, 60))
TestSlidingWindowCacheAtLength = pytest.mark.slow(of_length(RingMachine, 60))


def hidden_in_chunks(model, cache, ids, chunks):
    outputs, at = [], 0
    for size in chunks:
        view = cache.step([5], [size])
        outputs.append(model.hidden(ids[at : at + size], np.arange(at, at + size), view))
        view.commit()
        at += size
    return np.concatenate(outputs)


@pytest.mark.parametrize("windows", [None, 8])
def test_the_model_with_a_cache_is_the_model_without(windows):
    tiny = load_model("tiny")
    some = tuple(windows if layer % 2 else None for layer in range(tiny.config.layers)) if windows else ()
    config = replace(tiny.config, windows=some)
    model = Transformer(config, tiny.weights)
    ids = np.random.default_rng(0).integers(0, config.vocabulary, 60)
    without = model.hidden(ids, np.arange(60), NoCache(config).step([0], [60]))
    cache = SlidingWindowCache(config, 2, 64, 4) if windows else KVCache(config, 2, 64)
    found = hidden_in_chunks(model, cache, ids, [5, 1, 1, 20, 1, 32])
    assert np.abs(found - without).max() < 1e-5 * np.abs(without).max()


def to_float16(x):
    return x.astype(np.float16).astype(np.float32)


def to_bfloat16(x):
    """The upper half of a float32, rounded to the nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize(("dtype", "rounded"), [("float16", to_float16), ("bfloat16", to_bfloat16)])
@pytest.mark.parametrize("cuts", [[9], [1] * 9, [4, 1, 4]])
@pytest.mark.parametrize("kind", [KVCache, SlidingWindowCache])
def test_narrow_storage_rounds_keys_and_values_and_nothing_else(kind, dtype, rounded, cuts):
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(9, heads, 4)).astype(np.float32) for heads in (4, 2, 2))
    cache, at, found = kind(CONFIG, 1, 9, dtype=dtype), 0, []
    for size in cuts:
        view, now = cache.step([0], [size]), slice(at, at + size)
        found.append([view.attend(layer, q[now], k[now], v[now]) for layer in (0, 1)])
        view.commit()
        at += size
    for layer in (0, 1):
        visible = np.tri(9, dtype=bool) & ~np.tri(9, k=-(CONFIG.window(layer) or 9), dtype=bool)
        expected = attend(q, rounded(k), rounded(v), CONFIG.attention(layer), visible)
        got = np.concatenate([step[layer] for step in found])
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_a_wide_cache_does_not_widen_the_model():
    x = np.ones((2, 4, 4), np.float32)
    assert KVCache(CONFIG, 1, 8, "float64").step([0], [2]).attend(0, x, x[:, :2], x[:, :2]).dtype == np.float32


def test_a_latent_is_stored_once():
    config = replace(preset("deepseek-v2-lite"), layers=2)
    cache = KVCache(config, 1, 4, "bfloat16")
    assert cache.nbytes == 2 * 4 * 576 * 2  # two layers, 4 tokens, 512 + 64 numbers of 2 bytes, and no values
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(4, 16, 576)), rng.normal(size=(4, 1, 576))
    cache = KVCache(config, 1, 4, "float64")
    for t in range(4):
        view = cache.step([0], [1])
        found = view.attend(1, q[t : t + 1], k[t : t + 1], k[t : t + 1, :, :512])
        view.commit()
    whole = attend(q[3:], k, k[..., :512], config.attention(1), np.ones((1, 4), bool))
    np.testing.assert_allclose(found, whole, atol=1e-12)


def test_a_ring_takes_a_fraction_of_the_whole():
    config = preset("gpt-oss-20b")
    ring = SlidingWindowCache(replace(config, layers=2, windows=config.windows[:2]), 1, 1280, 0, "float16")
    assert ring.nbytes == 2 * 8 * 64 * 2 * (1280 + 128)  # keys and values, 8 heads of 64, a whole layer and a ring


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: KVCache(CONFIG, 0, 8), "at least 1 sequence of 1 token, got 0 of 8"),
        (lambda: KVCache(CONFIG, 1, 8, "int8"), "got 'int8'"),
        (lambda: SlidingWindowCache(CONFIG, 1, 8, -1), "max_rollback must not be negative, got -1"),
        (lambda: SlidingWindowCache(replace(CONFIG, windows=()), 1, 8), "no layer of 'two layers' has a window"),
        (lambda: KVCache(CONFIG, 1, 8).truncate(3, 1), "sequence 3 holds 0 tokens and cannot be truncated to 1"),
        (lambda: KVCache(CONFIG, 1, 8).fork(3, 4), "sequence 3 is not in this cache"),
    ],
)
def test_mistakes_are_refused_with_their_numbers(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def grown(cache, sequence, tokens, seed=0):
    """Attention of the layer with a window, for so many tokens one at a time."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(tokens):
        q, k, v = (rng.normal(size=(1, heads, 4)) for heads in (4, 2, 2))
        view = cache.step([sequence], [1])
        found.append([view.attend(layer, q, k, v) for layer in (0, 1)][1])
        view.commit()
    return np.concatenate(found) if found else np.empty((0, 4, 4))


@pytest.mark.parametrize(
    ("back", "forked"), [*((back, False) for back in (0, 1, 3, 4, 8, 11, 12)), (3, True), (4, True), (12, True)]
)
def test_a_ring_goes_back_as_far_as_it_promises_and_no_further(back, forked):
    whole, ring = KVCache(CONFIG, 2, CAPACITY, "float64"), SlidingWindowCache(CONFIG, 2, CAPACITY, ROLLBACK, "float64")
    at = 1 if forked else 0
    for cache in (whole, ring):
        grown(cache, 0, 12)
        if forked:
            cache.fork(0, 1)
        if cache is ring and ROLLBACK + 1 < back < 12:  # one more, as the window counts the query itself
            with pytest.raises(ValueError, match=f"from 12 tokens to {12 - back}: layer 1 has overwritten"):
                cache.truncate(at, 12 - back)
            assert cache.length(at) == 12
        else:
            cache.truncate(at, 12 - back)
    if ring.length(at) == whole.length(at):
        np.testing.assert_allclose(grown(ring, at, 6, seed=1), grown(whole, at, 6, seed=1), atol=1e-12)


def test_a_ring_does_not_go_back_twice_as_far():
    ring = SlidingWindowCache(CONFIG, 1, CAPACITY, ROLLBACK, "float64")
    grown(ring, 0, 12)
    ring.truncate(0, 12 - ROLLBACK)
    grown(ring, 0, 1)
    with pytest.raises(ValueError, match="layer 1 has overwritten"):
        ring.truncate(0, 12 - ROLLBACK - 2)


def test_a_row_starts_afresh_with_its_next_sequence():
    ring = SlidingWindowCache(CONFIG, 1, CAPACITY, 0, "float64")
    grown(ring, 0, 12)
    ring.free(0)
    grown(ring, 7, WINDOW)
    ring.truncate(7, 1)  # nothing of this sequence is forgotten yet, whatever the row held before
    assert ring.length(7) == 1


@pytest.mark.parametrize("change", [lambda c: c.truncate(0, 1), lambda c: c.free(0), lambda c: c.fork(0, 1)])
def test_a_change_drops_the_open_view(change):
    cache = KVCache(CONFIG, 2, 8, "float64")
    grown(cache, 0, 3)
    view = cache.step([0], [1])
    change(cache)
    with pytest.raises(ValueError, match="was committed or dropped"):
        view.commit()


def test_a_full_row_takes_no_more():
    cache = KVCache(CONFIG, 1, 3)
    grown(cache, 0, 3)
    with pytest.raises(ValueError, match="sequence 0 holds 3 tokens and gets 1 more, but the capacity is 3"):
        cache.step([0], [1])


def test_what_a_dropped_step_showed_is_not_kept_by_the_next():
    cache = SlidingWindowCache(CONFIG, 1, 8)
    x = np.ones((1, 4, 4), np.float32)
    cache.step([0], [1]).attend(1, x, x[:, :2], x[:, :2])
    cache.step([0], [1]).commit()  # a stage of a pipeline that runs none of these layers
    found = cache.step([0], [1]).attend(1, x, x[:, :2], x[:, :2])
    assert found.max() < 1  # the first token's values are not the dropped ones: they count as zeros


def test_a_layer_out_of_range_is_refused():
    view = KVCache(CONFIG, 1, 8).step([0], [1])
    x = np.zeros((1, 4, 4), np.float32)
    with pytest.raises(ValueError, match=r"layer must lie in 0\.\.1, got 2"):
        view.attend(2, x, x[:, :2], x[:, :2])


def test_two_siblings_cannot_both_be_kept():
    view = KVCache(CONFIG, 1, 8).step([0], [3], np.array([-1, 0, 0]))
    with pytest.raises(ValueError, match="token 2 does not follow token 1"):
        view.commit(np.array([0, 1, 2]))
