"""
What is known of a cluster between processes: one folder per name, one small file in it.

A process is known by its number, its start time and the boot of the machine, so that a number used
again by somebody else is never taken for ours.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import signal
import stat
import tempfile

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import ClusterError, SpecError
from harness.hadoop_home.checksums import write_whole
from harness.node.build import agent_bytes
from harness.providers.host import printable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PLAIN = re.compile(r"[A-Za-z0-9._/+@=,-]+")
_KILL_LIMIT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Process:
    """A process that we started, beyond doubt."""

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Process:
        """The process that has number *pid* now; `ProcessLookupError` when there is none."""
        return cls(pid, _start_time(pid), _boot())

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        try:
            return self.boot == _boot() and _start_time(self.pid) == self.started
        except ProcessLookupError:
            return False

    def kill(self) -> None:
        """End it by SIGKILL and wait until it has ended; one that has ended already is fine."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if not self.alive():  # asked with the handle held: the number cannot change hands now
                return
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            self._await(handle)
        except ProcessLookupError:
            return
        finally:
            os.close(handle)

    def end(self, limit_s: float = 30.0) -> None:
        """Ask it to end by SIGTERM, and wait for that, *limit_s* seconds at most."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive():
                signal.pidfd_send_signal(handle, signal.SIGTERM)
                ended = select.poll()
                ended.register(handle, select.POLLIN)
                ended.poll(limit_s * 1000)
        except ProcessLookupError:
            return
        finally:
            os.close(handle)

    def _await(self, handle: int) -> None:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        if not ended.poll(_KILL_LIMIT_MS):
            raise ClusterError(
                f"process {self.pid} is still there {_KILL_LIMIT_MS // 1000} s after SIGKILL",
                where=f"/proc/{self.pid}/status",
                fix="its state there says what it waits for; repeat: harness cluster down",
            )


def state_folder() -> Path:
    """Folder of this user's state: below ``XDG_STATE_HOME``, or a private temporary one."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG rules: a relative path counts as unset.
    base_folder = Path(base if base.startswith("/") else "~/.local/state").expanduser()
    folder = base_folder / "mapreduce-harness"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        usable = False
    if not usable:
        folder = _private(Path(tempfile.gettempdir()) / f"mapreduce-harness-{os.getuid()}")
    if not _PLAIN.fullmatch(str(folder)):
        raise SpecError(
            f"the path {str(folder)!r} holds characters that Hadoop's start scripts cannot carry",
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
    """The node agent (`harness.node`) as a file of this machine, named after its content."""
    digest = hashlib.sha256(agent_bytes()).hexdigest()[:12]
    file = state_folder() / f"node-{digest}.pyz"
    if not file.is_file():
        write_whole(file, agent_bytes())
    return file


def cluster_folder(name: str) -> Path:
    """Folder of one cluster; `SpecError` for a name that is no plain word."""
    if not _NAME.fullmatch(name):
        raise SpecError(
            f"{name!r} is no name for a cluster",
            where="name of the cluster",
            fix="use up to 64 letters, digits, - and _, a letter or digit first",
        )
    return clusters_folder() / name


def known_names() -> list[str]:
    """Names of all clusters that have a folder, up or not."""
    return sorted(p.name for p in clusters_folder().iterdir() if _NAME.fullmatch(p.name))


def make_folder(folder: Path, provider: str) -> None:
    """Make the folder of a new cluster, for this user alone; it names its provider first of all."""
    folder.mkdir(mode=0o700)
    (folder / "provider").write_text(provider)


def provider_of(name: str) -> str:
    """Provider of the cluster of that name, or of what is left of it; empty where none is told."""
    try:
        return (cluster_folder(name) / "provider").read_text()
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


@contextmanager
def claiming(name: str, provider: str) -> Iterator[None]:
    """`exclusive`, to take *name*; `ClusterError` where a cluster of another provider has it."""
    with exclusive():
        other = provider_of(name)
        if other not in ("", provider):
            raise ClusterError(
                f"the name {name!r} is taken by a cluster of {printable(other)[:80]}",
                where=str(cluster_folder(name)),
                fix=f"harness cluster down --name {name}, or choose another name",
            )
        yield


@dataclass(frozen=True, slots=True)
class ClusterState:
    """
    The state file: who holds the cluster, and how to enter it.

    *outer* is the process outside that all others hang on, *inner* is the first process inside
    (`None` while the cluster is being made); *doors* are descriptors of *inner* that lead into the
    nodes' namespaces; *user_namespace* says that an ordinary user made it.  *first_port* is that of
    a cluster without namespaces, 0 for one with them.
    """

    name: str
    spec: dict[str, Any]
    home: str
    user_namespace: bool
    outer: Process
    inner: Process | None = None
    doors: tuple[dict[str, int], ...] = ()
    first_port: int = 0

    def save(self, folder: Path) -> None:
        """Write the file in one step."""
        part = folder / "state.part"
        part.write_text(json.dumps(asdict(self), indent=1))
        part.replace(folder / "state.json")

    @classmethod
    def load(cls, folder: Path) -> ClusterState | None:
        """The state in *folder*, `None` where there is none (or none that can be read)."""
        try:
            fields = json.loads((folder / "state.json").read_text())
            inner = Process(**fields.pop("inner")) if fields["inner"] else fields.pop("inner")
            outer, doors = Process(**fields.pop("outer")), tuple(fields.pop("doors"))
            return cls(**fields, outer=outer, inner=inner, doors=doors)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def alive(self) -> bool:
        """Whether the cluster's first process still runs."""
        return self.outer.alive() and (self.inner is None or self.inner.alive())


def holders(plan: Path) -> list[Process]:
    """
    Processes of this user that hold the cluster of *plan*, by their command lines.

    For a state file that was never written, or that another version wrote.
    """
    found = []
    for entry in Path("/proc").iterdir():
        try:
            argv = (entry / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(plan) in argv and entry.stat().st_uid == os.geteuid():
                found.append(Process.of(int(entry.name)))
        except (OSError, ValueError):
            continue
    return found


def end_processes(state: ClusterState) -> None:
    """End every process of the cluster: all others end with the first one inside."""
    if state.first_port:  # it ends the others itself, and then it ends
        state.outer.end()
    for process in (state.inner, state.outer):
        if process is not None:
            process.kill()


def strays(folder: Path) -> list[Process]:
    """
    Processes of this user that have their configuration in *folder*: daemons, tasks and clients.

    Where no process namespace held them they may have outlived those that did.
    """
    mark, found = os.fsencode(f"HADOOP_CONF_DIR={folder}/"), []
    for entry in Path("/proc").iterdir():
        try:
            own = entry.name.isdigit() and entry.stat().st_uid == os.geteuid()
            environment = (entry / "environ").read_bytes() if own else b""
            if any(each.startswith(mark) for each in environment.split(b"\0")):
                found.append(Process.of(int(entry.name)))
        except (OSError, ValueError):
            continue
    return found


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, protected folders included."""
    if not folder.exists():
        return
    _unlock(folder)
    for here, names, _ in os.walk(folder):
        for path in (Path(here, name) for name in names):
            if not path.is_symlink():
                _unlock(path)
    shutil.rmtree(folder, onerror=_unless_gone)


def _unlock(folder: Path) -> None:
    """Let its owner look into *folder* and remove what is in it."""
    with suppress(FileNotFoundError):
        folder.chmod(stat.S_IRWXU)


def _unless_gone(_function: object, _path: str, error: Any) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def child_of(pid: int) -> int:
    """Number of the only child of *pid*; `ProcessLookupError` while it has none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if _stat_fields(int(entry.name))[1] == str(pid):
                    return int(entry.name)
            except ProcessLookupError:
                continue
    raise ProcessLookupError(pid)


def namespace_processes(first: Process) -> dict[int, int]:
    """Process id outside -> inside, of all that share the process namespace of *first*."""
    space, found = _link(first.pid), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and space and _link(int(entry.name)) == space:
            try:
                status = (entry / "status").read_text()
            except OSError:
                continue
            inside = re.search(r"^NSpid:.*?(\d+)$", status, re.MULTILINE)
            if inside:
                found[int(entry.name)] = int(inside[1])
    return found


def _link(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def _start_time(pid: int) -> int:
    fields = _stat_fields(pid)
    if fields[0] in "ZX":
        raise ProcessLookupError(pid)
    return int(fields[19])


def _stat_fields(pid: int) -> list[str]:
    """Fields of ``/proc/PID/stat`` behind the command name, which may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError as error:
        raise ProcessLookupError(pid) from error
    return text.rpartition(")")[2].split()


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _private(folder: Path) -> Path:
    """A folder of this user alone; somebody else's under that name is refused."""
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise SpecError(
            f"{folder} is not a folder of this user alone",
            where="state of the clusters",
            fix="set XDG_STATE_HOME to a folder that this user can write",
        )
    return folder
