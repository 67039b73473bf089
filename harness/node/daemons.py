"""
Start the daemons of a host through its supervisor; what runs already is left alone.

    node.pyz start PLAN KIND...                    prints ``started KEY`` for each that did not run
    node.pyz await PLAN URL WORD COMMAND...        becomes COMMAND when the answer of URL has WORD

The plan is the supervisor's (`supervise`), with the fields of `clear`, ``member``, the node's name,
and ``secret``, the file with the cluster's own.  Without a unit of systemd the supervisor is
started here, as a process of its own.  With a ``user``, which it has where we are root, the host is
fenced first (`fence`).
"""

import errno
import fcntl
import json
import os
import subprocess
import sys
import time

from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import urlsplit

from .fence import prepare
from .hdfs import WebError, send
from .health import read_deaths

_LIMIT_S = 30.0
_PAUSE_S, _ANSWER_PAUSE_S = 0.02, 0.2


def start(arguments: List[str]) -> None:
    """Start the daemons of these kinds that do not run."""
    plan_path, kinds = arguments[0], arguments[1:]
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
                        stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file,
                        start_new_session=True, cwd="/", close_fds=True,
                    )  # fmt: skip
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


def await_answer(arguments: List[str]) -> None:
    """Become a command when the answer of a URL has a word in it; end if the NameNode has died."""
    plan_path, url, word, command = arguments[0], arguments[1], arguments[2], arguments[3:]
    plan, address = json.loads(Path(plan_path).read_text()), urlsplit(url)
    while True:
        with suppress(OSError, WebError):
            url_path = f"{address.path}?{address.query}"
            reply = send(address.netloc, "GET", url_path, secret=plan["secret"], timeout_s=5)
            if reply.status == 200 and word.encode() in reply.read(2**20):
                break
        if f"namenode-{plan['member']}" in dict(read_deaths(plan["deaths"])):
            raise SystemExit("the NameNode has died")
        time.sleep(_ANSWER_PAUSE_S)
    os.execv(command[0], command)  # noqa: S606 - it is ours, from the plan
