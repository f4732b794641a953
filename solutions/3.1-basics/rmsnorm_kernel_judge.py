"""The judge's side of "An RMSNorm for heads, in Triton". It knows NumPy only; kernels run in the worker."""

from collections.abc import Iterator

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
OUTPUTS = ("out",)
# float16 rounds to 5e-4 of an element, and the result may be rounded once more than ours; float32 is far below it.
TOLERANCE = Tolerance(relative=1e-3, dtype="same")


def reference(x, gain, eps, out):
    """Head by head, in float64."""
    if x.ndim != 3 or gain.shape != x.shape[2:] or out.shape != x.shape or out.dtype != x.dtype or not eps > 0:
        raise ValueError("the task is about x and out [T, H, E] of one dtype, gain [E] and a positive eps")
    heads = x.reshape(-1, x.shape[2]).astype(np.float64)
    normed = [head / np.sqrt(np.mean(head**2) + eps) * (1 + gain.astype(np.float64)) for head in heads]
    return {"out": np.array(normed).reshape(x.shape).astype(x.dtype)}


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "whole blocks":
        yield _case(rng, 1, 1, 8, label="one head of one token")
        yield _case(rng, 3, 2, 16, label="three tokens with two heads each")
    elif group == "any width":
        yield _case(rng, 2, 2, 5, label="a width of 5 in a block of 8")
        yield _case(rng, 3, 1, 1, label="a width of 1")
        yield _case(rng, 1, 3, 37, label="a width of 37 in a block of 64")
    elif group == "small and large":
        yield _case(rng, 2, 1, 6, size=0.1, eps=0.05, label="small numbers beside a large eps")
        yield _case(rng, 1, 2, 12, size=300.0, dtype=np.float16, label="float16, hundreds")
    else:
        for dtype in (np.float32, np.float16):
            tokens, heads, width = (int(size) for size in rng.integers((1, 1, 2), (4, 4, 70)))
            yield _case(rng, tokens, heads, width, size=float(rng.choice([0.2, 5.0])), eps=0.01, dtype=dtype)


def _case(rng, tokens, heads, width, *, size=1.0, eps=1e-5, dtype=np.float32, label="") -> Case:
    scales = size * np.exp(rng.uniform(-1, 1, (tokens, heads, 1)))  # heads of one token differ in size
    x = (rng.standard_normal((tokens, heads, width)) * scales).astype(dtype)
    gain = rng.uniform(-0.5, 1.0, width).astype(dtype)
    return Case({"x": x, "gain": gain, "eps": eps, "out": np.empty_like(x)}, label=label)


def _like(rule):
    """A mistake as a NumPy function of x, gain and eps, computed in float64 and narrowed like the kernel's result."""

    def computed(x, gain, eps, out):
        with np.errstate(all="ignore"):
            return {"out": rule(x.astype(np.float64), gain.astype(np.float64), eps).astype(x.dtype)}

    return computed


def _root(x, eps):
    return np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def _over_block(x, gain, eps):
    block = 1 << (x.shape[-1] - 1).bit_length()
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) / block + eps) * (1 + gain)


def _in_float16(x, gain, eps, out):
    with np.errstate(all="ignore"):
        mean = np.sum((x * x).astype(np.float64), axis=-1, keepdims=True) / x.shape[-1]  # x * x in the dtype of x
        return {"out": (x.astype(np.float64) / np.sqrt(mean + eps) * (1 + gain.astype(np.float64))).astype(x.dtype)}


def _one_gain_for_each_token(x, gain, eps):
    return x / np.sqrt(np.mean(x * x, axis=(1, 2), keepdims=True) + eps) * (1 + gain)


X = "    x = tl.load(x_ptr + start + column, mask=inside, other=0.0).to(tl.float32)\n"
MEAN = "tl.sum(x * x, axis=0) / width"
NORMED = "x / tl.sqrt(mean_square + eps) * (1 + gain)"

