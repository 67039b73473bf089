"""
What is known of a cluster between processes: one folder per name, one small file in it.

A process is identified by its number, its start time, the boot of the machine and its *place*, so
that a number that was given to another process, or on another machine, is never mistaken for ours.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import re
import select
import shutil
import signal
import stat
import tempfile
import threading

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

from pydantic import BaseModel

from harness.base.errors import ClusterError, SpecError
from harness.base.records.trial import ClusterSpec
from harness.clusters.hadoop_home.home import write_whole
from harness.clusters.node import agent_bytes
from harness.clusters.node.processes import parents
from harness.clusters.node.watch import lease_left_s

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # they end a program
_KILL_LIMIT_S = 60.0
_END_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process that we started, identified beyond doubt."""

    pid: int
    started: int
    boot: str
    place: str = ""

    @classmethod
    def of(cls, process_id: int) -> Process:
        """The process that has number *process_id* now; `ProcessLookupError` when there is none."""
        return cls(process_id, _start_time(process_id), _boot(), place())

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is a process of another machine or container: nothing is known of it here."""
        return self.place not in ("", place())

    def alive(self) -> bool:
        """Whether it still runs here; a zombie does not."""
        try:
            is_here = not self.is_elsewhere and self.boot == _boot()
            return is_here and _start_time(self.pid) == self.started
        except ProcessLookupError:
            return False

    def kill(self) -> None:
        """End it by SIGKILL and wait until it has ended; one that has ended already is fine."""
        if not self._signal(signal.SIGKILL, _KILL_LIMIT_S):
            raise ClusterError(
                f"process {self.pid} is still there {_KILL_LIMIT_S:g} s after SIGKILL",
                where=f"/proc/{self.pid}/status",
                fix="its state there says what it waits for; repeat: harness cluster down",
            )

    def end(self) -> None:
        """Have it end by SIGTERM, and wait for that for a while."""
        self._signal(signal.SIGTERM, _END_LIMIT_S)

    def _signal(self, number: int, limit_s: float) -> bool:
        """Send a signal that ends it; whether it has ended after *limit_s* seconds."""
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                if self.alive():  # checked with the handle open: the number cannot change hands now
                    signal.pidfd_send_signal(handle, number)
                    end = select.poll()
                    end.register(handle, select.POLLIN)
                    return bool(end.poll(limit_s * 1000))
            finally:
                os.close(handle)
        return True


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def place() -> str:
    """The machine and the process namespace that we are in: process ids mean nothing elsewhere."""
    with suppress(OSError):
        if machine_id := Path("/etc/machine-id").read_text().strip():
            return f"{machine_id} {Path('/proc/self/ns/pid').readlink()}"
    return f"{_boot()}-{os.uname().nodename} {Path('/proc/self/ns/pid').readlink()}"


def _start_time(process_id: int) -> int:
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(errors="replace")
    except OSError as error:
        raise ProcessLookupError(process_id) from error
    fields = text.rpartition(")")[2].split()  # after the command name, which may hold anything
    if fields[0] in "ZX":
        raise ProcessLookupError(process_id)
    return int(fields[19])


def stray_processes(folder: Path) -> list[Process]:
    """Processes configured in *folder*, ours to end, which may have outlived a supervisor."""
    return own_processes("environ", f"HADOOP_CONF_DIR={folder}/")


def own_processes(file_name: str, start: str) -> list[Process]:
    """Processes of this user (root: any) with a word that starts so in their ``/proc`` file."""
    processes = []
    first_bytes = os.fsencode(start)
    for process_id in parents():
        with suppress(OSError, ValueError):
            entry = Path(f"/proc/{process_id}")
            words = (entry / file_name).read_bytes().split(b"\0")
            is_own = os.geteuid() in (0, entry.stat().st_uid)
            if is_own and any(word.startswith(first_bytes) for word in words):
                processes.append(Process.of(process_id))
    return processes


def state_folder() -> Path:
    """
    Folder of this user's state: below ``XDG_STATE_HOME``, or a private temporary one.

    That of root is not below a home of mode 700, which the daemons' own account could not enter.
    """
    state_home = os.environ.get("XDG_STATE_HOME", "")
    if not state_home.startswith("/"):  # the XDG rules: a relative path counts as unset
        user_home = os.environ.get("HOME", "/")  # a user without an entry may have none
        state_home = "/var/lib" if os.geteuid() == 0 else f"{user_home}/.local/state"
    folder = Path(state_home, "mapreduce-harness")
    usable = False
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK)
    if not usable:
        folder = Path(tempfile.gettempdir()) / f"mapreduce-harness-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
        is_own_folder = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
        if not is_own_folder or facts.st_mode & 0o077:
            raise SpecError(
                f"{folder} is not a folder of this user alone",
                where="state of the clusters",
                fix="set XDG_STATE_HOME to a folder that this user can write",
            )
    if not _PLAIN.fullmatch(str(folder)):
        raise SpecError(
            f"the path {str(folder)!r} has characters that Hadoop's start scripts cannot handle",
            where="XDG_STATE_HOME",
            fix="set XDG_STATE_HOME to a path of letters and digits",
        )
    return folder


def clusters_folder() -> Path:
    """Folder of all clusters of this user."""
    folder = state_folder() / "clusters"
    folder.mkdir(exist_ok=True)
    return folder


def agent_file() -> Path:
    """The node agent as a file of this machine, named after its content."""
    digest = hashlib.sha256(agent_bytes()).hexdigest()[:12]
    file = state_folder() / f"node-{digest}.pyz"
    if not file.is_file():
        write_whole(file, agent_bytes())
    return file


def cluster_folder(cluster_name: str) -> Path:
    """Folder of one cluster; `SpecError` for a name that is not a plain word."""
    if not _NAME.fullmatch(cluster_name):
        raise SpecError(
            f"{cluster_name!r} is not a valid name of a cluster",
            where="name of the cluster",
            fix="use up to 64 letters, digits, - and _, a letter or digit first",
        )
    return clusters_folder() / cluster_name


class StateFile(BaseModel):
    """What processes know of a cluster, `state.json` in its folder; providers add their own."""

    name: str
    spec: ClusterSpec = ClusterSpec()

    def save(self) -> None:
        """Write the file in one step."""
        file = cluster_folder(self.name) / "state.json"
        write_whole(file, self.model_dump_json(indent=1).encode())

    @classmethod
    def load(cls, cluster_name: str) -> Self | None:
        """The state of a cluster, `None` where there is none (or none that can be read)."""
        try:
            content = (cluster_folder(cluster_name) / "state.json").read_text()
            return cls.model_validate_json(content)
        except (OSError, ValueError):
            return None


class Owner(BaseModel):
    """
    Whose a cluster is: `owner.json` in its folder, the first file there.

    *process* is the harness that made it, on *host*; *watchdog* removes it, and knows by the
    *token* that it is still the one that it was started for.
    """

    process: Process
    host: str
    token: str
    watchdog: Process

    def __str__(self) -> str:
        """The owner for people; where it is elsewhere, the same number here is another process."""
        text = f"process {self.process.pid} on {self.host}"
        if not self.process.is_elsewhere:
            return text
        this_machine = place().partition(" ")[0]
        is_on_this_machine = self.process.place.startswith(this_machine)
        place_kind = "container" if is_on_this_machine else "machine"
        return f"{text} (another {place_kind} with this home)"

    @classmethod
    def of(cls, cluster_name: str) -> Owner | None:
        """
        The owner of a cluster, `None` where no file says who it is.

        `SpecError` where others can read the file, and so know the token.
        """
        file = cluster_folder(cluster_name) / "owner.json"
        try:
            if file.stat().st_mode & 0o077:
                raise SpecError(
                    "the token of a cluster's owner can be read by others",
                    where=str(file),
                    fix=f"chmod 600 {file}",
                )
            return cls.model_validate_json(file.read_text())
        except (OSError, ValueError):
            return None


class NotOursError(ClusterError):
    """A cluster is another harness's, which may be using it."""


