"""Judge's side of generation_loop: scores as exact integers, and the rules one after another.

Votes are integers and texts short, so that the toy model's halves are exact in float64 and a tie is a tie.
"""

import numpy as np

from llminfer.grading.spec import Case, Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=0, dtype="any")  # ids: right or wrong
LONGEST = 40  # 10 bits of a vote and one more a halving stay below the 53 of float64


def reference(votes, prompt, max_tokens, context, eos_ids, min_tokens=0):
    V = len(votes)
    allowed = [v for v in range(V) if v not in eos_ids]
    if votes.shape != (V, V) or np.any(votes % 1) or np.abs(votes).max() > 1000 or not allowed:
        raise ValueError("a vote for each pair of tokens, and a token that is no eos id")
    if not 0 < len(prompt) < context <= LONGEST or min(max_tokens, min_tokens + 1) < 1:
        raise ValueError("a prompt, room for an answer, and limits")
    if not all(0 <= token < V for token in [*prompt, *eos_ids]):
        raise ValueError("ids of the vocabulary")
    answer = []
    for count in range(min(max_tokens, context - len(prompt))):
        text = [*prompt, *answer]
        score = [sum(int(votes[token, v]) << i for i, token in enumerate(text)) for v in range(V)]  # times 2^(T-1)
        chosen = max(allowed if count < min_tokens else range(V), key=lambda v: (score[v], -v))
        answer.append(chosen)
        if chosen in eos_ids:
            break
    return answer


def cases(group, rng):
    chain = np.roll(8 * np.eye(6, dtype=np.int64), 1, axis=1)  # token v votes for v + 1
    if group == "the loop":
        yield _case("each token votes for the next", chain, [0], 4)
        yield _case("one token", chain, [0, 1, 2], 1)
        together = np.array([[0, 9, 6, 0], [0, 0, 8, 9], [9, 0, 0, 0], [0, 9, 0, 0]])
        yield _case("a token that was voted for twice", together, [0, 1], 1)
        yield _case("equal scores", np.array([[0, 0, 5, 5], [1, 1, 1, 1], [0, 5, 5, 0], [0, 0, 0, 0]]), [0], 3)
        for i in range(3):
            yield _case(f"a model drawn at random, {i + 1}", _votes(rng), _ids(rng, 5), 8)
    elif group == "the end":
        yield _case("an eos id", chain, [0], 5, eos_ids=[2])
        yield _case("an eos id at once", chain, [1], 5, eos_ids=[2])
        yield _case("two eos ids", chain, [0], 5, eos_ids=[5, 3])
        yield _case("an eos id in the prompt", chain, [1, 2], 3, eos_ids=[2])
        yield _case("max_tokens shorter than the prompt", chain, [0, 1, 2, 3], 2)
        yield _case("a context that is full", chain, [0, 1, 2], 9, context=5)
        yield _case("a context with room for one", chain, [0, 1, 2], 9, context=4)
    elif group == "not before min_tokens":
        voters = np.array([[0, 9, 5, 1], [1, 9, 4, 0], [0, 9, 3, 5], [0, 9, 2, 4]])  # everyone's favourite is 1
        yield _case("the favourite has to wait", voters, [0], 6, eos_ids=[1], min_tokens=3)
        yield _case("two eos ids have to wait", voters, [0], 6, eos_ids=[1, 2], min_tokens=2)
        yield _case("nothing to wait for", voters, [0], 6, eos_ids=[1], min_tokens=0)
        yield _case("max_tokens comes first", voters, [0], 2, eos_ids=[1], min_tokens=2)
        yield _case("the context comes first", voters, [0], 9, context=3, eos_ids=[1], min_tokens=5)
    elif group == "any text":
        for i in range(8):
            prompt = _ids(rng, int(rng.integers(1, 8)))
            max_tokens, min_tokens = int(rng.integers(1, 14)), int(rng.integers(0, 6))
            eos_ids = rng.choice(6, size=rng.integers(1, 4), replace=False).tolist()
            context = len(prompt) + int(rng.integers(1, 16))
            yield _case(f"text {i + 1}", _votes(rng), prompt, max_tokens, context, eos_ids, min_tokens)


def _case(label, votes, prompt, max_tokens, context=LONGEST, eos_ids=(), min_tokens=0):
    arguments = {"votes": votes, "prompt": prompt, "max_tokens": max_tokens, "context": context}
    return Case(arguments | {"eos_ids": list(eos_ids), "min_tokens": min_tokens}, label=label)


def _votes(rng):
    return rng.integers(0, 1000, size=(6, 6))


def _ids(rng, count):
    return rng.integers(0, 6, size=count).tolist()


LOOP = "while len(tokens) < min(len(prompt) + max_tokens, context):"
LOGITS = "logits = model(np.array(tokens))[-1]  # [T, V] -> [V]: only the last token's successor is unknown"
WAIT = "if len(tokens) - len(prompt) < min_tokens:"
CHOICE = "tokens.append(int(np.argmax(logits)))"
END = "        if tokens[-1] in eos_ids:\n            break\n"
RESULT = "return tokens[len(prompt) :]"

