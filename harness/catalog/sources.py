"""What is read of a past job: its history and its configuration, wherever they lie."""

from __future__ import annotations

import gzip
import re
import zlib

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, TYPE_CHECKING

from harness.base.errors import DataError, HarnessError, ParseError
from harness.base.hadoop.secrets import SECRETS
from harness.base.hadoop.site import read_properties
from harness.base.hadoop.values import expanded
from harness.base.records.trace import JobTrace
from harness.base.text import excerpt, printable
from harness.base.units import format_bytes
from harness.catalog.jobs import WANTED, Row, past_job
from harness.core.store import Run, os_error_as_machine_error
from harness.observe.parsing.history import read_history
from harness.observe.storage.opener import PACKED, Opener

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_HISTORIES = (".jhist", f".jhist{PACKED}")
_CONFIGURATIONS = ("_conf.xml", f"_conf.xml{PACKED}")
_BUFFER_BYTES = 2**16
JOB = re.compile(r"job_[0-9]{1,16}_[0-9]{1,10}")
_ALONE = re.compile(rf"{JOB.pattern}( [0-9]+)?")
BEST = 3  # rank of a source that has all
_MOST_HISTORY_BYTES = 2**32
_MOST_CONFIGURATION_BYTES = 2**24
_NAME = re.compile(rb"<name>([^<]*)</name>")
_WANTED = {name.encode() for name in WANTED}
_COPY = "copy it again, or leave it out"

LeftOut = tuple[str, str]  # a file, and the reason


@dataclass(frozen=True, slots=True)
class Source(ABC):
    """A past job that can be read; its *key* changes with what there is to read."""

    key: str

    @property
    def job(self) -> str:
        """Id of the job; or the key, where only its history has the id."""
        match = JOB.match(self.key)
        return match[0] if match else self.key

    @property
    def rank(self) -> int:
        """The `rank_of` the row that it gives, if all of it can be read."""
        return rank_of(self.key, self.job, self.configuration_label or None)

    @property
    @abstractmethod
    def label(self) -> str:
        """Where its history is, for people."""

    @property
    @abstractmethod
    def configuration_label(self) -> str:
        """Its configuration, for people; empty where there is none."""

    def of_job(self, _job_id: str) -> Source:
        """Give this source with all that belongs to the job, whose id is known by now."""
        return self

    @abstractmethod
    def read_trace(self) -> JobTrace:
        """Read its history; `HarnessError` where it cannot be read."""

    @abstractmethod
    def read_wanted(self) -> dict[str, str]:
        """Properties of its configuration that are `WANTED`; `HarnessError` likewise."""


@dataclass(frozen=True, slots=True)
class Files(Source):
    """
    A history, and the configuration beside it ("" where there is none), as names in *folder*.

    *run* is the folder of the run to whose trial they belong.
    """

    folder: Path
    history: str
    configuration: str
    run: Path | None = None

    @property
    def label(self) -> str:
        """Path of the history."""
        return printable(self.folder / self.history)

    @property
    def configuration_label(self) -> str:
        """Name of the configuration."""
        return printable(self.configuration)

    def open(self, name: str, most_bytes: int) -> AbstractContextManager[IO[bytes]]:
        """Open one of the two; `DataError` where it is a link, no plain file, or too large."""
        if self.run is not None:
            return Run(self.run).raw(self.folder.parent.name).open(name)
        stream = Opener(self.folder).open(self.folder / name, _COPY, most_bytes)
        return unpacked(stream, most_bytes, self.label) if name.endswith(PACKED) else stream

    def read(self, name: str, most_bytes: int) -> bytes:
        """All bytes of one of the two; `DataError` where they are too many."""
        path = self.folder / name
        with self.open(name, most_bytes) as stream, os_error_as_machine_error(path):
            data = stream.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise too_large(name, most_bytes, str(path))
        return data

    def of_job(self, job_id: str) -> Files:
        """
        Give the files with the configuration of the job, where it lies beside its history.

        A history that somebody has renamed does not tell the job by its name, but by what is in it.
        """
        is_renamed = self.run is None and job_id not in self.history and JOB.fullmatch(job_id)
        if is_renamed and not self.configuration:
            for name in (f"{job_id}{ending}" for ending in _CONFIGURATIONS):
                with suppress(HarnessError), self.open(name, _MOST_CONFIGURATION_BYTES):
                    return replace(self, configuration=name)
        return self

    def read_trace(self) -> JobTrace:
        """Read the history."""
        with (
            self.open(self.history, _MOST_HISTORY_BYTES) as stream,
            os_error_as_machine_error(self.folder / self.history),
        ):
            return read_history(stream, self.label)

    def read_wanted(self) -> dict[str, str]:
        """
        Properties of the configuration that are wanted; `ParseError` for what Hadoop never writes.

        Of its thousand elements a few dozen are parsed as XML: all of them take several times as
        long.
        """
        text = self.read(self.configuration, _MOST_CONFIGURATION_BYTES)
        label = printable(self.folder / self.configuration)
        _, *properties = text.split(b"<property>")
        names = _NAME.findall(text)
        is_whole = len(names) == len(properties) == text.count(b"</property>")
        is_whole &= text.rstrip().endswith(b"</configuration>")
        if not is_whole or b"<!DOCTYPE" in text:
            raise ParseError("not a whole job configuration", source=label, fix=_COPY)
        wanted = [
            b"<property>%s</property>" % element.partition(b"</property>")[0]
            for property_name, element in zip(names, properties, strict=True)
            if property_name.strip() in _WANTED
        ]
        stated = read_properties(b"<configuration>%s</configuration>" % b"".join(wanted), label)
        if not any("${" in value for value in stated.values()):
            return stated
        # What others bring in must be no secret.
        others = read_properties(SECRETS.clean_conf(text), label)
        return {name: expanded(value, others) for name, value in stated.items()}


