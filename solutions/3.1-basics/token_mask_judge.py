"""The judge's side of "Token mask from an automaton"."""

from collections.abc import Iterator

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=0)  # a token is allowed or it is not


def reference(edges, accepting, state, vocabulary, eos_id):
    """Every token by itself; whether an end can be reached from where it leads is searched forwards."""
    states = [state, *accepting, *(place for here, _, to in edges for place in (here, to))]
    if min(states) < 0 or not 0 <= eos_id < len(vocabulary) or len(set(accepting)) < len(accepting):
        raise ValueError(
            "states begin at 0, eos_id must be a token, and a state is named once among the accepting ones"
        )
    table = np.full((max(states) + 1, 256), -1)
    for here, letters, to in edges:
        if (table[here, list(letters)] != -1).any() or len(set(letters)) < len(letters):
            raise ValueError(f"two ways from state {here}")
        table[here, list(letters)] = to
    mask = [text != b"" and _can_end(table, accepting, _led_to(table, state, text)) for text in vocabulary]
    mask[eos_id] = state in accepting
    return np.array(mask, dtype=bool)


def _led_to(table, state, text):
    """The state after all bytes; None where the table knows none."""
    if not text or state is None:
        return state
    following = int(table[state, text[0]])
    return _led_to(table, None if following == -1 else following, text[1:])


def _can_end(table, accepting, state):
    seen = {state} - {None}
    while True:
        if seen & set(accepting):
            return True
        wider = seen.union(*(table[place].tolist() for place in seen)) - {-1}
        if wider == seen:
            return False
        seen = wider


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "digits":
        edges = [(here, b"0123456789", here + 1) for here in range(3)]
        vocabulary = [b"7", b"42", b"123", b"", b"1234", b"a", b"4x", b"9"]
        for state, words in enumerate(("nothing yet", "one digit", "two digits", "three digits")):
            yield _case(edges, [1, 2, 3], state, vocabulary, 3, words)
    elif group == "traps":
        # "ab" ends in 3, by way of 2; "t" falls into 1, which reads on and never ends
        edges = [(0, b"a", 2), (0, b"t", 1), (1, b"abct", 1), (2, b"b", 3), (3, b"c", 3)]
        vocabulary = [b"", b"a", b"t", b"ab", b"at", b"tab", b"abc", b"xab", b"b"]
        yield _case(edges, [3], 0, vocabulary, 0, "at the beginning, beside a trap")
        yield _case(edges, [3], 1, vocabulary, 0, "in the trap, where nothing is left to choose")
        edges = [(0, b"t", 0), *((here, b"abcde"[here : here + 1], here + 1) for here in range(5))]
        vocabulary = [b"", b"a", b"abc", b"abcd", b"t", b"tta", b"abcde", b"abcdef"]
        yield _case(edges, [5], 0, vocabulary, 0, "a long way to the end")
    elif group == "odd tokens":
        sun = "日".encode()
        edges = [(0, sun[:1], 1), (1, sun[1:2], 2), (2, sun[2:], 3)]
        vocabulary = [b"", b"", sun, sun[:1], sun[:2], sun[1:2], sun[1:], sun[2:], b"</s>"]
        for state, words in enumerate(
            ("before a character of three bytes", "behind its first byte", "behind its second")
        ):
            yield _case(edges, [3], state, vocabulary, 1, words)
        edges = [(0, b"<s>/", 0), (0, b".", 1)]
        yield _case(
            edges, [1], 0, [b"</s>", b"s", b".", b"s.", b".s", b""], 0, "an eos token that could be read as text"
        )
    else:
        for states in (5, 6, 8):
            letters = bytes(rng.choice(256, 4, replace=False).tolist())
            edges = [(0, letters, 0)]  # 0 is a trap
            for here in range(1, states):
                ways = [(here, bytes([letter]), int(rng.integers(states))) for letter in letters]
                edges += [way for way in ways if rng.random() < 0.45]
            accepting = [int(rng.integers(1, states))]
            vocabulary = [bytes(rng.choice(list(letters), rng.integers(0, 5)).tolist()) for _ in range(25)]
            for state in range(states):
                yield _case(edges, accepting, state, vocabulary, int(rng.integers(25)))


