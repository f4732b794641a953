"""Token mask: which tokens may come next, if the answer must be a text that an automaton accepts.

A grammar becomes an automaton over bytes; a model chooses tokens, which are several bytes each. Before every step the
two must meet: of all tokens of the vocabulary, which ones keep the answer on a way that can still be completed?

    table       [states, 256]   the state after a byte, -1 where no text of the grammar goes on like that
    accepting   [states]        whether the answer may end in this state
    state                       where the answer so far has led
    vocabulary                  the bytes of every token; special tokens have none
    eos_id                      the token that ends the answer
    returns     [V]             bool: True for the tokens that are allowed

A token is allowed if the automaton can read all its bytes, and if from where that leads some accepting state can still
be reached, by any bytes and in any number of steps. Beware of states that are traps: you can go on there for ever, and
never end. The eos token is allowed exactly where the answer may end, whatever its bytes. Any other token without bytes
is not allowed: it would bring the answer nowhere, and could be chosen again and again.

Example: a grammar of one, two or three digits, with the states 0 (nothing yet) to 3 (three digits; accepting are
1, 2, 3). In state 2 the token b"7" is allowed, b"42" is not, and eos is. In state 0 b"42" is and eos is not.

Book section 3.1.7. About 30 minutes.
"""

import numpy as np
from jaxtyping import Bool, Int


def token_mask(
    table: Int[np.ndarray, "states 256"],
    accepting: Bool[np.ndarray, "states"],
    state: int,
    vocabulary: list[bytes],
    eos_id: int,
) -> Bool[np.ndarray, "V"]:
    """True for each token that may follow in `state`."""
    alive = accepting.copy()  # [states], from where an accepting state can be reached; grows until it does not
    while True:
        leads_on = (alive[table] & (table >= 0)).any(axis=1)
        if not (leads_on & ~alive).any():
            break
        alive |= leads_on
    mask = np.zeros(len(vocabulary), dtype=bool)
    for token, text in enumerate(vocabulary):
        place = state
        for byte in text:
            place = table[place, byte]
            if place < 0:
                break
        mask[token] = len(text) > 0 and place >= 0 and alive[place]
    mask[eos_id] = accepting[state]
    return mask
