"""Every processor against transformers', on logits with ties and infinities, and by what must hold of all of them."""

from collections.abc import Callable

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
from llminfer.basics.token_bans import apply_logit_bias, bad_endings, forbid
from llminfer.basics.truncations import apply_min_p, apply_top_k, apply_top_p

GRID = st.sampled_from([-np.inf, *np.arange(-6, 6.5, 0.5).tolist()])  # a coarse grid, so that ties are common
ROWS = hnp.arrays(np.float64, st.integers(1, 30), elements=GRID).filter(lambda row: row.max() > -np.inf)
TRUNCATIONS = {
    "top_k": st.builds(lambda k: lambda x: apply_top_k(x, k), st.integers(1, 32)),
    "top_p": st.builds(lambda p: lambda x: apply_top_p(x, p), st.floats(1e-6, 1)),
    "min_p": st.builds(lambda p: lambda x: apply_min_p(x, p), st.floats(0, 1)),
}


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


class TestTruncations:
    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("k", [1, 2, 7, 53, 60, 100])
    def test_top_k_is_that_of_transformers_ties_included(self, k, ties):
        logits = random_logits(ties=ties)
        np.testing.assert_array_equal(apply_top_k(logits, k), run(theirs.TopKLogitsWarper(k), logits))

    def test_top_k_keeps_all_that_equal_the_kth(self):
        kept = apply_top_k(np.array([1.0, 3.0, 2.0, 2.0, 2.0, 0.0]), 2)
        assert kept.tolist() == [-np.inf, 3, 2, 2, 2, -np.inf]

    @pytest.mark.parametrize("p", [1e-9, 0.1, 0.5, 0.9, 0.999, 1.0])
    def test_top_p_is_that_of_transformers(self, p):
        logits = random_logits()
        np.testing.assert_array_equal(apply_top_p(logits, p), run(theirs.TopPLogitsWarper(p), logits))

    @pytest.mark.parametrize(("p", "kept"), [(0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.99, 4)])
    def test_top_p_keeps_the_token_that_crosses_p(self, p, kept):
        logits = np.log([0.5, 0.25, 0.125, 0.125 - 1e-9, 1e-9])
        assert np.isfinite(apply_top_p(logits, p)).tolist() == [True] * kept + [False] * (5 - kept)

    def test_top_p_stops_at_the_token_that_reaches_p_exactly(self):
        logits = np.log2([0.5, 0.25, 0.25]) * np.log(2)
        np.testing.assert_array_equal(softmax(logits), [0.5, 0.25, 0.25])
        assert np.isfinite(apply_top_p(logits, 0.5)).tolist() == [True, False, False]

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_where_top_p_of_transformers_cuts_through_equals_ours_keeps_them_all(self, p):
        logits = random_logits(ties=True)
        kept, theirs_kept = apply_top_p(logits, p) > -np.inf, run(theirs.TopPLogitsWarper(p), logits) > -np.inf
        threshold = np.where(theirs_kept, logits, np.inf).min(axis=-1, keepdims=True)
        np.testing.assert_array_equal(kept, logits >= threshold)

    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.99])
    def test_min_p_is_that_of_transformers(self, p, ties):
        logits = random_logits(ties=ties)
        np.testing.assert_array_equal(apply_min_p(logits, p), run(theirs.MinPLogitsWarper(p), logits))

    def test_min_p_of_one_keeps_the_most_probable_and_its_equals(self):
        assert apply_min_p(np.array([0.1, 0.3, 0.3, 0.2]), 1.0).tolist() == [-np.inf, 0.3, 0.3, -np.inf]

    @settings(deadline=None)
    @given(logits=ROWS, data=st.data(), kind=st.sampled_from(sorted(TRUNCATIONS)))
    def test_what_stays_is_unchanged_and_is_the_top_of_the_row(self, logits, data, kind):
        truncated = data.draw(TRUNCATIONS[kind])(logits)
        stays = truncated > -np.inf
        np.testing.assert_array_equal(truncated[stays], logits[stays])
        assert stays[logits == logits.max()].all()
        assert logits[stays].min() > np.max(logits[~stays], initial=-np.inf) or not np.isfinite(logits[~stays]).any()

    @settings(deadline=None)
    @given(logits=ROWS, data=st.data(), kind=st.sampled_from(sorted(TRUNCATIONS)))
    def test_truncating_twice_by_count_or_ratio_changes_nothing(self, logits, data, kind):
        truncate = data.draw(TRUNCATIONS[kind])
        once = truncate(logits)
        if kind != "top_p":  # the nucleus of a nucleus may be smaller
            np.testing.assert_array_equal(truncate(once), once)

    @settings(deadline=None)
    @given(logits=ROWS, p=st.floats(1e-6, 1 - 1e-6))
    def test_the_nucleus_is_the_smallest_top_that_reaches_p(self, logits, p):
        probability = softmax(logits)
        stays = apply_top_p(logits, p) > -np.inf
        lowest = logits[stays].min()
        assert probability[stays].sum() >= p - 1e-12
        assert probability[logits > lowest].sum() < p + 1e-12

    @settings(deadline=None)
    @given(logits=ROWS)
    def test_all_tokens_and_all_probability_change_nothing(self, logits):
        for same in (apply_top_k(logits, len(logits)), apply_top_p(logits, 1.0), apply_min_p(logits, 0.0)):
            np.testing.assert_array_equal(same, logits)

    @pytest.mark.parametrize(
        ("truncate", "value", "complaint"),
        [
            (apply_top_k, 0, "top_k must be at least 1"),
            (apply_top_p, 0.0, "top_p must lie above 0 and at most at 1"),
            (apply_top_p, 1.1, "top_p must lie above 0 and at most at 1"),
            (apply_top_p, np.nan, "top_p must lie above 0 and at most at 1"),
            (apply_min_p, -0.1, r"min_p must lie in 0..1"),
            (apply_min_p, 1.1, r"min_p must lie in 0..1"),
        ],
    )
    def test_what_keeps_nothing_or_more_than_all_is_refused(self, truncate, value, complaint):
        with pytest.raises(ValueError, match=complaint):
            truncate(np.zeros(3), value)


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


