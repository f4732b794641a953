"""A trie over the vocabulary: tokens with the same first bytes share a path, so that a mask reads each byte once.

Nodes are numbered level by level: all tokens advance by one byte in one array operation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int

from llminfer.basics.tokenization import Tokenizer

ROOT = 0
Step = Callable[[np.ndarray, np.ndarray | slice], np.ndarray]
"""(states before, the nodes whose bytes come next) -> states after; 0 is dead."""


@dataclass(frozen=True, eq=False)
class VocabularyTrie:
    """The tokens of a vocabulary as paths from a root.

    byte:     the byte on the way to each node (that of the root means nothing).
    parent:   the node before each node.
    children: how many nodes come after each; they lie side by side, from `first_child` on.
    levels:   (first node, one past the last) of each depth from 1 on.
    node_of:  the node of each token; `nodes`, one past the last, for control tokens and ids without bytes.
    """

    byte: Int[np.ndarray, "nodes"]
    parent: Int[np.ndarray, "nodes"]
    first_child: Int[np.ndarray, "nodes"]
    children: Int[np.ndarray, "nodes"]
    levels: tuple[tuple[int, int], ...]
    node_of: Int[np.ndarray, "V"]

    @property
    def nodes(self) -> int:
        return len(self.byte)

    def states_from_root(self, state: int, step: Step) -> Int[np.ndarray, "nodes"]:
        """The state of an automaton at every node, if it is in `state` at the root; 0, dead, stays 0."""
        states = np.zeros(self.nodes, np.int32)
        states[ROOT] = state
        for first, end in self.levels:
            states[first:end] = step(states[self.parent[first:end]], slice(first, end))
            if not states[first:end].any():
                break
        return states

    def states_below(
        self, nodes: Int[np.ndarray, "n"], states: Int[np.ndarray, "n"], step: Step
    ) -> Iterator[tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"]]]:
        """The same below a few nodes: level by level, those that are not dead, and the states at them."""
        while len(nodes):
            counts = self.children[nodes]
            first = np.repeat(self.first_child[nodes] - (np.cumsum(counts) - counts), counts)
            below = first + np.arange(len(first))  # the children of all nodes, side by side
            after = step(np.repeat(states, counts), below)
            alive = np.flatnonzero(after)
            nodes, states = below[alive], after[alive]
            yield nodes, states

    def tokens_at(self, nodes: Bool[np.ndarray, "nodes"]) -> Bool[np.ndarray, "V"]:
        """Which tokens end at one of these nodes."""
        return np.append(nodes, False)[self.node_of]


@lru_cache(maxsize=8)
def vocabulary_trie(tokenizer: Tokenizer) -> VocabularyTrie:
    """The trie of a tokenizer's ordinary tokens, those it matches by name included, control tokens not; kept."""
    tokens = {**tokenizer.ranks, **{name.encode(): id for name, id in tokenizer.added.items()}}
    return build_trie(list(tokens), list(tokens.values()), tokenizer.vocabulary_size)


def build_trie(tokens: list[bytes], ids: list[int], vocabulary: int) -> VocabularyTrie:
    """The trie of tokens with these bytes and ids; sorted tokens make every level a few array operations."""
    order = sorted(range(len(tokens)), key=tokens.__getitem__)
    lengths = np.array([len(tokens[i]) for i in order])
    longest = int(lengths.max(initial=0))
    text = np.zeros((len(order), longest), np.uint8)  # [tokens, longest], padded
    for row, i in enumerate(order):
        text[row, : lengths[row]] = np.frombuffer(tokens[i], np.uint8)
    node_of = np.zeros(len(order), np.int64)  # of the prefix read so far; all begin at the root
    bytes_read, parents, levels, count = [np.zeros(1, np.uint8)], [np.zeros(1, np.int64)], [], 1
    for depth in range(longest):
        rows = np.flatnonzero(lengths > depth)
        edge = node_of[rows] * 256 + text[rows, depth]
        new = np.append(True, edge[1:] != edge[:-1])  # sorted tokens bring equal prefixes together
        node_of[rows] = count + np.cumsum(new) - 1
        bytes_read.append(text[rows, depth][new])
        parents.append(edge[new] // 256)
        levels.append((count, count + int(new.sum())))
        count = levels[-1][1]
    parent = np.concatenate(parents)
    children = np.bincount(parent[1:], minlength=count)
    of_token = np.full(vocabulary, count)
    of_token[[ids[i] for i in order]] = node_of
    return VocabularyTrie(
        byte=np.concatenate(bytes_read).astype(np.int64),
        parent=parent,
        first_child=1 + np.cumsum(children) - children,
        children=children,
        levels=tuple(levels),
        node_of=of_token,
    )
