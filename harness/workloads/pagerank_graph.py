"""
How large a generated web graph is: pages, links, and bytes of its files, before it is made.

The law is that of `mapreduce.harness.jobs.pagerank.Graph`, in the same whole numbers: in each
`CYCLE` pages in a row every quantile of the out-degrees occurs once, in an order that the seed
mixes.  So the bytes of any row of pages follow without a look at most of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from harness.workloads.shape import even_sizes

CYCLE = 256
DANGLING = 16
LEAST, MOST = 10, 512
MOST_PAGES = 2**31 - 2

ID_DIGITS = 10
RANK_CHARACTERS = 20
_BARE = ID_DIGITS + 1 + RANK_CHARACTERS + 1  # of a line, up to its links
_WORD = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


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
    law = (
        LEAST * MOST * steps // (MOST * steps - (MOST - LEAST) * (2 * i + 1))
        for i in range(CYCLE - DANGLING)
    )
    return (*(0,) * DANGLING, *law)


def line_bytes(links: int) -> int:
    """Bytes of the line of a page with so many *links*, its end included."""
    return _BARE + max(links * (ID_DIGITS + 1), 1)


CYCLE_BYTES = sum(map(line_bytes, quantiles()))


@lru_cache(maxsize=4096)
def cycle(seed: int, number: int) -> tuple[int, ...]:
    """Out-degrees of the pages of cycle *number*, in their order."""
    bits = _first_draw(~seed & _WORD, number)
    degrees = quantiles()
    step, start = bits | 1, bits >> 8
    return tuple(degrees[(page * step + start) % CYCLE] for page in range(CYCLE))


def bytes_before(seed: int, page: int) -> int:
    """Bytes of all pages before *page*."""
    whole, rest = divmod(page, CYCLE)
    return whole * CYCLE_BYTES + sum(map(line_bytes, cycle(seed, whole)[:rest]))


def graph_size(seed: int, size: int, block: int, files: int) -> GraphSize:
    """
    Return the graph that comes nearest to *size* bytes from below, in *files* of a *block* at most.

    Pages are spread evenly over files, whose bytes then differ a little.  Where one would be larger
    than a block, the graph is made smaller by up to 0.5 %, or else there are more files.
    """
    while True:
        made = _of(seed, size, files)
        largest = max(made.files)
        if largest <= block:
            return made
        smaller = _of(seed, size * block // largest - line_bytes(MOST), files)
        if max(smaller.files) <= block and sum(smaller.files) >= size - size // 200:
            return smaller
        files = max(files + 1, files * largest // block)


def _of(seed: int, size: int, files: int) -> GraphSize:
    """As many pages as *size* bytes hold; the last one has fewer links where it must."""
    whole, left = divmod(size, CYCLE_BYTES)
    page, last = whole * CYCLE, cycle(seed, whole - 1)[-1] if whole else 0
    for links in cycle(seed, whole):
        if left < line_bytes(0):
            break
        last = min(links, (left - _BARE) // (ID_DIGITS + 1))
        page += 1
        left -= line_bytes(last)
        if last < links:
            break
    return GraphSize(page, last, tuple(_file_bytes(seed, page, size - left, files)))


def _file_bytes(seed: int, pages: int, size: int, files: int) -> Iterator[int]:
    """Bytes of each file of a graph of *size* bytes."""
    before = page = 0
    for count in even_sizes(pages, files):
        page += count
        after = size if page == pages else bytes_before(seed, page)
        yield after - before
        before = after


def _first_draw(seed: int, number: int) -> int:
    """First 64 bits of `mapreduce.harness.jobs.generate.Draws` at (seed, number)."""
    state = _mix((_mix((seed + _GOLDEN) & _WORD) + number * _GOLDEN) & _WORD)
    return _mix((state + _GOLDEN) & _WORD)


def _mix(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _WORD
    return bits ^ bits >> 31
