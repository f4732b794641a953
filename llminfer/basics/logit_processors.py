"""From a model's logits to those that a token is drawn from: every rule of a request, in one order.

1. Bias and bans: what the request demands, whatever the text says so far. First, because all that follows compares
   tokens with each other, and what is forbidden must not stand in the comparison.
2. Penalties: repetition, then frequency and presence. They speak the model's own scale of logits, so they come before
   the temperature; after it, a penalty of 1 would weigh double at temperature 2.
3. The caller's own processors, which so see what the model and the request say together.
4. Temperature: the shape of the distribution that is drawn from.
5. top-k, top-p, min-p: they cut the tail of just that distribution. top-p takes what top-k left for the whole, which
   sums to 1 again, so it comes after it. min-p compares with the largest only, and the largest always stays.

transformers has the same order (its penalties come before its bans, which changes nothing: -inf stays -inf). vLLM cuts
by min-p before top-k and top-p; then top-p has a smaller whole, and may keep fewer tokens.
At temperature 0 steps 4 and 5 have nothing to do: they never dethrone the largest logit.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from llminfer.basics.penalties import (
    apply_frequency_penalty,
    apply_presence_penalty,
    apply_repetition_penalty,
    occurrences,
)
from llminfer.basics.sampling import apply_temperature
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.token_bans import apply_logit_bias, bad_endings, forbid
from llminfer.basics.truncations import apply_min_p, apply_top_k, apply_top_p


def process_logits(
    logits: Float[np.ndarray, "V"],
    params: SamplingParams,
    prompt: Sequence[int],
    answer: Sequence[int] = (),
    banned: Iterable[int] = (),
) -> Float[np.ndarray, "V"]:
    """The logits whose softmax is what the next token is drawn from; at temperature 0 their largest is the token.

    `banned` tokens are masked along with what the params forbid: stop ids while a text is too short, or what a grammar
    does not allow. Raises ValueError if no finite logit is left. Book section 3.1.6.
    """
    bent = bend(logits, params, prompt, answer, banned)
    return bent if params.temperature == 0 else truncate(apply_temperature(bent, params.temperature), params)


def bend(
    logits: Float[np.ndarray, "V"],
    params: SamplingParams,
    prompt: Sequence[int],
    answer: Sequence[int],
    banned: Iterable[int],
) -> Float[np.ndarray, "V"]:
    """Steps 1 to 3: bias, bans, penalties and the caller's processors."""
    tokens = [*prompt, *answer]
    logits = forbid(apply_logit_bias(logits, params.logit_bias), [*banned, *bad_endings(tokens, params.bad_words)])
    if params.repetition_penalty != 1 or params.frequency_penalty or params.presence_penalty:
        occurred = occurrences(prompt, answer, len(logits))  # [V]
        logits = apply_repetition_penalty(logits, occurred, params.repetition_penalty)
        logits = apply_frequency_penalty(logits, occurred, params.frequency_penalty)
        logits = apply_presence_penalty(logits, occurred, params.presence_penalty)
    for process in params.processors:
        logits = process(tokens, logits)
    return logits


def truncate(logits: Float[np.ndarray, "V"], params: SamplingParams) -> Float[np.ndarray, "V"]:
    """Step 5: top-k, top-p and min-p of logits that have been divided by the temperature."""
    if params.top_k is not None:
        logits = apply_top_k(logits, params.top_k)
    return apply_min_p(apply_top_p(logits, params.top_p), params.min_p)
