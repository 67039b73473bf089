"""Filling the catalog: histories that are new are read, and written in batches."""

from __future__ import annotations

import signal

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path

from harness.base.errors import DataError
from harness.catalog.applications import Applications
from harness.catalog.catalog import Catalog, Known
from harness.catalog.jobs import Row
from harness.catalog.places import list_sources
from harness.catalog.sources import BEST, LeftOut, Source, rank_of, read_jobs

_BATCH_ROWS = 1000
_CHUNK = 25  # histories that a process is given at once
_LEAST_CHUNKS = 8  # for which processes are started: that takes a second
_MOST_REASONS = 1000


@dataclass
class Filled:
    """
    What became of the histories; *left_out* are files with the reason, 1000 at most.

    *applications* are those beside them that are no MapReduce jobs.  *copies* are further sources
    of jobs that have one that is as good; they count among the *known*.
    """

    added: int = 0
    incomplete: int = 0
    known: int = 0
    left_out_files: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    applications: Applications = field(default_factory=Applications)
    copies: list[str] = field(default_factory=list)

    def note_copy(self, file: str) -> None:
        """Note one more source of a job that counts already."""
        self.known += 1
        self.copies.append(file)

    def leave_out(self, file: str, reason: str) -> None:
        """Note a file that cannot be read, and go on."""
        self.left_out_files += 1
        if len(self.left_out) < _MOST_REASONS:
            self.left_out.append((file, reason))


def fill(
    catalog: Catalog, places: Sequence[str | Path], processes: int, report: Callable[[Filled], None]
) -> Filled:
    """
    Add the jobs of all histories at *places* that *catalog* does not know as they are.

    *report* is called after each batch.  What is interrupted keeps the batches that are written.
    `DataError` where there is no history at all, or none can be read.
    """
    filled = Filled()
    with catalog.lock():
        stored = catalog.known() if catalog.batches() else Known(set(), {})
        copies = list[Source]()
        sources = _new_sources(places, stored, filled, copies)
        rows = _new_rows(sources, copies, processes, filled, stored.ranks)
        while batch := list(islice(rows, _BATCH_ROWS)):
            catalog.write(batch)
            filled.added += len(batch)
            report(filled)
        if catalog.batches():
            catalog.table(["job_id"])  # so that no query has to wait for the index
    if not filled.added and not filled.known:
        what = "there is no job history"
        fix = "name a folder with .jhist files, or a run"
        if filled.left_out:
            file, reason = filled.left_out[0]
            what = f"none of {filled.left_out_files} job histories can be read: {reason}"
            fix = f"look at {file}"
        if filled.applications:
            what = f"{what}; {filled.applications.sentence()}"
        raise DataError(what, where=", ".join(map(str, places)), fix=fix)
    return filled


def _new_sources(
    places: Sequence[str | Path], stored: Known, filled: Filled, copies: list[Source]
) -> Iterator[Source]:
    """
    The first source at *places* of each job of which not all is *stored*.

    *filled* counts those that are; what is there again is put to the *copies*.
    """
    listed = (list_sources(place, filled.leave_out, filled.applications) for place in places)
    seen_jobs = set[str]()
    for source in chain.from_iterable(listed):
        if source.key in stored.keys or stored.ranks.get(source.job) == BEST:
            filled.known += 1
        elif source.job in seen_jobs:
            copies.append(source)
        else:
            seen_jobs.add(source.job)
            yield source


def _new_rows(
    sources: Iterator[Source],
    copies: Sequence[Source],
    processes: int,
    filled: Filled,
    ranks: dict[str, int],
) -> Iterator[Row]:
    """
    Rows of the jobs of *sources*; those that cannot be read, and gaps, are noted in *filled*.

    Then *copies* that may be better than what was read: one may be whole, and each that is not is
    told.  What is no better than what *ranks* has of the job gives no row.
    """
    are_incomplete = dict[str, bool]()  # jobs that were read

    def rows_of(results: Iterable[Row | LeftOut]) -> Iterator[Row]:
        for result in results:
            if isinstance(result, tuple):
                filled.leave_out(*result)
                continue
            job_id = result["job_id"]
            rank = rank_of(result["source_key"], job_id, result["program"])
            if rank <= ranks.get(job_id, -1):
                filled.note_copy(result["source"])
                continue
            if job_id in are_incomplete:  # its row counts no more
                filled.added -= 1
                filled.incomplete -= are_incomplete[job_id]
            ranks[job_id] = rank
            are_incomplete[job_id] = bool(result["missing"])
            filled.incomplete += are_incomplete[job_id]
            yield result

    yield from rows_of(chain.from_iterable(_results(sources, processes)))
    for source in copies:
        if source.rank <= ranks.get(source.job, -1):
            filled.note_copy(source.label)
        else:
            yield from rows_of(read_jobs([source]))


def _results(sources: Iterator[Source], processes: int) -> Iterator[list[Row | LeftOut]]:
    """What was read of *sources*, in their order, by so many processes where that is worth it."""
    chunks = iter(lambda: list(islice(sources, _CHUNK)), [])
    first_chunks = list(islice(chunks, _LEAST_CHUNKS))
    if processes == 1 or len(first_chunks) < _LEAST_CHUNKS:
        yield from map(read_jobs, chain(first_chunks, chunks))
        return
    context = get_context("spawn")  # a copy of a process with threads may hang
    with ProcessPoolExecutor(processes, context, _ignore_interrupts) as pool:
        pending = deque[Future[list[Row | LeftOut]]]()
        for chunk in chain(first_chunks, chunks):
            pending.append(pool.submit(read_jobs, chunk))
            if len(pending) > 3 * processes:  # memory does not grow with what is listed
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _ignore_interrupts() -> None:
    """In a process of the pool: let Ctrl-C be for the one that writes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that writes ends the others
