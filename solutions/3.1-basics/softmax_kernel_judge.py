"""The judge's side of "A softmax with a sink, for rows longer than a block". NumPy only; kernels run in the worker."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
OUTPUTS = ("out",)
# Near each other, float32 scores of 1e4 differ exactly; what is left is the rounding of exp and of a sum of 70 terms.
TOLERANCE = Tolerance(relative=1e-4, dtype="same")


def reference(x, sink, out, block):
    """The whole row at once, in float64."""
    if x.ndim != 2 or 0 in x.shape or sink.shape != x.shape[:1] or out.shape != x.shape:
        raise ValueError("the task is about x and out [T, S] and sink [T]")
    if block < 1 or block & (block - 1) or not np.isfinite(sink).all() or np.isnan(x).any() or (x == np.inf).any():
        raise ValueError("block is a power of two, sinks are finite, and scores are finite or -inf")
    scores = np.column_stack([sink, x]).astype(np.float64)  # [T, 1 + S]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return {"out": (weights / weights.sum(axis=1, keepdims=True))[:, 1:].astype(out.dtype)}


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "one block":
        yield _case([[1.0, 2.0, 3.0, 4.0]], [0.5], 4, "a row as long as the block")
        yield _case(rng.normal(0, 2, (2, 5)), rng.normal(0, 2, 2), 8, "two rows of 5 in a block of 8")
    elif group == "several blocks":
        yield _case([[5.0, 1.0, 0.0, 1.0, 2.0, 0.0, 1.0]], [0.5], 4, "the largest score in the first block")
        yield _case([[1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 5.0]], [0.5], 4, "the largest score in the last block")
        yield _case(rng.normal(0, 3, (2, 37)), rng.normal(0, 3, 2), 8, "two rows of five blocks, the last one in part")
    elif group == "extremes":
        yield _case([[9000.0, 10000.0, 9999.0, -10000.0, 10000.0]], [9999.0], 4, "scores of 1e4")
        yield _case([[-50.0, -40.0, -60.0, -45.0, -41.0]], [300.0], 4, "a sink far above all scores")
        yield _case(
            [[-900.0, -901.0, -902.0, -900.0, -905.0]], [-1000.0], 4, "all far below zero, the sink most of all"
        )
        yield _case([[-np.inf] * 4 + [1.0, -np.inf, 2.0]], [0.0], 4, "the first block is masked")
        yield _case([[-np.inf] * 6], [-3.0], 4, "a masked row")
    else:
        for block in (4, 16):
            x = rng.normal(0, 5, (3, int(rng.integers(block + 1, 4 * block)))) + rng.normal(0, 500, (3, 1))
            x[rng.random(x.shape) < 0.2] = -np.inf
            x[rng.integers(3), :block] = -np.inf
            finite = np.where(np.isfinite(x), x, 0.0)
            yield _case(x, finite[:, -1] + rng.normal(0, 3, 3), block)


def _case(x, sink, block, label="") -> Case:
    x = np.asarray(x, np.float32)
    arguments = {"x": x, "sink": np.asarray(sink, np.float32), "out": np.empty_like(x), "block": block}
    return Case(arguments, label=label)


def _like(rule):
    """A mistake as a NumPy function of one row, in float32 as the kernel computes."""

    def computed(x, sink, out, block):
        with np.errstate(all="ignore"):
            rows = [rule(row, begin, block) for row, begin in zip(x, sink, strict=True)]
        return {"out": np.array(rows, np.float32)}

    return computed


def _blocks(row, block, padding):
    """The row in blocks, the last one filled up."""
    padded = np.full(-(-len(row) // block) * block, padding, np.float32)
    padded[: len(row)] = row
    return padded.reshape(-1, block)


def _over_blocks(row, sink, block, *, from_sink=True, scaled=True, padding=-np.inf, sink_term=np.exp):
    """As the solution goes over a row, with one or the other thing changed."""
    peak, total = (sink, np.float32(1)) if from_sink else (np.float32(-np.inf), np.float32(0))
    for part in _blocks(row, block, padding):
        new_peak = max(peak, part.max())
        total = total * (np.exp(peak - new_peak) if scaled else 1) + np.exp(part - new_peak).sum()
        peak = new_peak
    return np.exp(row - peak) / (total if from_sink else total + sink_term(sink - peak))


def _plain(row, sink, block):
    return np.exp(row) / (np.exp(row).sum() + np.exp(sink))


def _without_sink(row, sink, block):
    weights = np.exp(row - max(row.max(), sink))
    return weights / weights.sum()


def _sink_as_it_is(row, sink, block):
    return _over_blocks(row, sink, block, from_sink=False, sink_term=lambda _: np.exp(sink))


def _block_by_block(row, sink, block):
    parts = []
    for part in _blocks(row, block, -np.inf):
        weights = np.exp(part - max(sink, part.max()))
        parts.append(weights / (weights.sum() + np.exp(sink - max(sink, part.max()))))
    return np.concatenate(parts)[: len(row)]


SINK = "    peak = tl.load(sink_ptr + row)"
ONE = "    total = 1.0  # its e^(sink - peak)\n"
SCALE = "total * tl.exp(peak - new_peak) + "
NEW_PEAK = "new_peak = tl.maximum(peak, tl.max(x, axis=0))"
FIRST_LOAD = """        x = tl.load(x_ptr + row * width + start + column, mask=inside, other=-float("inf"))
        new_peak"""
WRITTEN = "tl.exp(x - peak) / total, mask=inside)\n"

FROM_NOTHING = (
    (SINK, '    sink = tl.load(sink_ptr + row)\n    peak = -float("inf")'),
    (ONE, "    total = 0.0\n"),
)

MUTANTS = (
    Mutant(
        "no largest score",
        (
            (SINK, "    sink = tl.load(sink_ptr + row)\n    peak = 0.0"),
            (ONE, "    total = tl.exp(sink)\n"),
            (NEW_PEAK, "new_peak = peak"),
        ),
        hint="Small scores are right, and scores of 1e4 are NaN. What is e^1e4 in float32, and infinity over infinity?",
        like=_like(_plain),
    ),
    Mutant(
        "no sink",
        ((ONE, "    total = 0.0\n"),),
        hint="Add up a row of your result. It should be less than 1: who has the rest?",
        like=_like(_without_sink),
    ),
    Mutant(
        "the sink is not measured from the largest score",
        (*FROM_NOTHING, (WRITTEN, WRITTEN.replace("total", "(total + tl.exp(sink))"))),
        hint="Every e^x in your sum is e^(x - largest). And the sink's?",
        like=_like(_sink_as_it_is),
    ),
    Mutant(
        "begins with nothing",
        (*FROM_NOTHING, (WRITTEN, WRITTEN.replace("total", "(total + tl.exp(sink - peak))"))),
        hint="All is right until a row begins with a masked block. What are your largest score and your sum after it?",
        like=_like(partial(_over_blocks, from_sink=False)),
    ),
    Mutant(
        "the sink's part is not scaled",
        ((SCALE, "total + "),),
        hint="Your sum begins with the part of the sink. When a larger score than it comes, in what unit is that part?",
        like=_like(partial(_over_blocks, scaled=False)),
    ),
    Mutant(
        "the sum of earlier blocks is not scaled",
        (*FROM_NOTHING, (SCALE, "total + "), (WRITTEN, WRITTEN.replace("total", "(total + tl.exp(sink - peak))"))),
        hint="One block is right. When a larger score comes in a later one, in what unit is the sum so far?",
        like=_like(partial(_over_blocks, from_sink=False, scaled=False)),
    ),
    Mutant(
        "columns that do not exist count",
        ((FIRST_LOAD, FIRST_LOAD.replace('-float("inf")', "0.0")),),
        hint="Whole blocks are right, blocks in part are not. What does e^0 add to a sum?",
        like=_like(partial(_over_blocks, padding=0.0)),
    ),
    Mutant(
        "every block by itself",
        source="""
