"""
What a host tells of itself: its clock, as often as it is asked, and the rest once.

    python -I -S facts.py FOLDER JAVA

For each line ``time`` of standard input a line with the seconds since the epoch; for a line
``facts`` one line of JSON, then it ends.  FOLDER is where the node's daemons write.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

from pathlib import Path
from typing import Any

_JAVA_LIMIT_S = 20.0
# What a control group allows, as a container sees its own: versions 2 and 1.
_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def main() -> None:
    """Answer until there is nothing more to answer."""
    folder, java = sys.argv[1:3]
    for line in sys.stdin:
        if line.strip() == "facts":
            say(json.dumps(facts(folder, java)))
            return
        say(repr(time.time()))


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def facts(folder: str, java: str) -> dict[str, Any]:
    """All but the clock."""
    disk = shutil.disk_usage(folder)
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory(),
        "disk_bytes": disk.total,
        "disk_free_bytes": disk.free,
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
        "python": platform.python_version(),
        "java": java_version(java),
    }


def memory() -> int:
    """Bytes of memory that the host, or its control group, has."""
    found = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    sizes = [int(found[1]) * 1024] if found else []
    for file in _MEMORY_LIMITS:
        try:
            text = Path(file).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes, default=0)


def java_version(java: str) -> str:
    """What ``java -version`` says first; why it does not, otherwise."""
    try:
        done = subprocess.run(
            # without that flag it would leave a folder among the host's temporary files
            [java, "-XX:-UsePerfData", "-version"], check=False, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_JAVA_LIMIT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {java}"
    quoted = re.search(rb'"([^"]{1,60})"', done.stderr)
    return quoted[1].decode(errors="replace") if quoted else "unknown"


if __name__ == "__main__":
    main()
