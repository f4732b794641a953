"""The gather against the product it stands for, and its errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.basics.embeddings import embed, embed_cost

TABLE = np.random.default_rng(19).standard_normal((11, 5))


@settings(deadline=None)
@given(ids=st.lists(st.integers(0, 10), max_size=20))
def test_a_gather_is_a_product_with_one_hot_rows(ids):
    ids = np.array(ids, dtype=np.int64)
    one_hot = (ids[:, None] == np.arange(11)).astype(float)  # [T, V]
    np.testing.assert_array_equal(embed(TABLE, ids), one_hot @ TABLE)


def test_the_result_is_a_copy():
    table = TABLE.copy()
    embed(table, np.array([3]))[:] = 0
    np.testing.assert_array_equal(table, TABLE)


@pytest.mark.parametrize("bad", [-1, 11, 2**40])
def test_an_id_outside_the_vocabulary_is_refused(bad):
    with pytest.raises(ValueError, match=r"0\.\.10.*" + str(bad)):
        embed(TABLE, np.array([3, bad]))


def test_a_row_that_is_asked_for_twice_is_read_once_and_written_twice():
    cost = embed_cost(TABLE, np.array([4, 4, 7]))
    assert cost.read_bytes == 2 * 5 * 8 + 3 * 8
    assert cost.write_bytes == 3 * 5 * 8
    assert cost.intensity == 0
