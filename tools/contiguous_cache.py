"""The simplest cache that is fast: one array of keys and one of values, taken once, in which every sequence has a row.

`NoCache` computes everything anew in each step, so the benchmark needs something that remembers. This is that and no
more: a row is as long as its sequence may ever become, from the first token on. Chapter 3.2 is about that waste.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from llminfer.basics.config import ModelConfig
from llminfer.basics.memory import attend_in_blocks, causal
from llminfer.basics.memory_checks import check_attend, check_kept, check_step


class ContiguousCache:
    """Keys and values of `sequences` sequences, known as 0, 1, ..., of up to `context` tokens each; see `memory.Cache`.

    What one head reads lies in one piece, and no step copies what is stored. Takes chains of tokens, not trees.
    """

    def __init__(self, config: ModelConfig, sequences: int, context: int, dtype: str = "float32") -> None:
        self.config = config
        self.context = context
        self.specs = [config.attention(layer) for layer in range(config.layers)]
        heads = (config.layers, sequences * self.specs[0].kv_heads, context)
        self.keys = np.zeros((*heads, self.specs[0].key_width), dtype)  # [L, B·K, S, Ek]
        self.values = np.zeros((*heads, self.specs[0].value_width), dtype)  # [L, B·K, S, Ev]
        self.lengths = [0] * sequences
        self.open_view: ContiguousView | None = None

    def step(
        self, sequences: Sequence[int], lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None = None
    ) -> "ContiguousView":
        """See `Cache.step`. Raises ValueError for trees too, for other ids, and for more tokens than there is room."""
        check_step(sequences, lengths, parents)
        if parents is not None:
            raise ValueError("this cache stores chains of tokens, not trees; leave parents out")
        for sequence, new in zip(sequences, lengths, strict=True):
            if not 0 <= sequence < len(self.lengths):
                raise ValueError(f"this cache knows the sequences 0..{len(self.lengths) - 1}, got {sequence}")
            if self.length(sequence) + new > self.context:
                raise ValueError(
                    f"sequence {sequence} has {self.length(sequence)} tokens and gets {new} more, "
                    f"but this cache has room for {self.context}"
                )
        self.open_view = ContiguousView(self, sequences, lengths)
        return self.open_view

    def length(self, sequence: int) -> int:
        """See `Cache.length`."""
        return self.lengths[sequence]

    def free(self, sequence: int) -> None:
        """See `Cache.free`."""
        self.lengths[sequence] = 0


class ContiguousView:
    """A step on a `ContiguousCache`; see `memory.View`."""

    def __init__(self, cache: ContiguousCache, sequences: Sequence[int], lengths: Sequence[int]) -> None:
        self.cache = cache
        self.config = cache.config
        self.sequences = sequences
        self.lengths = lengths
        self.tokens = sum(lengths)
        stored = [cache.length(sequence) for sequence in sequences]
        self.groups = grouped(sequences, lengths, stored, cache.specs[0].kv_heads)
        self.rows = [(group.rows(cache.keys), group.rows(cache.values)) for group in self.groups]  # [L, S, nK, E] each
        self.masks: dict[int | None, list[Bool[np.ndarray, "T S"]]] = {}  # window -> one for each group

    def attend(
        self,
        layer: int,
        q: Float[np.ndarray, "T H Ek"],
        k: Float[np.ndarray, "T K Ek"],
        v: Float[np.ndarray, "T K Ev"],
        sinks: Float[np.ndarray, "H"] | None = None,
    ) -> Float[np.ndarray, "T H Ev"]:
        """See `View.attend`."""
        self._check_open()
        spec = self.cache.specs[layer]
        check_attend(self.config, spec, self.tokens, q, k, v, sinks)
        if spec.window not in self.masks:
            self.masks[spec.window] = [causal(group.new, spec.window, group.stored) for group in self.groups]
        outputs = []
        for group, (keys, values), visible in zip(self.groups, self.rows, self.masks[spec.window], strict=True):
            keys[layer, group.stored :] = group.together(k)  # [T, nK, Ek]
            values[layer, group.stored :] = group.together(v)
            own = None if sinks is None else np.tile(sinks, group.count)
            output = attend_in_blocks(group.together(q), keys[layer], values[layer], spec, visible, own)
            outputs.append(group.apart(output))
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)  # [T, H, Ev]

    def commit(self, kept: Int[np.ndarray, "kept"] | None = None) -> None:
        """See `View.commit`: what stays of a chain is its beginning, so nothing has to move."""
        self._check_open()
        check_kept(kept, self.lengths, None)
        start = 0
        for sequence, new in zip(self.sequences, self.lengths, strict=True):
            stays = new if kept is None else int(np.count_nonzero((start <= kept) & (kept < start + new)))
            self.cache.lengths[sequence] += stays
            start += new
        self.cache.open_view = None

    def _check_open(self) -> None:
        if self.cache.open_view is not self:
            raise ValueError("this view was committed, or another one was opened; open the next step with cache.step")


@dataclass(frozen=True)
class Group:
    """`count` sequences that are neighbours in a step and in the cache, with `stored` tokens and `new` ones each.

    For attention they are one sequence with `count` times the heads, so one call serves a whole batch. heads: theirs
    among the key/value heads of all sequences. span: on the flat axis.
    """

    count: int
    stored: int
    new: int
    heads: slice
    span: slice

    def rows(self, memory: Float[np.ndarray, "L heads room E"]) -> Float[np.ndarray, "L S nK E"]:
        """A view of their rows of the cache, as far as this step fills them."""
        return memory[:, self.heads, : self.stored + self.new].swapaxes(1, 2)

    def together(self, x: Float[np.ndarray, "all H E"]) -> Float[np.ndarray, "T nH E"]:
        """Their part of the flat axis, the heads of all of them side by side."""
        mine = x[self.span]  # [n·T, H, E]
        if self.count == 1:
            return mine
        _, H, E = mine.shape
        return mine.reshape(self.count, self.new, H, E).swapaxes(0, 1).reshape(self.new, self.count * H, E)

    def apart(self, x: Float[np.ndarray, "T nH E"]) -> Float[np.ndarray, "nT H E"]:
        """Back to one sequence after the other."""
        if self.count == 1:
            return x
        T, heads, E = x.shape
        apart = x.reshape(T, self.count, heads // self.count, E).swapaxes(0, 1)
        return apart.reshape(self.count * T, heads // self.count, E)


def grouped(sequences: Sequence[int], lengths: Sequence[int], stored: Sequence[int], kv_heads: int) -> list[Group]:
    """As few groups as the order of the step allows."""
    runs: list[list[int]] = []  # [first sequence, how many, stored, new]
    for sequence, new, before in zip(sequences, lengths, stored, strict=True):
        if runs and runs[-1] == [sequence - runs[-1][1], runs[-1][1], before, new]:
            runs[-1][1] += 1
        else:
            runs.append([sequence, 1, before, new])
    groups, start = [], 0
    for first, count, before, new in runs:
        heads = slice(first * kv_heads, (first + count) * kv_heads)
        span = slice(start, start + count * new)
        groups.append(Group(count, before, new, heads, span))
        start = span.stop
    return groups
