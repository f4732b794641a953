"""What every cache refuses, whatever it stores: steps, tensors and choices that break the rules of `memory`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from llminfer.basics.config import AttentionSpec, ModelConfig


def check_step(sequences: Sequence[int], lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None) -> None:
    """Raise ValueError if these cannot open a step of any cache; see `Cache.step`."""
    if not len(sequences) == len(lengths) > 0:
        raise ValueError(f"a step needs a length for each sequence, got {len(lengths)} for {len(sequences)} sequences")
    if len(set(sequences)) < len(sequences):
        raise ValueError(f"a sequence can stand in a step only once, got {list(sequences)}")
    if min(lengths) < 1:
        raise ValueError(f"every sequence of a step brings at least 1 token, got lengths {list(lengths)}")
    if parents is None:
        return
    if parents.shape != (sum(lengths),):
        raise ValueError(f"parents needs one entry for each of {sum(lengths)} tokens, got shape {parents.shape}")
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)  # [T], where each token's sequence begins
    wrong = (parents >= np.arange(len(parents))) | ((parents < starts) & (parents != -1))
    if wrong.any():
        token = int(wrong.argmax())
        raise ValueError(
            f"parents[{token}] is {parents[token]}; a parent is -1, or a place before its child in the same sequence, "
            f"which here begins at {starts[token]}"
        )


def check_attend(config: ModelConfig, spec: AttentionSpec, tokens: int, q: Any, k: Any, v: Any, sinks: Any) -> None:
    """Raise ValueError if these are not what a view of `tokens` tokens can attend with; see `View.attend`."""
    given = (tuple(q.shape), tuple(k.shape), tuple(v.shape))
    key, value = spec.key_width, spec.value_width
    needed = ((tokens, config.heads, key), (tokens, spec.kv_heads, key), (tokens, spec.kv_heads, value))
    if given != needed:
        raise ValueError(
            f"q has shape {given[0]}, k has shape {given[1]} and v has shape {given[2]}, this view of {config.name!r} "
            f"was opened for {needed[0]}, {needed[1]} and {needed[2]}: the step's tokens, the config's heads and widths"
        )
    if spec.sinks != (sinks is not None):
        given = "none" if sinks is None else f"{len(sinks)}"
        raise ValueError(f"sinks are {'needed' if spec.sinks else 'unknown'} in {config.name!r}, got {given}")


def check_kept(
    kept: Int[np.ndarray, "kept"] | None, lengths: Sequence[int], parents: Int[np.ndarray, "T"] | None
) -> None:
    """Raise ValueError if these places of the flat axis cannot stay while the others go; see `View.commit`."""
    if kept is None:
        return
    tokens = sum(lengths)
    if not np.issubdtype(kept.dtype, np.integer):
        raise ValueError(f"kept must hold integers, got {kept.dtype}; np.flatnonzero turns a mask into places")
    if kept.size and not (0 <= kept[0] and kept[-1] < tokens and (kept[1:] > kept[:-1]).all()):
        raise ValueError(f"kept must ascend within 0..{tokens - 1}, got {kept}")
    if parents is None:
        parents = np.arange(tokens) - 1  # [T], a chain in each sequence
        parents[np.cumsum(lengths) - lengths] = -1
    orphans = kept[(parents[kept] >= 0) & ~np.isin(parents[kept], kept)]
    if orphans.size:
        raise ValueError(f"token {orphans[0]} cannot be kept without its parent {parents[orphans[0]]}, got kept {kept}")
