"""
Start the daemons of a host through its supervisor; what runs already is left alone.

    node.pyz start PLAN KIND...                    prints ``started KEY`` for each that did not run

The plan is the supervisor's (`supervise`), with the fields of `clear` and ``member``, the node's
name.  Without a unit of systemd the supervisor is started here, as a process of its own.  With a
``user``, which it has where we are root, the host is fenced first (`fence`).
"""

import errno
import fcntl
import json
import os
import subprocess
import sys
import time

from pathlib import Path
from typing import Any, Dict, List, Optional

from .fence import prepare
from .health import read_deaths

_LIMIT_S = 30.0
_PAUSE_S = 0.02


def start(arguments: List[str]) -> None:
    """Start the daemons of these kinds that do not run."""
    plan_path = arguments[0]
    kinds = arguments[1:]
    plan = json.loads(Path(plan_path).read_text())
    with (Path(plan["folder"]) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # no other start of the cluster is at work here
        control = _open_control(plan)
        if control is None:
            # without what an earlier supervisor wrote about its daemons
            for pid_file in Path(plan["daemons_folder"]).iterdir():
                pid_file.unlink()
            Path(plan["deaths"]).write_text("")
            if plan["user"]:
                prepare(plan, Path(plan_path))
            log = Path(plan["folder"]) / "logs" / "supervisor.log"
            if plan["unit"]:
                subprocess.run(["systemctl", "start", plan["unit"]], check=True)
            else:
                with log.open("ab") as log_file:
                    subprocess.Popen(
                        [sys.executable, "-I", "-S", sys.argv[0], "supervise", plan_path],
                        stdin=subprocess.DEVNULL,
                        stdout=log_file,
                        stderr=log_file,
                        start_new_session=True,
                        cwd="/",
                        close_fds=True,
                    )
            deadline = time.monotonic() + _LIMIT_S
            while control is None:
                if time.monotonic() > deadline:
                    raise SystemExit(f"the supervisor does not start: {log.read_text()[-500:]}")
                time.sleep(_PAUSE_S)
                control = _open_control(plan)
        for daemon_kind in kinds:
            daemon_key = f"{daemon_kind}-{plan['member']}"
            if not (Path(plan["daemons_folder"]) / daemon_key).exists():
                _start_daemon(plan, control, daemon_key)
                print(f"started {daemon_key}")
        os.close(control)


def _open_control(plan: Dict[str, Any]) -> Optional[int]:
    """The supervisor's pipe; `None` where no supervisor reads it."""
    try:
        return os.open(plan["control"], os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise


def _start_daemon(plan: Dict[str, Any], control: int, daemon_key: str) -> None:
    """Return when the daemon runs, or has died, which the health check will report."""
    deaths_before = read_deaths(plan["deaths"])
    os.write(control, f"start {daemon_key}\n".encode())
    deadline = time.monotonic() + _LIMIT_S
    pid_file = Path(plan["daemons_folder"]) / daemon_key
    while not pid_file.exists():
        if daemon_key in dict(read_deaths(plan["deaths"])[len(deaths_before) :]):
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"the supervisor has not started {daemon_key}")
        time.sleep(_PAUSE_S)
