"""Playbooks, run by ansible-runner: what happened is read from its events, not its status."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import shutil
import sys
import threading
import time

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.errors import ClusterError, MachineError
from harness.base.extras import CLUSTERS, extra
from harness.base.installed import setup_fix
from harness.base.text import printable
from harness.clusters.hadoop_home.home import write_whole
from harness.clusters.ssh.connection import pins_file
from harness.clusters.state import own_processes

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
_LIMIT_S = 1800
_FORKS = 20
_MOST_WORDS = 600
_CLOSE_S = 15.0
_SOCKETS = "ANSIBLE_SSH_CONTROL_PATH_DIR"  # a variable of Ansible: where its connections lie

_SSH_OPTIONS = {
    "GlobalKnownHostsFile": "/dev/null",
    "StrictHostKeyChecking": "yes",
    "BatchMode": "yes",
    "ControlMaster": "auto",
    "ControlPersist": "30s",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "10",
}


@dataclass
class Outcome:
    """
    What a playbook did: how many tasks *changed* something, by host.

    *failed* are host, task and reason; *messages* are those of Ansible itself.
    """

    changed: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    finished: bool = False

    def note(self, event: Mapping[str, Any], progress: Callable[[str], None] | None = None) -> bool:
        """Take in an event of the runner; `False`: it writes no file for it."""
        event_kind = event.get("event", "")
        event_data = event.get("event_data") or {}
        if event_kind == "playbook_on_task_start":
            if progress is not None:
                progress(printable(event_data.get("task", "")))
        elif event_kind == "runner_on_ok":
            self._note_change(event_data)
        elif event_kind == "runner_on_unreachable":
            self._note_failure(event_data, "unreachable: ")
        elif event_kind == "runner_on_failed":
            if not event_data.get("ignore_errors"):
                self._note_failure(event_data)
        elif event_kind == "playbook_on_stats":
            self.finished = True
        elif event_kind in ("verbose", "error") and event.get("stdout"):
            self.messages.append(printable(event["stdout"]))
        return False

    def _note_change(self, event_data: Mapping[str, Any]) -> None:
        """Count a task that was fine, if it changed something."""
        task_result = event_data.get("res") or {}
        if task_result.get("changed"):
            host_name = str(event_data.get("host", ""))
            self.changed[host_name] = self.changed.get(host_name, 0) + 1

    def _note_failure(self, event_data: Mapping[str, Any], prefix: str = "") -> None:
        """Keep what a task that failed says of it: each text once, the middle of long ones cut."""
        task_result = event_data.get("res") or {}
        parts = (task_result.get(key) for key in ("msg", "stderr", "module_stderr", "stdout"))
        lines = dict.fromkeys(str(part).strip() for part in parts if part)
        reason = printable("\n".join(filter(None, lines)))
        if len(reason) > _MOST_WORDS:
            reason = f"{reason[:200]} ... {reason[-400:]}"
        host_name = str(event_data.get("host", ""))
        task_name = printable(event_data.get("task", ""))
        self.failed.append((host_name, task_name, prefix + reason))

    def require_success(self, status: str, playbook: str) -> None:
        """`ClusterError` unless every task of *playbook* was fine; *status* is the runner's."""
        location = f"playbooks/{playbook}"
        if self.failed:
            host_name, task_name, reason = self.failed[0]
            further_hosts = sorted({name for name, _, _ in self.failed} - {host_name})
            raise ClusterError(
                f"{host_name} failed at {task_name!r}: {reason}"
                + (f"\n(and {', '.join(further_hosts)})" if further_hosts else ""),
                where=location,
                fix="repair the host, and repeat: what is done already is not done again",
            )
        if status == "timeout":
            raise ClusterError(
                f"the hosts are not ready after {_LIMIT_S} s",
                where=location,
                fix="see which host hangs: ssh to it, and look at its load and its disks",
            )
        if not self.finished:
            reason = "\n".join(self.messages[-5:])[-_MOST_WORDS:] or status
            raise ClusterError(
                f"the playbook was not run: {reason}",
                where=location,
                fix=f"{setup_fix()}, to have Ansible as it was tested",
            )


def require_tools() -> None:
    """`MachineError` where this machine lacks the program that playbooks reach hosts with."""
    if shutil.which("ssh") is None:
        raise MachineError(
            "no ssh, which Ansible works through",
            where="PATH",
            fix="apt-get install -y openssh-client",
        )


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
) -> Outcome:
    """
    Run a playbook of `PLAYBOOKS` on the hosts of *inventory*; *folder* is the runner's own.

    Ctrl-C ends it.  `ClusterError` names the host and the task that failed, or says why nothing was
    run.
    """
    with extra(CLUSTERS):
        import ansible_runner

    require_tools()

    outcome = Outcome()
    stopped = threading.Event()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The runner would take signals for itself, where it has the main thread.
    with _control_sockets(folder) as sockets, ThreadPoolExecutor(1, "ansible") as pool:
        future = pool.submit(
            ansible_runner.run,
            private_data_dir=str(folder),
            playbook=str(PLAYBOOKS / playbook),
            inventory=inventory,
            envvars=_environment(folder, sockets),
            cmdline=f"--forks {_FORKS}" + (" --check" if check else ""),
            quiet=True,
            suppress_env_files=True,
            event_handler=lambda event: outcome.note(event, progress),
            cancel_callback=stopped.is_set,
            timeout=_LIMIT_S,
        )
        try:
            status = future.result().status
        except BaseException:
            stopped.set()
            raise
    outcome.require_success(status, playbook)
    return outcome


def _environment(folder: Path, sockets: Path) -> dict[str, str]:
    """Settings of Ansible; those of the user's own configuration are left out."""
    settings = folder / "ansible.cfg"
    settings.write_text("")
    arguments = ["-F", "/dev/null"]
    for name, value in {"UserKnownHostsFile": str(pins_file()), **_SSH_OPTIONS}.items():
        arguments += ["-o", f"{name}={value}"]
    return {
        "ANSIBLE_CONFIG": str(settings),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_SSH_ARGS": shlex.join(arguments),
        _SOCKETS: str(sockets),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
    }


@contextlib.contextmanager
def _control_sockets(folder: Path) -> Iterator[Path]:
    """
    A short private folder for control sockets; at the end all that Ansible left is ended.

    Of a harness that was killed meanwhile, the next playbook with the same *folder* ends it first.
    """
    note = folder / "sockets"
    if note.exists():
        _end_ansible(Path(note.read_text()))
    sockets = Path("/tmp", f"mrh-{secrets.token_hex(4)}")  # noqa: S108 - it is made, not met
    write_whole(note, str(sockets).encode())
    sockets.mkdir(mode=0o700)
    try:
        yield sockets
    finally:
        _end_ansible(sockets)


def _end_ansible(sockets: Path) -> None:
    """
    End connections that Ansible keeps in *sockets*, and workers of a run that was cut.

    Workers are known by their environment, connections by their titles, which cover theirs.  A
    worker makes the folder anew as long as it lives.
    """
    marks = {"cmdline": f"ssh: {sockets}/", "environ": f"{_SOCKETS}={sockets}"}
    deadline = time.monotonic() + _CLOSE_S
    while sockets.exists() and time.monotonic() < deadline:
        for file_name, mark in marks.items():
            for process in own_processes(file_name, mark):
                process.kill()
        shutil.rmtree(sockets, ignore_errors=True)
