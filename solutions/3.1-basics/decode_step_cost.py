"""What one decode step of a Heron costs: FLOPs, bytes read, bytes written.

Heron is the made-up family of `parameter_count`: pairs of layers that share keys and values, a gate a head, X experts a
layer, one table for embedding and head. Its attention sees a window and anchors (`grouped_attention_twist`). Its
designers promise that sharing keys and values makes decoding faster. Does it? Count, and see which of the three numbers
the sharing halves.

Task: write `decode_step_cost` for a batch of B sequences that take one token each.

Shapes: contexts [B], chosen [L, B, k] -> three numbers.
Book section 3.1.3. About 35 minutes.
"""

import numpy as np
from jaxtyping import Int


def decode_step_cost(
    config: dict[str, int],
    contexts: Int[np.ndarray, "B"],
    chosen: Int[np.ndarray, "L B k"],
    weight_bits: float,
    kv_bytes: float,
) -> dict[str, float]:
    """{"flops": ..., "read_bytes": ..., "write_bytes": ...} of one step, exactly.

    config: "layers" (even), "width", "heads", "kv_heads", "head_width", "experts", "expert_width", "vocabulary", as in
    `parameter_count`, and "window" and "anchors". contexts: how many tokens each sequence has in the cache; its new
    token comes behind them. chosen: the k experts of each token in each layer. A weight takes `weight_bits` bits, an
    element of a key or value `kv_bytes` bytes.

    - FLOPs: a multiply and an add are two. Count all matrix products: queries, keys and values (in the first layer of
      each pair), gates, output, router, experts, head (the embedding is looked up); and in attention, for each query
      head and each key that it sees, the score and the weighted sum. The new token sees its own key, the rest of the
      latest `window`, and the first `anchors`. Nothing else counts.
    - Bytes read: every weight that the step uses, once: matrices, norms (two a layer and the last), the experts that
      some token chose, the table as head, and beside it one row a token as embedding. And in every layer, for every
      sequence, the keys and values that the new token sees, but for its own, which are still on the chip.
    - Bytes written: the new keys and values.
    """
    L, D, H, K, E = (config[key] for key in ("layers", "width", "heads", "kv_heads", "head_width"))
    X, F, V = (config[key] for key in ("experts", "expert_width", "vocabulary"))
    window, anchors = config["window"], config["anchors"]
    B, k = chosen.shape[1:]
    makers = L // 2
    shared = L * (2 * D * H * E + D * H + D * X) + makers * 2 * D * K * E  # matrices that every token meets
    expert = 3 * D * F
    length = contexts + 1  # [B], with the new token
    visible = np.minimum(length, window) + np.minimum(anchors, np.maximum(length - window, 0))  # [B]
    flops = 2 * B * (shared + L * k * expert + D * V) + L * 4 * H * E * visible.sum()

    touched = sum(len(np.unique(layer)) for layer in chosen)  # distinct experts, however many tokens share them
    weights = shared + touched * expert + (2 * L + 1) * D + V * D + B * D
    token_bytes = 2 * K * E * kv_bytes
    read_bytes = weights * weight_bits / 8 + L * (visible - 1).sum() * token_bytes  # readers read as much as makers
    return {"flops": float(flops), "read_bytes": float(read_bytes), "write_bytes": float(makers * B * token_bytes)}
