"""Sampling without a cumulative sum: noise on the logits, and the largest wins.

Add a random number from Gumbel's distribution to each logit, and take the token with the largest sum. It is drawn
with exactly its softmax probability, though no softmax was computed, nothing was summed and nothing normalised: one
pass that fits a GPU. There is more in it. The second largest sum is the token that you would draw if the first had been
taken out, the third if both had, and so on: one pass draws several different tokens. Trees of drafts (chapter 3.5) grow
from that.

Task: write `gumbel_sampling`. A uniform U in (0, 1) becomes Gumbel noise as -log(-log(U)).

Shapes: logits [V] -> tokens [draws, count].
Book section 3.1.6. About 20 minutes.
"""

import numpy as np
from jaxtyping import Float, Int


def gumbel_sampling(
    logits: Float[np.ndarray, "V"], count: int, draws: int, seed: int
) -> Int[np.ndarray, "draws count"]:
    """`draws` independent rows of `count` different tokens, each row in the order in which its tokens were drawn.

    The first token of a row is v with probability softmax(logits)[v]. Every further one is drawn by the softmax over
    the tokens that are not in the row yet.

    All randomness comes from np.random.default_rng(seed), so that the same arguments give the same tokens. A token with
    a logit of -inf is masked and never drawn; at least `count` are not masked. Logits may be as large as 10,000.

    How the noise is made is up to you: what is tested is how often which tokens come out, on 8,000 draws, with room
    for chance: a right program fails once in a billion.
    """
    uniform = np.random.default_rng(seed).random((draws, len(logits)))  # [draws, V], each token its own in each draw
    with np.errstate(divide="ignore"):  # random() may be 0, which makes the smallest noise there is, -inf
        scores = logits - np.log(-np.log(uniform))
    return np.argsort(-scores, axis=-1)[:, :count]
