"""
Tests for `harness.models.merge`: closed forms and queue against a list that is sorted again.
"""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.models import EVALUATORS
from harness.models.merge import (
    final_merge,
    first_pass,
    inter_merge,
    merge_passes,
    simulate_merge,
)
from harness.models.vectors import CaseInput, compute
from tests.models.whatif_oracle import merge_queue

factors = st.integers(2, 20)
sizes = st.lists(st.integers(0, 1000), max_size=80)


def closed_forms(numbers, factors):
    """
    Passes, reads and fan-in of merges of equal files, by the closed forms, in one call each.
    """
    n, f = np.array(numbers, dtype=float), np.array(factors, dtype=float)
    columns = (function(n, f) for function in (merge_passes, inter_merge, final_merge))
    return list(zip(*(column.tolist() for column in columns), strict=True))


class TestClosedForms:
    @given(st.lists(st.tuples(st.integers(0, 1500), factors), min_size=1, max_size=8))
    def test_are_the_queue(self, merges):
        """
        Eqs. (22), (23) and (26) and what goes on beyond F^2 give what the merge queue does.
        """
        queues = [merge_queue([1] * n, factor) for n, factor in merges]

        assert closed_forms(*zip(*merges, strict=True)) == queues

    @pytest.mark.parametrize("factor", [2, 3, 5, 10])
    def test_full_levels(self, factor):
        """
        F^j files fill a level of the tree: one file more starts the next.
        """
        numbers = [n for n in (factor**j + d for j in range(11) for d in (-1, 0, 1)) if n < 2100]
        queues = [merge_queue([1] * n, factor) for n in numbers]

        assert closed_forms(numbers, [factor]) == queues

    def test_beyond_the_square_the_printed_forms_are_left(self):
        """
        At N = 101, F = 10 the printed forms would give 92 and 19; the queue reads 103 and 10.
        """
        assert closed_forms([101], [10]) == [(12, 103, 10)]

    @given(st.integers(2, 10**13), st.integers(2, 10**7))
    def test_count_very_many_files_exactly(self, n, factor):
        """
        The tree in whole numbers: no float loses a file.
        """
        level, full = 1, factor
        while n > full * factor:
            level, full = level + 1, full * factor
        reads = max(0, level * n - full - (full - n) // (factor - 1))
        passes = -((1 - n) // (factor - 1))

        assert closed_forms([n], [factor]) == [(passes, reads, min(n, factor))]

    @given(st.integers(0, 10**13), st.integers(2, 10**7))
    def test_first_pass_lets_every_later_pass_take_all(self, n, factor):
        """
        After the first pass, of 2 to F files, whole passes of F files lead to exactly F files.
        """
        first = int(first_pass(float(n), float(factor)))
        if n <= factor:
            assert first == n
        else:
            assert 2 <= first <= factor
            assert (n - first + 1 - factor) % (factor - 1) == 0


class TestQueue:
    @given(sizes, factors)
    def test_is_the_sorted_list(self, sizes, factor):
        """
        The heap gives what sorting after every merge gives, records as well as bytes.
        """
        merged = simulate_merge([(float(size), size / 8) for size in sizes], factor)

        answer = merged.passes + (len(sizes) > 1), merged.read_bytes, len(merged.files_left)
        assert answer == merge_queue(sizes, factor)
        assert merged.written_bytes == merged.read_bytes == 8 * merged.written_records
        assert sum(size for size, _ in merged.files_left) == sum(sizes)
        assert merged.files_left == sorted(merged.files_left)

    @given(sizes.filter(len), factors, st.randoms())
    def test_order_of_files_does_not_matter(self, sizes, factor, random):
        """
        Files are taken by size, in any order.
        """
        files = [(float(size), float(size)) for size in sizes]
        shuffled = random.sample(files, len(files))

        assert simulate_merge(shuffled, factor) == simulate_merge(files, factor)

    @given(st.lists(st.integers(1, 99), max_size=60), st.integers(1, 9))
    def test_segments_in_memory_are_written_and_not_read(self, sizes, kept):
        """
        They join the first pass, and stay where there is none.
        """
        files, segments = [(float(size), 1.0) for size in sizes], [(0.5, 1.0)] * kept
        merged = simulate_merge(files, 12, segments)
        alone = simulate_merge(files, 12)

        assert merged.passes == alone.passes
        assert list(merged.left_in_memory) == (segments if merged.passes == 0 else [])
        total = sum(size for size, _ in [*merged.files_left, *merged.left_in_memory])
        assert total == sum(sizes) + 0.5 * kept
        if merged.passes == 1:
            assert merged.written_bytes == merged.read_bytes + 0.5 * kept
            assert merged.written_records == merged.files_read + kept


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"num_segments": 3, "merge_factor": 1}, "merge_factor"),
        ({"num_segments": -1, "merge_factor": 10}, "num_segments"),
        ({"num_segments": 2.5, "merge_factor": 10}, "num_segments"),
        ({"num_segments": "3", "merge_factor": 2}, "num_segments"),
        ({"num_segments": 2**53 + 1, "merge_factor": 2}, "num_segments"),
        ({"segment_bytes": [1, 2], "merge_factor": 0}, "merge_factor"),
        ({"segment_bytes": [1, float("nan")], "merge_factor": 2}, "segment_bytes"),
        ({"segment_bytes": [-1], "merge_factor": 2}, "segment_bytes"),
        ({"segment_bytes": ["1"], "merge_factor": 2}, "segment_bytes"),
    ],
)
def test_bad_vectors_are_named(fields, refused):
    """
    A factor below 2, a count or a size out of range: the answer names the field.
    """
    answer = compute("whatif", CaseInput("bad", fields), EVALUATORS)

    assert answer["message"].startswith(f"{refused} = ")
