"""
Start and end the daemons of a node through its keeper; what runs already is left alone.

    python -I -S starter.py PLAN start KIND...     prints ``started KEY`` for each that did not run
    python -I -S starter.py PLAN await URL WORD COMMAND...
                                                   becomes COMMAND when URL's answer has WORD in it
    python -I -S starter.py PLAN stop              prints ``stopped N`` when N processes had to end

The plan is the keeper's (``keeper.py``), with three more facts: ``member``, the node's name;
``folder``, that of the cluster on this host; ``unit``, the service of systemd that runs the keeper
(empty: it is started here, as a process of its own).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from contextlib import suppress
from pathlib import Path
from typing import Any

LIMIT_S = 30.0
PAUSE_S = 0.02


def main() -> None:
    """Do what the arguments say."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    verb, *rest = sys.argv[2:]
    if verb == "await":
        await_word(plan, *rest[:2])
        os.execv(rest[2], rest[2:])  # noqa: S606 - it is ours, from the plan
    with (Path(plan["folder"]) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if verb == "start":
            start(plan, rest)
        elif verb == "stop":
            stop(plan)
        else:
            raise SystemExit(f"unknown: {verb}")


def start(plan: dict[str, Any], kinds: list[str]) -> None:
    """Start the daemons of these kinds that do not run."""
    control = open_control(plan)
    if control is None:
        start_keeper(plan)
        deadline = time.monotonic() + LIMIT_S
        while (control := open_control(plan)) is None:
            if time.monotonic() > deadline:
                log = Path(plan["folder"]) / "logs" / "keeper.log"
                raise SystemExit(f"the keeper does not start: {log.read_text()[-500:]}")
            time.sleep(PAUSE_S)
    for kind in kinds:
        key = f"{kind}-{plan['member']}"
        if not running(plan, key):
            before = deaths(plan, key)
            os.write(control, f"start {key}\n".encode())
            await_started(plan, key, before)
            print(f"started {key}")  # noqa: T201 - the answer
    os.close(control)


def open_control(plan: dict[str, Any]) -> int | None:
    """The keeper's pipe; `None` where no keeper reads it."""
    try:
        return os.open(plan["control"], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise


def start_keeper(plan: dict[str, Any]) -> None:
    """Start the keeper; nothing is known of daemons of an earlier one."""
    for file in Path(plan["daemons_folder"]).iterdir():
        file.unlink()
    Path(plan["deaths"]).write_text("")
    if plan["unit"]:
        subprocess.run(["systemctl", "start", plan["unit"]], check=True)
        return
    with (Path(plan["folder"]) / "logs" / "keeper.log").open("ab") as log:
        program = str(Path(__file__).with_name("keeper.py"))
        subprocess.Popen(
            [sys.executable, "-I", "-S", program, sys.argv[1]],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            close_fds=True,
        )  # fmt: skip


def running(plan: dict[str, Any], key: str) -> bool:
    """Whether the keeper has the daemon."""
    return (Path(plan["daemons_folder"]) / key).exists()


def deaths(plan: dict[str, Any], key: str) -> int:
    """How often the daemon has died."""
    with suppress(FileNotFoundError):
        lines = Path(plan["deaths"]).read_text().splitlines()
        return sum(json.loads(line)["key"] == key for line in lines)
    return 0


def await_started(plan: dict[str, Any], key: str, before: int) -> None:
    """Return when the daemon runs, or has died: who asks for its health will be told."""
    deadline = time.monotonic() + LIMIT_S
    while not running(plan, key) and deaths(plan, key) == before:
        if time.monotonic() > deadline:
            raise SystemExit(f"the keeper has not started {key}")
        time.sleep(PAUSE_S)


def await_word(plan: dict[str, Any], url: str, word: str) -> None:
    """
    Return when what *url* answers has *word* in it; the end of our keeper is ours, too.

    A NameNode of this node that has died ends the wait.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        with suppress(OSError, ValueError), opener.open(url, timeout=5) as reply:
            if word.encode() in reply.read(2**20):
                return
        if deaths(plan, f"namenode-{plan['member']}"):
            raise SystemExit("the NameNode has died")
        time.sleep(0.2)


def stop(plan: dict[str, Any]) -> None:
    """End every process of the cluster on this host: the keeper with its daemons, and the rest."""
    if plan["unit"]:
        subprocess.run(["systemctl", "stop", plan["unit"]], check=False)
    ended: set[int] = set()
    deadline = time.monotonic() + LIMIT_S
    while found := processes(plan["folder"]):
        if time.monotonic() > deadline:
            raise SystemExit(f"processes {sorted(found)} do not end")
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= found
        time.sleep(PAUSE_S)
    if ended:
        print(f"stopped {len(ended)}")  # noqa: T201 - the answer


def processes(folder: str) -> set[int]:
    """Processes of this user whose command lines name the cluster's folder; not we ourselves."""
    mark, found = f"{folder}/".encode(), set()
    ours = ancestors(os.getpid())
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in ours:
            continue
        with suppress(OSError):
            mine = entry.stat().st_uid == os.geteuid() or os.geteuid() == 0
            if mine and mark in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
    return found


def ancestors(pid: int) -> set[int]:
    """*pid* and all above it."""
    found = set()
    while pid > 0:
        found.add(pid)
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            break
        pid = int(text.rpartition(")")[2].split()[1])
    return found


if __name__ == "__main__":
    main()
