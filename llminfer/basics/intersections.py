"""The texts of two languages at once, which JSON Schema asks for by `pattern` beside `maxLength`.

Sequences, choices and repetitions cannot say "and". Automata can: they run side by side, and a text must please both.
"""

from itertools import groupby

import numpy as np

from llminfer.basics.automata import DEAD, MAX_STATES, Automaton, determinise
from llminfer.basics.expressions import Expression, Network
from llminfer.basics.minimization import minimise


def both(left: Expression, right: Expression, what: str) -> Expression:
    """The texts of both expressions, which name no rules; `what` names them in errors.

    Raises ValueError, naming the bound, if one of them, or both together, need too many states.
    Source: Rabin and Scott 1959, the direct product of two automata.
    """
    a, b = (minimise(determinise({what: side}, what, (), what)) for side in (left, right))
    runs = _runs(a, b)
    columns = [(int(a.class_of[low]), int(b.class_of[low])) for low, _ in runs]
    of_a, of_b = np.array(columns).T  # [runs]
    pairs = [(a.starts[0], b.starts[0])]  # grows while it is gone through
    numbers = {pairs[0]: 0}
    edges, ends = [], []
    for state, (p, q) in enumerate(pairs):
        if a.accepting[p] and b.accepting[q]:
            ends.append(state)
        targets = zip(a.table[p, of_a].tolist(), b.table[q, of_b].tolist(), strict=True)
        for target, same in groupby(zip(targets, runs, strict=True), key=lambda pair: pair[0]):
            if DEAD in target:
                continue
            if target not in numbers:
                numbers[target] = len(pairs)
                pairs.append(target)
            bytes_ = [run for _, run in same]
            edges.append((state, bytes_[0][0], bytes_[-1][1], numbers[target]))
        if len(pairs) > MAX_STATES:
            raise ValueError(f"{what} needs more than {MAX_STATES} states, the bound; lower its counts and lengths")
    return Network(len(pairs), tuple(edges), tuple(ends))


def _runs(a: Automaton, b: Automaton) -> list[tuple[int, int]]:
    """Runs of bytes, first and last, that neither automaton tells apart."""
    changes = (np.diff(a.class_of) != 0) | (np.diff(b.class_of) != 0)  # [255]
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), 256]
    return [(low, end - 1) for low, end in zip(edges, edges[1:], strict=False)]
