"""Stop strings: end a text where one begins, though it arrives in pieces.

A model writes tokens, a user reads text, and a request may say: stop before "User:". The tokens know nothing of that;
the string may lie across two or five of them. What could still become a stop string must not be shown yet, and
everything else must be shown at once, because a reader is waiting.

    s = StopStrings(["END"])
    s.push("The ")    ->  "The "
    s.push("EN")      ->  ""              could become END
    s.push("EMY")     ->  "ENEMY"         could not
    s.push(" EN")     ->  " "
    s.push("DS here") ->  ""              it did
    s.push("more")    ->  ""              nothing comes after it
    s.finish()        ->  ("", "END")

The rule. Let the text be all pieces joined. It ends at the first place where a stop string *begins*; of several that
begin there, the shortest counts. So with the stops "bc" and "abcd" the text "abcd" ends before the a, while "abce"
ends before the b: having read "abc" you cannot know yet. (The library's own StopStrings has another rule, the first
that is *complete*.) The outcome never depends on how the text was cut into pieces.

push(text) returns all that is now sure to be before the end, and was not returned yet: no character less, none more.
finish() says that no more text comes. It returns what is still to be shown, and the stop string that was found or None.
Stop strings have at least one character; there may be none of them.

Book section 3.1.1. About 35 minutes.
"""


class StopStrings:
    """Lets text through up to where the first stop string begins."""

    def __init__(self, stops: list[str]) -> None:
        self.stops = sorted(stops, key=len)
        self.held = ""
        self.found = None
        self.more_comes = True

    def push(self, text: str) -> str:
        """The text that can now be shown."""
        if self.found is not None:
            return ""
        text = self.held + text
        for place in range(len(text)):
            rest = text[place:]
            self.found = next((stop for stop in self.stops if rest.startswith(stop)), None)
            if self.found is not None:
                return text[:place]
            if self.more_comes and any(stop.startswith(rest) for stop in self.stops):
                self.held = rest
                return text[:place]
        self.held = ""
        return text

    def finish(self) -> tuple[str, str | None]:
        """The text still to be shown, and the stop string that ended it, or None."""
        self.more_comes = False
        return self.push(""), self.found
