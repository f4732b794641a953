"""The counter-based noise: published vectors, and what sampling relies on. The test beside holds it to `tl.rand`."""

import numpy as np
import pytest
from scipy import stats

from llminfer.core.philox import as_uniform, philox_4x32, token_uniform

# Random123's kat_vectors for philox4x32-10: counter, key, output. The third takes its digits from pi.
PUBLISHED = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), PUBLISHED)
def test_philox_gives_the_published_vectors(counter, key, expected):
    got = philox_4x32(np.array(counter, np.uint32), np.array(key, np.uint32))
    assert got.tolist() == expected


def test_counters_are_mixed_independently_of_their_company():
    counters = np.random.default_rng(0).integers(0, 2**32, (3, 5, 4), np.uint32)
    key = np.array([11, 12], np.uint32)
    alone = [philox_4x32(counter, key) for counter in counters.reshape(-1, 4)]
    np.testing.assert_array_equal(philox_4x32(counters, key).reshape(-1, 4), alone)


def test_token_noise_does_not_depend_on_the_size_of_the_vocabulary():
    np.testing.assert_array_equal(token_uniform(3, 5, 8, 1000)[:37], token_uniform(3, 5, 8, 37))


def test_words_of_either_sign_become_uniforms_below_one():
    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    folded = as_uniform(words)
    assert folded.dtype == np.float32
    assert folded.min() == 0.0 and folded.max() < 1.0


def test_token_noise_is_uniform():
    noise = np.concatenate([token_uniform(0, 0, position, 4096) for position in range(16)])
    assert stats.kstest(noise, "uniform").pvalue > 0.01


NEIGHBOURS = {
    "next token": (token_uniform(1, 2, 3, 20001)[:-1], token_uniform(1, 2, 3, 20001)[1:]),
    "next position": (token_uniform(1, 2, 3, 20000), token_uniform(1, 2, 4, 20000)),
    "next sequence": (token_uniform(1, 2, 3, 20000), token_uniform(1, 3, 3, 20000)),
    "sequence 2**32 on": (token_uniform(1, 2, 3, 20000), token_uniform(1, 2 + 2**32, 3, 20000)),
    "next seed": (token_uniform(1, 2, 3, 20000), token_uniform(2, 2, 3, 20000)),
    "seed 2**32 on": (token_uniform(1, 2, 3, 20000), token_uniform(1 + 2**32, 2, 3, 20000)),
    "sequence and position swapped": (token_uniform(1, 2, 3, 20000), token_uniform(1, 3, 2, 20000)),
}


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_noise_of_neighbours_is_independent(neighbour):
    one, other = NEIGHBOURS[neighbour]
    table, _, _ = np.histogram2d(one, other, bins=8, range=[[0, 1], [0, 1]])
    assert stats.chisquare(table.ravel()).pvalue > 0.01
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(one.size)  # four standard deviations


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, -1, 0, 8), "sequence"),
        ((0, 0, 2**32, 8), "position"),
        ((0, 2**64, 0, 8), "sequence"),
        ((0, 0, 0, -1), "vocabulary"),
    ],
)
def test_what_does_not_fit_its_words_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        token_uniform(*arguments)
