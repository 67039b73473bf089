"""Plan, check beforehand, execute: from an experiment file to stored trials."""

from __future__ import annotations

from typing import Protocol


class Console(Protocol):
    """Where long work reports its progress; the command line implements it."""

    def say(self, text: str) -> None:
        """Report one line."""

    def step(self, done: int, total: int, left_s: float | None, text: str) -> None:
        """Report that *done* of *total* are done, and the seconds that are probably left."""

    def note(self, text: str) -> None:
        """Show on a terminal, until the next step, what is going on."""
