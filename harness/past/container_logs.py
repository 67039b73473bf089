"""
Logs of tasks that ran before, beside their histories: in a folder, a file, or at a history server.

A log counts by what was read of it: only one that begins at the start of its task, and reaches the
end, shows all of it.
"""

from __future__ import annotations

import gzip
import zlib

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, BinaryIO, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from harness.base.documents.wording import by_number, count
from harness.base.errors import HarnessError, SpecError
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.text import excerpt, printable
from harness.clusters.existing.discovery import ADDRESS, copy_logs
from harness.clusters.host import CONTAINER
from harness.core.evaluate.observations import SHUFFLE_LOG, TASK_LOG, attempt_logs, rolled
from harness.core.store import RawLogs
from harness.observe.parsing.aggregated import Piece, reader_of
from harness.observe.parsing.task_log import in_layout, wanted_lines
from harness.observe.storage.files import is_name, walk_folders
from harness.observe.storage.opener import PACKED, Opener

_COPY = "copy it again, or leave --logs out"

Kind = Literal["whole", "clock", "begin", "shuffle", "end", "layout", "damaged", "none"]
# What is said of each kind of log that is not whole.
_KINDS: dict[Kind, str] = {
    "clock": "a log by a clock that is off, which was set right",
    "begin": "a log that does not begin at the start",
    "shuffle": "a log without that of its shuffle (syslog.shuffle)",
    "end": "a log that does not reach the end",
    "layout": "a log of another layout",
    "damaged": "a log that cannot be read",
    "none": "no log",
}


class _Folder(NamedTuple):
    """Where the logs of a container lie, and what opens them."""

    opener: Opener
    path: Path

    def names(self) -> list[str]:
        """Names of the files there, without those of their packing."""
        return sorted({path.name.removesuffix(PACKED) for path in self.path.iterdir()})

    def lines(self, log_name: str) -> Iterator[bytes]:
        """Lines of a log, with what it has rolled into."""
        for name in rolled(self.names(), log_name):
            yield from self.opener.read(self.path / name, _COPY).splitlines(keepends=True)


class ContainerLogs:
    """
    Logs at *place*: a folder with ``container_.../syslog`` anywhere below it, packed or not.

    Such are the folders ``yarn.nodemanager.log-dirs`` of the nodes.  Or files of many logs there:
    those into which YARN aggregates them, and what ``yarn logs`` has printed; one of them may be
    *place* itself.  Or ``http://HOST:19888``, a history server, which has those that YARN has
    aggregated.  `SpecError` where it is none of these.

    Files of many logs are unpacked in *scratch*, an empty folder that outlives this.  `counts` are
    the tasks whose logs were asked for, by kind.
    """

    def __init__(self, place: str, scratch: Path) -> None:
        self._server = ""
        if place.startswith("http:"):
            self._server = urlsplit(place).netloc
        path = Path(place)
        is_there = ADDRESS.fullmatch(self._server) if self._server else path.exists()
        self._folders = dict[str, _Folder]()  # by container
        self._scratch = scratch
        self.counts = Counter[Kind]()
        self.left_out = dict[str, str]()  # reasons, by folder or file
        if is_there and path.is_file():
            self._unpack(path, Opener(path.parent))
            is_there = bool(self._folders or self.left_out)
        if not is_there:
            what = f"'{excerpt(place)}' is neither logs nor the address of a history server"
            fix = "name a copy of yarn.nodemanager.log-dirs, what yarn logs has printed, or"
            raise SpecError(what, where="--logs", fix=f"{fix} http://HISTORYSERVER:19888")
        opener = Opener(path)
        for parent, folders, files in walk_folders(place):
            for name in filter(CONTAINER.fullmatch, folders):
                self._folders.setdefault(name, _Folder(opener, Path(parent, name)))
            folders[:] = [name for name in folders if not CONTAINER.fullmatch(name)]
            for name in sorted(files):
                self._unpack(Path(parent, name), opener)

    def copy(self, trace: JobTrace, into: Path) -> None:
        """
        Copy the logs of the tasks of *trace*, to ``into/<host>/<container>/``, and count them.

        Of their lines only those that are read: others may hold anything.  A log that cannot be
        read is in `left_out`, with the reason; one that shows a part of its task alone is not
        copied.
        """
        attempts = [attempt for attempt in trace.attempts if attempt.state == "succeeded"]
        with TemporaryDirectory(prefix="harness-logs-") as scratch:
            folders = self._folders_of(attempts, Path(scratch, "served"))
            for attempt in attempts:
                folder = folders.get(attempt.container_id)
                kind: Kind = "none"
                if folder is not None and is_name(attempt.host):
                    alone = replace(trace, attempts=(attempt,))
                    try:
                        kind = _copy_logs(folder, alone, Path(scratch, attempt.attempt_id), into)
                    except HarnessError as error:
                        self.left_out[printable(folder.path)] = error.what
                        kind = "damaged"
                self.counts[kind] += 1

    @property
    def has_any(self) -> bool:
        """Whether any task has a log that can be read."""
        return any(self.counts.keys() - {"none", "damaged"})

    def notes(self) -> list[str]:
        """How many tasks have logs that are not whole, by kind; and how many have none."""
        tasks = self.counts.total()
        notes = []
        for kind, text in _KINDS.items():
            tasks_of_kind = self.counts[kind]
            if tasks_of_kind or kind == "none":
                verb = by_number(tasks_of_kind, "has", "have")
                notes.append(f"{tasks_of_kind} of {count(tasks, 'task')} {verb} {text}")
        return notes

    def _folders_of(self, attempts: Sequence[TaskAttempt], served: Path) -> Mapping[str, _Folder]:
        """Folders by container; a server's logs are copied to *served*."""
        if not self._server:
            return self._folders
        hosts = {attempt.container_id: attempt.host for attempt in attempts}
        copies = copy_logs(hosts, (), self._server, served)
        return {path.parent.name: _Folder(Opener(served), path.parent) for path in copies}

    def _unpack(self, path: Path, opener: Opener) -> None:
        """Take the logs out of the file at *path*, where it is one of many logs."""
        target = self._scratch / str(len([*self._scratch.iterdir()]))
        if path.is_symlink() or not path.is_file():
            return
        with suppress(HarnessError), opener.open(path, _COPY) as stream:  # others may be locked
            file = _opened(stream)
            try:
                if reader := reader_of(file):
                    file.seek(0)
                    _write_pieces(reader(file, str(path)), target)
            except HarnessError as error:
                self.left_out[printable(path)] = error.what
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                self.left_out[printable(path)] = f"it is damaged: {excerpt(error)}"
        if target.exists():
            for folder in target.iterdir():
                self._folders.setdefault(folder.name, _Folder(Opener(self._scratch), folder))


