"""The smallest automaton of a language: dead ends cut off, states that agree on every text to come made one."""

from collections import defaultdict

import numpy as np
from jaxtyping import Bool

from llminfer.basics.automata import DEAD, Automaton


def minimise(automaton: Automaton) -> Automaton:
    """The automaton of the same language with the fewest states; starts that cannot reach an end become DEAD.

    Source: Hopcroft 1971. Blocks of states are split by "which of them reach that block by this column" until nothing
    splits any more; of two halves only the smaller need be looked at again, hence n log n.
    """
    automaton = trim(automaton)
    block_of = _hopcroft(automaton)
    order = np.unique(block_of, return_index=True)[1]  # [blocks], a state of each, by block
    order = np.sort(order)  # numbered by their first state, so that DEAD stays 0
    number = np.empty(block_of.max() + 1, np.int32)
    number[block_of[order]] = np.arange(len(order), dtype=np.int32)
    new = number[block_of]  # [states], old state -> new state
    starts = tuple(int(new[start]) for start in automaton.starts)
    return Automaton(new[automaton.table[order]], automaton.class_of, automaton.accepting[order], starts)


def trim(automaton: Automaton) -> Automaton:
    """Edges that lead to no end lead to DEAD instead, and calls of rules that have no text are none."""
    alive = finishing(automaton)
    table = np.where(alive[automaton.table] & _followed(automaton, alive) & alive[:, None], automaton.table, DEAD)
    starts = tuple(start if alive[start] else DEAD for start in automaton.starts)
    return Automaton(table, automaton.class_of, automaton.accepting & alive, starts)


def finishing(automaton: Automaton) -> Bool[np.ndarray, "states"]:
    """The states from which a text (or, inside of a rule, the rule) can be finished."""
    alive = np.zeros(automaton.states + 1, bool)
    while True:  # a call is a way on once the rule it calls is known to have an end
        now = _reach_an_end(np.where(_followed(automaton, alive), automaton.table, DEAD), automaton.accepting)
        if (now == alive).all():
            return alive
        alive = now


def _followed(automaton: Automaton, alive: Bool[np.ndarray, "states"]) -> Bool[np.ndarray, "columns"]:
    """The columns that can be got through: bytes, and calls of rules whose start is alive."""
    return np.append(np.ones(automaton.classes, bool), alive[list(automaton.starts[1:])])


def _reach_an_end(table: np.ndarray, accepting: Bool[np.ndarray, "states"]) -> Bool[np.ndarray, "states"]:
    sources = [set() for _ in table]
    for state, row in enumerate(table):
        for following in set(row.tolist()) - {DEAD}:
            sources[following].add(state)
    alive = accepting.copy()
    stack = np.flatnonzero(alive).tolist()
    while stack:
        for source in sources[stack.pop()]:
            if not alive[source]:
                alive[source] = True
                stack.append(source)
    return alive


def _hopcroft(automaton: Automaton) -> np.ndarray:
    """The block of each state."""
    incoming = [defaultdict(list) for _ in automaton.table]  # state -> column -> states that lead here
    for state, column in np.argwhere(automaton.table != DEAD).tolist():
        incoming[automaton.table[state, column]][column].append(state)
    block_of = _distances(automaton, incoming)
    blocks = [set(np.flatnonzero(block_of == block).tolist()) for block in range(block_of.max() + 1)]
    block_of = block_of.tolist()
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = tuple(blocks[waiting.pop()])
        sources_by_column: dict[int, list[int]] = defaultdict(list)
        for state in splitter:
            for column, sources in incoming[state].items():
                sources_by_column[column] += sources
        for sources in sources_by_column.values():
            touched: dict[int, set[int]] = defaultdict(set)
            for state in sources:
                touched[block_of[state]].add(state)
            for block, inside in touched.items():
                if len(inside) == len(blocks[block]):
                    continue
                blocks[block] -= inside
                smaller, larger = sorted((inside, blocks[block]), key=len)
                blocks[block] = larger
                blocks.append(smaller)
                for state in smaller:
                    block_of[state] = len(blocks) - 1
                waiting.add(len(blocks) - 1)  # where the old block waits, both halves do
    return np.array(block_of)


def _distances(automaton: Automaton, incoming: list) -> np.ndarray:
    """A first partition: by how many steps the end is away, which states that agree agree on. DEAD is alone in 0.

    Chains, such as a string of at most 1000 characters, fall apart at once that would be split one by one.
    """
    distance = np.zeros(len(automaton.table), np.int64)
    layer, steps = set(np.flatnonzero(automaton.accepting).tolist()), 0
    while layer:
        steps += 1
        distance[list(layer)] = steps
        layer = {s for state in layer for states in incoming[state].values() for s in states if not distance[s]}
    return distance
