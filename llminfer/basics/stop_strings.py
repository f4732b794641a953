"""Strings that end a text, found in text that arrives in parts of any size.

A stop string may lie across the border of two tokens, so what could still become one is held back until it is clear.
"""

from collections.abc import Iterable


class StopStrings:
    """Lets text through up to the first stop string, and remembers which one that was.

    First is the one that is complete first, and of those the longest, so the outcome does not depend on where the text
    was cut into parts. All that `push` and `flush` return, joined, is the text before it.
    Raises ValueError for an empty stop string, which every text contains.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self.stops = tuple(stops)
        if "" in self.stops:
            raise ValueError(f"a stop string needs at least one character, got {self.stops}")
        self.found: str | None = None
        self._held = ""

    def push(self, text: str) -> str:
        """The text that is now safe to show. Once a stop string is found, nothing more comes."""
        if self.found is not None:
            return ""
        text = self._held + text
        begins = {stop: text.find(stop) for stop in self.stops}
        ends = [(begin + len(stop), begin, stop) for stop, begin in begins.items() if begin >= 0]
        if ends:
            _, begin, self.found = min(ends)
            self._held = ""
            return text[:begin]
        safe = len(text) - self._length_of_beginning(text)
        self._held = text[safe:]
        return text[:safe]

    def flush(self) -> str:
        """What was held back and, as no more text comes, is no stop string after all."""
        held, self._held = self._held, ""
        return held

    def _length_of_beginning(self, text: str) -> int:
        """How many of the last characters are the beginning of some stop string."""
        return max(
            (n for stop in self.stops for n in range(1, min(len(stop), len(text) + 1)) if text.endswith(stop[:n])),
            default=0,
        )
