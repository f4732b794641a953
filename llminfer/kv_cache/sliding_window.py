"""A cache that keeps no more than a layer's window can see, beside whole ones for the layers that see everything."""

from llminfer.basics.config import ModelConfig
from llminfer.kv_cache.contiguous import KVCache
from llminfer.kv_cache.layer_stores import LayerStore, RingStore, WholeStore


class SlidingWindowCache(KVCache):
    """As `KVCache`, but a layer with a window keeps its latest `window + max_rollback` tokens only, in a ring.

    Gives what `KVCache` gives. `truncate` is exact at least max_rollback tokens back from the longest the sequence has
    been since it last was empty, and to nothing; where the ring no longer holds what is needed it raises ValueError.
    Layers without a window (Gemma 3 and gpt-oss mix both) keep everything. Raises ValueError for a model that has no
    window and for a negative max_rollback. Source: Beltagy et al. 2020; Mistral 7B, section 2. Book section 3.2.4.
    """

    def __init__(
        self, config: ModelConfig, sequences: int, capacity: int, max_rollback: int = 0, dtype: str = "float32"
    ) -> None:
        if max_rollback < 0:
            raise ValueError(f"max_rollback must not be negative, got {max_rollback}")
        if not any(config.window(layer) for layer in range(config.layers)):
            raise ValueError(f"no layer of {config.name!r} has a window; use KVCache")
        self.max_rollback = max_rollback
        super().__init__(config, sequences, capacity, dtype)

    def _store(self, layer: int) -> LayerStore:
        spec = self.config.attention(layer)
        if spec.window is None or spec.window + self.max_rollback >= self.rows.capacity:
            return WholeStore(spec, self.rows.count, self.rows.capacity, self.dtype)
        return RingStore(spec, self.rows.count, self.max_rollback, self.dtype)