MUTANTS = (
    Mutant(
        "the library's gain",
        ((NORMED, "x / tl.sqrt(mean_square + eps) * gain"),),
        hint="With a gain of zeros, what comes out of yours, and what should?",
        like=_like(lambda x, gain, eps: x / _root(x, eps) * gain),
    ),
    Mutant(
        "no root",
        ((NORMED, "x / (mean_square + eps) * (1 + gain)"),),
        hint="Multiply x by ten: the result should hardly change. What does yours do?",
        like=_like(lambda x, gain, eps: x / _root(x, eps) ** 2 * (1 + gain)),
    ),
    Mutant(
        "a sum, not a mean",
        ((MEAN, "tl.sum(x * x, axis=0)"),),
        hint="Your results are too small, the more so the wider the head. What turns a sum of squares into a mean?",
        like=_like(
            lambda x, gain, eps: x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + eps) * (1 + gain),
        ),
    ),
    Mutant(
        "the mean of the block",
        ((MEAN, "tl.sum(x * x, axis=0) / BLOCK"),),
        hint="Powers of two are right, other widths are too large by a factor that depends on the width alone. Of how "
        "many elements is the mean?",
        like=_like(_over_block),
    ),
    Mutant(
        "eps beside the root",
        ((NORMED, "x / (tl.sqrt(mean_square) + eps) * (1 + gain)"),),
        hint="Only small numbers come out wrong. What keeps the divisor away from zero, and where does it stand?",
        like=_like(lambda x, gain, eps: x / (_root(x, 0) + eps) * (1 + gain)),
    ),
    Mutant(
        "squares in float16",
        ((X, X.replace(".to(tl.float32)", "")),),
        hint="float32 is right, float16 is all zeros. What is the largest float16, and what is 300 squared?",
        like=_in_float16,
    ),
    Mutant(
        "the whole token at once",
        source="""
import torch
from llminfer.core.triton_environment import tl, triton


@triton.jit
def token_norm(x_ptr, gain_ptr, out_ptr, heads, width, eps, BLOCK: tl.constexpr):
    size = heads * width
    start = tl.program_id(0) * size
    column = tl.arange(0, BLOCK)
    inside = column < size
    x = tl.load(x_ptr + start + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column % width, mask=inside, other=0.0).to(tl.float32)
    normed = x / tl.sqrt(tl.sum(x * x, axis=0) / size + eps) * (1 + gain)
    tl.store(out_ptr + start + column, normed.to(out_ptr.dtype.element_ty), mask=inside)


def rmsnorm_kernel(x, gain, eps, out):
    tokens, heads, width = x.shape
    block = triton.next_power_of_2(heads * width)
    token_norm[(tokens,)](x, gain, out, heads, width, eps, BLOCK=block)
""",
        hint="One head a token is right, several are not. Which elements does the mean of one head run over?",
        like=_like(_one_gain_for_each_token),
    ),
)

TWO_AXES = '''
import torch
from llminfer.core.triton_environment import tl, triton


@triton.jit
def kernel(x_ptr, gain_ptr, out_ptr, heads, width, eps, BLOCK: tl.constexpr, H: tl.constexpr):
    """A program takes all heads of a token as one tile."""
    head, column = tl.arange(0, H)[:, None], tl.arange(0, BLOCK)[None, :]
    inside = (head < heads) & (column < width)
    place = tl.program_id(0) * heads * width + head * width + column
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(gain_ptr + column, mask=column < width, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(x * x, axis=1) / width + eps)
    tl.store(out_ptr + place, (x * inverse[:, None] * (gain + 1.0)).to(out_ptr.dtype.element_ty), mask=inside)


def rmsnorm_kernel(x, gain, eps, out):
    tokens, heads, width = x.shape
    blocks = {"BLOCK": triton.next_power_of_2(width), "H": triton.next_power_of_2(heads)}
    kernel[(tokens,)](x, gain, out, heads, width, eps, **blocks)
'''

HONEST = (
    Variant("a tile of heads", source=TWO_AXES),
    Variant(
        "a grid of two axes",
        (
            (
                "tl.program_id(0).to(tl.int64) * width",
                "(tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * width",
            ),
            ("head_norm[(tokens * heads,)]", "head_norm[(tokens, heads)]"),
        ),
    ),
    Variant("rsqrt, and the gain first", ((NORMED, "x * (1 + gain) * tl.rsqrt(mean_square + eps)"),)),
)
