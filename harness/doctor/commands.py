"""Commands with a time limit, and findings about their failures."""

from __future__ import annotations

import os
import subprocess

from collections.abc import Sequence

from harness.errors import HarnessError
from harness.providers.base import Finding
from harness.providers.local import namespace

_LIMIT_S = 10.0


def run_command(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run *argv* with nothing to read; one that hangs or is missing has failed (status 127)."""
    environment = {**os.environ, "PATH": namespace.search_path(), "LC_ALL": "C"}
    try:
        return subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_LIMIT_S, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        # The system's own words, where it has some, without number and path.
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return subprocess.CompletedProcess(list(argv), 127, "", reason)


def read_output(argv: Sequence[str]) -> str:
    """All that *argv* writes: stdout, then stderr."""
    completed = run_command(argv)
    return completed.stdout + completed.stderr


def first_line(text: str) -> str:
    """The first line of *text* that is not blank, stripped."""
    lines = (line.strip() for line in text.splitlines())
    return next(filter(None, lines), "it wrote nothing")


def lacking_finding(name: str, error: HarnessError) -> Finding:
    """Finding *name*, lacking for the reason of *error*, with its fix."""
    what = f"{error.what} ({error.where})" if error.where else error.what
    return Finding(name, "lacking", what, error.fix)
