"""A conversation in the form a model was trained on: turns, each with the name of who speaks.

Knows nothing about tokens. `Tokenizer.chat` marks the turns, and puts the marks in as ids rather than as text, so that
a message which spells <|im_end|> stays a message that spells it.
"""

from collections.abc import Mapping, Sequence

ROLES = ("system", "user", "assistant")
SMOLLM2_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def smollm2_turns(messages: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Role and content of every turn; a conversation that does not begin with a system message gets SmolLM2's own.

    Raises ValueError for no messages, an unknown role, or a message without content.
    """
    if not messages:
        raise ValueError('a conversation needs at least one message, such as {"role": "user", "content": "Hello"}')
    turns = []
    for index, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise ValueError(f"role of message {index} is {role!r}; expected one of {', '.join(ROLES)}")
        if content is None:
            raise ValueError(f"message {index} has no content; expected a text, which may be empty")
        turns.append((role, content))
    return turns if turns[0][0] == "system" else [("system", SMOLLM2_SYSTEM), *turns]
