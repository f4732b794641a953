"""A softmax with a sink, for rows longer than a block.

A row of scores over a long context, or over a vocabulary of 128,000 tokens, does not fit the registers of one program.
So the program goes over it block by block, and must know the largest score and the sum before it has seen the end. This
is the idea from which FlashAttention is made.

The rule differs from the library's softmax in one point. Each row has a sink, a score of its own that belongs to no
column and takes part of the probability, so that a head which finds nothing may attend to nothing:

    out[t, s] = e^x[t, s] / (e^sink[t] + sum over r of e^x[t, r])

    x       [T, S]    float32; masked scores are -inf, and a row may be masked from end to end
    sink    [T]       float32, finite
    out     [T, S]    float32; your kernel writes it, every element and nothing beyond
    block             a power of two: the most columns of a row that a program may load at once

Scores reach 1e4 here, where e^x is infinite and e^(x - largest) is not. Take `block` as the constexpr BLOCK, and go
over the row with `for start in range(0, width, BLOCK)`: once for the largest score and the sum, once more to write.
When a block brings a new largest score, the sum so far must be scaled to it. Mind -inf - -inf: it is NaN. Where could
you begin so that it never comes up?

Book section 3.1.2. About 45 minutes.
"""

import torch

from llminfer.core.triton_environment import tl, triton


@triton.jit
def sink_softmax(x_ptr, sink_ptr, out_ptr, width, BLOCK: tl.constexpr):
    """One program: one row, `width` elements from program_id(0) * width on, BLOCK at a time."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    peak = tl.load(sink_ptr + row)  # the largest score so far: the sink is a finite one, and is there before all others
    total = 1.0  # its e^(sink - peak)
    for start in range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_ptr + row * width + start + column, mask=inside, other=-float("inf"))
        new_peak = tl.maximum(peak, tl.max(x, axis=0))
        total = total * tl.exp(peak - new_peak) + tl.sum(tl.exp(x - new_peak), axis=0)
        peak = new_peak
    for start in range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_ptr + row * width + start + column, mask=inside, other=-float("inf"))
        tl.store(out_ptr + row * width + start + column, tl.exp(x - peak) / total, mask=inside)


def softmax_kernel(x: torch.Tensor, sink: torch.Tensor, out: torch.Tensor, block: int) -> None:
    """Write the softmax of each row of `x` [T, S], with its sink, into `out`."""
    rows, width = x.shape
    sink_softmax[(rows,)](x, sink, out, width, BLOCK=block)
