"""What the user sees of a bug: two lines, and a file for its report."""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback

from pathlib import Path

from harness import __version__


def describe(error: Exception) -> str:
    """Write the traceback of *error* to a file of its own, and name it in two lines."""
    what = f"error: {type(error).__name__}: {error} (a bug in harness {__version__})"
    try:
        path = _write(_report(error))
    except OSError:  # No place to keep it: better on the terminal than lost.
        return f"{_report(error)}\n{what}"
    return f"{what}\n  fix: report it, with {path}"


def state_folder() -> Path:
    """Where the harness keeps what outlives a command: logs."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rules: a relative path is no path.
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return home / "mapreduce-harness"


def _report(error: Exception) -> str:
    return "\n".join(
        [
            f"harness {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"arguments: {sys.argv[1:]}",
            "".join(traceback.format_exception(error)),
        ]
    )


def _write(report: str) -> Path:
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / time.strftime(f"crash-%Y%m%dT%H%M%S-{os.getpid()}.log")
    path.write_text(report, encoding="utf-8", errors="backslashreplace")
    return path