class TestBans:
    BAD = ((7,), (3, 4), (1, 2, 3), (5, 5, 5, 5))

    @pytest.mark.parametrize("tokens", [[0], [3], [1, 2], [9, 1, 2, 3], [5, 5], [5, 5, 5], [2, 5, 5, 5, 5]])
    def test_bad_words_are_those_of_transformers(self, tokens):
        logits = random_logits(1)
        expected = run(theirs.NoBadWordsLogitsProcessor([list(word) for word in self.BAD]), logits, tokens)
        np.testing.assert_array_equal(forbid(logits[0], bad_endings(tokens, self.BAD)), expected[0])

    def test_a_text_shorter_than_the_beginning_of_a_word_cannot_complete_it(self):
        assert bad_endings([2], ((1, 2, 3), (2, 2, 4))) == []
        assert bad_endings([], ((1, 2), (8,))) == [8]

    @pytest.mark.parametrize("length", [4, 6, 7])
    def test_min_tokens_forbids_what_it_forbids_in_transformers(self, length):
        logits = random_logits(1)
        tokens = list(range(1, 1 + length))
        params = SamplingParams(min_tokens=3)
        banned = [11, 12] if length - 4 < params.min_tokens else []
        processor = theirs.MinNewTokensLengthLogitsProcessor(4, 3, [11, 12])
        np.testing.assert_array_equal(
            process_logits(logits[0], params, tokens[:4], tokens[4:], banned), run(processor, logits, tokens)[0]
        )

    def test_a_bias_is_that_of_transformers(self):
        logits, bias = random_logits(1), {0: 5.0, 3: -100.0, 8: 0.5, 50: -np.inf}
        processor = theirs.SequenceBiasLogitsProcessor([[[token], amount] for token, amount in bias.items()])
        np.testing.assert_array_equal(apply_logit_bias(logits[0], bias), run(processor, logits)[0])

    def test_logits_are_left_as_they_were(self):
        logits = random_logits(1)[0]
        before = logits.copy()
        apply_logit_bias(logits, {1: 1.0})
        forbid(logits, [1])
        np.testing.assert_array_equal(logits, before)


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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "truncate", [lambda x: apply_top_k(x, 2), lambda x: apply_top_p(x, 0.5), lambda x: apply_min_p(x, 0.5)]
)
def test_truncations_stay_in_the_dtype_they_are_given(truncate: Callable, dtype: type):
    assert truncate(np.arange(5, dtype=dtype)).dtype == dtype
