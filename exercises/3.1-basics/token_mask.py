"""Token mask: which tokens may come next, if the answer must be a text that an automaton accepts.

A grammar becomes an automaton over bytes; a model chooses tokens, which are several bytes each. Before every step the
two must meet: of all tokens of the vocabulary, which ones keep the answer on a way that can still be completed?

    edges       (state, bytes, next state): in that state each of these bytes leads there. No byte has two ways from a
                state; one without a way ends all hope
    accepting   the states in which the answer may end
    state       where the answer so far has led
    vocabulary  the bytes of every token; special tokens have none
    eos_id      the token that ends the answer
    returns     [V] bool: True for the tokens that are allowed

A token is allowed if the automaton can read all its bytes, and if from where that leads some accepting state can still
be reached, by any bytes and in any number of steps. Beware of states that are traps: you can go on there for ever, and
never end. The eos token is allowed exactly where the answer may end, whatever its bytes. Any other token without bytes
is not allowed: it would bring the answer nowhere, and could be chosen again and again.

Example: numbers of one to three digits are three edges, (0, b"0123456789", 1), (1, b"0123456789", 2) and
(2, b"0123456789", 3), and accepting are 1, 2 and 3. In state 2 the token b"7" is allowed, b"42" is not, and eos is. In
state 0 b"42" is allowed and eos is not.

Book section 3.1.7. About 30 minutes.
"""

import numpy as np
from jaxtyping import Bool


def token_mask(
    edges: list[tuple[int, bytes, int]], accepting: list[int], state: int, vocabulary: list[bytes], eos_id: int
) -> Bool[np.ndarray, "V"]:
    """True for each token that may follow in `state`."""
    raise NotImplementedError("your turn")
