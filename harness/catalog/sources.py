"""Histories of past jobs where they lie: folders of a history server, and runs of the harness."""

from __future__ import annotations

import os
import re

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.catalog.jobs import WANTED, Row, past_job
from harness.errors import DataError, HarnessError, ParseError
from harness.hadoop.site import read_properties
from harness.parsing.history import read_history
from harness.store import Run, os_error_as_machine_error
from harness.store.opener import MANIFEST, Opener
from harness.text import printable
from harness.units import format_bytes

_JOB = re.compile(r"job_[0-9]{1,16}_[0-9]{1,10}")
_LOG = re.compile(r"(job-[0-9]{1,6})-history\.jhist")  # of a trial
_MOST_HISTORY_BYTES, _MOST_CONFIGURATION_BYTES = 2**32, 2**24
_NAME = re.compile(rb"<name>([^<]*)</name>")
_WANTED = {name.encode() for name in WANTED}
_COPY = "copy it again, or leave it out"

LeftOut = tuple[str, str]  # a file, and the reason
LeaveOut = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """
    A history, and the configuration beside it ("" where there is none), as names in *folder*.

    *run* is the folder of the run to whose trial they belong; *key* changes with the two files.
    """

    folder: Path
    history: str
    configuration: str
    run: Path | None
    key: str

    def open(self, name: str, most_bytes: int) -> IO[bytes]:
        """Open one of the two; `DataError` where it is a link, no plain file, or too large."""
        if self.run is not None:
            return Run(self.run).raw(self.folder.parent.name).open(name)
        return Opener(self.folder).open(self.folder / name, _COPY, most_bytes)

    def read(self, name: str, most_bytes: int) -> bytes:
        """All bytes of one of the two; `DataError` where they are too many."""
        path = self.folder / name
        with self.open(name, most_bytes) as stream, os_error_as_machine_error(path):
            data = stream.read(most_bytes + 1)
        if len(data) > most_bytes:
            what = f"{name} has more than the {format_bytes(most_bytes)} that are read"
            raise DataError(what, where=str(path), fix=_COPY)
        return data


def list_sources(folder: Path, leave_out: LeaveOut) -> Iterator[Source]:
    """Histories below *folder*, in an order that stays; what cannot be listed is left out."""
    for parent, history, configuration, run in _named(folder, leave_out):
        names = filter(None, (history, configuration))
        paths = [parent / (f"{name}.gz" if run else name) for name in names]
        try:
            facts = [path.lstat() for path in paths]
        except OSError as error:
            leave_out(printable(parent / history), (error.strerror or str(error)).lower())
            continue
        # A job has one history, wherever it is copied to; a name without its id says nothing.
        match = _JOB.search(history)
        identity = match[0] if match else f"{printable(paths[0])} {facts[0].st_mtime_ns}"
        sizes = " ".join(str(fact.st_size) for fact in facts)
        yield Source(parent, history, configuration, run, f"{identity} {sizes}")


def _named(folder: Path, leave_out: LeaveOut) -> Iterator[tuple[Path, str, str, Path | None]]:
    """Folder, history and configuration of each job below *folder*, and its run, if any."""

    def leave_out_folder(error: OSError) -> None:
        leave_out(printable(error.filename), (error.strerror or str(error)).lower())

    for parent, folders, names in os.walk(folder, onerror=leave_out_folder):
        folders.sort()
        if MANIFEST in names and "trials" in folders:
            folders.clear()
            yield from _named_in_run(Run(Path(parent)), leave_out)
            continue
        job_ids = {name: match[0] for name in names if (match := _JOB.search(name))}
        configurations = {job_ids[name]: name for name in job_ids if name.endswith("_conf.xml")}
        for name in sorted(name for name in names if name.endswith(".jhist")):
            yield Path(parent), name, configurations.get(job_ids.get(name, ""), ""), None


def _named_in_run(run: Run, leave_out: LeaveOut) -> Iterator[tuple[Path, str, str, Path]]:
    for trial_id in run.trial_ids():
        try:
            names = run.raw(trial_id).names()
        except HarnessError as error:
            leave_out(error.where, error.what)
            continue
        for match in filter(None, map(_LOG.fullmatch, names)):
            configuration = f"{match[1]}-conf.xml"
            beside = configuration if configuration in names else ""
            yield run.trial_dir(trial_id) / "raw", match[0], beside, run.path


def read_jobs(sources: Iterable[Source]) -> list[Row | LeftOut]:
    """Rows of the jobs of *sources*; of one that cannot be read, its file and the reason."""
    results = list[Row | LeftOut]()
    for source in sources:
        label = printable(source.folder / source.history)
        try:
            with (
                source.open(source.history, _MOST_HISTORY_BYTES) as stream,
                os_error_as_machine_error(source.folder / source.history),
            ):
                trace = read_history(stream, label)
        except HarnessError as error:
            line = error.line if isinstance(error, ParseError) else None
            results.append((label, f"{error.what}{f', in line {line}' if line else ''}"))
            continue
        properties, problem = None, ""
        if source.configuration:
            try:
                properties = _read_wanted(source)
            except HarnessError as error:
                problem = f"the job configuration cannot be read: {error.what}"
        name = "" if properties is None else printable(source.configuration)
        files = {"source": label, "source_key": source.key, "configuration": name}
        results.append({**past_job(trace, properties, problem), **files})
    return results


def _read_wanted(source: Source) -> dict[str, str]:
    """
    Properties of the configuration that are wanted; `ParseError` for what Hadoop never writes.

    Of its thousand elements a few dozen are parsed as XML: all of them take several times as long.
    """
    text = source.read(source.configuration, _MOST_CONFIGURATION_BYTES)
    label = printable(source.folder / source.configuration)
    _, *elements = text.split(b"<property>")
    names = _NAME.findall(text)
    is_whole = len(names) == len(elements) == text.count(b"</property>")
    is_whole &= text.rstrip().endswith(b"</configuration>")
    if not is_whole or b"<!DOCTYPE" in text:
        raise ParseError("not a whole job configuration", source=label, fix=_COPY)
    wanted = [
        b"<property>%s</property>" % element.partition(b"</property>")[0]
        for property_name, element in zip(names, elements, strict=True)
        if property_name.strip() in _WANTED
    ]
    return read_properties(b"<configuration>%s</configuration>" % b"".join(wanted), label)
