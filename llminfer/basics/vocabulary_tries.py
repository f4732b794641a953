"""A trie over the vocabulary: tokens with the same first bytes share a path, so that a mask reads each byte once.

Nodes are numbered level by level, hence the children of a node lie side by side and a whole level moves in one step.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int

from llminfer.basics.tokenization import Tokenizer

ROOT = 0


@dataclass(frozen=True, eq=False)
class VocabularyTrie:
    """The tokens of a vocabulary as paths from a root.

    byte:        the byte on the way to each node (that of the root means nothing).
    first_child, children: where the children of each node begin, and how many they are.
    node_of:     the node of each token; `nodes`, one past the last, for control tokens and ids without bytes.
    """

    byte: Int[np.ndarray, "nodes"]
    first_child: Int[np.ndarray, "nodes"]
    children: Int[np.ndarray, "nodes"]
    node_of: Int[np.ndarray, "V"]

    @property
    def nodes(self) -> int:
        return len(self.byte)

    def walk(
        self,
        nodes: Int[np.ndarray, "n"],
        states: Int[np.ndarray, "n"],
        step: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> Iterator[tuple[Int[np.ndarray, "m"], Int[np.ndarray, "m"]]]:
        """From nodes and the states of an automaton at them to all nodes below that it can follow, level by level.

        `step(states, nodes)` gives the states after the bytes of those nodes; 0 is dead and not followed.
        """
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
    bytes_, parents, count = [np.zeros(1, np.uint8)], [np.zeros(1, np.int64)], 1
    for level in range(longest):
        rows = np.flatnonzero(lengths > level)
        edge = node_of[rows] * 256 + text[rows, level]
        new = np.append(True, edge[1:] != edge[:-1])  # sorted tokens bring equal prefixes together
        node_of[rows] = count + np.cumsum(new) - 1
        bytes_.append(text[rows, level][new])
        parents.append(edge[new] // 256)
        count += int(new.sum())
    parent = np.concatenate(parents)[1:]
    children = np.bincount(parent, minlength=count)
    first_child = 1 + np.cumsum(children) - children
    of_token = np.full(vocabulary, count)
    of_token[[ids[i] for i in order]] = node_of
    return VocabularyTrie(np.concatenate(bytes_).astype(np.int64), first_child, children, of_token)
