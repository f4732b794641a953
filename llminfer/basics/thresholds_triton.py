"""Which logits of a row stay, found without a sort: device functions of the kernels that sample.

A threshold is found by bisection: count the logits (or add up the probability) at or above a pivot, and move a bound
to the next logit on the far side of it. Pivots halve the range of the bit patterns, of which a float32 has 2**32, so
32 passes are enough for any row; 128,000 normal logits take 12 to 21. The end is a value of the row, not a number near
it, so equal logits share their fate, as in the reference.
"""

from llminfer.core.triton_environment import tl, triton


@triton.jit
def penalised_logits(
    logits_ptr, occurred_ptr, token, vocabulary, repetition, frequency, presence, PENALISED: tl.constexpr
):
    """The logits of some tokens of a row after its penalties; past the vocabulary -inf."""
    inside = token < vocabulary
    logits = tl.load(logits_ptr + token, mask=inside, other=-float("inf")).to(tl.float32)
    if PENALISED:
        occurred = tl.load(occurred_ptr + token, mask=inside, other=0).to(tl.int32)
        lowered = tl.where(logits > 0, tl.div_rn(logits, repetition), logits * repetition)
        logits = tl.where(occurred > 0, lowered, logits)
        logits -= frequency * tl.maximum(occurred - 1, 0).to(tl.float32)
        logits -= tl.where(occurred > 1, presence, 0.0)
    return logits


@triton.jit
def _key_of(number):
    """An integer for a float32, larger for a larger number: its bits, those below the sign turned over if negative."""
    bits = number.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)  # int64: keys are up to 2**32 apart


@triton.jit
def _number_of(key):
    """The float32 that has this key."""
    key = key.to(tl.int32)
    return tl.where(key < 0, key ^ 0x7FFFFFFF, key).to(tl.float32, bitcast=True)


@triton.jit
def reached(
    logits_ptr, occurred_ptr, vocabulary, repetition, frequency, presence, pivot, peak, temperature,
    WEIGH: tl.constexpr, PENALISED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """How many logits reach `pivot`, the lowest that does and the highest that does not.

    If asked to WEIGH, a logit counts e^((logit - peak) / temperature) instead of 1.
    """
    total, lowest, highest = 0.0, float("inf"), -float("inf")
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        x = penalised_logits(logits_ptr, occurred_ptr, token, vocabulary, repetition, frequency, presence, PENALISED)
        reaches = (x >= pivot) & (token < vocabulary)
        weight = tl.exp((x - peak) / temperature) if WEIGH else 1.0  # exact in float32 up to 2**24 tokens
        total += tl.sum(tl.where(reaches, weight, 0.0), axis=0)
        lowest = tl.minimum(lowest, tl.min(tl.where(reaches, x, float("inf")), axis=0))
        highest = tl.maximum(highest, tl.max(tl.where(reaches, -float("inf"), x), axis=0))
    return total, lowest, highest


@triton.jit
def find_threshold(
    logits_ptr, occurred_ptr, vocabulary, repetition, frequency, presence, lowest, peak, temperature, target,
    WEIGH: tl.constexpr, PENALISED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest number that enough logits reach, as `reached` counts or weighs them; enough reach `lowest`."""
    low, high = _key_of(lowest), _key_of(peak) + 1  # enough reach low, too few reach high
    while high - low > 1:
        middle = low + (high - low) // 2
        total, above, below = reached(
            logits_ptr, occurred_ptr, vocabulary, repetition, frequency, presence, _number_of(middle), peak,
            temperature, WEIGH, PENALISED, BLOCK,
        )  # fmt: skip
        if total >= target:
            low = tl.maximum(_key_of(above), middle)  # never back: zeros of both signs are equal, their keys are not
        else:
            high = tl.minimum(_key_of(below) + 1, middle)
    return _number_of(low)
