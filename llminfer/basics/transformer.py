"""One Transformer for every family: GPT-2, Llama, Mistral, Qwen, Gemma, their mixtures of experts, and DeepSeek's MLA.

Families differ by `ModelConfig` alone. All sequences of a step lie one after another on one flat axis T. Four doors
lead out of here: `ops` (norm, rotation, activation), the memory `view` (attention), the weights on the right of `@`,
and `experts`. What stands behind them may be NumPy or torch, dense or quantized, whole or a shard.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from llminfer.basics import ops as numpy_ops
from llminfer.basics.config import ModelConfig, RopeSpec
from llminfer.basics.experts import LoopExperts
from llminfer.basics.memory import View
from llminfer.basics.rotary import rope_frequencies
from llminfer.basics.weights import checked_weights


@dataclass(frozen=True)
class Tapped:
    """What `hidden` returns when it was asked for taps: the last hidden states, and those after each tapped layer."""

    last: Float[Any, "T D"]
    after: Mapping[int, Float[Any, "T D"]]


class Transformer:
    """A decoder-only Transformer: token ids to hidden states, hidden states to logits. It keeps no state between calls.

    weights: named as in `parameters.weight_shapes(config)`; arrays or `Weight`s.
    ops: the small functions of a layer, `ops` for NumPy arrays or `ops_triton` for torch tensors.
    experts: makes the routed experts of a layer; see `experts.Experts`.
    Raises ValueError when weights are missing, misshapen or left over.
    Sources: Vaswani et al. 2017; Radford et al. 2019 (GPT-2); Touvron et al. 2023 (Llama). Book section 3.1.2.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Mapping[str, Any],
        ops: ModuleType = numpy_ops,
        experts: Callable = LoopExperts,
    ) -> None:
        if not hasattr(ops, config.activation):
            raise ValueError(f"{ops.__name__} lacks the activation {config.activation!r} that {config.name!r} needs")
        self.config = config
        self.ops = ops
        self.activation = getattr(ops, config.activation)
        self.weights = checked_weights(config, weights)
        self.layers = [_of_layer(self.weights, layer) for layer in range(config.layers)]
        self.unembedding = self.weights["embedding"].T if config.tied else self.weights["head"]  # [D, V]
        rotations = {spec: _rotation(config, spec, ops) for spec in map(config.rope_of, range(config.layers))}
        self.rotations = [rotations[config.rope_of(layer)] for layer in range(config.layers)]
        self.experts = {
            layer: experts(config.moe, self.layers[layer], self.activation)
            for layer in range(config.layers)
            if config.is_moe(layer)
        }

    def hidden(
        self,
        tokens: Int[Any, "T"],
        positions: Int[Any, "T"],
        view: View,
        taps: Collection[int] = (),
        layers: range | None = None,
    ) -> Float[Any, "T D"] | Tapped:
        """Token ids through the embedding and the layers (None: all of them), ready for `head` or `run_layers`.

        The result is the residual stream, before the final norm. With `taps` it is a `Tapped` instead, which also has
        the stream after each of those layers. `positions` only rotate queries and keys, or pick learned embeddings;
        what a token sees is the view's affair.
        Raises ValueError for ids or positions out of range, unequal lengths, or the view of another model, and
        TypeError for ids or positions that are not integers.
        """
        return self.run_layers(self.embed(tokens, positions), positions, view, taps, layers)

    def embed(self, tokens: Int[Any, "T"], positions: Int[Any, "T"]) -> Float[Any, "T D"]:
        """The hidden states that enter layer 0."""
        config = self.config
        if tokens.shape != positions.shape:
            raise ValueError(f"every token needs a position, got {len(tokens)} tokens and {len(positions)} positions")
        _check_range("token ids", tokens, config.vocabulary)
        _check_integers("positions", positions)
        x = self.weights["embedding"].rows(tokens)  # [T, D]
        if config.positions == "learned":
            _check_range("positions", positions, config.context)
            x = x + self.weights["position_embedding"].rows(positions)
        return x if config.embedding_scale == 1 else x * config.embedding_scale

    def run_layers(
        self,
        x: Float[Any, "T D"],
        positions: Int[Any, "T"],
        view: View,
        taps: Collection[int] = (),
        layers: range | None = None,
    ) -> Float[Any, "T D"] | Tapped:
        """Hidden states through some layers, as a later stage of a pipeline does; otherwise as `hidden`."""
        layers = range(self.config.layers) if layers is None else layers
        self._check_run(x, positions, view, taps, layers)
        # angles once a step: layers with the same RoPE share them
        rotate = {make: make(positions, dtype=x.dtype) for make in {self.rotations[layer] for layer in layers}}
        after = {}
        for layer in layers:
            x = self._layer(layer, x, rotate[self.rotations[layer]], view)  # [T, D]
            if layer in taps:
                after[layer] = x
        return Tapped(x, after) if taps else x

    def head(self, hidden: Float[Any, "R D"]) -> Float[Any, "R V"]:
        """Logits for those rows of the hidden states that will be sampled from: the final norm, then the LM head."""
        logits = self._norm(hidden, self.weights, "final_norm") @ self.unembedding  # [R, D] @ [D, V] -> [R, V]
        cap = self.config.final_soft_cap
        return cap * self.ops.tanh(logits / cap) if cap else logits

    def _layer(self, layer: int, x: Float[Any, "T D"], rotate: Callable, view: View) -> Float[Any, "T D"]:
        """Attention, then feed-forward; each reads the normed stream and adds what it found to the stream."""
        w, post_norms = self.layers[layer], self.config.post_norms
        attention = self._latent_attention if self.config.mla else self._attention

        found = attention(layer, self._norm(x, w, "attention_norm"), rotate, view)  # [T, D]
        x = x + (self._norm(found, w, "post_attention_norm") if post_norms else found)
        found = self._feed_forward(layer, self._norm(x, w, "feed_forward_norm"))  # [T, D]
        return x + (self._norm(found, w, "post_feed_forward_norm") if post_norms else found)

    def _attention(self, layer: int, h: Float[Any, "T D"], rotate: Callable, view: View) -> Float[Any, "T D"]:
        """Grouped-query attention: H query heads, K key/value heads."""
        w, config, ops = self.layers[layer], self.config, self.ops
        T, H, K, E = len(h), config.heads, config.kv_heads, config.head_width

        qkv = _linear(h, w, "qkv").reshape(T, H + 2 * K, E)  # [T, D] -> [T, H + 2K, E]
        qk, v = qkv[:, : H + K], qkv[:, H + K :]  # queries and keys stay side by side: both are rotated
        if config.qk_norm:
            q = ops.rmsnorm(qk[:, :H], w["q_norm"], config.norm_eps)
            k = ops.rmsnorm(qk[:, H:], w["k_norm"], config.norm_eps)
            qk = ops.concatenate([q, k], 1)
        qk = rotate(qk)
        o = view.attend(layer, qk[:, :H], qk[:, H:], v, w.get("sinks"))  # [T, H, E]
        return _linear(o.reshape(T, H * E), w, "output")  # [T, D]

    def _latent_attention(self, layer: int, h: Float[Any, "T D"], rotate: Callable, view: View) -> Float[Any, "T D"]:
        """MLA, absorbed: k_up is applied to queries and v_up to outputs, so that all heads share one latent a token.

        Source: DeepSeek-V2, sections 2.1.2 and 2.1.3.
        """
        w, config, mla, ops = self.layers[layer], self.config, self.config.mla, self.ops
        T, H, rank = len(h), config.heads, mla.kv_rank

        if mla.q_rank:
            h_q, q_up = ops.rmsnorm(h @ w["q_down"], w["q_latent_norm"], config.norm_eps), w["q_up"]
        else:
            h_q, q_up = h, w["q"]
        q = (h_q @ q_up).reshape(T, H, mla.nope_width + mla.rope_width)
        q_nope, q_rope = q[..., : mla.nope_width], q[..., mla.nope_width :]
        q_latent = (q_nope.swapaxes(0, 1) @ w["k_up"]).swapaxes(0, 1)  # [H, T, nope] @ [H, nope, rank] -> [T, H, rank]
        q = ops.concatenate([q_latent, rotate(q_rope)], -1)  # [T, H, rank + rope]

        kv = h @ w["kv_down"]  # [T, rank + rope]
        latent = ops.rmsnorm(kv[:, :rank], w["kv_latent_norm"], config.norm_eps)[:, None]  # [T, 1, rank]
        k = ops.concatenate([latent, rotate(kv[:, None, rank:])], -1)  # [T, 1, rank + rope]

        o = view.attend(layer, q, k, latent)  # [T, H, rank]
        o = (o.swapaxes(0, 1) @ w["v_up"]).swapaxes(0, 1)  # [H, T, rank] @ [H, rank, value] -> [T, H, value]
        return o.reshape(T, H * mla.value_width) @ w["output"]  # [T, D]

    def _feed_forward(self, layer: int, h: Float[Any, "T D"]) -> Float[Any, "T D"]:
        """A dense block; or routed experts, and beside them perhaps a shared one that every token meets."""
        w = self.layers[layer]
        if not self.config.is_moe(layer):
            return self._mlp(h, w)
        routed = self.experts[layer](h, h @ w["router"])  # [T, D], router logits [T, X]
        return routed + self._mlp(h, w, "shared.") if self.config.moe.shared_width else routed

    def _mlp(self, h: Float[Any, "T D"], w: Mapping[str, Any], prefix: str = "") -> Float[Any, "T D"]:
        up = prefix + ("up" if prefix + "up" in w else "gate_up")  # without or with a gate
        return _linear(self.activation(_linear(h, w, up)), w, prefix + "down")  # [T, D] -> [T, F] -> [T, D]

    def _norm(self, x: Float[Any, "T D"], w: Mapping[str, Any], name: str) -> Float[Any, "T D"]:
        if self.config.norm == "layernorm":
            return self.ops.layernorm(x, w[name], w[name + ".bias"], self.config.norm_eps)
        return self.ops.rmsnorm(x, w[name], self.config.norm_eps)

    def _check_run(self, x: Any, positions: Any, view: View, taps: Collection[int], layers: range) -> None:
        config = self.config
        if tuple(x.shape) != (len(positions), config.width):
            raise ValueError(
                f"hidden states must be [{len(positions)}, {config.width}], positions by model width, "
                f"got {tuple(x.shape)}"
            )
        if view.config != config:
            differing = [f.name for f in fields(config) if getattr(config, f.name) != getattr(view.config, f.name)]
            raise ValueError(
                f"the view is of {view.config.name!r}, the model is {config.name!r}, they differ in "
                f"{', '.join(differing)}; open the view on a cache made with model.config"
            )
        if not set(taps) <= set(layers) <= set(range(config.layers)):
            raise ValueError(
                f"taps must lie among the layers that run, and these within 0..{config.layers - 1}, "
                f"got taps {tuple(taps)} and layers {layers}"
            )