MUTANTS = (
    Mutant(
        "the prompt again",
        ((RESULT, "return tokens"),),
        hint="Your answer begins with the prompt. The caller has that already.",
    ),
    Mutant(
        "the first row",
        ((LOGITS, "logits = model(np.array(tokens))[0]"),),
        hint="Every token of your answer follows from the first token of the prompt. Which row of the logits is about "
        "the end of the text?",
    ),
    Mutant(
        "only the last token sent",
        ((LOGITS, "logits = model(np.array(tokens[-1:]))[-1]"),),
        hint="The model forgets everything but the last token. It has no memory of its own yet (that is chapter 3.2): "
        "what has to be sent with each step?",
    ),
    Mutant(
        "the prompt alone sent",
        ((LOGITS, "logits = model(np.array(prompt))[-1]"),),
        hint="Your answer repeats one token. What does the model see in the second step?",
    ),
    Mutant(
        "the last of equals",
        ((CHOICE, "tokens.append(int(len(logits) - 1 - np.argmax(logits[::-1])))"),),
        hint="Where two tokens have the same score you took the higher id. What does the task say?",
    ),
    Mutant(
        "the end left out",
        ((CHOICE, "chosen = int(np.argmax(logits))"), (END, "        if chosen in eos_ids:\n            break\n"
                                                       "        tokens.append(chosen)\n")),
        hint="Your answers stop at the right place, one token short. Does the eos id belong to the answer?",
    ),
    Mutant(
        "no end",
        ((END, ""),),
        hint="Your answer runs on behind an eos id.",
    ),
    Mutant(
        "the prompt can end it",
        ((LOOP, f"{LOOP[:-1]} and tokens[-1] not in eos_ids:"),),
        hint="A prompt that ends with an eos id got no answer. Chat prompts do end so: when must you look for an eos "
        "id, "
        "before a step or after it?",
    ),
    Mutant(
        "the prompt counted",
        ((LOOP, "while len(tokens) < min(max_tokens, context):"),),
        hint="With a long prompt your answer is too short, or empty. Tokens of what does max_tokens count, and of what "
        "does the context?",
    ),
    Mutant(
        "no context",
        ((LOOP, "while len(tokens) < len(prompt) + max_tokens:"),),
        hint="The text grew past the context. A model has no positions there.",
    ),
    Mutant(
        "the answer alone in the context",
        ((LOOP, "while len(tokens) - len(prompt) < min(max_tokens, context):"),),
        hint="The text grew past the context. What shares it with the answer?",
    ),
    Mutant(
        "no waiting",
        ((WAIT, "if False:"),),
        hint="An eos id came before min_tokens. It may be the model's favourite there and still must not be chosen.",
    ),
    Mutant(
        "one too long",
        ((WAIT, "if len(tokens) - len(prompt) <= min_tokens:"),),
        hint="An eos id had to wait one token too long. With min_tokens of 3, which is the first place that it may "
        "take?",
    ),
    Mutant(
        "the favourite thrown away",
        ((END, "        if tokens[-1] in eos_ids and len(tokens) - len(prompt) > min_tokens:\n            break\n"),
         (WAIT, "if False:")),
        hint="Before min_tokens an eos id was chosen and the loop went on behind it. It must not be chosen there at "
        "all.",
    ),
    Mutant(
        "the caller's list",
        (("tokens = list(prompt)", "tokens = prompt"),),
        hint="The prompt grew together with your text. How many lists are there in your program?",
    ),
)  # fmt: skip

RECURSION = '''
import numpy as np


def generation_loop(votes, prompt, max_tokens, context, eos_ids, min_tokens=0):
    """One token, and the rest of the answer by the same function."""
    if max_tokens == 0 or len(prompt) == context:
        return []
    score = np.zeros(len(votes))
    for token in prompt:
        score = score / 2 + votes[token]
    ranked = sorted(range(len(votes)), key=lambda v: -score[v])
    best = next(v for v in ranked if min_tokens < 1 or v not in eos_ids)
    if best in eos_ids:
        return [best]
    return [best, *generation_loop(votes, prompt + [best], max_tokens - 1, context, eos_ids, min_tokens - 1)]
'''

HONEST = (
    Variant("by recursion, with a model of its own", source=RECURSION),
    Variant("a for loop", ((LOOP, "for _ in range(min(max_tokens, context - len(prompt))):"),)),
    Variant("an array that grows", (
        ("tokens = list(prompt)", "tokens = np.array(prompt)"),
        (CHOICE, "tokens = np.append(tokens, np.argmax(logits))"),
        (RESULT, "return tokens[len(prompt) :].tolist()"))),
)  # fmt: skip
