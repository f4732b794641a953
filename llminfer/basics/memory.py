"""The model's second door: what attention remembers.

A cache owns keys and values; a view is one forward pass over it: whose tokens, where they go, what each may see. The
model calls `view.attend` once a layer and knows nothing else. Two protocols are the contract; `NoCache`, which stores
nothing and recomputes everything, is the reference that every real cache must agree with.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from llminfer.basics.config import AttentionSpec, ModelConfig
from llminfer.basics.memory_checks import check_attend, check_kept, check_step


@runtime_checkable
class View(Protocol):
    """One forward pass of T tokens, opened by `Cache.step`; a cache has one open view at a time. Book section 3.1.2."""

    config: ModelConfig  # the model must have an equal one

    def attend(
        self,
        layer: int,
        q: Float[Any, "T H Ek"],
        k: Float[Any, "T K Ek"],
        v: Float[Any, "T K Ev"],
        sinks: Float[Any, "H"] | None = None,
    ) -> Float[Any, "T H Ev"]:
        """Take in the keys and values of this step's tokens, then attend from each token to all that it sees.

        Called once for each layer that runs. Scale, window, soft cap and widths are those of `config.attention(layer)`;
        where it says shared_kv, v is the beginning of k and need not be stored. `sinks` are the layer's learned logits.
        Keeps no reference to its arguments; the result is the caller's. Raises ValueError when a shape is not the
        config's or the view is no longer open.
        """
        ...

    def commit(self, kept: Int[np.ndarray, "kept"] | None = None) -> None:
        """Close the step: the tokens at these places of the flat axis stay (None: all); the others never happened.

        `kept` ascends, and holds a token's parent wherever it holds the token. Only now do sequences grow and can
        blocks be hashed and shared. A view that is never committed leaves the cache as it was.
        Raises ValueError for a `kept` that breaks these rules, and for a second commit.
        """
        ...


@runtime_checkable
class Cache(Protocol):
    """Keys and values of many sequences, each known by an integer id that the caller chooses. Book section 3.1.2."""

    config: ModelConfig

    def step(
        self, sequences: Sequence[int], lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None = None
    ) -> View:
        """Open a forward pass in which lengths[i] new tokens of sequences[i] lie one sequence after another on axis T.

        Without `parents` a sequence's tokens follow what it has stored, in order. With them they form trees: parents[t]
        is the place on the flat axis of the token that t follows, or -1 if it follows the stored ones; a token sees
        these, its ancestors and itself. An id never seen before starts an empty sequence. A view that is still open is
        dropped, as if it had never been.
        Raises ValueError for repeated ids, lengths below 1, or a parent outside its sequence or not before its child.
        """
        ...

    def length(self, sequence: int) -> int:
        """How many tokens of the sequence are stored: only those after them need be sent. 0 for an unknown id."""
        ...

    def free(self, sequence: int) -> None:
        """Forget the sequence and give its memory back; nothing happens for an unknown id."""
        ...


def attend(
    q: Float[np.ndarray, "T H Ek"],
    k: Float[np.ndarray, "S K Ek"],
    v: Float[np.ndarray, "S K Ev"],
    spec: AttentionSpec,
    visible: Bool[np.ndarray, "T S"],
    sinks: Float[np.ndarray, "H"] | None = None,
) -> Float[np.ndarray, "T H Ev"]:
    """Grouped-query attention of one sequence, in the open: scores, mask, softmax, weighted sum of values.

    Query head h reads key/value head h // (H/K). Each token must see something, or have a sink.
    Sources: Vaswani et al. 2017, eq. 1; Ainslie et al. 2023 (groups); Gemma 2 (soft cap); gpt-oss (sinks).
    Book section 3.1.2.
    """
    (T, H, E), (S, K, _) = q.shape, k.shape
    G = H // K
    grouped = spec.scale * q.reshape(T, K, G, E).transpose(1, 2, 0, 3)  # [T, H, Ek] -> [K, G, T, Ek]
    # Queries of a group share keys: one matrix product serves them all. A single token's are faster one by one.
    fold = (K, 1, G * T) if T > 1 else (K, G, 1)
    scores = (grouped.reshape(*fold, E) @ k.transpose(1, 2, 0)[:, None]).reshape(K, G, T, S)
    if spec.soft_cap:
        scores = spec.soft_cap * np.tanh(scores / spec.soft_cap)
    np.copyto(scores, -np.inf, where=~visible)  # in place, as below: new arrays would double the time
    peak = scores.max(axis=-1, keepdims=True)  # [K, G, T, 1]
    if sinks is not None:
        sinks = sinks.reshape(K, G, 1, 1)  # [H] -> [K, G, 1, 1]
        peak = np.maximum(peak, sinks)
    scores -= peak
    weights = np.exp(scores, out=scores)
    total = weights.sum(axis=-1, keepdims=True)  # [K, G, T, 1]
    if sinks is not None:
        total = total + np.exp(sinks - peak)  # a sink takes its share of the softmax and gives nothing back
    output = (weights.reshape(*fold, S) @ v.transpose(1, 0, 2)[:, None]).reshape(K, G, T, -1) / total
    return output.transpose(2, 0, 1, 3).reshape(T, H, -1)  # [T, H, Ev]


def attend_in_blocks(
    q: Float[np.ndarray, "T H Ek"],
    k: Float[np.ndarray, "S K Ek"],
    v: Float[np.ndarray, "S K Ev"],
    spec: AttentionSpec,
    visible: Bool[np.ndarray, "T S"],
    sinks: Float[np.ndarray, "H"] | None = None,
    block: int = 64,
) -> Float[np.ndarray, "T H Ev"]:
    """`attend`, a block of queries at a time and over no more keys than the block sees: less work, and in the cache.

    All scores of a prompt at once are too large for the processor's cache, and nearly half of them are masked.
    """
    if len(q) <= block:
        return attend(q, k, v, spec, visible, sinks)
    outputs = []
    for start in range(0, len(q), block):
        rows = slice(start, start + block)
        seen = np.flatnonzero(visible[rows].any(axis=0))  # the keys that some query of the block sees
        keys = slice(seen[0], seen[-1] + 1) if seen.size else slice(1)
        outputs.append(attend(q[rows], k[keys], v[keys], spec, visible[rows, keys], sinks))
    return np.concatenate(outputs)  # [T, H, Ev]


def causal(new: int, window: int | None = None, stored: int = 0) -> Bool[np.ndarray, "T S"]:
    """What `new` tokens after `stored` ones see: those before them and themselves, only the `window` latest.

    Raises ValueError for a window below 1; None is no window.
    """
    _check_window(window)
    S = stored + new
    distance = np.arange(stored, S)[:, None] - np.arange(S)  # [T, S], how far behind the query a key lies
    return (distance >= 0) & (distance < (window or S))


def ancestors(parents: Int[np.ndarray, "T"], window: int | None = None) -> Bool[np.ndarray, "T T"]:
    """Who sees whom in a tree of tokens: the path to its root. Parents stand before children; a root's is negative.

    Raises ValueError for a window below 1; None is no window.
    """
    _check_window(window)
    visible = np.eye(len(parents), dtype=bool)
    for token, parent in enumerate(parents):
        if parent >= 0:
            visible[token] |= visible[parent]
    depth = visible.sum(axis=1)  # [T], siblings share one
    return visible & (depth[:, None] - depth < (window or len(parents)))


class RecomputingView:
    """The view of `NoCache`: attention over this step's own keys and values, sequence by sequence."""

    attention = staticmethod(attend_in_blocks)
    join = staticmethod(np.concatenate)

    def __init__(self, config: ModelConfig, lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None) -> None:
        ends = np.cumsum(lengths).tolist()
        self.config = config
        self.lengths = lengths
        self.parents = parents
        self.spans = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]  # on the flat axis
        self.masks: dict[int | None, list] = {}  # window -> one mask a sequence, made when a layer first asks
        self.open = True

    def attend(
        self,
        layer: int,
        q: Float[Any, "T H Ek"],
        k: Float[Any, "T K Ek"],
        v: Float[Any, "T K Ev"],
        sinks: Float[Any, "H"] | None = None,
    ) -> Float[Any, "T H Ev"]:
        """See `View.attend`."""
        spec = self.config.attention(layer)
        if not self.open:
            raise ValueError("this view was committed; open the next step with cache.step")
        check_attend(self.config, spec, self.spans[-1].stop, q, k, v, sinks)
        if spec.window not in self.masks:
            self.masks[spec.window] = [self._mask(span, spec.window) for span in self.spans]
        outputs = [
            self.attention(q[span], k[span], v[span], spec, visible, sinks)
            for span, visible in zip(self.spans, self.masks[spec.window], strict=True)
        ]
        return outputs[0] if len(outputs) == 1 else self.join(outputs)  # [T, H, Ev]

    def commit(self, kept: Int[np.ndarray, "kept"] | None = None) -> None:
        """See `View.commit`; there is nothing to publish, but the rules are those of every cache."""
        if not self.open:
            raise ValueError("this view was committed before; open the next step with cache.step")
        check_kept(kept, self.lengths, self.parents)
        self.open = False

    def _mask(self, span: slice, window: int | None) -> Bool[np.ndarray, "S S"]:
        if self.parents is None:
            return causal(span.stop - span.start, window)
        return ancestors(self.parents[span] - span.start, window)  # a root's -1 stays negative


class NoCache:
    """A cache that stores nothing: every step brings whole sequences, and each is attended to by itself.

    The reference for every other cache, and the cost without one: tokens seen before are computed again each step.
    Book section 3.1.2.
    """

    view = RecomputingView

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def step(
        self, sequences: Sequence[int], lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None = None
    ) -> RecomputingView:
        """A view in which each sequence is all of itself; see `Cache.step`."""
        check_step(sequences, lengths, parents)
        return self.view(self.config, lengths, parents)

    def length(self, sequence: int) -> int:
        """Always 0: nothing is stored, so everything must be sent."""
        return 0

    def free(self, sequence: int) -> None:
        """Nothing to forget."""


def _check_window(window: int | None) -> None:
    if window is not None and window < 1:
        raise ValueError(f"a window must be at least 1 token, or None for no window, got {window}")