def require_ours(cluster_name: str, token: str = "") -> None:
    """`NotOursError` for a cluster of another place, or not of the owner's *token*."""
    owner = Owner.of(cluster_name)
    if owner is None or not (owner.process.is_elsewhere or token not in ("", owner.token)):
        return
    what = f"cluster {cluster_name!r} belongs to {owner}"
    fix = f"there: harness cluster down --name {cluster_name}"
    if not lease_s(cluster_name):
        what += ", which has not renewed its lease"
        fix = f"harness cluster down --name {cluster_name} --adopt"
    raise NotOursError(what, where=str(cluster_folder(cluster_name)), fix=fix)


def lease_s(cluster_name: str) -> float:
    """Seconds until the lease of a cluster ends, by the clock of the disk that it lies on."""
    folder = cluster_folder(cluster_name)
    with suppress(OSError, ValueError), tempfile.TemporaryFile(dir=state_folder()) as file:
        now_s = os.fstat(file.fileno()).st_mtime
        return max(0.0, lease_left_s(folder, now_s))
    return 0.0


def adopt(cluster_name: str) -> None:
    """Take over a cluster whose owner is elsewhere; `NotOursError` while its lease is renewed."""
    with exclusive():
        if lease_s(cluster_name):
            require_ours(cluster_name)
        (cluster_folder(cluster_name) / "owner.json").unlink(missing_ok=True)


