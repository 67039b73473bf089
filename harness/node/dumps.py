"""
Have every JVM of this node tell its threads, each into a file of its own.

    python -I -S dumps.py THREADS DAEMONS INTO

THREADS is `harness.providers.threads`, which does it, as a file of this node; DAEMONS the folder in
which files hold the process ids of daemons, by their names; INTO a folder.
"""

from __future__ import annotations

import importlib.util
import sys

from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Ask all, and wait a moment for their answers."""
    threads, daemons, into = map(Path, sys.argv[1:])
    spec = importlib.util.spec_from_file_location("threads", threads)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["threads"] = module
    spec.loader.exec_module(module)
    known = {}
    for file in daemons.iterdir():
        with suppress(OSError, ValueError):  # it has ended meanwhile
            known[int(file.read_text())] = file.name
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    into.mkdir(parents=True, exist_ok=True)
    module.dump(module.jvms(pids, known), into)


if __name__ == "__main__":
    main()
