"""
The lease of a cluster: it ends, with all of the cluster, when nobody answers for it any more.

The harness of a run renews it, and a pipe connects that harness with the cluster's watchdog
(`harness.clusters.node.watch`).  Should both be killed, the supervisors on the nodes, which know
the lease, too (`harness.clusters.node.supervise`), end the processes by themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from io import FileIO
from pathlib import Path

from harness.base.errors import HarnessError
from harness.base.hadoop.daemons import START_LEASE_S
from harness.base.text import printable
from harness.clusters import state as states
from harness.clusters.hadoop_home.home import write_whole
from harness.clusters.host import Host, at_once, end_command

RUN_S = 60
_RENEW_S = 15.0
_CLOSE_S = 2.0
_JOIN_S = 10.0
_REMOVE = "import sys; from harness.clusters import remove_orphan; remove_orphan(*sys.argv[1:])"

_watchdogs: list[subprocess.Popen[bytes]] = []  # of this process, which must collect them


class HostControl:
    """The control pipe *path* of the supervisor on *host*, through one command that stays."""

    def __init__(self, host: Host, path: str) -> None:
        # a plain file, made before the supervisor has made its pipe, would keep it reading for ever
        script = 'until [ -p "$0" ]; do sleep 0.1; done; exec cat > "$0"'
        self._command = host.open(["sh", "-c", script, path])

    def write(self, line: bytes) -> None:
        """Pass a line on; `OSError` where nobody takes it."""
        if self._command.poll() is not None or self._command.stdin is None:
            raise BrokenPipeError
        self._command.stdin.write(line)
        self._command.stdin.flush()

    def close(self) -> None:
        """Let go of it; what was written still arrives, unless the host has gone."""
        with suppress(OSError, subprocess.TimeoutExpired, HarnessError):
            if self._command.stdin is not None:
                self._command.stdin.close()
            self._command.wait(_CLOSE_S)
        with suppress(HarnessError):
            end_command(self._command)


Control = HostControl | FileIO
Controls = Mapping[str, Callable[[], Control]]  # by the name of the supervisor's host


def tell(controls: Controls, *lines: bytes) -> None:
    """Write lines to the control pipe of each supervisor."""
    for open_control in controls.values():
        with closing(open_control()) as control:
            for line in lines:
                control.write(line)


def renew(name: str, seconds: int, controls: Controls) -> None:
    """Let the lease of a cluster end so many seconds from now, here and at its supervisors."""
    write_lease(states.cluster_folder(name), seconds)
    tell(controls, b"renew %d\n" % seconds)


def write_lease(folder: Path, seconds: int, flags: int = 0) -> None:
    """Let a lease of so many seconds begin now; no file is made, unless the *flags* say so."""
    with suppress(FileNotFoundError):  # it has just been removed
        handle = os.open(folder / "lease", os.O_WRONLY | flags, 0o600)
        os.pwrite(handle, b"%12d" % seconds, 0)
        os.close(handle)


class Lease:
    """What this harness does to answer for the cluster *name*, from before it is made."""

    def __init__(self, name: str) -> None:
        """Start the watchdog; `record` writes down that there is one."""
        self.name = name
        self.folder = states.cluster_folder(name)
        self.token = os.urandom(16).hex()
        root = str(Path(__file__).resolve().parents[2])
        search_path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        agent = [sys.executable, "-I", "-S", str(states.agent_file()), "watch", str(self.folder)]
        reading, self._pipe = os.pipe()
        self._watchdog = subprocess.Popen(
            [*agent, sys.executable, "-c", _REMOVE, name, self.token],
            env={**os.environ, "PYTHONPATH": search_path},
            cwd="/",
            start_new_session=True,
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reading)
        _watchdogs[:] = [
            *(watchdog for watchdog in _watchdogs if watchdog.poll() is None),
            self._watchdog,
        ]
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._controls: dict[str, Control] = {}

    def record(self) -> None:
        """Write down in the cluster's new folder whose it is, and that its lease begins."""
        owner = states.Owner(
            process=states.Process.of(os.getpid()),
            host=os.uname().nodename,
            token=self.token,
            watchdog=states.Process.of(self._watchdog.pid),
        )
        write_whole(self.folder / "owner.json", owner.model_dump_json().encode())
        (self.folder / "owner.json").chmod(0o600)
        write_lease(self.folder, START_LEASE_S, os.O_CREAT)

    def keep_renewing(self, controls: Controls) -> None:
        """Renew it until `stop`, with the supervisors whose control pipes *controls* opens."""

        def renew_one(host_name: str) -> str:
            try:
                if host_name not in self._controls:
                    self._controls[host_name] = controls[host_name]()
                self._controls[host_name].write(b"renew %d\n" % RUN_S)
            except (OSError, HarnessError) as error:
                if control := self._controls.pop(host_name, None):
                    control.close()
                return f"{host_name}: {error}"
            return ""

        def renew_all() -> None:
            has_warned = False
            while not self._over.is_set():
                write_lease(self.folder, RUN_S)
                failures = list(filter(None, at_once(renew_one, list(controls))))
                if failures and not has_warned and not self._over.is_set():
                    reason = printable("; ".join(failures))
                    what = f"the lease of cluster {self.name!r} is not renewed"
                    sys.stderr.write(f"warning: {what}: {reason}\n")
                    has_warned = True
                self._over.wait(_RENEW_S)
            at_once(lambda control: control.close(), list(self._controls.values()))
            self._controls.clear()  # paramiko's files, though closed, must not be found in a cycle

        self._thread = threading.Thread(target=renew_all, name="lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Renew it no more: the cluster is about to be removed."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def end(self, word: bytes = b"end\n") -> None:
        """
        Let the watchdog end, unless something is left that it is to remove when we have ended.

        With the *word* ``free`` it stays, and watches a lease that nobody renews by himself.
        """
        self.stop()
        owner = states.Owner.of(self.name)
        is_left = owner is not None and owner.token == self.token
        if self._pipe < 0 or (is_left and word == b"end\n"):
            return
        with suppress(BrokenPipeError):
            os.write(self._pipe, word)
        os.close(self._pipe)
        self._pipe = -1
        if not is_left:
            self._watchdog.wait()
