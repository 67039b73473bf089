"""What a check answers."""

from __future__ import annotations

from harness.errors import HarnessError
from harness.providers.base import Finding, State

__all__ = ["Finding", "State", "lacking"]


def lacking(name: str, error: HarnessError) -> Finding:
    """Finding *name*, lacking for *error*, which also tells the cure."""
    what = f"{error.what} ({error.where})" if error.where else error.what
    return Finding(name, "lacking", what, error.fix)
