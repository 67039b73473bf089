"""Measures real Hadoop clusters and scores what performance models predicted of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base.version import __version__

if TYPE_CHECKING:
    from harness.api.commands import backtest, compare, import_histories, runs, tune
    from harness.api.commands import open as open  # noqa: A004 - the name that docs/api.md promises

__all__ = [
    "__version__",
    "backtest",
    "compare",
    "import_histories",
    "open",
    "runs",
    "tune",
]


def __getattr__(name: str) -> Any:
    """A function of `harness.api.commands`: what it needs is imported when one is asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    from harness.api import commands

    return getattr(commands, name)


def __dir__() -> list[str]:
    """The names of the interface, whether they were asked for or not."""
    return [*globals(), *__all__]
