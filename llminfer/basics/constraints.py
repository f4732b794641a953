"""A grammar over the tokens of a model: which tokens may come next, what follows when one is taken, where it may end.

A token may be any run of bytes, so its text is followed through the automaton: all tokens at once, through a trie of
the vocabulary. What has been computed for a state is kept for all texts under the same grammar and tokenizer.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int

from llminfer.basics.automata import DEAD
from llminfer.basics.grammars import Grammar
from llminfer.basics.minimization import finishing
from llminfer.basics.pushdown import Configuration, Stack
from llminfer.basics.token_masks import pack_mask, unpack_mask
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.vocabulary_tries import ROOT, vocabulary_trie

KEPT_MASKS = 8192  # 6 KB each for 49152 tokens


class Constraint:
    """One text under a grammar, token by token.

    Ordinary tokens are allowed by their bytes. The tokenizer's end-of-text tokens are allowed exactly where the text
    may end; other control tokens never.
    Raises ValueError if the tokenizer names no end-of-text token, or no sequence of its tokens makes a text of the
    grammar.
    Source: Willard and Louf 2023. Book section 3.1.7.
    """

    def __init__(self, grammar: Grammar, tokenizer: Tokenizer) -> None:
        if not tokenizer.eos_ids:
            raise ValueError(f"{tokenizer.name!r} names no end-of-text token (eos_ids), so that no text could end")
        self.grammar = grammar
        self.tokenizer = tokenizer
        self.ended = False  # an end-of-text token was taken
        self._masks = token_automaton(grammar, tokenizer)
        self._configuration = grammar.pushdown.start

    @property
    def can_end(self) -> bool:
        """Is what was taken so far a whole text of the grammar?"""
        return self.grammar.pushdown.may_end(self._configuration)

    def mask(self) -> Bool[np.ndarray, "V"]:
        """Which tokens may come next: none after the end, and at least one before it if there is an end-of-text token.

        V is the tokenizer's vocabulary_size.
        """
        return unpack_mask(self.packed_mask(), self.tokenizer.vocabulary_size)

    def packed_mask(self) -> Int[np.ndarray, "words"]:
        """`mask`, 32 tokens in an int32, as `apply_token_mask` takes it."""
        if self.ended:
            return np.zeros(-(-self.tokenizer.vocabulary_size // 32), np.int32)
        return self._masks.packed(self._configuration)

    def advance(self, token: int) -> None:
        """Take a token. Raises ValueError, and changes nothing, if it may not come next."""
        if self.ended:
            raise ValueError(f"token {token} comes after the end of the text; start a new Constraint for another text")
        if token in self.tokenizer.eos_ids and self.can_end:
            self.ended = True
            return
        after: Configuration = frozenset()
        if self._masks.is_ordinary(token):
            after = self.grammar.pushdown.after(self._configuration, self.tokenizer.decode_bytes([token]))
        if not after:
            raise ValueError(
                f"token {token} ({self._name(token)}) may not come next under {self.grammar.name}; choose among the "
                "tokens that mask() allows"
            )
        self._configuration = after

    def forced_bytes(self) -> bytes:
        """The bytes that are the only way on, up to where there is a choice or the text may end."""
        pushdown, configuration, text = self.grammar.pushdown, self._configuration, b""
        while not self.ended and not pushdown.may_end(configuration):
            following = pushdown.next_bytes(configuration)
            if len(following) != 1:
                break
            text += following.astype(np.uint8).tobytes()
            configuration = pushdown.after(configuration, text[-1:])
        return text

    def forced(self) -> list[int]:
        """Tokens that need no model: there is no other way on. Takes none of them; `advance` does.

        Forced bytes are cut into tokens as the tokenizer would cut them, because models have seen texts cut that way;
        the last token is left out where a longer one could take its place. An end-of-text token is forced when it is
        the only one, and nothing else may come.
        """
        if self.ended:
            return []
        tokens = self._cut(self.forced_bytes())
        if tokens:
            return tokens
        allowed = np.flatnonzero(self.mask())
        return allowed.tolist() if len(allowed) == 1 else []

    def _cut(self, text: bytes) -> list[int]:
        """The tokens of a text that more will follow, without the last; none for a text the tokenizer changes."""
        tokens = self.tokenizer.encode(text.decode(errors="ignore"))[:-1]
        return tokens if text.startswith(self.tokenizer.decode_bytes(tokens)) else []

    def _name(self, token: int) -> str:
        known = 0 <= token < self.tokenizer.vocabulary_size
        return repr(self.tokenizer.decode_bytes([token])) if known else "not in the vocabulary"


@lru_cache(maxsize=64)
def token_automaton(grammar: Grammar, tokenizer: Tokenizer) -> "TokenAutomaton":
    """The masks of a grammar over a vocabulary, shared by all texts under it; kept."""
    return TokenAutomaton(grammar, tokenizer)


class TokenAutomaton:
    """The masks of a grammar over a vocabulary, each computed once. Raises as `Constraint` does."""

    def __init__(self, grammar: Grammar, tokenizer: Tokenizer) -> None:
        self.grammar = grammar
        self.pushdown = grammar.pushdown
        self.trie = vocabulary_trie(tokenizer)
        self._class_of_node = grammar.automaton.class_of[self.trie.byte]  # [nodes]
        self._end_ids = [id for id in tokenizer.eos_ids if id < tokenizer.vocabulary_size]
        self._productive = self._find_productive()
        self.packed = lru_cache(maxsize=KEPT_MASKS)(self._packed)
        self._on_top = lru_cache(maxsize=KEPT_MASKS)(self._under_state)

    def is_ordinary(self, token: int) -> bool:
        """Is it a token that stands for its bytes?"""
        return 0 <= token < len(self.trie.node_of) and bool(self.trie.node_of[token] < self.trie.nodes)

    def _packed(self, configuration: Configuration) -> Int[np.ndarray, "words"]:
        """The mask of a configuration: what any of its stacks allows, and the end where it may end."""
        words = np.bitwise_or.reduce([self._under_stack(stack) for stack in configuration])
        if self.pushdown.may_end(configuration):
            words = words.copy()
            for token in self._end_ids:
                words[token // 32] |= np.array(1 << token % 32, np.uint32).view(np.int32)
        return words

    def _under_stack(self, stack: Stack) -> Int[np.ndarray, "words"]:
        """What the top state allows, kept per state; tokens that outlast its frame are followed in the frames below."""
        words, nodes = self._on_top(stack[-1])
        if len(stack) > 1 and len(nodes):
            alive = np.zeros(self.trie.nodes, bool)
            for state in reversed(stack[:-1]):
                nodes = self._follow(nodes, state, alive)
            words = words | pack_mask(self.trie.tokens_at(alive))
        return words

    def _under_state(self, state: int) -> tuple[Int[np.ndarray, "words"], Int[np.ndarray, "n"]]:
        """(the mask of a state by itself, the nodes of the trie at which its frame may be used up)."""
        states = self.trie.states_from_root(state, self._step)
        alive = states != DEAD if self._productive is None else self._productive[states]
        return pack_mask(self.trie.tokens_at(alive)), np.flatnonzero(self.pushdown.returned(states))

    def _follow(
        self, nodes: Int[np.ndarray, "n"], state: int, alive: Bool[np.ndarray, "nodes"]
    ) -> Int[np.ndarray, "m"]:
        """Mark the nodes alive that `state` allows below some; returns those at which its frame may be used up."""
        states = np.full(len(nodes), state)
        returned = [nodes[self.pushdown.returned(states)]]
        for below, after in self.trie.states_below(nodes, states, self._step):
            alive[below] = True
            returned.append(below[self.pushdown.returned(after)])
        return np.unique(np.concatenate(returned))

    def _find_productive(self) -> Bool[np.ndarray, "states"] | None:
        """The states from which tokens, not just bytes, lead to an end; None: all of them do.

        A byte that is a token can always be taken. Only where no such byte leads on must whole tokens be tried.
        """
        automaton, trie = self.grammar.automaton, self.trie
        firsts = np.arange(1, 1 + trie.children[ROOT])  # the nodes of one byte
        columns = np.arange(automaton.table.shape[1]) >= automaton.classes  # calls, and then the bytes that are tokens
        columns[automaton.class_of[trie.byte[np.intersect1d(firsts, trie.node_of)]]] = True
        productive = finishing(replace(automaton, table=np.where(columns, automaton.table, DEAD)))
        doubtful = np.flatnonzero(~productive)[1:]  # without DEAD
        if not len(doubtful):
            return None
        if self.grammar.recursive:
            raise ValueError(
                f"{self.grammar.name} is recursive and needs bytes that are no tokens of their own in this vocabulary; "
                "leave those characters out of the grammar, or take a tokenizer that has all bytes"
            )
        after = {state: self._after_tokens(state) for state in doubtful.tolist()}
        while hopeful := [s for s in after if not productive[s] and productive[after[s]].any()]:
            productive[hopeful] = True
        if not productive[automaton.starts[0]]:
            raise ValueError(
                f"no sequence of this vocabulary's tokens makes a text of {self.grammar.name}; some byte that it needs "
                "is in no token, or in none that fits"
            )
        return productive

    def _after_tokens(self, state: int) -> Int[np.ndarray, "n"]:
        """The states that one token can lead to."""
        states = self.trie.states_from_root(state, self._step)
        return np.unique(np.append(states, DEAD)[self.trie.node_of])

    def _step(self, states: Int[np.ndarray, "n"], nodes: Int[np.ndarray, "n"] | slice) -> Int[np.ndarray, "n"]:
        return self.pushdown.step(states, self._class_of_node[nodes])
