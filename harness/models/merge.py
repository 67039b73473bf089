r"""
How many files a multi-pass merge reads, and in how many passes.

Specification: ``docs/models/whatif.md``, sections 5.4 and 6.  N sorted files (`num_segments`) are
merged, F at once (`merge_factor`): whole numbers or arrays of them, unchecked here.

Departures from the paper: Eqs. (22), (23) and (26) hold for N <= F^2 only, and above that the paper
asks for a simulation of the merge queue (erratum W12).  Here a closed form goes on.  To merge the
F smallest files again and again, the first time so few that every later pass takes F, is Huffman's
algorithm with F branches, and of N equal files it makes the complete tree.  With
:math:`F^j < N \le F^{j+1}` the files stand on its levels j and j + 1: of the F^j places of level j
:math:`m = \lceil (N - F^j) / (F - 1) \rceil` have branches, the rest are files.  A file is read as
often as its level says, once of it by the final pass; so the passes before that read

.. math:: (j + 1) N - (F^j - m) - N = j N - F^j + m

files; for j = 1 this is Eq. (22).  Each pass leaves one file of F, the first of fewer: F are left
to the final pass, which is pass number :math:`\lceil (N - 1) / (F - 1) \rceil`.

Files of unequal size have no closed form: `simulate_merge` is the queue itself.
"""

from __future__ import annotations

import heapq

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from harness.models.checks import Counts

File: TypeAlias = tuple[float, float]  # bytes, records


def first_pass(num_segments: Counts, merge_factor: Counts) -> Counts:
    """Files merged in the first pass, Eq. (21): as many as let every later pass take F."""
    # The remainder serves N <= F too, but for 0 and 1 files, of which no more can be taken.
    later = num_segments - 2
    divisor = merge_factor - 1
    remainder = later - np.floor(later / divisor) * divisor
    return np.minimum(num_segments, remainder + 2)


def inter_merge(num_segments: Counts, merge_factor: Counts) -> Counts:
    """Original files read in intermediate passes, Eq. (22) and its continuation."""
    levels = 1.0
    full = merge_factor  # j and F^j
    while np.any(deeper := num_segments > full * merge_factor):
        levels = levels + deeper
        full = np.where(deeper, full * merge_factor, full)
    branches = np.ceil((num_segments - full) / (merge_factor - 1))
    return np.maximum(0.0, levels * num_segments - full + branches)


def final_merge(num_segments: Counts, merge_factor: Counts) -> Counts:
    """Files read by the final pass, Eq. (23): all if they are no more than F, else F."""
    return np.minimum(num_segments, merge_factor)


def merge_passes(num_segments: Counts, merge_factor: Counts) -> Counts:
    """Passes of the merge, final one included, Eq. (26)."""
    return np.maximum(0.0, np.ceil((num_segments - 1) / (merge_factor - 1)))


@dataclass(frozen=True)
class SimulatedMerge:
    """
    What the intermediate passes of a merge queue did, and the files left to its final pass.

    Segments are left in memory where there was no pass that they could join.
    """

    passes: int
    files_read: int
    read_bytes: float
    written_bytes: float
    written_records: float
    files_left: list[File]
    left_in_memory: Sequence[File]


def simulate_merge(
    files: Sequence[File], merge_factor: int, in_memory: Sequence[File] = ()
) -> SimulatedMerge:
    """
    Hadoop's merge queue on files of any size, section 6 of the specification.

    The first pass takes all segments *in_memory*, too: they are written, but not read.
    """
    # The second key puts a merged file behind files of equal size.
    queue = [(size, order, records) for order, (size, records) in enumerate(files)]
    heapq.heapify(queue)
    passes = files_read = 0
    read_bytes = written_bytes = written_records = 0.0
    while len(queue) > merge_factor:
        fan_in = merge_factor if passes else int(first_pass(len(queue), merge_factor))
        merged = [heapq.heappop(queue) for _ in range(fan_in)]
        size = sum(file_bytes for file_bytes, _, _ in merged)
        records = sum(file_records for _, _, file_records in merged)
        files_read += fan_in
        read_bytes += size
        size += sum(segment_bytes for segment_bytes, _ in in_memory)
        records += sum(segment_records for _, segment_records in in_memory)
        written_bytes += size
        written_records += records
        passes += 1
        in_memory = ()
        heapq.heappush(queue, (size, len(files) + passes, records))
    left = [(size, records) for size, _, records in sorted(queue)]
    return SimulatedMerge(
        passes, files_read, read_bytes, written_bytes, written_records, left, in_memory
    )
