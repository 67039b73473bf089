"""
What tasks run on here: one line of JSON, the versions of ``java`` and of the ``kernel``.

    python -I -S versions.py

Java is that of ``JAVA_HOME``, as its own file says it; only where it has none a JVM is started.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys

from pathlib import Path

_LIMIT_S = 20.0


def main() -> None:
    """Answer."""
    answer = {"java": java(os.environ.get("JAVA_HOME", "")), "kernel": platform.release()}
    sys.stdout.write(json.dumps(answer) + "\n")


def java(home: str) -> str:
    """Version of the Java in *home*; empty where it does not tell."""
    try:
        told = re.search(
            r'^JAVA_RUNTIME_VERSION="(.*)"$', Path(home, "release").read_text(), re.MULTILINE
        )
    except (OSError, ValueError):
        told = None
    return told[1] if told else _asked(home)


def _asked(home: str) -> str:
    try:
        done = subprocess.run(
            # without the first flag it would leave a folder among the host's temporary files
            [f"{home}/bin/java", "-XX:-UsePerfData", "-XshowSettings:properties", "-version"],
            check=False,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    told = re.search(rb"^\s*java\.runtime\.version = (\S+)$", done.stderr, re.MULTILINE)
    return told[1].decode(errors="replace") if told else ""


if __name__ == "__main__":
    main()
