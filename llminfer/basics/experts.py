"""The model's fourth door: a router chooses a few experts for each token, and their outputs are added up by weight.

`LoopExperts` is the dense reference: one expert after another, each over the tokens that chose it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from llminfer.basics.config import MoeSpec
from llminfer.basics.probabilities import softmax
from llminfer.basics.weights import as_weight


@runtime_checkable
class Experts(Protocol):
    """The routed experts of one layer. Made by `make(moe, weights, activation)` from the layer's own weights."""

    def __call__(self, h: Float[Any, "T D"], router_logits: Float[Any, "T X"]) -> Float[Any, "T D"]:
        """Send each token to its experts and add up what they return; `router_logits` are without the router's bias."""
        ...


@dataclass(frozen=True)
class Routing:
    """Where tokens go: the k experts of each, and what each expert's output is multiplied by."""

    experts: Int[np.ndarray, "T k"]
    weights: Float[np.ndarray, "T k"]


def route(logits: Float[np.ndarray, "T X"], moe: MoeSpec, bias: Float[np.ndarray, "X"] | None = None) -> Routing:
    """Choose `moe.top_k` experts for each token and weigh them, in one of the three ways of `MoeSpec.scoring`.

    Sources: Jiang et al. 2024 (Mixtral), section 2.1; DeepSeek-V2, section 2.2.2 (groups); DeepSeek-V3, section 2.1.2.
    Raises ValueError unless there is one logit an expert. Book section 3.1.2.
    """
    if logits.shape[1] != moe.experts:
        raise ValueError(f"a token needs a router logit for each of {moe.experts} experts, got {logits.shape[1]}")
    if moe.scoring == "sigmoid":
        scores = np.exp(-np.logaddexp(0, -logits))  # sigmoid, and no exp that overflows
        preference = scores if bias is None else scores + bias  # balances the load: moves the choice, never the weight
    else:
        logits = logits if bias is None else logits + bias
        scores = preference = softmax(logits) if moe.scoring == "softmax" else logits  # [T, X]
    if moe.groups > 1:
        preference = np.where(_in_best_groups(preference, moe), preference, -np.inf)
    experts = np.argsort(-preference, axis=-1, kind="stable")[:, : moe.top_k]  # [T, k]
    weights = np.take_along_axis(scores, experts, axis=-1)
    if moe.scoring == "softmax_top_k":
        weights = softmax(weights)
    elif moe.normalize:
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return Routing(experts, weights * moe.routed_scale)


def _in_best_groups(preference: Float[np.ndarray, "T X"], moe: MoeSpec) -> Bool[np.ndarray, "T X"]:
    """Which experts lie in a token's `top_groups` best groups, so that it visits few devices."""
    grouped = preference.reshape(len(preference), moe.groups, -1)  # [T, X] -> [T, groups, X/groups]
    best = 2 if moe.scoring == "sigmoid" else 1  # V3 ranks a group by its two best experts, V2 by its best
    rank = np.sort(grouped, axis=-1)[..., -best:].sum(axis=-1)  # [T, groups]
    chosen = np.argsort(-rank, axis=-1, kind="stable")[:, : moe.top_groups]
    inside = np.zeros(rank.shape, dtype=bool)
    np.put_along_axis(inside, chosen, True, axis=-1)
    return np.repeat(inside, grouped.shape[-1], axis=-1)  # [T, X]


class LoopExperts:
    """Experts one after another in NumPy. A stack of them is anything that gives expert x's matrix for `stack[x]`.

    Book section 3.1.2.
    """

    def __init__(self, moe: MoeSpec, weights: Mapping[str, Any], activation: Callable) -> None:
        self.moe = moe
        self.activation = activation
        self.router_bias = weights.get("router.bias")
        self.gate_up = [as_weight(weights["experts.gate_up"][x]) for x in range(moe.experts)]  # X of [D, 2F]
        self.down = [as_weight(weights["experts.down"][x]) for x in range(moe.experts)]  # X of [F, D]
        self.gate_up_bias = weights.get("experts.gate_up.bias")  # [X, 2F]
        self.down_bias = weights.get("experts.down.bias")  # [X, D]

    def __call__(
        self, h: Float[np.ndarray, "T D"], router_logits: Float[np.ndarray, "T X"]
    ) -> Float[np.ndarray, "T D"]:
        routing = route(router_logits, self.moe, self.router_bias)
        output = np.zeros_like(h)
        for expert in np.unique(routing.experts).tolist():
            tokens, choices = np.nonzero(routing.experts == expert)  # a token chooses an expert at most once
            output[tokens] += routing.weights[tokens, choices, None] * self._apply(expert, h[tokens])
        return output

    def _apply(self, expert: int, h: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T D"]:
        gate_up = h @ self.gate_up[expert]  # [T, 2F]
        if self.gate_up_bias is not None:
            gate_up = gate_up + self.gate_up_bias[expert]
        output = self.activation(gate_up) @ self.down[expert]  # [T, D]
        return output if self.down_bias is None else output + self.down_bias[expert]