def _case(edges, accepting, state, vocabulary, eos_id, label="") -> Case:
    arguments = {
        "edges": edges,
        "accepting": accepting,
        "state": state,
        "vocabulary": vocabulary,
        "eos_id": eos_id,
    }
    return Case(arguments, label=label)


GROW = "        alive |= more\n"
ALLOWED = "len(text) > 0 and place in alive"
STEP = "following.get((place, byte))"
EOS = "    mask[eos_id] = state in accepting\n"

MUTANTS = (
    Mutant(
        "only the first byte",
        (("for byte in text:", "for byte in text[:1]:"),),
        hint="A token was allowed that goes wrong later than in its first byte.",
    ),
    Mutant(
        "eos whenever",
        ((EOS, "    mask[eos_id] = True\n"),),
        hint="When may an answer end? Look at the eos token in the state in which nothing was read yet.",
    ),
    Mutant(
        "eos as any other token",
        ((EOS, ""),),
        hint="The eos token has no bytes that lead anywhere. What decides whether it is allowed?",
    ),
    Mutant(
        "stays where there is no way",
        ((STEP, "following.get((place, byte), place)"),),
        hint="A token was allowed though one of its bytes has no way. Where are you after that byte?",
    ),
    Mutant(
        "traps are states too",
        ((ALLOWED, "len(text) > 0 and place is not None"),),
        hint="All bytes of this token can be read, but after them, can the answer ever end?",
    ),
    Mutant(
        "every token must end the answer",
        ((GROW, "        break\n"),),
        hint="A token was refused though other tokens could follow it and complete the answer.",
    ),
    Mutant(
        "one step to the end",
        ((GROW, f"{GROW}        break\n"),),
        hint="You look one byte ahead for an accepting state. How far may it be?",
    ),
    Mutant(
        "tokens without bytes",
        ((ALLOWED, "place in alive"),),
        hint="A token was allowed that leaves the automaton where it is. What would a model do that likes it best?",
    ),
)

ALL_AT_ONCE = """
import numpy as np


def token_mask(edges, accepting, state, vocabulary, eos_id):
    dead = 1 + max([state, *accepting] + [place for here, _, to in edges for place in (here, to)])
    table = np.full((dead + 1, 256), dead)
    for here, letters, to in edges:
        table[here, list(letters)] = to
    alive = np.isin(np.arange(dead + 1), accepting)
    for _ in range(dead):
        alive = alive | alive[table].any(axis=1)
    place = np.full(len(vocabulary), state)
    for i in range(max(map(len, vocabulary))):
        byte = np.array([text[i] if len(text) > i else 0 for text in vocabulary])
        place = np.where([len(text) > i for text in vocabulary], table[place, byte], place)
    mask = alive[place] & np.array([text != b"" for text in vocabulary])
    mask[eos_id] = state in accepting
    return mask
"""

TRIE = """
import numpy as np


def token_mask(edges, accepting, state, vocabulary, eos_id):
    alive = set(accepting)
    for _ in edges:
        alive |= {here for here, _, to in edges if to in alive}
    trie = {}
    for token, text in enumerate(vocabulary):
        node = trie
        for byte in text:
            node = node.setdefault(byte, {})
        node.setdefault("tokens", []).append(token)
    mask = np.zeros(len(vocabulary), bool)

    def walk(node, place):
        for here, letters, to in edges:
            if here == place and to in alive:  # whoever is dead stays dead
                for byte in set(letters) & set(node):
                    mask[node[byte].get("tokens", [])] = True
                    walk(node[byte], to)

    walk(trie, state)
    mask[eos_id] = state in accepting
    return mask
"""

HONEST = (
    Variant("all tokens at once", source=ALL_AT_ONCE),
    Variant("a trie of the vocabulary", source=TRIE),
)
