"""The judge's side of "Token mask from an automaton"."""

from collections.abc import Iterator

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=0)  # a token is allowed or it is not


def reference(table, accepting, state, vocabulary, eos_id):
    """Every token by itself; whether an end can be reached from where it leads is searched forwards."""
    if not (0 <= state < len(table) == len(accepting) and 0 <= eos_id < len(vocabulary)):
        raise ValueError("state and eos_id must exist, and every state must say whether it accepts")
    if table.shape[1] != 256 or table.min() < -1 or table.max() >= len(table):
        raise ValueError("the table needs a column per byte, and only states or -1 in it")
    mask = [text != b"" and _can_end(table, accepting, _led_to(table, state, text)) for text in vocabulary]
    mask[eos_id] = accepting[state]
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
        if any(accepting[place] for place in seen):
            return True
        wider = seen.union(*(table[place].tolist() for place in seen)) - {-1}
        if wider == seen:
            return False
        seen = wider


def cases(group: str, rng: np.random.Generator) -> Iterator[Case]:
    if group == "digits":
        table = _table(4, {(0, b"0123456789"): 1, (1, b"0123456789"): 2, (2, b"0123456789"): 3})
        vocabulary = [b"7", b"42", b"123", b"", b"1234", b"a", b"4x", b"9"]
        for state, words in enumerate(("nothing yet", "one digit", "two digits", "three digits")):
            yield _case(table, [1, 2, 3], state, vocabulary, 3, words)
    elif group == "traps":
        # from 0: "ab" ends in 4 (accepting), by way of 2; "t" falls into 1, which reads everything and never ends
        table = _table(5, {(0, b"a"): 2, (0, b"t"): 1, (1, bytes(range(256))): 1, (2, b"b"): 4, (4, b"c"): 4})
        vocabulary = [b"", b"a", b"t", b"ab", b"at", b"tab", b"abc", b"xc", b"b"]
        yield _case(table, [4], 0, vocabulary, 0, "at the beginning, beside a trap")
        yield _case(table, [4], 1, vocabulary, 0, "in the trap, where nothing is left to choose")
        long = _table(6, {(0, b"a"): 1, (1, b"b"): 2, (2, b"c"): 3, (3, b"d"): 4, (4, b"e"): 5, (0, b"t"): 0})
        yield _case(
            long, [5], 0, [b"", b"a", b"abc", b"abcd", b"t", b"tta", b"abcde", b"abcdef"], 0, "a long way to the end"
        )
    elif group == "odd tokens":
        sun = "日".encode()
        table = _table(4, {(0, sun[:1]): 1, (1, sun[1:2]): 2, (2, sun[2:]): 3})
        vocabulary = [b"", b"", sun, sun[:1], sun[:2], sun[1:2], sun[1:], sun[2:], b"</s>"]
        for state, words in enumerate(
            ("before a character of three bytes", "behind its first byte", "behind its second")
        ):
            yield _case(table, [3], state, vocabulary, 1, words)
        table = _table(2, {(0, bytes(range(256))): 0, (0, b"."): 1})
        yield _case(
            table, [1], 0, [b"</s>", b"a", b".", b"a.", b".a", b""], 0, "an eos token that could be read as text"
        )
    else:
        for states in (5, 6, 8):
            letters = bytes(rng.choice(256, 4, replace=False).tolist())
            ways = {(here, bytes([letter])): int(rng.integers(states)) for here in range(states) for letter in letters}
            ways = {way: to for way, to in ways.items() if rng.random() < 0.45} | {(0, letters): 0}  # 0 is a trap
            table = _table(states, ways)
            accepting = [int(rng.integers(1, states))]
            vocabulary = [bytes(rng.choice(list(letters), rng.integers(0, 5)).tolist()) for _ in range(25)]
            for state in range(states):
                yield _case(table, accepting, state, vocabulary, int(rng.integers(25)))


def _table(states, ways):
    """From (state, bytes) -> next state."""
    table = np.full((states, 256), -1, dtype=np.int32)
    for (here, letters), following in ways.items():
        table[here, list(letters)] = following
    return table


def _case(table, accepting, state, vocabulary, eos_id, label="") -> Case:
    accepts = np.isin(np.arange(len(table)), accepting)
    arguments = {"table": table, "accepting": accepts, "state": state, "vocabulary": vocabulary, "eos_id": eos_id}
    return Case(arguments, label=label)


GROW = "        if not (leads_on & ~alive).any():\n            break\n"
ALLOWED = "len(text) > 0 and place >= 0 and alive[place]"
OFF = "            if place < 0:\n                break\n"
EOS = "    mask[eos_id] = accepting[state]\n"

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
        hint="The eos token has no bytes that the table could read. What decides whether it is allowed?",
    ),
    Mutant(
        "walks on behind -1",
        ((OFF, ""),),
        hint="A token was allowed whose first byte has no way in the table. What is table[-1] in NumPy?",
    ),
    Mutant(
        "traps are states too",
        ((ALLOWED, "len(text) > 0 and place >= 0"),),
        hint="The table can read this token, but once it has, can the answer ever end?",
    ),
    Mutant(
        "every token must end the answer",
        (("alive |= leads_on", "break"),),
        hint="A token was refused though other tokens could follow it and complete the answer.",
    ),
    Mutant(
        "one step to the end",
        ((GROW, "        alive |= leads_on\n        break\n"),),
        hint="You look one byte ahead for an accepting state. How far may it be?",
    ),
    Mutant(
        "tokens without bytes",
        ((ALLOWED, "place >= 0 and alive[place]"),),
        hint="A token was allowed that leaves the automaton where it is. What would a model do that likes it best?",
    ),
)

ALL_AT_ONCE = """
import numpy as np


def token_mask(table, accepting, state, vocabulary, eos_id):
    dead = len(table)
    table = np.vstack([np.where(table < 0, dead, table), np.full((1, 256), dead)])
    alive = np.append(accepting, False)
    for _ in range(len(table)):
        alive = alive | alive[table].any(axis=1)
    longest = max(map(len, vocabulary))
    place = np.full(len(vocabulary), state)
    for i in range(longest):
        has = np.array([len(text) > i for text in vocabulary])
        byte = np.array([text[i] if len(text) > i else 0 for text in vocabulary])
        place = np.where(has, table[place, byte], place)
    mask = alive[place] & np.array([text != b"" for text in vocabulary])
    mask[eos_id] = accepting[state]
    return mask
"""

TRIE = """
import numpy as np


def token_mask(table, accepting, state, vocabulary, eos_id):
    following = [{int(to) for to in row if to >= 0} for row in table]
    alive = {i for i, ends in enumerate(accepting) if ends}
    while more := {i for i, to in enumerate(following) if to & alive} - alive:
        alive |= more
    trie = {}
    for token, text in enumerate(vocabulary):
        node = trie
        for byte in text:
            node = node.setdefault(byte, {})
        node.setdefault("tokens", []).append(token)
    mask = np.zeros(len(vocabulary), bool)

    def walk(node, place):
        for byte, child in node.items():
            if byte != "tokens" and (to := int(table[place, byte])) in alive:  # whoever is dead stays dead
                mask[child.get("tokens", [])] = True
                walk(child, to)

    walk(trie, state)
    mask[eos_id] = accepting[state]
    return mask
"""

HONEST = (
    Variant("all tokens at once", source=ALL_AT_ONCE),
    Variant("a trie of the vocabulary", source=TRIE),
)