class _Packed(RawIOBase):
    """Bytes of a packed *stream*, which may be small and unpack to anything: no more than asked."""

    def __init__(self, stream: IO[bytes], most_bytes: int, where: str) -> None:
        self._stream = stream
        self._gzip = gzip.GzipFile(fileobj=stream)
        self._left = most_bytes
        self._error = partial(DataError, where=where, fix=_COPY)
        self._most = format_bytes(most_bytes)

    def readable(self) -> bool:
        """It is for reading alone."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill *buffer* as far as there is more; `DataError`: it is damaged, or has too much."""
        room = memoryview(buffer)
        try:
            data = self._gzip.read(len(room))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._error(f"it is damaged: {excerpt(error, 200)}") from error
        self._left -= len(data)
        if self._left < 0:
            raise self._error(f"it unpacks to more than the {self._most} that are read")
        room[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close what is read, too."""
        self._stream.close()
        super().close()


def unpacked(stream: IO[bytes], most_bytes: int, where: str) -> IO[bytes]:
    """What a packed *stream* holds, *most_bytes* at most; damage is an error that says *where*."""
    return BufferedReader(_Packed(stream, most_bytes, where), _BUFFER_BYTES)


def rank_of(key: str, job_id: str, program: str | None) -> int:
    """
    How good the source of a row is, from 0 to `BEST`: of two rows of a job the better one counts.

    A configuration that was read, which names the *program*, counts most; then a history, which has
    more than a server's answer, whose *key* is the id.
    """
    return 2 * (program is not None) + (key != job_id)


def is_of_history_alone(key: str) -> bool:
    """Whether the *key* is of a job without a configuration, for all that its folder shows."""
    return _ALONE.fullmatch(key) is not None


def too_large(name: str, most_bytes: int, where: str) -> DataError:
    """The error of a file that has more bytes than are read."""
    what = f"{name} has more than the {format_bytes(most_bytes)} that are read"
    return DataError(what, where=where, fix=_COPY)


def paired(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each history among the *names* of a folder, with its configuration; "" where it has none."""
    job_ids = {name: match[0] for name in names if (match := JOB.search(name))}
    plain_last = sorted(job_ids, key=lambda name: not name.endswith(PACKED))
    configurations = {job_ids[name]: name for name in plain_last if name.endswith(_CONFIGURATIONS)}
    for name in sorted(name for name in names if name.endswith(_HISTORIES)):
        yield name, configurations.get(job_ids.get(name, ""), "")


def copies_note(copies: Sequence[str]) -> str:
    """
    Say how many *copies* there are, histories of jobs that have another; empty where none is.

    >>> copies_note(["done/job_1_0001.jhist.gz"])
    '1 more history is the same job as another: done/job_1_0001.jhist.gz'
    """
    if not copies:
        return ""
    if len(copies) == 1:
        return f"1 more history is the same job as another: {copies[0]}"
    return f"{len(copies)} more histories are the same jobs as others, such as {copies[0]}"


def read_jobs(sources: Iterable[Source]) -> list[Row | LeftOut]:
    """Rows of the jobs of *sources*; of one that cannot be read, its file and the reason."""
    results = list[Row | LeftOut]()
    for source in sources:
        label = source.label
        try:
            trace = source.read_trace()
        except HarnessError as error:
            line = error.line if isinstance(error, ParseError) else None
            results.append((label, f"{error.what}{f', in line {line}' if line else ''}"))
            continue
        properties = None
        problem = ""
        whole_source = source.of_job(trace.job_id)
        name = whole_source.configuration_label
        if name:
            try:
                properties = whole_source.read_wanted()
            except HarnessError as error:
                problem = f"the job configuration cannot be read: {error.what}"
                name = ""
        files = {"source": label, "source_key": source.key, "configuration": name}
        results.append({**past_job(trace, properties, problem), **files})
    return results
