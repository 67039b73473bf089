"""What long work tells its user; the command line gives it a face."""

from __future__ import annotations

from typing import Protocol


class Talk(Protocol):
    """Where progress goes."""

    def say(self, text: str) -> None:
        """Tell one line."""
        ...

    def step(self, done: int, total: int, left_s: float | None, text: str) -> None:
        """Tell that *done* of *total* trials are done, and the seconds that are likely left."""
        ...


class Silence:
    """Tells nothing."""

    def say(self, text: str) -> None:
        """Drop *text*."""

    def step(self, done: int, total: int, left_s: float | None, text: str) -> None:
        """Drop the step."""
