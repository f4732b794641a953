"""What holds the student's code: levels, strongest first, each of them tried on this machine before it is believed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Isolation:
    """A level, and what it was seen to do here.

    files_hidden: a file outside the worker's view cannot be read. network_closed: nothing reaches a socket on this
    machine. processes_contained: what the student starts dies with the worker. not_root: no uid 0, no capabilities.
    """

    level: str
    files_hidden: bool
    network_closed: bool
    processes_contained: bool
    not_root: bool

    @property
    def boundary(self) -> bool:
        """Good enough for a teacher to run strangers' code."""
        return self.files_hidden and self.network_closed and self.not_root
