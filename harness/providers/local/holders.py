"""
The first process of a local cluster, from outside: started, written down, ended with all below it.

What it does itself is in `harness.node.local`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import sys

from contextlib import suppress
from pathlib import Path

from harness.errors import ClusterError
from harness.providers import state as states
from harness.providers.host import last_lines
from harness.providers.interrupts import Postponed
from harness.providers.local import limits as nodes
from harness.providers.local import namespace
from harness.providers.state import ClusterState, Process
from harness.records.trial import ClusterSpec

_MADE_LIMIT_S = 60.0

# Holders that this process started: somebody must collect them when they end.
_started: dict[int, subprocess.Popen[bytes]] = {}


def start(folder: Path, name: str, spec: ClusterSpec, home: Path, first_port: int) -> ClusterState:
    """
    Start the first process of the cluster whose files lie in *folder*, and write its state down.

    *first_port* other than 0: one without namespaces.  `ClusterError`, or `MachineError` where the
    kernel refuses namespaces, with what the process said.
    """
    as_root = os.geteuid() == 0
    plan = str(folder / "plan.json")
    argv = [sys.executable, "-I", "-S", str(states.agent_file()), "supervise", plan]
    with (folder / "supervisor.log").open("wb") as log:
        holder = subprocess.Popen(
            argv if first_port else namespace.make_argv(argv, as_root=as_root),
            start_new_session=True, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
            env=environment(),
        )  # fmt: skip
    _started[holder.pid] = holder
    try:
        state = ClusterState(
            name, spec.model_dump(mode="json"), str(home),
            user_namespace=not as_root, outer=Process.of(holder.pid),
            first_port=first_port,
        )  # fmt: skip
        state.save(folder)
        doors = _let_go(holder)
        first = Process.of(states.child_of(holder.pid))
    except ProcessLookupError:
        raise _not_made(folder, name) from None
    finally:
        _collect_if_ended(holder)
    state = dataclasses.replace(state, inner=first, doors=tuple(doors))
    state.save(folder)
    return state


def _let_go(holder: subprocess.Popen[bytes]) -> list[dict[str, int]]:
    """Tell the holder that it is written down who it is; answers the doors to its nodes."""
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder.stdin as stdin, holder.stdout as stdout:
        with suppress(BrokenPipeError):  # it has ended: then nothing is to be read either
            stdin.write(b"go\n")
        ready, _, _ = select.select([stdout], [], [], _MADE_LIMIT_S)
        line = stdout.readline() if ready else b""
    if not line:
        raise ProcessLookupError(holder.pid)
    doors: list[dict[str, int]] = json.loads(line)
    return doors


def _not_made(folder: Path, name: str) -> Exception:
    said = last_lines(folder / "supervisor.log", 8)
    return namespace.refusal(said) or ClusterError(
        f"the cluster's network was not made: {said or 'no message'}",
        where=f"local cluster {name!r}",
        fix="the last lines above name the command that failed",
    )


def remove(folder: Path) -> bool:
    """End the processes of the cluster in *folder*, and remove it; `False`: there was none."""
    if not folder.exists():
        return False
    with Postponed():  # it takes a second at most, and what was begun is better ended
        nodes.lift(folder)
        _end_processes(folder)
        nodes.release(folder)
        states.remove_tree(folder)
    return True


def _end_processes(folder: Path) -> None:
    state = ClusterState.load(folder)
    if state is not None:
        states.end_processes(state)
    else:
        for process in states.holders(folder / "plan.json"):
            process.kill()
    if state is None or state.first_port:
        while strays := states.strays(folder):
            for process in strays:
                process.kill()
    for pid, holder in list(_started.items()):
        if holder.poll() is not None:
            del _started[pid]


def environment() -> dict[str, str]:
    """All that our own programs inside need."""
    return {"PATH": namespace.search_path()}


def _collect_if_ended(holder: subprocess.Popen[bytes]) -> None:
    for pipe in (holder.stdin, holder.stdout):
        if pipe is not None:
            pipe.close()
    if holder.poll() is not None:
        _started.pop(holder.pid, None)
