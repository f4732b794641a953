"""What the benchmark compares: the steps that are taken, and our side of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from contiguous_cache import ContiguousCache
from jaxtyping import Float, Int

from llminfer.basics.config import ModelConfig
from llminfer.basics.steps import Segment, decode, prefill
from llminfer.basics.transformer import Transformer

STEPS = 4  # that a decode takes in one round, after one to warm up

Step = Callable[[], np.ndarray]  # one forward pass -> logits [R, V]


@dataclass(frozen=True)
class Case:
    """One kind of step: `batch` sequences that have `context` tokens stored bring `new` ones each."""

    batch: int
    context: int
    new: int = 1

    @property
    def is_prefill(self) -> bool:
        return self.new > 1

    @property
    def name(self) -> str:
        return f"prefill {self.new}" if self.is_prefill else f"decode {self.batch} x {self.context}"

    @property
    def tokens(self) -> int:
        return self.batch * self.new

    @property
    def steps(self) -> int:
        return 1 if self.is_prefill else STEPS

    @property
    def room(self) -> int:
        """How many tokens a sequence has at the end of a round."""
        return self.new if self.is_prefill else self.context + 1 + STEPS

    @property
    def segments(self) -> list[Segment]:
        return prefill(self.new, self.batch) if self.is_prefill else decode(self.context, self.batch)

    def ids(self, config: ModelConfig) -> Int[np.ndarray, "T"]:
        """The tokens that the step brings: any will do, if all sides have the same."""
        return np.random.default_rng(self.tokens).integers(0, config.vocabulary, self.tokens)


def cases(config: ModelConfig) -> list[Case]:
    """The steps that are measured, within the context that the model has."""
    long = min(512, config.context // 2)
    return [Case(1, 16), Case(1, long), Case(16, 16), Case(16, long), Case(1, 0, long)]


@runtime_checkable
class Side(Protocol):
    """One of those that are compared."""

    def open(self, case: Case, stored: ContiguousCache) -> Step:
        """A step that can be taken again and again; every sequence of a decode begins with the tokens of `stored`."""
        ...


class NumPySide:
    """The model of this library, with the contiguous cache."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def open(self, case: Case, stored: ContiguousCache) -> Step:
        """See `Side.open`."""
        config = self.model.config
        cache = ContiguousCache(config, case.batch, case.room)
        for mine, given in ((cache.keys, stored.keys), (cache.values, stored.values)):
            mine[:, :, : case.context] = np.tile(given[:, :, : case.context], (1, case.batch, 1, 1))
        cache.lengths = [case.context] * case.batch
        return partial(self._prefill if case.is_prefill else self._decode, cache, case.ids(config))

    def store(self, tokens: int) -> ContiguousCache:
        """One sequence of so many tokens, stored."""
        cache = ContiguousCache(self.model.config, 1, tokens)
        self._prefill(cache, Case(1, 0, tokens).ids(self.model.config))
        return cache

    def _prefill(self, cache: ContiguousCache, ids: Int[np.ndarray, "T"]) -> Float[np.ndarray, "1 V"]:
        cache.free(0)
        view = cache.step([0], [len(ids)])
        hidden = self.model.hidden(ids, np.arange(len(ids)), view)  # [T, D]
        view.commit()
        return self.model.head(hidden[-1:])

    def _decode(self, cache: ContiguousCache, ids: Int[np.ndarray, "B"]) -> Float[np.ndarray, "B V"]:
        positions = np.array(cache.lengths)  # [B]
        view = cache.step(range(len(ids)), [1] * len(ids))
        hidden = self.model.hidden(ids, positions, view)  # [B, D]
        view.commit()
        return self.model.head(hidden)


def products(model: Transformer, case: Case) -> Callable[[], None]:
    """All products with weights of a step, one after another and nothing in between: what BLAS takes for them."""
    tables = ("embedding", "position_embedding", "head")
    matrices = [w for name, w in model.weights.items() if len(w.shape) == 2 and name not in tables]
    pairs = [(np.ones((case.tokens, w.shape[0]), np.float32), w) for w in matrices]
    pairs.append((np.ones((case.batch, model.config.width), np.float32), model.unembedding))

    def multiply() -> None:
        for x, weight in pairs:
            x @ weight

    return multiply


def gemv(matrix_bytes: int) -> Callable[[], object]:
    """A matrix of so many bytes times a vector: the fastest way to read what is needed once."""
    matrix, vector = np.ones((max(matrix_bytes // 16384, 1), 4096), np.float32), np.ones(4096, np.float32)
    out = np.empty(len(matrix), np.float32)
    return lambda: np.matmul(matrix, vector, out=out)


def gemm(rows: int, inputs: int, outputs: int) -> Callable[[], object]:
    """One product of matrices large enough to keep the arithmetic busy."""
    x, weight = np.ones((rows, inputs), np.float32), np.ones((inputs, outputs), np.float32)
    out = np.empty((rows, outputs), np.float32)
    return lambda: np.matmul(x, weight, out=out)


def gemm_shape(config: ModelConfig) -> tuple[int, int, int]:
    """Rows, inputs and outputs of the widest product of a layer, with a prompt of 512 tokens."""
    return 512, config.width, 2 * config.feed_forward
