"""
HDFS without a JVM: each operation is one small process on the cluster's gateway, over WebHDFS.

The program at the other end is `harness.node.hdfs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from harness.errors import ClusterError
from harness.providers.host import Host, HostTimeoutError, Running, from_json, printable
from harness.providers.silence import Silence

CHUNK = 2**20
LIMIT_S = 120.0
_MOST_LINE, _MOST_SAID = 2**16, 2**16  # of what a host that is not believed says


class RefusedError(ClusterError):
    """The file system answers, and says no: it is full, read-only, or lacks what is asked for."""


class Hdfs:
    """The file system of a cluster; *door* makes the gateway's command line of an operation."""

    def __init__(
        self, gateway: Callable[[], Host], door: Callable[[Sequence[str]], Sequence[str]]
    ) -> None:
        self._gateway, self._door = gateway, door

    def list(self, path: str) -> list[tuple[str, int, bool]]:
        """Name, bytes and is-a-folder of a folder's entries; `ClusterError` without it."""
        lines = self.call("list", path).splitlines()
        try:
            found = [(e["name"], e["bytes"], e["folder"]) for e in map(from_json, lines)]
            return sorted((str(name), int(size), bool(folder)) for name, size, folder in found)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise _nonsense(f"list {path}") from error

    def open(self, path: str) -> Iterator[bytes]:
        """Content of a file in pieces of at most 1 MiB; stop early and the process is gone."""
        for _, pieces in self.open_many([path]):
            yield from pieces

    def open_many(self, paths: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Path and content of several files, read in order by one process."""
        if not paths:
            return
        with self._process("read", *paths) as (process, silence):
            assert process.stdout is not None
            for path in paths:
                with silence.waited():
                    header = process.stdout.readline(_MOST_LINE)
                if not header:
                    self._finish(process, silence, f"read {path}")
                try:
                    size = int(from_json(header)["bytes"])
                except (ValueError, TypeError, KeyError, OverflowError) as error:
                    raise _nonsense(f"read {path}") from error
                pieces = _exactly(process.stdout, silence, size, path)
                yield path, pieces
                for _ in pieces:  # what the caller has left stands before the next header
                    pass
            self._finish(process, silence, f"read {paths[-1]}")

    def put(self, path: str, chunks: Iterable[bytes]) -> None:
        """Make the file *path* of *chunks*; an old one is replaced."""
        with self._process("write", path) as (process, silence):
            assert process.stdin is not None
            try:
                for chunk in chunks:
                    with silence.waited():
                        process.stdin.write(chunk)
                process.stdin.close()
            except BrokenPipeError:
                pass  # it says why on standard error
            self._finish(process, silence, f"write {path}")

    def delete(self, path: str) -> None:
        """Remove a file or folder with all in it; one that is not there is no error."""
        self.call("delete", path)

    def make(self, path: str) -> None:
        """Make a folder and those above it."""
        self.call("make", path)

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; `ClusterError` when the target is there."""
        self.call("rename", source, target)

    def call(self, *arguments: str, body: bytes | None = None) -> str:
        """One operation whose answer is a small text; `ClusterError` with the cluster's words."""
        what = " ".join(arguments)
        try:
            done = self._gateway().run(self._door(arguments), LIMIT_S, body)
        except HostTimeoutError as error:
            raise _silent(what) from error
        if done.status != 0:
            raise _refused(what, done.err)
        return done.out

    @contextmanager
    def _process(self, *arguments: str) -> Iterator[tuple[Running, Silence]]:
        process = self._gateway().open(self._door(arguments))
        try:
            with Silence(process, LIMIT_S) as silence:
                yield process, silence
        finally:
            process.kill()
            for pipe in (process.stdin, process.stdout, process.stderr):
                _close(pipe)
            process.wait()

    def _finish(self, process: Running, silence: Silence, what: str) -> None:
        """Wait for a good end; `ClusterError` after a bad one."""
        assert process.stderr is not None
        with silence.waited():
            said = process.stderr.read(_MOST_SAID)
            if len(said) == _MOST_SAID:  # it may never come to its end
                process.kill()
            status = process.wait()
        if silence.killed:
            raise _silent(what)
        if status != 0:
            raise _refused(what, said.decode(errors="replace"))


def _exactly(stream: Any, silence: Silence, size: int, path: str) -> Iterator[bytes]:
    while size > 0:
        with silence.waited():
            piece = stream.read(min(CHUNK, size))
        if silence.killed:
            raise _silent(f"read {path}")
        if not piece:
            raise ClusterError(
                f"{size} bytes are missing", where=f"read {path}", fix="harness cluster logs"
            )
        size -= len(piece)
        yield piece


def _close(pipe: Any) -> None:
    with suppress(BrokenPipeError):  # what was still to be written has no reader any more
        pipe.close()


def _silent(what: str) -> ClusterError:
    return ClusterError(f"no answer after {LIMIT_S:g} s", where=what, fix="harness cluster logs")


def _nonsense(what: str) -> ClusterError:
    return ClusterError(
        "what came back is no answer of ours",
        where=f"HDFS: {printable(what)}",
        fix="see what the host's Python is: it does not do what it should",
    )


def _refused(what: str, said: str) -> ClusterError:
    lines = printable(said).splitlines() or ["no message"]
    try:
        answer = from_json(lines[-1])
        reason, status = str(answer["error"]), int(answer["status"])
    except (ValueError, KeyError, TypeError):
        reason, status = lines[-1], 0
    kind = RefusedError if status else ClusterError
    return kind(reason, where=f"HDFS or web service: {what}", fix="harness cluster logs")
