"""`NoCache` for torch tensors, on whatever device they are: the reference attention, said in torch."""

import torch

from llminfer.basics import memory
from llminfer.basics.config import AttentionSpec


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    spec: AttentionSpec,
    visible: torch.Tensor,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """`attend` of the reference, line by line: q [T, H, Ek], k [S, K, Ek], v [S, K, Ev] -> [T, H, Ev].

    Not scaled_dot_product_attention, which knows neither soft caps nor sinks.
    """
    (T, H, E), K = q.shape, k.shape[1]
    grouped = q.reshape(T, K, H // K, E).permute(1, 2, 0, 3)  # [T, H, Ek] -> [K, G, T, Ek]
    scores = spec.scale * grouped @ k.permute(1, 2, 0)[:, None]  # [K, G, T, Ek] @ [K, 1, Ek, S] -> [K, G, T, S]
    if spec.soft_cap:
        scores = spec.soft_cap * torch.tanh(scores / spec.soft_cap)
    scores = scores.masked_fill(~visible, -torch.inf)
    if sinks is not None:
        column = sinks.reshape(K, H // K, 1, 1).expand(-1, -1, T, -1)  # [H] -> [K, G, T, 1]
        scores = torch.cat([scores, column], dim=-1)  # [K, G, T, S + 1]
    weights = scores.softmax(dim=-1)[..., : len(k)]  # [K, G, T, S]
    output = weights @ v.transpose(0, 1)[:, None]  # [K, G, T, S] @ [K, 1, S, Ev] -> [K, G, T, Ev]
    return output.permute(2, 0, 1, 3).reshape(T, H, -1)  # [T, H, Ev]


class RecomputingView(memory.RecomputingView):
    """The view of `NoCache` for torch tensors; masks follow the queries to their device."""

    join = staticmethod(torch.cat)

    @staticmethod
    def attention(q, k, v, spec, visible, sinks):
        return attend(q, k, v, spec, torch.as_tensor(visible, device=q.device), sinks)


class NoCache(memory.NoCache):
    """A cache that stores nothing; its views take and return torch tensors."""

    view = RecomputingView