import torch
from llminfer.core.triton_environment import tl, triton


@triton.jit
def each_block(x_ptr, sink_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    sink = tl.load(sink_ptr + row)
    for start in range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_ptr + row * width + start + column, mask=inside, other=-float("inf"))
        peak = tl.maximum(sink, tl.max(x, axis=0))
        weights = tl.exp(x - peak)
        total = tl.sum(weights, axis=0) + tl.exp(sink - peak)
        tl.store(out_ptr + row * width + start + column, weights / total, mask=inside)


def softmax_kernel(x, sink, out, block):
    each_block[(x.shape[0],)](x, sink, out, x.shape[1], BLOCK=block)
""",
        hint="Add up a row of several blocks of your result: it comes to more than 1. Which sum does a block need?",
        like=_like(_block_by_block),
    ),
)

LANES = '''
import torch
from llminfer.core.triton_environment import tl, triton


@triton.jit
def kernel(x_ptr, sink_ptr, out_ptr, width, BLOCK: tl.constexpr):
    """Each lane keeps a maximum and a sum of its own; they meet only at the end."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    sink = tl.load(sink_ptr + row)
    peaks = tl.zeros((BLOCK,), tl.float32) + sink
    totals = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        x = tl.load(x_ptr + row * width + start + column, mask=start + column < width, other=-float("inf"))
        higher = tl.maximum(peaks, x)
        totals = totals * tl.exp(peaks - higher) + tl.exp(x - higher)
        peaks = higher
    peak = tl.max(peaks, axis=0)
    total = tl.sum(totals * tl.exp(peaks - peak), axis=0) + tl.exp(sink - peak)
    for start in range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_ptr + row * width + start + column, mask=inside, other=0.0)
        tl.store(out_ptr + row * width + start + column, tl.exp(x - peak) / total, mask=inside)


def softmax_kernel(x, sink, out, block):
    kernel[(x.shape[0],)](x, sink, out, x.shape[1], BLOCK=block)
'''

THREE_PASSES = """
import torch
from llminfer.core.triton_environment import tl, triton


@triton.jit
def kernel(x_ptr, sink_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    begin = x_ptr + row * width
    sink = tl.load(sink_ptr + row)
    peak = sink
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        peak = tl.maximum(peak, tl.max(tl.load(begin + column, mask=column < width, other=-1e30), axis=0))
    total = tl.exp(sink - peak)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        weights = tl.exp(tl.load(begin + column, mask=column < width, other=0.0) - peak)
        total += tl.sum(tl.where(column < width, weights, 0.0), axis=0)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        weights = tl.exp(tl.load(begin + column, mask=column < width, other=0.0) - peak)
        tl.store(out_ptr + row * width + column, weights / total, mask=column < width)


def softmax_kernel(x, sink, out, block):
    kernel[(x.shape[0],)](x, sink, out, x.shape[1], BLOCK=block)
"""

HONEST = (
    Variant("a maximum and a sum in each lane", source=LANES),
    Variant("three passes", source=THREE_PASSES),
)
