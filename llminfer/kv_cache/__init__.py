"""Chapter 3.2, the KV cache: what it saves, how large it is, and what can be left out of it.

Sizes: `kv_formats`, `sizes`, `size_reports`. Caches that change nothing: `contiguous`, `sliding_window`, made of `rows`
and `layer_stores`.
"""

from llminfer.core.public_names import Section, lazily

SECTIONS = (
    Section(
        "3.2.1",
        "How large the cache is",
        {
            "bytes_per_token": "sizes",
            "cache_bytes": "sizes",
            "memory_need": "sizes",
            "MemoryNeed": "sizes",
            "activation_bytes": "sizes",
            "max_batch": "sizes",
            "kv_format": "kv_formats",
            "KVFormat": "kv_formats",
            "PlainFormat": "kv_formats",
            "size_report": "size_reports",
            "models_report": "size_reports",
            "describe_model": "size_reports",
        },
    ),
    Section(
        "3.2.2",
        "The contiguous cache",
        {
            "KVCache": "contiguous",
        },
    ),
    Section(
        "3.2.3",
        "Sharing heads, and the latent: MQA, GQA, MLA",
        {
            "attention_kind": "sizes",
        },
    ),
    Section(
        "3.2.4",
        "Windows and sinks",
        {
            "SlidingWindowCache": "sliding_window",
        },
    ),
    Section(
        "3.2.5",
        "Keeping only what matters",
        {},
    ),
    Section(
        "3.2.6",
        "Fewer bits",
        {
            "ScaledFormat": "kv_formats",
            "GroupedFormat": "kv_formats",
        },
    ),
)

__getattr__, __dir__, __all__ = lazily(__name__, SECTIONS)
