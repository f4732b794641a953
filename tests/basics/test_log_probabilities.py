"""Log-probabilities of chosen tokens against torch's, and by what they must add up to."""

import numpy as np
import pytest

from llminfer.basics.log_probabilities import log_softmax_gather, log_softmax_gather_cost

RNG = np.random.default_rng(2)


def test_are_those_of_torch():
    torch = pytest.importorskip("torch")
    logits, tokens = 5 * RNG.standard_normal((6, 50)), RNG.integers(0, 50, 6)
    logits[:, 1::5] = -np.inf
    tokens[2] = 1
    expected = torch.log_softmax(torch.tensor(logits), -1).gather(1, torch.tensor(tokens)[:, None])[:, 0]
    assert log_softmax_gather(logits, tokens)[2] == -np.inf
    np.testing.assert_allclose(log_softmax_gather(logits, tokens), expected.numpy(), rtol=1e-12)


def test_those_of_all_tokens_make_up_one():
    logits = np.tile(RNG.standard_normal(20), (20, 1))
    assert np.exp(log_softmax_gather(logits, np.arange(20))).sum() == pytest.approx(1)


@pytest.mark.parametrize("token", [-1, 4])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(ValueError, match=rf"tokens\[1\] is {token}; the logits have the tokens 0..3"):
        log_softmax_gather(np.zeros((2, 4)), np.array([0, token]))


def test_a_row_without_a_finite_maximum_is_refused():
    with pytest.raises(ValueError, match=r"row \(1,\) of x has the maximum -inf"):
        log_softmax_gather(np.array([[0.0, 1.0], [-np.inf, -np.inf]]), np.array([0, 0]))


def test_every_logit_is_read_once_and_four_bytes_a_row_are_written():
    cost = log_softmax_gather_cost(np.zeros((8, 1000), np.float16), np.zeros(8, np.int64))
    assert (cost.read_bytes, cost.write_bytes) == (8 * 1000 * 2 + 8 * 8, 8 * 4)
