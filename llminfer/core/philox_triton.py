"""The token noise of core/philox.py inside a kernel: a device function, no launcher."""

from llminfer.core.triton_environment import tl, triton


@triton.jit
def token_uniform(seed, sequence, position, first_token, BLOCK: tl.constexpr):
    """Uniform noise [BLOCK] for the tokens first_token .. first_token + BLOCK - 1, both multiples of 4.

    Four tokens share one call of Philox; interleaving its words puts them back in the order of the vocabulary.
    """
    quad = (first_token // 4 + tl.arange(0, BLOCK // 4)).to(tl.uint32)
    zero = quad * 0
    sequence = tl.to_tensor(sequence).to(tl.uint64)  # to_tensor: Triton hands a 1 over as a constant
    low, high = (sequence & 0xFFFFFFFF).to(tl.uint32), (sequence >> 32).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(seed, quad, zero + tl.to_tensor(position).to(tl.uint32), zero + low, zero + high)
    words = tl.interleave(tl.interleave(w0, w2), tl.interleave(w1, w3))  # w0 w1 w2 w3 of quad 0, then of quad 1, ...
    return tl.uint_to_uniform_float(words)
