"""
PageRank over a generated web graph, one job for each iteration.

The proof of its output: SciPy's power iteration over the same files gives the same ranks.  Compared
are the largest ones and some drawn by the seed, the sum of all, and a checksum of the graph itself.

How large a graph is, pages, links and bytes of its files, is known before it is made.  The law is
that of `mapreduce.harness.jobs.pagerank.Graph`, in the same whole numbers: in each `CYCLE` pages in
a row every quantile of the out-degrees occurs once, in an order that the seed mixes.  So the bytes
of any row of pages follow without a look at most of them.
"""

from __future__ import annotations

import hashlib

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from numpy.typing import NDArray

from harness.base.errors import JobError, SpecError
from harness.base.records.trial import WorkloadSpec, digest
from harness.clusters.workloads.base import (
    File,
    InputPlan,
    Parameter,
    Sample,
    Workload,
    bad_input_error,
    block_count,
    check_block,
    check_size,
    even_sizes,
    shown,
)
from harness.clusters.workloads.files import (
    Bits,
    difference,
    generated_input,
    noise,
    read_rows,
    regroup,
)

VERSION = 2  # of the bytes of a graph, and of what is kept of them

# Ranks are written with ten decimals and are 1 - damping at least, so 0.01: each iteration rounds
# by 5e-9 of a rank at most, and over links errors are only averaged.
TOLERANCE = 1e-7
MOVED = 0.1  # of the mean rank: HiBench's jobs end where no rank moves farther
COMPARED = 5000  # of the largest ranks, and as many by chance

CYCLE = 256
DANGLING = 16
LEAST = 10
MOST = 512  # links of a page that has any
MOST_PAGES = 2**31 - 2

# Places in a line: page, rank with its decimal point, links.
ID_DIGITS = 10
RANK_CHARACTERS = 20
_LINK = ID_DIGITS + 1  # bytes, with the separator
_RANK = ID_DIGITS + 1
_POINT = _RANK + 9
_LINKS = _RANK + RANK_CHARACTERS + 1
_BLOCK = 4 * 2**20

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]


class PageRank(Workload):
    """
    Ranks pages of a graph whose degrees follow power laws; its jobs have a combiner.

    All of its parameters are part of an input's key: what is kept of the input are the ranks that
    are to come out.
    """

    name = "pagerank"
    main_class = "pagerank.PageRank"
    description = "PageRank over a power-law web graph, a job an iteration; verified by SciPy"
    unlike_hibench = ""  # where it is asked for, the workload is `PegasusPageRank`
    uses_combiner = True
    jobs_chained = True
    parameters: ClassVar = {
        "iterations": Parameter(3, "jobs, each of which is one iteration", 1, 100),
        "damping": Parameter(0.85, "share of its rank that a page passes on by links", 0, 0.99),
        "skew": Parameter(2, "links lead to page N u^skew, u uniform; larger is steeper", 1, 20),
    }
    # HiBench's profiles have 50, 5000, ... pages; a page takes 441 bytes here.  HiBench's `tiny`
    # has one iteration, here it has three, as all others.
    sizes = (22_030, 2_203_046, 220_304_687, 2_203_046_875, 13_218_281_250, 22_030_468_750)

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """One for each iteration."""
        return int(self.arguments(spec)["iterations"])

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many pages as the size asked holds, spread evenly over the fewest files that fit."""
        check_block(spec, block_bytes, 2 * line_bytes(MOST))
        if spec.input_bytes > MOST_PAGES // CYCLE * CYCLE_BYTES:
            raise SpecError(
                f"a graph of {spec.input_bytes} bytes has more than {MOST_PAGES} pages",
                where="pagerank, input",
                fix="ask for less",
            )
        files = block_count(spec, spec.input_bytes, block_bytes)
        size = graph_size(spec.seed, spec.input_bytes, block_bytes, files)
        check_size(spec, sum(size.files), "whole lines of a graph", 5000)
        arguments = self.arguments(spec)
        content = {"graph": VERSION, "seed": spec.seed, "sizes": size.files, **arguments}
        skew = arguments["skew"]
        return generated_input(
            spec,
            f"graph-{digest(content)}",
            "pagerank.Graph",
            records=size.pages,
            sizes=size.files,
            properties={"graph.pages": size.pages, "graph.last": size.last, "graph.skew": skew},
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `records` (pages), `links`, `checksum`, and the `ranks` due of some `pages`.

        Takes about 13 bytes of memory for each link.  Raises `JobError` for what is not a graph.
        """
        graph = read_graph(input_files)
        if reason := graph.complaint():
            raise bad_input_error(self.name, reason)
        return {"checksum": graph.checksum(), **self.due(spec, graph)}

    def due(self, spec: WorkloadSpec, graph: Graph, *, lossy: bool = False) -> dict[str, Any]:
        """Return what is due of the ranks of *graph*: their `mean`, and some of them."""
        arguments = self.arguments(spec)
        ranks = power_iteration(graph, arguments["iterations"], arguments["damping"], lossy=lossy)
        largest = np.argsort(ranks)[::-1][:COMPARED]
        drawn = np.random.default_rng(spec.seed).integers(len(ranks), size=COMPARED)
        pages = np.unique(np.concatenate((largest, drawn)))
        return {
            "records": len(ranks),
            "lines": len(ranks),
            "links": len(graph.links),
            "mean": float(ranks.mean()),
            "pages": pages.tolist(),
            "ranks": ranks[pages].tolist(),
        }

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Iterations, for each of which it submits a job, and damping."""
        arguments = self.arguments(spec)
        return {f"pagerank.{name}": arguments[name] for name in ("iterations", "damping")}

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:
        """Folder of the last iteration."""
        return f"{output_uri}/iteration-{self.arguments(spec)['iterations']}"

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Every page once, with its links, ranks that add up, and those of the sample as due."""
        graph = read_graph(outputs)
        totals = {"lines": len(graph.pages), "links": len(graph.links)}
        if reason := difference(totals, sample) or graph.complaint():
            return reason
        if reason := difference({"checksum": graph.checksum()} if graph.links.size else {}, sample):
            return reason
        if abs(graph.ranks.mean() - sample["mean"]) > TOLERANCE:
            return f"the ranks have the mean {graph.ranks.mean():.12g}, not {sample['mean']:.12g}"
        ranks = np.empty(len(graph.pages))
        ranks[graph.pages] = graph.ranks
        compared = np.array(sample["pages"])
        expected = np.array(sample["ranks"])
        errors = np.abs(ranks[compared] / expected - 1)
        worst = int(errors.argmax())
        if errors[worst] <= TOLERANCE:
            return ""
        page = compared[worst]
        return (
            f"page {page} has the rank {ranks[page]:.10f}, not {expected[worst]:.10f};"
            f" {int((errors > TOLERANCE).sum())} of {len(compared)} compared ranks differ"
        )


