"""
Playbooks, run by ansible-runner: what happened is read from its events, never from its status.

Control sockets lie in a short private folder; at the end their masters are ended, and it goes.
Text that a user wrote never becomes a template: it is wrapped.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, MachineError
from harness.providers.host import printable
from harness.providers.ssh.pins import pins_file

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
LIMIT_S = 1800.0
_FORKS = 20
_MOST_SAID = 600
_CLOSE_S = 15.0


@dataclass
class Played:
    """
    What a playbook did: *changed* tasks and *ok* ones by host.

    *failed* are (host, task, what it said); *unreachable* hosts are among them.
    """

    changed: dict[str, int] = field(default_factory=dict)
    ok: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    finished: bool = False


def unsafe(text: str) -> dict[str, str]:
    """*text* as Ansible takes it when no template in it may be evaluated."""
    return {"__ansible_unsafe": text}


def play(
    playbook: str,
    inventory: Mapping[str, Any],
    folder: Path,
    *,
    progress: Callable[[str], None] | None = None,
    check: bool = False,
    limit_s: float = LIMIT_S,
) -> Played:
    """
    Run a playbook of `PLAYBOOKS` on the hosts of *inventory*; *folder* is the runner's own.

    Ctrl-C ends it.  `ClusterError` names the host and the task that failed, or says why nothing was
    run.
    """
    try:
        import ansible_runner
    except ModuleNotFoundError as error:
        raise MachineError(
            "no ansible-runner", where="Python packages", fix="make setup"
        ) from error
    if shutil.which("ssh") is None:
        raise MachineError(
            "no ssh, which Ansible works through",
            where="PATH",
            fix="apt-get install -y openssh-client",
        )
    played, over = Played(), threading.Event()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _sockets() as sockets:
        result: list[Any] = []

        def work() -> None:
            result.append(
                ansible_runner.run(
                    private_data_dir=str(folder),
                    playbook=str(PLAYBOOKS / playbook),
                    inventory=inventory,
                    envvars=_environment(folder, sockets),
                    cmdline=f"--forks {_FORKS}" + (" --check" if check else ""),
                    quiet=True,
                    suppress_env_files=True,
                    event_handler=lambda event: _note(played, event, progress),
                    cancel_callback=over.is_set,
                    timeout=int(limit_s),
                )
            )

        _in_thread(work, over)
    status = result[0].status if result else "no result"
    _require_good(played, status, playbook, limit_s)
    return played


def _in_thread(work: Callable[[], None], over: threading.Event) -> None:
    """Do *work* beside us: signals stay ours, and one of them ends it."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be seen
            errors.append(error)

    thread = threading.Thread(target=guarded, name="ansible", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except BaseException:
        over.set()
        thread.join(30)
        raise
    if errors:
        raise errors[0]


def _note(played: Played, event: Mapping[str, Any], progress: Callable[[str], None] | None) -> bool:
    """Keep what an event says; `False`: the runner writes no file for it."""
    kind, data = event.get("event", ""), event.get("event_data") or {}
    host, task = str(data.get("host", "")), printable(str(data.get("task", "")))
    result = data.get("res") or {}
    if kind == "playbook_on_task_start" and progress is not None:
        progress(task)
    elif kind == "runner_on_ok":
        played.ok[host] = played.ok.get(host, 0) + 1
        if result.get("changed"):
            played.changed[host] = played.changed.get(host, 0) + 1
    elif kind == "runner_on_failed" and not data.get("ignore_errors"):
        played.failed.append((host, task, _words(result)))
    elif kind == "runner_on_unreachable":
        played.unreachable.append(host)
        played.failed.append((host, task, f"unreachable: {_words(result)}"))
    elif kind == "playbook_on_stats":
        played.finished = True
    elif kind in ("verbose", "error") and event.get("stdout"):
        played.said.append(printable(str(event["stdout"])))
    return False


def _words(result: Mapping[str, Any]) -> str:
    """What a failed task said: its message, and the end of its output."""
    parts = [str(result.get(k) or "") for k in ("msg", "stderr", "module_stderr", "stdout")]
    text = printable("\n".join(dict.fromkeys(p.strip() for p in parts if p.strip())))
    return text if len(text) <= _MOST_SAID else f"{text[:200]} ... {text[-400:]}"


def _require_good(played: Played, status: str, playbook: str, limit_s: float) -> None:
    if played.failed:
        host, task, said = played.failed[0]
        others = sorted({name for name, _, _ in played.failed} - {host})
        raise ClusterError(
            f"{host} failed at {task!r}: {said}"
            + (f"\n(and {', '.join(others)})" if others else ""),
            where=f"playbooks/{playbook}",
            fix="mend the host, and repeat: what is done already is not done again",
        )
    if status == "timeout":
        raise ClusterError(
            f"the hosts are not ready after {limit_s:g} s",
            where=f"playbooks/{playbook}",
            fix="see which host hangs: ssh to it, and look at its load and its disks",
        )
    if not played.finished:
        said = "\n".join(played.said[-5:])[-_MOST_SAID:] or status
        raise ClusterError(
            f"the playbook was not run: {said}",
            where=f"playbooks/{playbook}",
            fix="make setup, to have Ansible as it was tested",
        )


def _environment(folder: Path, sockets: Path) -> dict[str, str]:
    """Settings of Ansible; those of the user's own configuration are left out."""
    settings = folder / "ansible.cfg"
    settings.write_text("")
    options = {
        "UserKnownHostsFile": str(pins_file()),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ControlMaster": "auto",
        "ControlPersist": "30s",
        "ConnectTimeout": "10",
        "ServerAliveInterval": "10",
    }
    arguments = ["-F", "/dev/null"]
    for name, value in options.items():
        arguments += ["-o", f"{name}={value}"]
    return {
        "ANSIBLE_CONFIG": str(settings),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_SSH_ARGS": shlex.join(arguments),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(sockets),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
    }


@contextlib.contextmanager
def _sockets() -> Iterator[Path]:
    """A short private folder for control sockets; at the end their masters are ended."""
    folder = Path(tempfile.mkdtemp(prefix="mrh-", dir="/tmp"))
    try:
        yield folder
    finally:
        deadline = time.monotonic() + _CLOSE_S
        while folder.exists() and time.monotonic() < deadline:  # a run that was cut may add some
            _close_masters(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _close_masters(folder: Path) -> None:
    """
    End what Ansible left: connections that it keeps, and workers of a run that was cut.

    Workers are known by their environment, masters by their titles, which cover theirs.  A worker
    makes the folder anew as long as it lives.
    """
    worker, master = f"ANSIBLE_SSH_CONTROL_PATH_DIR={folder}".encode(), f"ssh: {folder}/".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                ours = (entry / "cmdline").read_bytes().startswith(master)
                if ours or worker in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)