def known_names() -> list[str]:
    """Names of all clusters that have a folder, up or not."""
    folders = clusters_folder().iterdir()
    return sorted(cluster.name for cluster in folders if _NAME.fullmatch(cluster.name))


def make_folder(folder: Path, provider: str) -> None:
    """Make the folder of a new cluster, for this user alone; it names its provider first of all."""
    folder.mkdir(mode=0o700)
    (folder / "provider").write_text(provider)


def provider_of(cluster_name: str) -> str:
    """Provider of the cluster of that name, or of what is left of it; empty where none is known."""
    try:
        return (cluster_folder(cluster_name) / "provider").read_text()
    except (OSError, UnicodeDecodeError):
        return ""


@contextmanager
def exclusive() -> Iterator[None]:
    """Keep other processes of this user from starting or removing a cluster meanwhile."""
    handle = os.open(clusters_folder(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@dataclass
class DeferredInterrupt:
    """
    A ``with`` block in which Ctrl-C and its kin wait until it is over.

    *patience* is how many of them wait; the next one takes effect at once.  *notify* is called for
    each that waits.  An error that leaves the block goes first.  It can be used again, and inside
    another one; in a thread other than the main one, which gets no signals, it does nothing.
    """

    patience: float = math.inf
    notify: Callable[[], None] = lambda: None
    waiting: list[int] = field(default_factory=list)
    _handlers: dict[int, Any] = field(default_factory=dict)

    @property
    def is_pending(self) -> bool:
        """Whether a signal waits."""
        return bool(self.waiting)

    def __enter__(self) -> Self:
        self.waiting = []
        self._handlers = {}
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):  # else it is ignored, or ends the process at once
                    self._handlers[number] = handler
                    signal.signal(number, self._defer)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self.waiting and error is None:
            self._handlers[self.waiting[0]](self.waiting[0], None)

    def _defer(self, number: int, frame: FrameType | None) -> None:
        self.waiting.append(number)
        if len(self.waiting) > self.patience:
            self._handlers[number](number, frame)
        else:
            with suppress(RuntimeError, OSError):  # the stream is in use just now, or gone
                self.notify()


def remove_folder(cluster_name: str) -> None:
    """Remove the folder of a cluster that has ended, and its watchdog, which we may be."""
    owner = Owner.of(cluster_name)
    remove_tree(cluster_folder(cluster_name))
    if owner is not None and owner.watchdog.pid != os.getpid():
        owner.watchdog.kill()


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, protected folders included."""
    _unlock(folder)
    for parent, names, _ in os.walk(folder):
        for path in (Path(parent, cluster_name) for cluster_name in names):
            if not path.is_symlink():
                _unlock(path)

    def raise_unless_gone(_function: object, _path: str, error: Any) -> None:
        if not isinstance(error[1], FileNotFoundError):
            raise error[1]

    shutil.rmtree(folder, onerror=raise_unless_gone)


def _unlock(folder: Path) -> None:
    """Let the owner of *folder* look into it and remove what is in it."""
    with suppress(FileNotFoundError):
        folder.chmod(stat.S_IRWXU)
