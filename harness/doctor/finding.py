"""What a check answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.errors import HarnessError

State = Literal["ok", "note", "lacking"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: *what* was found, and *fix*, the command that cures it."""

    name: str
    state: State
    what: str
    fix: str = ""


def lacking(name: str, error: HarnessError) -> Finding:
    """Finding *name*, lacking for *error*, which also tells the cure."""
    what = f"{error.what} ({error.where})" if error.where else error.what
    return Finding(name, "lacking", what, error.fix)
