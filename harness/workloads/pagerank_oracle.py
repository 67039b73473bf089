"""
PageRank computed another way: SciPy's sparse matrices over the graph as it lies in files.

Lines are those that the generator and the jobs write: a page of ten digits, a tab, a rank of twenty
characters, a tab, and pages with a space between two of them.  All are taken apart at once, as
columns of digits; what does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from numpy.typing import NDArray

from harness.errors import JobError
from harness.workloads.base import File
from harness.workloads.pagerank_graph import ID_DIGITS, RANK_CHARACTERS
from harness.workloads.shape import regroup, shown

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BLOCK = 4 * 2**20
_RANK = ID_DIGITS + 1
_POINT = _RANK + 9
_LINKS = _RANK + RANK_CHARACTERS + 1
_STEP = ID_DIGITS + 1


@dataclass(frozen=True, slots=True)
class Graph:
    """Pages in the order of their lines, their ranks and degrees, and all their links in a row."""

    pages: Ints
    ranks: Floats
    degrees: Ints
    links: NDArray[np.int32]

    @property
    def bytes(self) -> int:
        """Bytes of its lines."""
        return int(np.maximum(self.degrees * _STEP, 1).sum()) + _LINKS * len(self.pages)

    def checksum(self) -> str:
        """64 bits of all pages and their links, in whatever order the lines are."""
        ends = np.cumsum(self.degrees)
        place = np.arange(len(self.links)) - np.repeat(ends - self.degrees, self.degrees)
        # One more, or the link to page 0 in the first place would add nothing.
        links = self.links.astype(np.uint64) * np.uint64(2**31) + np.uint64(1)
        mixed = _mixed(links + place.astype(np.uint64))
        sums = np.concatenate(([np.uint64(0)], np.cumsum(mixed, dtype=np.uint64)))
        own = sums[ends] - sums[ends - self.degrees]
        lines = _mixed(own + _mixed(self.pages.astype(np.uint64)))
        return f"{int(lines.sum(dtype=np.uint64)):016x}"

    def strange(self) -> str:
        """Say what is wrong with its pages or links, or nothing."""
        times = np.bincount(self.pages[self.pages < len(self.pages)], minlength=len(self.pages))
        if (wrong := np.flatnonzero(times != 1)).size:
            return f"page {wrong[0]} has {times[wrong[0]]} lines"
        if self.links.size and self.links.max() >= len(self.pages):
            return f"a link leads to page {self.links.max()} of {len(self.pages)}"
        return ""


def read_graph(files: Iterable[File]) -> Graph:
    """Read all lines; `JobError` names the file and the line that is no page, rank and links."""
    blocks = [graph for name, chunks in files for graph in _read_file(name, chunks)]
    if not blocks:
        nothing = np.zeros(0, np.int64)
        return Graph(nothing, np.zeros(0), nothing, nothing.astype(np.int32))
    return Graph(
        np.concatenate([b.pages for b in blocks]),
        np.concatenate([b.ranks for b in blocks]),
        np.concatenate([b.degrees for b in blocks]),
        np.concatenate([b.links for b in blocks]),
    )


def power_iteration(graph: Graph, iterations: int, damping: float) -> Floats:
    """
    Ranks by page after some iterations from rank 1 on, in units of their mean.

    The rule is that of `mapreduce.harness.jobs.pagerank`; rows of the matrix are lines of the
    graph, and a link that is there twice is two entries, which a product adds.
    """
    from scipy.sparse import csr_array

    count = len(graph.pages)
    starts = np.concatenate(([0], np.cumsum(graph.degrees)))
    matrix = csr_array((np.ones(len(graph.links)), graph.links, starts), shape=(count, count))
    dangling = graph.degrees == 0
    divisors = np.where(dangling, 1, graph.degrees)
    ranks = np.ones(count)
    for _ in range(iterations):
        own = ranks[graph.pages]
        incoming = matrix.T @ np.where(dangling, 0.0, own / divisors)
        ranks = 1 - damping + damping * (incoming + own[dangling].sum() / count)
    return ranks


def _read_file(name: str, chunks: Iterable[bytes]) -> Iterator[Graph]:
    tail, line = b"", 1
    for chunk in regroup(chunks, _BLOCK):
        body, end, tail = (tail + chunk).rpartition(b"\n")
        if end:
            graph = _read_lines(name, line, np.frombuffer(body + end, np.uint8))
            line += len(graph.pages)
            yield graph
    if tail:
        raise JobError(f"{name}:{line}: the file ends within {shown(tail)}")


def _read_lines(name: str, first: int, data: NDArray[np.uint8]) -> Graph:
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts
    degrees = (lengths - _LINKS + 1) // _STEP
    short = lengths < _LINKS
    odd = (lengths > _LINKS) & ((lengths - _LINKS + 1) % _STEP != 0)
    _refuse(short | odd, name, first, data, starts)
    before = np.repeat(np.cumsum(degrees) - degrees, degrees)
    place = np.arange(len(before)) - before
    at = np.repeat(starts + _LINKS, degrees) + place * _STEP
    gaps = np.where(place + 1 == np.repeat(degrees, degrees), ord("\n"), ord(" "))
    lines = np.repeat(np.arange(len(starts)), degrees)
    _refuse(lines[data[at + ID_DIGITS] != gaps], name, first, data, starts)
    for place_of, mark in ((_RANK - 1, "\t"), (_POINT, "."), (_LINKS - 1, "\t")):
        _refuse(data[starts + place_of] != ord(mark), name, first, data, starts)
    pages, no_page = _numbers(data, starts, ID_DIGITS)
    units, no_unit = _numbers(data, starts + _RANK, _POINT - _RANK)
    parts, no_part = _numbers(data, starts + _POINT + 1, _LINKS - _POINT - 2)
    links, no_link = _numbers(data, at, ID_DIGITS)
    _refuse(no_page | no_unit | no_part, name, first, data, starts)
    _refuse(lines[no_link | (links >= 2**31)], name, first, data, starts)
    return Graph(pages, units + parts / 1e10, degrees, links.astype(np.int32))


def _numbers(data: NDArray[np.uint8], at: Ints, digits: int) -> tuple[Ints, NDArray[np.bool_]]:
    """Numbers of so many digits at these places, and which of them are none."""
    values, wrong = np.zeros(len(at), np.int64), np.zeros(len(at), np.bool_)
    for place in range(digits):
        digit = data[at + place] - np.uint8(ord("0"))  # below "0" it wraps round to large ones
        wrong |= digit > 9
        values = values * 10 + digit
    return values, wrong


def _refuse(
    wrong: NDArray[np.bool_] | Ints, name: str, first: int, data: NDArray[np.uint8], starts: Ints
) -> None:
    """Raise for the first line that is marked, or numbered, in *wrong*."""
    lines = np.flatnonzero(wrong) if wrong.dtype == np.bool_ else wrong
    if lines.size:
        line = data[starts[lines[0]] :][:200].tobytes().partition(b"\n")[0]
        raise JobError(f"{name}:{first + int(lines[0])}: {shown(line)} is no page, rank and links")


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of MurmurHash3."""
    mixed: NDArray[np.uint64] = values ^ (values >> np.uint64(33))
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))
