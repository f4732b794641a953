"""What lateness costs: a grace, so many percent a day, and a day after which nothing counts."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)


@dataclass(frozen=True)
class LatePolicy:
    """grace_minutes: late by no more is on time. percent_per_day: of the points earned, for each day or part of one.

    last_day: later than so many days earns nothing; None: every day is accepted. Without any of them lateness is shown
    and costs nothing.
    """

    grace_minutes: float = 0
    percent_per_day: float = 0
    last_day: int | None = None

    def __post_init__(self) -> None:
        if self.grace_minutes < 0:
            raise ValueError(f"grace_minutes must not be negative, got {self.grace_minutes}")
        if not 0 <= self.percent_per_day <= 100:
            raise ValueError(f"percent_per_day must lie in 0..100, got {self.percent_per_day}")
        if self.last_day is not None and self.last_day < 0:
            raise ValueError(f"last_day must not be negative (0: nothing is accepted late), got {self.last_day}")

    def days_late(self, submitted: datetime, due: datetime) -> int:
        """Begun days since `due`; within the grace it is 0, after it the grace counts too."""
        late = submitted - due
        return 0 if late <= timedelta(minutes=self.grace_minutes) else math.ceil(late / DAY)

    def kept(self, days: int) -> float:
        """The fraction of the earned points that is left after `days`."""
        if self.last_day is not None and days > self.last_day:
            return 0.0
        return max(0.0, 1 - days * self.percent_per_day / 100)

    def __str__(self) -> str:
        if not self.percent_per_day and self.last_day is None:
            return "lateness is shown and costs nothing"
        parts = [f"{self.grace_minutes:g} minutes of grace"] if self.grace_minutes else []
        parts += [f"{self.percent_per_day:g} % a day"] if self.percent_per_day else []
        parts += [f"nothing after day {self.last_day}"] if self.last_day is not None else []
        return ", ".join(parts)
