"""The contiguous KV cache: memory for every token that may come is taken at once, and no step moves what is stored."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy
import numpy as np
from jaxtyping import Bool, Float, Int

from llminfer.basics.config import ModelConfig
from llminfer.basics.memory import ancestors, attend_in_blocks, causal, check_attend, check_kept, check_step
from llminfer.kv_cache.layer_stores import LayerStore, WholeStore
from llminfer.kv_cache.rows import Rows

DTYPES: tuple[str, ...] = ("float64", "float32", "float16", "bfloat16")


class KVCache:
    """Keys and values of up to `sequences` sequences of up to `capacity` tokens each; see `memory.Cache`.

    dtype: what is stored, one of `DTYPES`. A step's own tokens are rounded to it too, so that it does not matter how a
        text is cut into steps; attention then computes in the queries' dtype.
    Takes sequences * capacity * bytes_per_token bytes on construction, however few tokens come (chapter 3.3 is about
    that waste). Raises ValueError for counts below 1 and for another dtype. A call that raises changes nothing.
    Book section 3.2.2.
    """

    def __init__(self, config: ModelConfig, sequences: int, capacity: int, dtype: str = "float32") -> None:
        if dtype not in DTYPES:
            raise ValueError(f"this cache stores {', '.join(DTYPES)}, got {dtype!r}")
        self.config = config
        self.rows = Rows(sequences, capacity)
        self.dtype = dtype
        self.layers: list[LayerStore] = [self._store(layer) for layer in range(config.layers)]
        self.view: CachedView | None = None

    def _store(self, layer: int) -> LayerStore:
        return WholeStore(self.config.attention(layer), self.rows.count, self.rows.capacity, self.dtype)

    @property
    def nbytes(self) -> int:
        """All bytes taken for keys and values."""
        return sum(store.nbytes for store in self.layers)

    def step(
        self, sequences: Sequence[int], lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None = None
    ) -> "CachedView":
        """See `Cache.step`. Raises ValueError also when rows or slots run out."""
        check_step(sequences, lengths, parents)
        rows = self.rows.would_take(sequences, lengths)
        for store in self.layers:
            store.begin()
        self.view = CachedView(self, sequences, lengths, parents, rows)
        return self.view

    def length(self, sequence: int) -> int:
        """See `Cache.length`."""
        return self.rows.length(sequence)

    def free(self, sequence: int) -> None:
        """See `Cache.free`. Drops an open view, unless the id is unknown."""
        if sequence in self.rows.of:
            self.view = None
            self.rows.free(sequence)

    def truncate(self, sequence: int, length: int) -> None:
        """Forget all but the first `length` tokens, as if the others had never been. Drops an open view.

        Raises ValueError when there are not so many, and where what those tokens need is no longer there.
        """
        present = self.length(sequence)
        if not 0 <= length <= present:
            raise ValueError(f"sequence {sequence} holds {present} tokens and cannot be truncated to {length}")
        if length == present:
            return
        row = self.rows.of[sequence]
        for layer, store in enumerate(self.layers):
            if not store.can_truncate(row, present, length):
                raise ValueError(
                    f"sequence {sequence} cannot go back from {present} tokens to {length}: layer {layer} has "
                    "overwritten what the window before them needs; a larger max_rollback would have kept it"
                )
        self.view = None
        self.rows.lengths[sequence] = length

    def fork(self, sequence: int, into: int) -> None:
        """Start the sequence `into` as a copy of another. Drops an open view.

        Raises ValueError when `sequence` is not stored, `into` is, or no row is free.
        """
        if sequence not in self.rows.of:
            raise ValueError(f"sequence {sequence} is not in this cache, so it cannot be forked")
        if into in self.rows.of:
            raise ValueError(f"sequence {into} is in this cache already; fork into a new id, or free it first")
        length = self.length(sequence)
        self.rows.would_take([into], [length])
        self.view = None
        row, target = self.rows.of[sequence], self.rows.take(into, length)
        for store in self.layers:
            store.copy(row, target, length)


class CachedView:
    """A step on a cache made of layer stores; see `memory.View`."""

    def __init__(
        self,
        cache: KVCache,
        sequences: Sequence[int],
        lengths: Sequence[int],
        parents: Int[np.ndarray, "T"] | None,
        rows: Sequence[int],
    ) -> None:
        ends = np.cumsum(lengths).tolist()
        self.cache = cache
        self.config = cache.config
        self.sequences = list(sequences)
        self.lengths = list(lengths)
        self.parents = parents
        self.rows = rows
        self.stored = [cache.length(sequence) for sequence in sequences]
        self.spans = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]  # on the flat axis
        self.masks: dict[tuple, Bool[np.ndarray, "T S"]] = {}

    def attend(
        self,
        layer: int,
        q: Float[Any, "T H Ek"],
        k: Float[Any, "T K Ek"],
        v: Float[Any, "T K Ev"],
        sinks: Float[Any, "H"] | None = None,
    ) -> Float[Any, "T H Ev"]:
        """See `View.attend`."""
        self._check_open()
        if not 0 <= layer < self.config.layers:
            raise ValueError(f"layer must lie in 0..{self.config.layers - 1}, got {layer}")
        spec = self.config.attention(layer)
        check_attend(self.config, spec, self.spans[-1].stop, q, k, v, sinks)
        outputs = []
        for place, (row, stored, span) in enumerate(zip(self.rows, self.stored, self.spans, strict=True)):
            keys, values, first = self.cache.layers[layer].extend(row, stored, k[span], v[span])
            keys, values = (array.astype(q.dtype, copy=False) for array in (keys, values))
            visible = self._mask(place, first, spec.window)  # [T, S]
            outputs.append(attend_in_blocks(q[span], keys, values, spec, visible, sinks))
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)  # [T, H, Ev]

    def commit(self, kept: Int[np.ndarray, "kept"] | None = None) -> None:
        """See `View.commit`. Raises ValueError also when a sequence would keep two tokens that follow the same one."""
        self._check_open()
        check_kept(kept, self.lengths, self.parents)
        kept = np.arange(self.spans[-1].stop) if kept is None else kept
        mine = [kept[(span.start <= kept) & (kept < span.stop)] - span.start for span in self.spans]
        if self.parents is not None:
            for span, places in zip(self.spans, mine, strict=True):
                _check_chain(places, self.parents[span] - span.start, span.start)
        self.cache.view = None
        for sequence, stored, places in zip(self.sequences, self.stored, mine, strict=True):
            row = self.cache.rows.take(sequence, stored + len(places))
            for store in self.cache.layers:
                store.keep(row, stored, places)

    def _mask(self, place: int, first: int, window: int | None) -> Bool[np.ndarray, "T S"]:
        """What each new token of a sequence sees of the keys from position `first` on; made once a step."""
        known = (place, first, window)
        if known not in self.masks:
            stored, span = self.stored[place], self.spans[place]
            if self.parents is None:
                mask = causal(span.stop - span.start, window, stored)
            else:
                mask = visible_to_tree(self.parents[span] - span.start, window, stored)
            self.masks[known] = mask[:, first:]
        return self.masks[known]

    def _check_open(self) -> None:
        if self.cache.view is not self:
            raise ValueError("this view was committed or dropped; open the next step with cache.step")


def visible_to_tree(
    parents: Int[np.ndarray, "T"], window: int | None = None, stored: int = 0
) -> Bool[np.ndarray, "T S"]:
    """What the tokens of a tree behind `stored` ones see: these, their ancestors and themselves, within the window.

    Siblings share a position: a token's is `stored` plus its depth, and the window reaches back from there.
    """
    depth = ancestors(parents).sum(axis=1) - 1  # [T], a root's is 0
    distance = (stored + depth)[:, None] - np.arange(stored)  # [T, stored]
    return np.concatenate([distance < (window or np.inf), ancestors(parents, window)], axis=1)


def _check_chain(places: Int[np.ndarray, "kept"], parents: Int[np.ndarray, "T"], start: int) -> None:
    expected = np.concatenate([[-1], places[:-1]]) if len(places) else places
    wrong = np.flatnonzero(np.maximum(parents[places], -1) != expected)
    if wrong.size:
        token, other = places[wrong[0]], expected[wrong[0]]
        raise ValueError(
            f"what a sequence keeps must be one path, but token {start + token} does not follow token {start + other}"
        )
