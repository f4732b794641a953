"""Truncations: masks for the improbable tail, where a model is least to be trusted.

Each keeps the tokens whose logit reaches a threshold that depends on the row, and masks the others with -inf. Two equal
logits therefore share their fate, and the largest always stays. Logits may have any number of leading axes.
"""

import numpy as np
from jaxtyping import Float

from llminfer.basics.probabilities import softmax
from llminfer.basics.sampling_params import check_min_p, check_top_k, check_top_p


def apply_top_k(logits: Float[np.ndarray, "... V"], k: int) -> Float[np.ndarray, "... V"]:
    """Keep the k largest logits, and those equal to the smallest of them. Raises ValueError for k below 1.

    Source: Fan, Lewis and Dauphin 2018, section 5.4; ties as in transformers. Book section 3.1.6.
    """
    check_top_k(k)
    if k >= logits.shape[-1]:
        return logits
    threshold = np.partition(logits, -k, axis=-1)[..., -k, None]  # [R, V] -> [R, 1], the k-th largest
    return _keep(logits, threshold)


def apply_top_p(logits: Float[np.ndarray, "... V"], p: float) -> Float[np.ndarray, "... V"]:
    """Keep the fewest most probable tokens that together reach probability p: the nucleus.

    So a token stays when those above it fall short of p, and the one that crosses p is the last to stay, with all that
    equal it. Raises ValueError for a p outside (0, 1], and for a row that `softmax` refuses.
    Source: Holtzman et al. 2020, section 3.1. Book section 3.1.6.
    """
    check_top_p(p)
    if p == 1:
        return logits  # a sum of probabilities may round to 1 before its last terms
    descending = -np.sort(-logits, axis=-1)  # [R, V]
    probability = softmax(descending)
    above = np.zeros_like(probability)  # [R, V], what the tokens before each one have together
    above[..., 1:] = np.cumsum(probability, axis=-1)[..., :-1]
    last = np.sum(above < p, axis=-1, keepdims=True) - 1  # [R, 1], the place of the token that crosses p
    return _keep(logits, np.take_along_axis(descending, last, axis=-1))


def apply_min_p(logits: Float[np.ndarray, "... V"], p: float) -> Float[np.ndarray, "... V"]:
    """Keep tokens at least p times as probable as the most probable one: few where the model is sure, many where not.

    A ratio of probabilities is a difference of logits, so no softmax is needed. Raises ValueError for a p outside 0..1.
    Source: Nguyen et al. 2024, section 3. Book section 3.1.6.
    """
    check_min_p(p)
    if p == 0:
        return logits
    peak = np.max(logits, axis=-1, keepdims=True)  # [R, 1]
    return _keep(logits, peak + np.log(p))


def _keep(logits: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    return np.where(logits >= threshold, logits, np.asarray(-np.inf, logits.dtype))
