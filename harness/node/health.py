"""
Whether a node is well, for whoever asks its engine: no daemon has ended.

    python -I -S health.py PLAN      (the plan of `harness.node.keeper`)

Status 0; 1 and the names of the dead on standard output otherwise.
"""

from __future__ import annotations

import json
import sys

from pathlib import Path


def main() -> None:
    """Answer by the exit status."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    deaths = Path(plan["deaths"])
    dead = (
        [json.loads(line)["key"] for line in deaths.read_text().splitlines()]
        if deaths.exists()
        else []
    )
    sys.stdout.write("".join(f"{key} has ended\n" for key in dead))
    raise SystemExit(1 if dead else 0)


if __name__ == "__main__":
    main()
