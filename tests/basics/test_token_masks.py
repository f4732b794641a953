"""A bit mask over logits: what the reference writes, and what the launcher refuses."""

import numpy as np
import pytest

from llminfer.basics.token_masks import apply_token_mask, apply_token_mask_cost, pack_mask

NAN = float("nan")


def test_masked_logits_become_minus_infinity_and_others_stay():
    logits = np.array([[1.0, 2.0, NAN, 4.0], [5.0, 6.0, 7.0, 8.0]])
    apply_token_mask(logits, np.array([[0b1001], [0b0010]], np.int32))
    np.testing.assert_array_equal(logits, [[1.0, -np.inf, -np.inf, 4.0], [-np.inf, 6.0, -np.inf, -np.inf]])


def test_the_last_bit_of_a_word_is_its_sign():
    logits = np.zeros((1, 33))
    apply_token_mask(logits, np.array([[-(2**31), 1]], np.int32))
    assert np.flatnonzero(logits[0] == 0).tolist() == [31, 32]


def test_the_cost_is_that_of_the_logits_that_are_written():
    allowed = np.arange(70) % 7 == 0
    logits, mask = np.zeros((2, 70), np.float32), np.stack([pack_mask(allowed), pack_mask(~allowed)])
    cost = apply_token_mask_cost(logits, mask)
    assert (cost.read_bytes, cost.write_bytes) == (2 * 3 * 4, 70 * 4)


@pytest.mark.parametrize("shape", [(2, 1), (2, 4)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"need a mask of shape \(2, 3\)"):
        apply_token_mask(np.zeros((2, 70)), np.zeros(shape, np.int32))


class TestLauncher:
    @pytest.fixture(autouse=True)
    def torch(self):
        pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing
        import torch

        return torch

    def test_what_does_not_fit_is_refused(self, torch):
        from llminfer.basics.token_masks_triton import apply_token_mask as launch

        logits, mask = torch.zeros(2, 70), torch.zeros(2, 3, dtype=torch.int32)
        with pytest.raises(ValueError, match="need a mask of shape"):
            launch(logits, mask[:, :2])
        with pytest.raises(TypeError, match="mask must be int32"):
            launch(logits, mask.long())
        with pytest.raises(TypeError, match="logits must be float32, float16 or bfloat16"):
            launch(logits.double(), mask)
        with pytest.raises(ValueError, match="words of a row of mask must be contiguous"):
            launch(logits, torch.zeros(2, 6, dtype=torch.int32)[:, ::2])

    def test_no_rows_are_no_work(self, torch):
        from llminfer.basics.token_masks_triton import apply_token_mask as launch

        launch(torch.zeros(0, 70), torch.zeros(0, 3, dtype=torch.int32))
