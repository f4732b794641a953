"""Bug hunt: a layer of a Transformer that runs and is wrong.

This is one layer of a Llama without positions: RMSNorm, grouped-query attention, RMSNorm, SwiGLU, and what either block
finds is added to the residual stream. Nothing raises, every shape is right, and five mistakes are in it. Each is easily
made. Find them and mend them; names and arguments stay as they are.

    x                              [T, D]           the residual stream of T tokens
    weights["attention_norm"]      [D]              gain of the first norm
    weights["qkv"]                 [D, (H + 2K)E]   H queries, then K keys, then K values, each of width E
    weights["output"]              [HE, D]
    weights["feed_forward_norm"]   [D]              gain of the second norm
    weights["gate_up"]             [D, 2F]          F gates, then F ups
    weights["down"]                [F, D]
    returns                        [T, D]           in the dtype of x; x itself stays as it was

Query head h reads key/value head h // G with G = H / K. A token sees itself and all tokens before it.

Do not stare: make small inputs of which you know the answer, and silence parts. With "output" full of zeros attention
adds nothing. One token can only look at itself. With H = K = 1 there are no heads to mix up. The groups of cases go in
this order, so mend for the first one first.

Book section 3.1.2. About 30 minutes.
"""

import numpy as np
from jaxtyping import Float


def bug_hunt_block(
    x: Float[np.ndarray, "T D"], weights: dict[str, np.ndarray], heads: int, kv_heads: int, eps: float = 1e-5
) -> Float[np.ndarray, "T D"]:
    """The residual stream after one layer."""
    normed = rmsnorm(x, weights["attention_norm"], eps)
    x = x + attention(normed, weights["qkv"], heads, kv_heads) @ weights["output"]  # [T, HE] @ [HE, D]
    normed = rmsnorm(x, weights["feed_forward_norm"], eps)
    return x + swiglu(normed @ weights["gate_up"]) @ weights["down"]  # [T, F] @ [F, D]


def rmsnorm(x: Float[np.ndarray, "T D"], gain: Float[np.ndarray, "D"], eps: float) -> Float[np.ndarray, "T D"]:
    """Each token's vector at unit root mean square, times the gain."""
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + eps) * gain


def attention(
    normed: Float[np.ndarray, "T D"], qkv: Float[np.ndarray, "D QKV"], heads: int, kv_heads: int
) -> Float[np.ndarray, "T HE"]:
    """What each token gathers from those it sees: the results of its heads, one after another."""
    tokens = len(normed)
    width = qkv.shape[1] // (heads + 2 * kv_heads)
    projected = (normed @ qkv).reshape(tokens, heads + 2 * kv_heads, width).swapaxes(0, 1)  # [H + 2K, T, E]
    q, k, v = np.split(projected, [heads, heads + kv_heads])  # [H, T, E], [K, T, E], [K, T, E]
    k = np.repeat(k, heads // kv_heads, axis=0)  # [H, T, E]
    v = np.repeat(v, heads // kv_heads, axis=0)
    scores = q @ k.swapaxes(1, 2) / np.sqrt(width).astype(normed.dtype)  # [H, T, T]
    hidden = np.triu(np.ones((tokens, tokens), dtype=bool), k=1)
    mixed = softmax(np.where(hidden, -1e9, scores)) @ v  # [H, T, T] @ [H, T, E] -> [H, T, E]
    return mixed.swapaxes(0, 1).reshape(tokens, heads * width)


def softmax(scores: Float[np.ndarray, "H T T"]) -> Float[np.ndarray, "H T T"]:
    """e^score over the sum of its row."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def swiglu(gate_up: Float[np.ndarray, "T 2F"]) -> Float[np.ndarray, "T F"]:
    """silu(gate) times up, with silu(z) = z / (1 + e^-z)."""
    gate, up = np.split(gate_up, 2, axis=-1)
    return gate / (1 + np.exp(-gate)) * up
