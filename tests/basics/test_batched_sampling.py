"""A batch of rows draws what each row would draw alone, in the law that its processors leave."""

import numpy as np
import pytest
import scipy.stats

from llminfer.basics.batched_sampling import sample_tokens, sample_tokens_cost
from llminfer.basics.logit_processors import process_logits
from llminfer.basics.penalties import occurrences
from llminfer.basics.probabilities import softmax
from llminfer.basics.sampling import sample
from llminfer.basics.sampling_params import SamplingParams
from llminfer.core.philox import token_uniform

V = 40
PROMPT, ANSWER = [1, 2, 3, 4], [5, 6, 5, 1]
REQUESTS = (
    SamplingParams(),
    SamplingParams(temperature=0.5, seed=1),
    SamplingParams(temperature=1.5, top_k=5, seed=2),
    SamplingParams(temperature=1.5, top_p=0.7, seed=3),
    SamplingParams(temperature=2.0, min_p=0.3, seed=4),
    SamplingParams(
        temperature=3.0, top_k=20, top_p=0.8, min_p=0.1, repetition_penalty=1.3, frequency_penalty=0.5, seed=-5
    ),
    SamplingParams(presence_penalty=1.5, repetition_penalty=2.0),
)


def arguments(requests: tuple[SamplingParams, ...], position: int = 8, penalised: bool = True) -> dict:
    """The arrays that these requests make, their texts being sequences 10, 11, ... and at the same position."""
    rows = {
        "temperature": np.array([r.temperature for r in requests]),
        "top_k": np.array([r.top_k or V for r in requests]),
        "top_p": np.array([r.top_p for r in requests]),
        "min_p": np.array([r.min_p for r in requests]),
        "noise_key": np.array([(r.seed, 10 + i, position) for i, r in enumerate(requests)]),
    }
    if penalised:
        rows["occurred"] = np.tile(occurrences(PROMPT, ANSWER, V), (len(requests), 1))
        rows["penalties"] = np.array(
            [(r.repetition_penalty, r.frequency_penalty, r.presence_penalty) for r in requests]
        )
    return rows


def alone(logits: np.ndarray, params: SamplingParams, sequence: int, position: int) -> int:
    """The token by the way that a single text takes."""
    processed = process_logits(logits, params, PROMPT, ANSWER)
    noise = token_uniform(params.seed, sequence, position, V)
    return sample(processed, 0) if params.temperature == 0 else sample(processed, 1, noise)


@pytest.mark.parametrize("position", range(5))
def test_every_row_draws_what_it_would_draw_alone(position):
    logits = 2 * np.random.default_rng(position).standard_normal((len(REQUESTS), V))
    expected = [
        alone(row, params, 10 + i, position) for i, (row, params) in enumerate(zip(logits, REQUESTS, strict=True))
    ]
    assert sample_tokens(logits, **arguments(REQUESTS, position)).tolist() == expected


def test_a_row_does_not_depend_on_its_company():
    logits = np.random.default_rng(0).standard_normal((len(REQUESTS), V))
    batch = arguments(REQUESTS)
    together = sample_tokens(logits, **batch)
    for row in range(len(REQUESTS)):
        one = slice(row, row + 1)
        assert sample_tokens(logits[one], **{name: array[one] for name, array in batch.items()}) == together[one]


def test_tokens_have_the_frequencies_that_the_processors_leave():
    logits = 1.5 * np.random.default_rng(4).standard_normal(V)
    params = SamplingParams(temperature=1.2, top_k=12, top_p=0.9, min_p=0.02, frequency_penalty=0.5)
    expected = softmax(process_logits(logits, params, PROMPT, ANSWER))
    draws = 1200
    tokens = sample_tokens(np.tile(logits, (draws, 1)), **arguments((params,) * draws))
    counts, possible = np.bincount(tokens, minlength=V), expected > 0
    assert 3 < possible.sum() < 12
    assert counts[~possible].sum() == 0
    assert scipy.stats.chisquare(counts[possible], draws * expected[possible]).pvalue > 1e-3


def test_penalties_and_occurrences_need_each_other():
    rows = arguments(REQUESTS)
    for missing, given in (("penalties", "occurred"), ("occurred", "penalties")):
        with pytest.raises(ValueError, match=f"{missing} is missing, and {given} means nothing without it"):
            sample_tokens(np.zeros((len(REQUESTS), V)), **{k: v for k, v in rows.items() if k != missing})


def test_a_row_without_a_finite_largest_is_refused():
    logits = np.zeros((2, V))
    logits[1] = -np.inf
    with pytest.raises(ValueError, match="the largest logit is -inf"):
        sample_tokens(logits, **arguments(REQUESTS[:2]))


def test_logits_and_occurrences_are_read_once_and_a_token_a_row_is_written():
    rows = arguments(REQUESTS)
    logits = np.zeros((len(REQUESTS), V), np.float16)
    plain = sample_tokens_cost(logits, **arguments(REQUESTS, penalised=False))
    assert plain.read_bytes == logits.nbytes + len(REQUESTS) * (4 + 3) * 8
    assert sample_tokens_cost(logits, **rows).read_bytes - plain.read_bytes == rows["occurred"].nbytes + 7 * 3 * 8
    assert plain.write_bytes == 7 * 8
