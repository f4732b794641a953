"""Where one layer's keys and values lie: whole, or as a ring that forgets what no query can see any more.

A store knows rows, not sequences, and takes new tokens in two steps, as every cache must: `extend` shows them behind
those that are stored without changing these, `keep` makes some of them stay.
"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics.config import AttentionSpec

Stored = tuple[np.ndarray, np.ndarray, int]  # keys [S, K, Ek], values [S, K, Ev], position of the first


@runtime_checkable
class LayerStore(Protocol):
    """Keys and values of one layer, `length` tokens in each row; the caller remembers the lengths."""

    nbytes: int

    def begin(self) -> None:
        """A step begins: what an earlier one showed and nobody kept is forgotten."""
        ...

    def extend(self, row: int, length: int, k: Float[Any, "T K Ek"], v: Float[Any, "T K Ev"]) -> Stored:
        """What the row's new tokens may see: stored keys and values, then theirs. Valid until the next call."""
        ...

    def keep(self, row: int, length: int, kept: Int[np.ndarray, "kept"]) -> None:
        """Of the tokens that `extend` showed last for this row, those at these places stay, one behind the other.

        Nothing happens where none were shown: a stage of a pipeline runs some of the layers.
        """
        ...

    def can_truncate(self, row: int, length: int, to: int) -> bool:
        """Whether the row can go back to `to` tokens and then give what it would have given had it never grown."""
        ...

    def copy(self, row: int, into: int, length: int) -> None:
        """Make another row hold the same."""
        ...


class WholeStore:
    """Every token has a slot of its own, taken once: [rows, K, capacity, E], so that what one head reads is one piece.

    Where values are the beginning of the keys (absorbed MLA) only keys are stored.
    """

    def __init__(self, spec: AttentionSpec, rows: int, capacity: int, dtype: str) -> None:
        self.spec = spec
        self.keys = np.zeros((rows, spec.kv_heads, capacity, spec.key_width), dtype)
        width = 0 if spec.shared_kv else spec.value_width
        self.values = np.zeros((rows, spec.kv_heads, capacity, width), dtype)
        self.nbytes = self.keys.nbytes + self.values.nbytes

    def begin(self) -> None:
        """Nothing waits."""

    def extend(self, row: int, length: int, k: Float[Any, "T K Ek"], v: Float[Any, "T K Ev"]) -> Stored:
        """See `LayerStore.extend`. New tokens lie behind the row's end, where nobody looks until they are kept."""
        end = length + len(k)
        self.keys[row, :, length:end] = k.swapaxes(0, 1)  # [T, K, Ek] -> [K, T, Ek]
        keys = self.keys[row, :, :end].swapaxes(0, 1)  # [S, K, Ek], a view
        if self.spec.shared_kv:
            return keys, keys[..., : self.spec.value_width], 0
        self.values[row, :, length:end] = v.swapaxes(0, 1)
        return keys, self.values[row, :, :end].swapaxes(0, 1), 0

    def keep(self, row: int, length: int, kept: Int[np.ndarray, "kept"]) -> None:
        """See `LayerStore.keep`. What stays of a chain is its beginning, which need not move."""
        if np.array_equal(kept, np.arange(len(kept))):
            return
        for array in (self.keys, self.values):
            slots = array[row]  # [K, capacity, E]; one index at a time, as NumPy moves axes when an array and 3 mix
            slots[:, length : length + len(kept)] = slots[:, length + kept]

    def can_truncate(self, row: int, length: int, to: int) -> bool:
        return True

    def copy(self, row: int, into: int, length: int) -> None:
        for array in (self.keys, self.values):
            array[into, :, :length] = array[row, :, :length]


class RingStore:
    """The latest `window + max_rollback` tokens of each row; a token's slot is its position modulo the ring's size.

    A token sees the window - 1 before it. The rest is what allows `truncate`: after max_rollback tokens (and one more,
    as a window counts the token itself) were taken back, the window of the next one is still whole. New tokens wait
    beside the ring until they are kept, for they would overwrite what must be there if they are not.
    """

    def __init__(self, spec: AttentionSpec, rows: int, max_rollback: int, dtype: str) -> None:
        self.spec = spec
        self.size = spec.window + max_rollback
        self.keys = np.zeros((rows, spec.kv_heads, self.size, spec.key_width), dtype)
        self.values = np.zeros((rows, spec.kv_heads, self.size, spec.value_width), dtype)
        self.nbytes = self.keys.nbytes + self.values.nbytes
        self.oldest = [0] * rows  # position of the oldest token that the ring still holds
        self.waiting: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # row -> keys and values of new tokens

    def begin(self) -> None:
        """See `LayerStore.begin`."""
        self.waiting.clear()

    def extend(self, row: int, length: int, k: Float[Any, "T K Ek"], v: Float[Any, "T K Ev"]) -> Stored:
        """See `LayerStore.extend`: the ring laid out straight, then the new tokens."""
        new = np.array(k, self.keys.dtype), np.array(v, self.values.dtype)  # as they will be stored
        self.waiting[row] = new
        first = max(length - self.spec.window + 1, 0)
        slots = np.arange(first, length) % self.size
        keys, values = (
            np.concatenate([ring[row][:, slots].swapaxes(0, 1), added])  # [S, K, E]
            for ring, added in zip((self.keys, self.values), new, strict=True)
        )
        return keys, values, first

    def keep(self, row: int, length: int, kept: Int[np.ndarray, "kept"]) -> None:
        """See `LayerStore.keep`. Of more tokens than the ring has slots only the latest are written."""
        if row not in self.waiting:
            return
        new = self.waiting.pop(row)
        latest = kept[-self.size :]
        end = length + len(kept)
        slots = np.arange(end - len(latest), end) % self.size
        for ring, added in zip((self.keys, self.values), new, strict=True):
            ring[row][:, slots] = added[latest].swapaxes(0, 1)
        self.oldest[row] = max(self.oldest[row] if length else 0, end - self.size)

    def can_truncate(self, row: int, length: int, to: int) -> bool:
        """Only while the window before the row's new end is still in the ring; before an empty row there is none."""
        return to == 0 or self.oldest[row] <= max(to - self.spec.window + 1, 0)

    def copy(self, row: int, into: int, length: int) -> None:
        for ring in (self.keys, self.values):
            ring[into] = ring[row]
        self.oldest[into] = self.oldest[row]
