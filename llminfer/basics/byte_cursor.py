"""Reading little-endian values one after another from bytes that nobody vouches for."""

import struct

import numpy as np


class ByteCursor:
    """A place in a file that moves on as values are read, and never past the end.

    `what` names a value in the ValueError that is raised, with its byte, when the file cannot hold it.
    """

    def __init__(self, data: np.ndarray, path: str) -> None:
        self.data = data
        self.path = path
        self.at = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def error(self, what: str, problem: str, at: int | None = None) -> ValueError:
        return ValueError(f"{self.path}: {what} at byte {self.at if at is None else at}: {problem}")

    def take(self, count: int, what: str) -> np.ndarray:
        """The next `count` bytes."""
        if count > self.left:
            raise self.error(what, f"needs {count} bytes, but the file has {self.left} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str, what: str) -> int:
        """An unsigned integer, kind "<I" (4 bytes) or "<Q" (8 bytes)."""
        return struct.unpack(kind, self.take(struct.calcsize(kind), what))[0]

    def count(self, least_bytes: int, what: str) -> int:
        """How many items follow; each takes at least `least_bytes`, so the file's end bounds the number."""
        at, items = self.at, self.number("<Q", what)
        if items * least_bytes > self.left:
            raise self.error(what, f"{items} items of at least {least_bytes} bytes, but {self.left} bytes are left", at)
        return items

    def text(self, what: str) -> str:
        """A length and as many bytes of UTF-8; in one piece, because a vocabulary has a hundred thousand of them."""
        at, start = self.at, self.at + 8
        if start > len(self.data):
            raise self.error(f"length of {what}", f"needs 8 bytes, but the file has {self.left} left")
        (length,) = struct.unpack_from("<Q", self.data, at)
        if length > len(self.data) - start:
            raise self.error(f"length of {what}", f"{length} bytes, but {len(self.data) - start} are left")
        self.at = start + length
        try:
            return str(self.data[start : self.at], "utf-8")
        except UnicodeDecodeError as problem:
            raise self.error(what, f"not UTF-8 ({problem.reason})", at) from None
