"""Which row of a cache's arrays belongs to which sequence, and how many tokens it holds."""

from collections.abc import Sequence


class Rows:
    """`count` rows, lent to sequences by id. Nothing is lent before `take`, so that a refused step leaves no trace."""

    def __init__(self, count: int, capacity: int) -> None:
        if count < 1 or capacity < 1:
            raise ValueError(f"a cache needs room for at least 1 sequence of 1 token, got {count} of {capacity}")
        self.count = count
        self.capacity = capacity
        self.of: dict[int, int] = {}  # sequence -> row
        self.lengths: dict[int, int] = {}  # sequence -> tokens
        self.unused = list(range(count))

    def length(self, sequence: int) -> int:
        return self.lengths.get(sequence, 0)

    def would_take(self, sequences: Sequence[int], lengths: Sequence[int]) -> list[int]:
        """The row of each sequence, were each to grow by its length. Raises ValueError where there is no room."""
        fresh = [sequence for sequence in sequences if sequence not in self.of]
        if len(fresh) > len(self.unused):
            raise ValueError(
                f"this cache has rows for {self.count} sequences and {len(self.unused)} are free, but the step brings "
                f"{len(fresh)} new ones, {fresh}; free(sequence) gives a row back"
            )
        for sequence, new in zip(sequences, lengths, strict=True):
            if self.length(sequence) + new > self.capacity:
                raise ValueError(
                    f"sequence {sequence} holds {self.length(sequence)} tokens and gets {new} more, but the capacity "
                    f"is {self.capacity}"
                )
        lent = self.of | dict(zip(fresh, self.unused, strict=False))
        return [lent[sequence] for sequence in sequences]

    def take(self, sequence: int, length: int) -> int:
        """Make the sequence `length` tokens long; a new one gets the row that `would_take` named."""
        if sequence not in self.of:
            self.of[sequence] = self.unused.pop(0)
        self.lengths[sequence] = length
        return self.of[sequence]

    def free(self, sequence: int) -> None:
        """Nothing happens for an unknown id."""
        if sequence in self.of:
            self.unused.append(self.of.pop(sequence))
            del self.lengths[sequence]
