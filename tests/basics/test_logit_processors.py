"""The order of the processors: against transformers' chain, step by step, and by what must hold of the whole."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from transformers.generation import logits_process as theirs

from llminfer.basics.logit_processors import process_logits
from llminfer.basics.probabilities import softmax
from llminfer.basics.sampling import apply_temperature
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.truncations import apply_top_k

GRID = st.sampled_from([-np.inf, *np.arange(-6, 6.5, 0.5).tolist()])  # a coarse grid, so that ties are common
ROWS = hnp.arrays(np.float64, st.integers(1, 30), elements=GRID).filter(lambda row: row.max() > -np.inf)


def random_logits(rows: int = 5, vocabulary: int = 60, ties: bool = False) -> np.ndarray:
    """Normal logits, every ninth masked, and where `ties` on a grid of halves."""
    rng = np.random.default_rng(3)
    logits = 3 * rng.standard_normal((rows, vocabulary))
    logits = np.round(2 * logits) / 2 if ties else logits
    logits[:, ::9] = -np.inf
    return logits


def run(processor: theirs.LogitsProcessor, logits: np.ndarray, tokens: list[int] | None = None) -> np.ndarray:
    """What transformers' processor makes of the rows, each after the same tokens."""
    ids = torch.tensor([tokens or [0]] * len(logits))
    return processor(ids, torch.tensor(logits)).numpy()


class TestTemperature:
    @pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 3.0])
    def test_is_that_of_transformers_up_to_a_constant(self, temperature):
        for row in random_logits():
            [expected] = run(theirs.TemperatureLogitsWarper(temperature), row[None])
            got = apply_temperature(row, temperature)
            assert got.max() == 0
            np.testing.assert_allclose(got, expected - expected.max(), rtol=1e-13)

    def test_zero_divides_nothing(self):
        with pytest.raises(ValueError, match="divided by temperature 0"):
            apply_temperature(np.zeros(3), 0)


class TestOrder:
    prompt, answer = [1, 2, 3], [4, 5, 4]

    def test_all_together_is_what_the_processors_of_transformers_give_in_their_order(self):
        params = SamplingParams(
            temperature=0.7, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=1.3, bad_words=((5, 4, 10), (33,))
        )
        chain = theirs.LogitsProcessorList(
            [
                theirs.RepetitionPenaltyLogitsProcessor(1.3),
                theirs.NoBadWordsLogitsProcessor([[5, 4, 10], [33]]),
                theirs.TemperatureLogitsWarper(0.7),
                theirs.TopKLogitsWarper(20),
                theirs.TopPLogitsWarper(0.9),
                theirs.MinPLogitsWarper(0.02),
            ]
        )
        for row in random_logits(20):
            [expected] = run(chain, row[None], self.prompt + self.answer)
            got = process_logits(row, params, self.prompt, self.answer)
            np.testing.assert_allclose(softmax(got), softmax(expected), rtol=1e-12)

    def difference(self, **params) -> np.ndarray:
        """What the params do to the logits of a row of zeros, relative to a token that is never mentioned."""
        logits = process_logits(np.zeros(9), SamplingParams(**params), self.prompt, self.answer)
        return logits - logits[0]

    def test_penalties_come_before_the_temperature(self):
        np.testing.assert_allclose(
            self.difference(temperature=2.0, presence_penalty=1.0), [0, 0, 0, 0, -0.5, -0.5, 0, 0, 0]
        )

    def test_a_bias_comes_before_the_repetition_penalty(self):
        assert self.difference(logit_bias={4: 3.0}, repetition_penalty=1.5)[4] == pytest.approx(2.0)

    def test_the_callers_processors_come_between_penalties_and_temperature(self):
        def square(tokens: list[int], logits: np.ndarray) -> np.ndarray:
            assert tokens == self.prompt + self.answer
            return logits**2

        assert self.difference(presence_penalty=2.0, temperature=0.5, processors=(square,))[4] == pytest.approx(8.0)

    def test_what_is_forbidden_takes_no_place_among_the_top_k(self):
        logits = np.array([5.0, 4.0, 3.0, 2.0])
        params = SamplingParams(temperature=1.0, top_k=2, bad_words=((0,),))
        assert np.isfinite(process_logits(logits, params, [1])).tolist() == [False, True, True, False]

    def test_top_p_counts_only_what_top_k_left(self):
        logits = np.log([0.4, 0.2, 0.2 - 1e-6, 0.2 + 1e-6])
        cut = process_logits(logits, SamplingParams(temperature=1.0, top_k=2, top_p=0.65), [1])
        assert np.isfinite(cut).tolist() == [True, False, False, False]  # 0.4 of 0.6 reaches 0.65
        cut = process_logits(logits, SamplingParams(temperature=1.0, top_p=0.65), [1])
        assert np.isfinite(cut).sum() == 3

    def test_greedy_needs_neither_temperature_nor_truncation(self):
        logits = random_logits(1)[0]
        params = SamplingParams(top_k=1, top_p=0.1, min_p=0.9)
        np.testing.assert_array_equal(process_logits(logits, params, [1]), logits)

    @settings(deadline=None)
    @given(logits=ROWS, temperature=st.floats(0.05, 20), k=st.integers(1, 32), p=st.floats(0.01, 1), m=st.floats(0, 1))
    def test_the_rank_order_stays_and_the_most_probable_token_too(self, logits, temperature, k, p, m):
        params = SamplingParams(temperature=temperature, top_k=k, top_p=p, min_p=m)
        got = process_logits(logits, params, [0])
        stays = got > -np.inf
        assert stays[logits.argmax()]
        order = np.argsort(-logits, kind="stable")
        assert (np.diff(got[order][stays[order]]) <= 0).all()
        assert not stays[order][stays.sum() :].any()

    @settings(deadline=None)
    @given(logits=ROWS, temperature=st.floats(0.05, 20), k=st.integers(1, 32))
    def test_temperature_and_top_k_may_change_places(self, logits, temperature, k):
        np.testing.assert_array_equal(
            apply_top_k(apply_temperature(logits, temperature), k),
            apply_temperature(apply_top_k(logits, k), temperature),
        )

    def test_a_row_without_any_token_left_is_refused(self):
        params = SamplingParams(temperature=1.0)
        with pytest.raises(ValueError, match="every token is masked"):
            process_logits(np.zeros(3), params, [0], banned=[0, 1, 2])
