"""
The first process of a node: starts its daemons, buries its dead, ends them all with itself.

    python -I -S keeper.py PLAN

The plan is that of `supervisor`, which lies beside this file; the pipe ``control`` is made here.
A death has ``oom`` in its line where the kernel's memory killer was at work here.  The same lines
go to standard output: who reads a container's log learns of a death at once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from harness.node import supervisor
else:  # a program: isolated Python does not look beside it
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(Path(__file__).parent))
    import supervisor

ENDS = (signal.SIGTERM, signal.SIGINT)
# versions 2 and 1 of control groups, as a container sees its own
MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def main() -> None:
    """Keep the daemons of the plan file until told to end."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    # what daemons leave behind becomes ours: a container's, or a fallen NodeManager's tasks
    supervisor.adopt_orphans()
    wake = supervisor.catch(signal.SIGCHLD, *ENDS)
    with suppress(FileExistsError):
        os.mkfifo(plan["control"], 0o600)
    control = os.open(plan["control"], os.O_RDWR | os.O_CLOEXEC)
    Keeper(plan).keep(wake, control, until=ENDS)
    # no data of a measured cluster is worth a slow end
    supervisor.end_descendants()


class Keeper(supervisor.Supervisor):
    """The daemons of one node."""

    def spawn(self, daemon: dict[str, Any]) -> int:
        """Start one daemon in a session of its own; its process id."""
        with Path(daemon["log"]).open("ab") as log:
            process = subprocess.Popen(
                daemon["argv"], env=daemon["env"], cwd=daemon["cwd"], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        process.returncode = 0  # it is `bury` that waits for it
        return process.pid

    def died(self, key: str, status: int) -> str:
        """Report a death, to who reads our output, too."""
        line = super().died(key, status)
        sys.stdout.write(line)
        sys.stdout.flush()
        return line

    def cause(self, status: int) -> dict[str, Any]:
        """Whether the kernel has killed for want of memory here."""
        return {"oom": True} if status == -signal.SIGKILL and memory_kills() else {}


def memory_kills() -> int:
    """How many processes of our control group the kernel has killed for their memory."""
    for file in MEMORY_EVENTS:
        with suppress(OSError):
            for line in Path(file).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    return 0


if __name__ == "__main__":
    main()
