r"""
Multi-pass merges of many configurations at once: `harness.models.merge` on columns.

Same names, same numbers; N and F are columns of whole numbers, which nobody checks here.

Beyond N = F^2 the scalar form simulates the merge queue.  Here a closed form goes on.  To merge the
F smallest files again and again, the first time so few that every later pass takes F, is Huffman's
algorithm with F branches, and of N equal files it makes the complete tree.  With
:math:`F^j < N \le F^{j+1}` the files stand on its levels j and j + 1: of the F^j places of level j
:math:`m = \lceil (N - F^j) / (F - 1) \rceil` have branches, the rest are files.  A file is read as
often as its level says, once of it by the final pass; so the passes before that read

.. math:: (j + 1) N - (F^j - m) - N = j N - F^j + m

files; for j = 1 this is Eq. (22).  Each pass leaves one file of F, the first of fewer: F are left
to the final pass, which is pass number :math:`\lceil (N - 1) / (F - 1) \rceil`.
"""

from __future__ import annotations

import numpy as np

from harness.models.columns import Column, choose


def first_pass(num_segments: Column, merge_factor: Column) -> Column:
    """Files merged in the first pass, Eq. (21): as many as let every later pass take F."""
    n, f = num_segments, merge_factor
    # The remainder serves n <= F too, but 0 and 1 files, of which no more can be taken.
    return np.minimum(n, _remainder(n - 2, f - 1) + 2)


def inter_merge(num_segments: Column, merge_factor: Column) -> Column:
    """Original files read in intermediate passes, Eq. (22) and its continuation."""
    n, f = num_segments, merge_factor
    levels, full = 1.0, f  # j and F^j
    while np.any(deeper := n > full * f):
        levels, full = levels + deeper, choose(deeper, full * f, full)
    return np.maximum(0.0, levels * n - full + np.ceil((n - full) / (f - 1)))


def final_merge(num_segments: Column, merge_factor: Column) -> Column:
    """Files read by the final pass, Eq. (23): all if they are no more than F, else F."""
    return np.minimum(num_segments, merge_factor)


def merge_passes(num_segments: Column, merge_factor: Column) -> Column:
    """Passes of the merge, final one included, Eq. (26)."""
    return np.maximum(0.0, np.ceil((num_segments - 1) / (merge_factor - 1)))


def _remainder(n: Column, d: Column) -> Column:
    return n - np.floor(n / d) * d
