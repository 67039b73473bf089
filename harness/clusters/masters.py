"""What the masters of a cluster answer, through one process on its gateway: HDFS, and health."""

from __future__ import annotations

import json
import time

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from subprocess import TimeoutExpired
from typing import IO, Any

from harness.base.errors import ClusterError
from harness.base.text import excerpt, printable, read_json
from harness.clusters.archives import in_time
from harness.clusters.host import Host, HostTimeoutError, IdleTimeout, Running, end_command

CHUNK = 2**20
LIMIT_S = 120.0
_LOOK_S = 0.5
_ANSWER_LIMIT_S = 60.0  # beyond the limit of the health check itself
_MOST_LINE = 2**16
_MOST_STDERR = 2**16
_MASTER_OF = {
    "datanode": "namenode", "historyserver": "namenode", "nodemanager": "resourcemanager",
}  # fmt: skip
_MOST_NAMES = 2000
_SHOWN = 4

Check = Callable[[dict[str, Any]], dict[str, Any]]


class RefusedError(ClusterError):
    """The file system refuses: it is full, read-only, or lacks what is requested."""


class Hdfs:
    """The file system of a cluster; *command* makes the gateway's command line of an operation."""

    def __init__(
        self, gateway: Callable[[], Host], command: Callable[[Sequence[str]], Sequence[str]]
    ) -> None:
        self._gateway = gateway
        self._command = command

    def list(self, hdfs_path: str) -> list[tuple[str, int, bool]]:
        """Name, bytes and is-a-folder of a folder's entries; `ClusterError` without it."""
        try:
            listed = map(read_json, self.call("list", hdfs_path).splitlines())
            return sorted(
                (str(entry["name"]), int(entry["bytes"]), bool(entry["folder"])) for entry in listed
            )
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise _answer_error(f"list {hdfs_path}") from error

    def open(self, hdfs_path: str) -> Iterator[bytes]:
        """Content of a file in pieces of at most 1 MiB; stop early and the process is gone."""
        for _, pieces in self.open_many([hdfs_path]):
            yield from pieces

    def open_many(self, paths: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Path and content of several files, read in order by one process."""
        if not paths:
            return
        with self._process("read", *paths) as (process, idle_timeout):
            assert process.stdout is not None
            for hdfs_path in paths:
                with idle_timeout.waiting():
                    header = process.stdout.readline(_MOST_LINE)
                if not header:
                    _finish(process, idle_timeout, f"read {hdfs_path}")
                try:
                    left_bytes = int(read_json(header)["bytes"])
                except (ValueError, TypeError, KeyError, OverflowError) as error:
                    raise _answer_error(f"read {hdfs_path}") from error
                received = _pieces(process.stdout, idle_timeout, left_bytes, hdfs_path)
                where = f"{self._gateway().name}: read {hdfs_path}"
                pieces = in_time(received, where, float("inf"))  # a large file may take long
                yield hdfs_path, pieces
                for _ in pieces:  # what the caller has left stands before the next header
                    pass
            _finish(process, idle_timeout, f"read {paths[-1]}")

    def put(self, hdfs_path: str, chunks: Iterable[bytes]) -> None:
        """Make the file *hdfs_path* of *chunks*; an old one is replaced."""
        with self._process("write", hdfs_path) as (process, idle_timeout):
            assert process.stdin is not None
            try:
                for content_chunk in chunks:
                    with idle_timeout.waiting():
                        process.stdin.write(content_chunk)
                process.stdin.close()
            except BrokenPipeError:
                pass  # standard error says why
            _finish(process, idle_timeout, f"write {hdfs_path}")

    def delete(self, hdfs_path: str) -> None:
        """Remove a file or folder with all in it; one that is not there is no error."""
        self.call("delete", hdfs_path)

    def make(self, hdfs_path: str) -> None:
        """Make a folder and those above it."""
        self.call("make", hdfs_path)

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; `ClusterError` when the target is there."""
        self.call("rename", source, target)

    def call(self, *arguments: str, body: bytes = b"") -> str:
        """One operation whose answer is a small text; `ClusterError` with the cluster's reason."""
        operation = " ".join(arguments)
        try:
            completed = self._gateway().run(self._command(arguments), LIMIT_S, body)
        except HostTimeoutError as error:
            raise _idle_error(operation) from error
        if completed.status != 0:
            raise _refused_error(operation, completed.err)
        return completed.out

    def get_json(self, service: str, url_path: str) -> Any:
        """JSON that a daemon of the master answers: *service* is rm, nn or jhs."""
        try:
            return read_json(self.call("get", service, url_path))
        except ValueError as error:
            raise ClusterError(
                "the answer is not JSON",
                where=f"web service: {service} {url_path}",
                fix="harness cluster logs",
            ) from error

    @contextmanager
    def _process(self, *arguments: str) -> Iterator[tuple[Running, IdleTimeout]]:
        process = self._gateway().open(self._command(arguments))
        try:
            yield process, IdleTimeout(process, LIMIT_S)
        finally:
            end_command(process)


def _pieces(stream: IO[bytes], timeout: IdleTimeout, left_bytes: int, path: str) -> Iterator[bytes]:
    """The next *left_bytes* bytes of a stream, and no less."""
    while left_bytes > 0:
        with timeout.waiting():
            piece = stream.read(min(CHUNK, left_bytes))
        if timeout.killed:
            raise _idle_error(f"read {path}")
        if not piece:
            raise ClusterError(
                f"{left_bytes} bytes are missing", where=f"read {path}", fix="harness cluster logs"
            )
        left_bytes -= len(piece)
        yield piece


def _finish(process: Running, idle_timeout: IdleTimeout, operation: str) -> None:
    """Wait for a good end; `ClusterError` after a bad one."""
    assert process.stderr is not None
    with idle_timeout.waiting():
        stderr = process.stderr.read(_MOST_STDERR)
        if len(stderr) == _MOST_STDERR:  # it may never come to its end
            process.kill()
        status = process.wait()
    if idle_timeout.killed:
        raise _idle_error(operation)
    if status != 0:
        raise _refused_error(operation, stderr.decode(errors="replace"))


def _idle_error(request: str) -> ClusterError:
    return ClusterError(f"no answer after {LIMIT_S:g} s", where=request, fix="harness cluster logs")


def _answer_error(operation: str) -> ClusterError:
    return ClusterError(
        "the answer does not have the form of the node agent's",
        where=f"HDFS: {printable(operation)}",
        fix="check the host's Python: it does not work properly",
    )


def _refused_error(operation: str, stderr: str) -> ClusterError:
    lines = printable(stderr).splitlines() or ["no message"]
    try:
        answer = read_json(lines[-1])
        reason = str(answer["error"])
        status = int(answer["status"])
    except (ValueError, KeyError, TypeError):
        reason = lines[-1]
        status = 0
    kind = RefusedError if status else ClusterError
    return kind(reason, where=f"HDFS or web service: {operation}", fix="harness cluster logs")


def check_health(
    gateway: Host,
    argv: Sequence[str],
    request: dict[str, Any],
    dead_daemons: Callable[[], dict[str, str]] | None,
) -> dict[str, Any]:
    """
    Answer of the node agent's verb `health` to a request; an empty one when the cluster is gone.

    *dead_daemons* are asked for meanwhile, where that verb does not see those of all nodes.
    """
    deadline = time.monotonic() + request["limit_s"] + _ANSWER_LIMIT_S
    command = gateway.open(argv)
    assert command.stdin is not None
    assert command.stdout is not None
    try:
        with suppress(BrokenPipeError), command.stdin as stdin:  # its answer says why
            stdin.write(json.dumps(request).encode())
        while True:
            try:
                command.wait(_LOOK_S)
            except TimeoutExpired:
                if dead := dead_daemons() if dead_daemons else {}:
                    return {"ok": False, "died": dead}
                if time.monotonic() > deadline:
                    return {}
            else:
                answer = read_json(command.stdout.read())
                return answer if isinstance(answer, dict) else {}
    except ValueError:
        return {}
    finally:
        end_command(command)


def await_healthy(
    check: Check, request: dict[str, Any], *, where: str, log: Callable[[str], str]
) -> None:
    """
    Return when every daemon has answered.

    *check* sends the request to the node agent; *log* gives the last lines of a daemon (``datanode
    on worker2``).  `ClusterError` names the daemons that died or do not answer, with those lines.
    """
    started = time.monotonic()
    answer = check({"until": "healthy", **request})
    waited = time.monotonic() - started
    if answer.get("ok") is True:
        return
    if not answer and waited < request["limit_s"]:
        raise ClusterError(
            f"the cluster was gone after {waited:.0f} s, before it was healthy",
            where=where,
            fix="start it again; another command may have taken it down",
        )
    dead = _died(answer)
    missing = _names(answer, "missing")
    if dead:
        what = f"{describe_endings(dead)} at start"
    else:
        what = f"no {_shortened(missing) or 'answer'} after {request['limit_s']:g} s"
    log_tail = "\n".join(log(daemon_name) for daemon_name in [*dead, *missing][:1])
    raise ClusterError(
        f"{what}\n{log_tail}".rstrip(),
        where=where,
        fix="the last lines of its log are above; a busy machine may need a second try",
    )


def missing_daemons(check: Check, request: dict[str, Any]) -> list[str]:
    """
    Daemons (``datanode on worker2``) that do not answer, or that masters have given up, now.

    While a master does not answer, nothing is known of the daemons that only it knows.
    """
    answer = check({"until": "healthy", **request, "limit_s": 0.0})
    missing = [] if answer.get("ok") is True else _names(answer, "missing")
    kinds = {daemon_name.partition(" ")[0] for daemon_name in missing}
    unknown = {kind for kind, master in _MASTER_OF.items() if master in kinds}
    return [daemon_name for daemon_name in missing if daemon_name.partition(" ")[0] not in unknown]


def await_idle(check: Check, request: dict[str, Any], *, where: str) -> None:
    """Return when nothing runs and no application has a container."""
    started_s = time.monotonic()
    answer = check({"until": "idle", **request})
    if answer.get("ok") is True:
        return
    dead = _died(answer)
    left_names = [describe_endings(dead)] * bool(dead) + _names(answer, "missing")
    waited_s = time.monotonic() - started_s
    raise ClusterError(
        f"the cluster is not idle after {waited_s:.0f} s: {_shortened(left_names) or 'no answer'}",
        where=where,
        fix="harness cluster down; harness cluster up",
    )


def describe_endings(dead: Mapping[str, str]) -> str:
    """
    What `Cluster.dead_daemons` gives, for people.

    >>> describe_endings({"datanode on worker1": "died", "nodemanager on worker1": "died"})
    'datanode on worker1, nodemanager on worker1 died'
    """
    names_by_ending: dict[str, list[str]] = {}
    for daemon_name, ending in dead.items():
        names_by_ending.setdefault(ending, []).append(daemon_name)
    return ", ".join(f"{_shortened(names)} {how}" for how, names in names_by_ending.items())


def _died(answer: dict[str, Any]) -> dict[str, str]:
    """Ending of each daemon of an answer, by its name."""
    dead = answer.get("died")
    pairs = list(dead.items())[:_MOST_NAMES] if isinstance(dead, dict) else []
    return {excerpt(key, 80).replace("-", " on ", 1): excerpt(how, 80) for key, how in pairs}


def _names(answer: dict[str, Any], key: str) -> list[str]:
    """Names in an answer, which comes from a host: as many and as long as a message holds."""
    names = answer.get(key)
    return [excerpt(name, 80) for name in names[:_MOST_NAMES]] if isinstance(names, list) else []


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
