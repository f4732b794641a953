"""An RMSNorm for heads: your first Triton kernel.

Some models normalise each head's query and key before they are compared, so that no score can run away. The rule is
RMSNorm, with two changes to the one of the library: it takes the vector of one head of one token at a time, not of the
whole token, and its gain is 1 + g, so that a gain of zeros does nothing:

    out[t, h, i] = x[t, h, i] / sqrt(mean over j of x[t, h, j]^2 + eps) * (1 + gain[i])

    x      [T, H, E]    float32 or float16, contiguous
    gain   [E]          in the dtype of x, the same for all heads
    eps                 a positive number
    out    [T, H, E]    in the dtype of x; your kernel writes it, every element and nothing beyond

Write a kernel in which one program takes one head of one token, and a launcher that starts T * H of them. E is any
number from 1 on, while tl.arange needs a power of two: take the next one (triton.next_power_of_2) as BLOCK, and let a
mask keep the elements that do not exist from being read, from counting and from being written. Widen to float32 as soon
as you have loaded: in float16 the square of 300 is infinite.

Without a GPU Triton interprets the kernel: slow, but the same results, and print works inside. This file has no
`import triton`; the library's door to it chooses between the two.

Book section 3.1.2. About 35 minutes.
"""

import torch

from llminfer.core.triton_environment import tl, triton


@triton.jit
def head_norm(x_ptr, gain_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    """One program: one head of one token, `width` elements from program_id(0) * width on."""
    start = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + start + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column, mask=inside, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / width
    normed = x / tl.sqrt(mean_square + eps) * (1 + gain)
    tl.store(out_ptr + start + column, normed.to(out_ptr.dtype.element_ty), mask=inside)


def rmsnorm_kernel(x: torch.Tensor, gain: torch.Tensor, eps: float, out: torch.Tensor) -> None:
    """Write the normed heads of `x` [T, H, E] into `out`."""
    tokens, heads, width = x.shape
    head_norm[(tokens * heads,)](x, gain, out, width, eps, BLOCK=triton.next_power_of_2(width))