def _opened(stream: IO[bytes]) -> BinaryIO:
    """What is in a file, unpacked where it is packed."""
    is_packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    return cast("BinaryIO", gzip.GzipFile(fileobj=stream) if is_packed else BufferedReader(stream))


def _write_pieces(pieces: Iterator[Piece], target: Path) -> None:
    """Write logs to ``target/<container>/<log>``, packed."""
    written = ("", "")
    log: gzip.GzipFile | None = None
    for piece in pieces:
        if log is None or (piece.container, piece.name) != written:
            if log is not None:
                log.close()
            written = (piece.container, piece.name)
            folder = target / piece.container
            folder.mkdir(parents=True, exist_ok=True)
            log = gzip.GzipFile(folder / f"{piece.name}{PACKED}", "ab", 1)
        log.write(piece.data)
    if log is not None:
        log.close()


def _copy_logs(folder: _Folder, trace: JobTrace, checked: Path, into: Path) -> Kind:
    """
    Copy the logs in *folder* of the only attempt of *trace*, if they are whole; of which kind.

    The lines that are read are first in *checked*.
    """
    (attempt,) = trace.attempts
    lines = [*folder.lines(TASK_LOG)]
    if not b"".join(lines).strip():
        return "none"
    if not in_layout(lines):
        return "layout"
    packed = checked / attempt.container_id
    packed.mkdir(parents=True)
    contents = {
        name: b"".join(wanted_lines(folder.lines(name))) for name in (TASK_LOG, SHUFFLE_LOG)
    }
    if not contents[SHUFFLE_LOG]:
        del contents[SHUFFLE_LOG]  # it may stand in the other
    for log_name, content in contents.items():
        (packed / f"{log_name}{PACKED}").write_bytes(gzip.compress(content, 1))
    ((_, logs),) = attempt_logs(RawLogs(Opener(checked), checked), trace)
    if logs.lacks:
        return logs.lacks
    target = into / attempt.host / attempt.container_id
    target.mkdir(parents=True, exist_ok=True)
    for log_name, content in contents.items():
        (target / log_name).write_bytes(content)  # packed again where the trial is stored
    return "whole" if logs.clock is None else "clock"