def _of_layer(weights: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """The weights of one layer, by their names within it."""
    prefix = f"layers.{layer}."
    return {name.removeprefix(prefix): weight for name, weight in weights.items() if name.startswith(prefix)}


def _rotation(config: ModelConfig, spec: RopeSpec, ops: ModuleType) -> Callable:
    """From positions and a dtype to what turns queries and keys; nothing does where positions are learned."""
    if config.positions == "learned":
        return lambda positions, dtype: lambda x: x
    return partial(
        ops.rotation,
        frequencies=ops.asarray(rope_frequencies(spec, config.rope_width)),
        interleaved=spec.interleaved,
        attention_factor=spec.attention_factor,
    )


def _linear(x: Float[Any, "T N"], w: Mapping[str, Any], name: str) -> Float[Any, "T M"]:
    """x @ W, and the bias where the family has one."""
    y = x @ w[name]
    return y + w[name + ".bias"] if name + ".bias" in w else y


def _check_integers(what: str, ids: Any) -> None:
    if isinstance(ids, np.ndarray) and not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"{what} must be integers, got {ids.dtype}; if they are whole numbers, ids.astype(np.int64)")


def _check_range(what: str, ids: Any, size: int) -> None:
    """Only in NumPy, which would take -1 for the last one; on a GPU a look at the numbers would stop the queue."""
    _check_integers(what, ids)
    if isinstance(ids, np.ndarray) and ids.size and not (0 <= ids.min() and ids.max() < size):
        raise ValueError(f"{what} must lie in 0..{size - 1}, got {ids.min()}..{ids.max()}")
