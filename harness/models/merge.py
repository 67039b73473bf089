"""
How many files a multi-pass merge reads, and in how many passes.

Specification: ``docs/models/whatif.md``, sections 5.4 and 6.  Symbols of the paper:

    paper     here              unit    meaning
    --------  ----------------  ------  -----------------------------------------
    N         `num_segments`    files   sorted files to merge
    F         `merge_factor`    files   files merged at once (pSortFactor)
    P         `first_pass`      files   files taken in the first pass, Eq. (21)

Departures from the paper: Eqs. (22), (23) and (26) hold for N <= F^2 only; above that they are
replaced by the simulation that the paper asks for (erratum W12).
"""

from __future__ import annotations

import heapq

from collections.abc import Sequence
from dataclasses import dataclass

from harness.models.checks import check_count, check_number


@dataclass(frozen=True)
class Merge:
    """
    What a merge did: passes (final one included), reads of its intermediate passes, final fan-in.

    `intermediate_bytes` are the bytes read before the final pass; `intermediate_units` the same in
    original files, each counted as often as it is read.
    """

    passes: int
    intermediate_bytes: float
    intermediate_units: int
    final_fan_in: int


def first_pass(num_segments: int, merge_factor: int) -> int:
    """
    Files merged in the first pass, Eq. (21): as many as let every later pass take F.

    >>> first_pass(28, 10), first_pass(12, 10)
    (10, 3)
    """
    n, f = _checked(num_segments, merge_factor)
    if n <= f:
        return n
    rest = (n - 1) % (f - 1)
    return f if rest == 0 else rest + 1


def inter_merge(num_segments: int, merge_factor: int) -> int:
    """
    Original files read in intermediate passes, Eq. (22); the simulation above F^2.

    >>> inter_merge(28, 10), inter_merge(101, 10)
    (20, 103)
    """
    n, f = _checked(num_segments, merge_factor)
    if n <= f:
        return 0
    if n > f * f:
        return merge_equal(n, f).intermediate_units
    p = first_pass(n, f)
    return p + (n - p) // f * f


def final_merge(num_segments: int, merge_factor: int) -> int:
    """
    Files read by the final pass, Eq. (23); the simulation above F^2.

    >>> final_merge(28, 10), final_merge(101, 10)
    (10, 10)
    """
    n, f = _checked(num_segments, merge_factor)
    if n <= f:
        return n
    if n > f * f:
        return merge_equal(n, f).final_fan_in
    p = first_pass(n, f)
    return 1 + (n - p) // f + (n - inter_merge(n, f))


def merge_passes(num_segments: int, merge_factor: int) -> int:
    """
    Passes of the merge, final one included, Eq. (26); the simulation above F^2.

    >>> merge_passes(1, 10), merge_passes(28, 10)
    (0, 3)
    """
    n, f = _checked(num_segments, merge_factor)
    if n <= 1:
        return 0
    if n <= f:
        return 1
    if n > f * f:
        return merge_equal(n, f).passes
    return 2 + (n - first_pass(n, f)) // f


def simulate_merge(segment_bytes: Sequence[float], merge_factor: int) -> Merge:
    """
    Hadoop's merge queue on files of any size, section 6 of the specification.

    ``ModelError`` for a factor below 2 or a size that is negative or not finite.
    """
    _, merge_factor = _checked(len(segment_bytes), merge_factor)
    for size in segment_bytes:
        check_number("segment_bytes", size, where="multi-pass merge")
    # The second key puts a merged file behind files of equal size.
    files = [(size, order, 1) for order, size in enumerate(segment_bytes)]
    heapq.heapify(files)
    merges, read_bytes, read_units = 0, 0.0, 0
    while len(files) > merge_factor:
        take = merge_factor if merges else first_pass(len(files), merge_factor)
        taken = [heapq.heappop(files) for _ in range(take)]
        size, units = sum(t[0] for t in taken), sum(t[2] for t in taken)
        merges, read_bytes, read_units = merges + 1, read_bytes + size, read_units + units
        heapq.heappush(files, (size, len(segment_bytes) + merges, units))
    passes = 0 if len(segment_bytes) <= 1 else merges + 1
    return Merge(passes, read_bytes, read_units, len(files))


def merge_equal(num_segments: int, merge_factor: int) -> Merge:
    """
    `simulate_merge` of equal files of one byte each, whole runs of equal merges at a time.

    Takes O(F log N) steps, where `simulate_merge` takes N.
    """
    n, f = _checked(num_segments, merge_factor)
    if n <= f:
        return Merge(min(n, 1) if n > 1 else 0, 0, 0, n)
    first = first_pass(n, f)
    waiting = {1: n - first, first: 1}  # files by weight; `first` is at least 2
    left, merges, read = n - first + 1, 1, first
    while left > f:
        weight = min(waiting)
        # All merges of the lightest files alone, but no more than are needed; or one of mixed ones.
        runs = max(1, min(waiting[weight] // f, (left - f) // (f - 1)))
        taken = _take(waiting, runs * f)
        units = taken // runs
        waiting[units] = waiting.get(units, 0) + runs
        left, merges, read = left - runs * (f - 1), merges + runs, read + taken
    return Merge(merges + 1, read, read, left)


def _take(waiting: dict[int, int], number: int) -> int:
    """Remove the *number* lightest files; answer their weight together."""
    taken = 0
    while number:
        weight = min(waiting)
        some = min(number, waiting[weight])
        waiting[weight] -= some
        if not waiting[weight]:
            del waiting[weight]
        number, taken = number - some, taken + some * weight
    return taken


def _checked(num_segments: int, merge_factor: int) -> tuple[int, int]:
    where = "multi-pass merge"
    return (
        check_count("num_segments", num_segments, where=where),
        check_count("merge_factor", merge_factor, where=where, low=2),
    )