class PegasusPageRank(PageRank):
    """
    Ranks pages as Pegasus does for HiBench: over a list of links, by two jobs for each iteration.

    The first joins links and ranks, the second adds up what comes over links.  What pages without
    links have is lost.  It ends early where no rank moves by more than a tenth of the mean.

    The size counts pages as in the other form; the list of their links is about twice as large.
    """

    uses_combiner = False
    jobs_alike = False
    main_class = "pagerank.Naive"
    as_hibench: ClassVar = {"damping": 0.85, "skew": 2}

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """Two for each iteration, of which there may be fewer than asked for."""
        return None

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """The files of the other form, with a line for each link: both its pages."""
        plan = super().plan_input(spec, block_bytes // 2)
        properties = {**plan.generator.properties, "graph.form": "links"}
        counts = even_sizes(int(properties["graph.pages"]), len(plan.sizes))
        # A page without links has one byte for them there, and no line here.
        files = zip(plan.sizes, counts, strict=True)
        sizes = [2 * (file_bytes - _LINKS * count) for file_bytes, count in files]
        generator = replace(plan.generator, properties=properties)
        return InputPlan(plan.key, sizes, generator)

    def page_count(self, spec: WorkloadSpec) -> int:
        """Pages that have a rank; where files fit blocks by it, some of the last have no links."""
        return _unbounded_graph_size(spec.seed, spec.input_bytes, 1).pages

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `records`, links and ranks that each job reads, and what is due of the ranks."""
        count = self.page_count(spec)
        links = [np.zeros((0, 2), np.int64)]
        for rows in read_rows(self.name, input_files, 2 * _LINK):
            digits = rows.reshape(-1, 2, _LINK) - np.uint8(ord("0"))  # below "0" they are large
            pages = digits[:, :, :ID_DIGITS] @ 10 ** np.arange(ID_DIGITS)[::-1]
            wrong = (digits[:, :, :ID_DIGITS] > 9).any(axis=2) | (pages >= count)
            wrong |= rows.reshape(-1, 2, _LINK)[:, :, ID_DIGITS] != (ord("\t"), ord("\n"))
            if (first := np.flatnonzero(wrong.any(axis=1))[:1]).size:
                reason = f"is not a link between two of {count} pages"
                raise bad_input_error(self.name, f"{shown(rows[first[0]].tobytes())} {reason}")
            links.append(pages)
        start, end = np.concatenate(links).T
        order = np.argsort(start, kind="stable")
        degrees = np.bincount(start, minlength=count)
        numbers = np.arange(count)
        ends = end[order].astype(np.int32)
        graph = Graph(numbers, np.ones(count), degrees, ends, np.zeros(count, np.uint64))
        # Ranks come out without links.
        return {**self.due(spec, graph, lossy=True), "records": count + len(ends), "links": 0}

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Also the number of pages, which the list of links does not say."""
        return {**super().client_properties(spec), "pagerank.pages": self.page_count(spec)}


@dataclass(frozen=True, slots=True)
class GraphSize:
    """Pages of a graph, links of the last one, and the bytes of each file."""

    pages: int
    last: int
    files: tuple[int, ...]


def quantiles() -> tuple[int, ...]:
    """
    Out-degrees of a cycle from none upwards: bounded Pareto, density as 1/links^2.

    >>> quantiles()[14:18], quantiles()[-1]
    ((0, 0, 10, 10), 463)
    """
    steps = 2 * (CYCLE - DANGLING)
    degrees = (
        LEAST * MOST * steps // (MOST * steps - (MOST - LEAST) * (2 * quantile + 1))
        for quantile in range(CYCLE - DANGLING)
    )
    return (*(0,) * DANGLING, *degrees)


def line_bytes(links: int) -> int:
    """Bytes of the line of a page with so many *links*, its end included."""
    return _LINKS + max(links * _LINK, 1)


CYCLE_BYTES = sum(map(line_bytes, quantiles()))


@lru_cache(maxsize=4096)
def cycle(seed: int, number: int) -> tuple[int, ...]:
    """Out-degrees of the pages of cycle *number*, in their order."""
    # The first draw of a seed that is not that of the links.
    bits = int(noise(~seed & 2**64 - 1, number, 1, 8).view("<u8")[0, 0])
    degrees = quantiles()
    step = bits | 1
    start = bits >> 8
    return tuple(degrees[(page * step + start) % CYCLE] for page in range(CYCLE))


def bytes_before(seed: int, page: int) -> int:
    """Bytes of all pages before *page*."""
    whole, rest = divmod(page, CYCLE)
    return whole * CYCLE_BYTES + sum(map(line_bytes, cycle(seed, whole)[:rest]))


@lru_cache(maxsize=256)
def graph_size(seed: int, size: int, block: int, files: int) -> GraphSize:
    """
    Return the graph that comes nearest to *size* bytes from below, in *files* of a *block* at most.

    Pages are spread evenly over files, whose bytes then differ a little.  Where one would be larger
    than a block, the graph is made smaller by up to 0.5 %, or else there are more files.
    """
    while True:
        graph = _unbounded_graph_size(seed, size, files)
        largest = max(graph.files)
        if largest <= block:
            return graph
        reduced_bytes = size * block // largest - line_bytes(MOST)
        smaller = _unbounded_graph_size(seed, reduced_bytes, files)
        if max(smaller.files) <= block and sum(smaller.files) >= size - size // 200:
            return smaller
        files = max(files + 1, files * largest // block)


def _unbounded_graph_size(seed: int, size: int, files: int) -> GraphSize:
    """As many pages as *size* bytes hold; the last one has fewer links where it must."""
    whole, remaining = divmod(size, CYCLE_BYTES)
    pages = whole * CYCLE
    last = cycle(seed, whole - 1)[-1] if whole else 0
    for links in cycle(seed, whole):
        if remaining < line_bytes(0):
            break
        last = min(links, (remaining - _LINKS) // _LINK)
        pages += 1
        remaining -= line_bytes(last)
        if last < links:
            break
    sizes = list[int]()
    before = 0
    page = 0
    for count in even_sizes(pages, files):
        page += count
        after = size - remaining if page == pages else bytes_before(seed, page)
        sizes.append(after - before)
        before = after
    return GraphSize(pages, last, tuple(sizes))


@dataclass(frozen=True, slots=True)
class Graph:
    """
    Pages in the order of their lines, their ranks and degrees, and all their links in a row.

    *line_bits* are a hash of each line without its rank.
    """

    pages: Ints
    ranks: Floats
    degrees: Ints
    links: NDArray[np.int32]
    line_bits: Bits

    def checksum(self) -> str:
        """64 bits of all pages and their links, in whatever order the lines are."""
        return f"{int(self.line_bits.sum(dtype=np.uint64)):016x}"

    def complaint(self) -> str:
        """What is wrong with its pages or links, or nothing."""
        times = np.bincount(self.pages[self.pages < len(self.pages)], minlength=len(self.pages))
        if (wrong := np.flatnonzero(times != 1)).size:
            return f"page {wrong[0]} has {times[wrong[0]]} lines"
        if self.links.size and self.links.max() >= len(self.pages):
            return f"a link leads to page {self.links.max()} of {len(self.pages)}"
        return ""


def power_iteration(
    graph: Graph, iterations: int, damping: float, *, lossy: bool = False
) -> Floats:
    """
    Ranks by page after some iterations from rank 1 on, in units of their mean.

    The rule is that of `mapreduce.harness.jobs.pagerank`; rows of the matrix are lines of the
    graph, and a link that is there twice is two entries, which a product adds.  *lossy* is the rule
    of `PegasusPageRank`.
    """
    from scipy.sparse import csr_array

    count = len(graph.pages)
    starts = np.concatenate(([0], np.cumsum(graph.degrees)))
    matrix = csr_array((np.ones(len(graph.links)), graph.links, starts), shape=(count, count))
    is_dangling = graph.degrees == 0
    divisors = np.where(is_dangling, 1, graph.degrees)
    ranks = np.ones(count)
    for _ in range(iterations):
        line_ranks = ranks[graph.pages]
        incoming = matrix.T @ np.where(is_dangling, 0.0, line_ranks / divisors)
        shared = 0.0 if lossy else line_ranks[is_dangling].sum() / count
        before = ranks
        ranks = 1 - damping + damping * (incoming + shared)
        if lossy and np.abs(ranks - before).max() <= MOVED:
            break
    return ranks


def read_graph(files: Iterable[File]) -> Graph:
    """Read all lines; `JobError` names the file and the line that is not a page, rank and links."""
    empty = np.zeros(0, np.int64)
    graphs = [Graph(empty, np.zeros(0), empty, empty.astype(np.int32), empty.astype(np.uint64))]
    for name, chunks in files:
        tail = b""
        line = 1
        for chunk in regroup(chunks, _BLOCK):
            body, end, tail = (tail + chunk).rpartition(b"\n")
            if end:
                graphs.append(_read_block(name, line, body + end))
                line += len(graphs[-1].pages)
        if tail:
            raise JobError(f"{name}:{line}: the file ends within {shown(tail)}")
    names = [column.name for column in fields(Graph)]
    return Graph(*(np.concatenate([getattr(graph, name) for graph in graphs]) for name in names))


def _read_block(name: str, first: int, lines: bytes) -> Graph:
    """Graph of whole lines; *first* is the number of the first one in the file *name*."""
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))

    def refuse(wrong: Marks | Ints) -> None:
        """Raise for the first line that is marked, or numbered, in *wrong*."""
        lines = np.flatnonzero(wrong) if wrong.dtype == np.bool_ else wrong
        if lines.size:
            text = data[starts[lines[0]] :][:200].tobytes().partition(b"\n")[0]
            line = first + int(lines[0])
            raise JobError(f"{name}:{line}: {shown(text)} is not a page, rank and links")

    def read_numbers(places: Ints, digits: int) -> tuple[Ints, Marks]:
        """Numbers of so many digits at these places, and which of them are not numbers."""
        values = np.zeros(len(places), np.int64)
        wrong = np.zeros(len(places), np.bool_)
        for offset in range(digits):
            digit = data[places + offset] - np.uint8(ord("0"))  # below "0" it wraps to large ones
            wrong |= digit > 9
            values = values * 10 + digit
        return values, wrong

    lengths = ends - starts
    degrees = (lengths - _LINKS + 1) // _LINK
    refuse((lengths < _LINKS) | ((lengths > _LINKS) & ((lengths - _LINKS + 1) % _LINK != 0)))
    before = np.repeat(np.cumsum(degrees) - degrees, degrees)
    numbers = np.arange(len(before)) - before  # of each link in its line
    places = np.repeat(starts + _LINKS, degrees) + numbers * _LINK
    separators = np.where(numbers + 1 == np.repeat(degrees, degrees), ord("\n"), ord(" "))
    line_numbers = np.repeat(np.arange(len(starts)), degrees)
    refuse(line_numbers[data[places + ID_DIGITS] != separators])
    for place, mark in ((_RANK - 1, "\t"), (_POINT, "."), (_LINKS - 1, "\t")):
        refuse(data[starts + place] != ord(mark))
    pages, bad_pages = read_numbers(starts, ID_DIGITS)
    units, bad_units = read_numbers(starts + _RANK, _POINT - _RANK)
    decimals, bad_decimals = read_numbers(starts + _POINT + 1, _LINKS - _POINT - 2)
    links, bad_links = read_numbers(places, ID_DIGITS)
    refuse(bad_pages | bad_units | bad_decimals)
    refuse(line_numbers[bad_links | (links >= 2**31)])
    line_hashes = (
        hashlib.blake2b(line[:_RANK] + line[_LINKS:], digest_size=8).digest()
        for line in lines.splitlines()
    )
    bits = np.frombuffer(b"".join(line_hashes), np.uint64)
    return Graph(pages, units + decimals / 1e10, degrees, links.astype(np.int32), bits)
