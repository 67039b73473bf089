"""Commands that are asked, with a time limit, and how their failures are told in one line."""

from __future__ import annotations

import os
import subprocess

from collections.abc import Sequence

from harness.providers.local import namespace

_LIMIT_S = 10.0


def run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run *argv* with nothing to read; one that hangs or is not there has failed."""
    environment = {**os.environ, "PATH": namespace.search_path(), "LC_ALL": "C"}
    try:
        return subprocess.run(
            argv, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_LIMIT_S, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(list(argv), 127, "", reason(error))


def output(argv: Sequence[str]) -> str:
    """All that *argv* says when it is `run`: stdout, then stderr."""
    done = run(argv)
    return done.stdout + done.stderr


def reason(error: Exception) -> str:
    """Why, in the words of the system where it has some: without number and path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def first_line(text: str) -> str:
    """The first line of *text* that is not blank, stripped."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "it said nothing")
