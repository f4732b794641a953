"""The decode product: what it computes, what it refuses, and why it is bound by memory."""

import numpy as np
import pytest

from llminfer.basics.projections import matvec, matvec_cost

RNG = np.random.default_rng(23)


@pytest.mark.parametrize("tokens", [1, 2, 16])
def test_each_output_is_a_sum_over_the_inputs(tokens):
    x, weight = RNG.standard_normal((tokens, 7)), RNG.standard_normal((7, 5))
    expected = [[sum(x[t, n] * weight[n, m] for n in range(7)) for m in range(5)] for t in range(tokens)]
    np.testing.assert_allclose(matvec(x, weight), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tokens", [0, 17])
def test_more_rows_than_a_decode_step_brings_are_refused(tokens):
    with pytest.raises(ValueError, match=f"1 to 16 rows.*{tokens}"):
        matvec(np.ones((tokens, 4)), np.ones((4, 3)))


def test_one_row_in_two_bytes_does_one_flop_a_byte():
    x, weight = np.ones((1, 4096), np.float16), np.ones((4096, 14336), np.float16)
    assert matvec_cost(x, weight).flops == 2 * 4096 * 14336
    assert matvec_cost(x, weight).intensity == pytest.approx(1.0, rel=1e-3)


def test_sixteen_rows_share_one_reading_of_the_weights():
    weight = np.ones((4096, 14336), np.float16)
    one, sixteen = (matvec_cost(np.ones((tokens, 4096), np.float16), weight) for tokens in (1, 16))
    assert sixteen.flops == 16 * one.flops
    assert sixteen.bytes < 1.01 * one.bytes
