"""
Tests for `harness.base.records.tasks`.
"""

import math

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.tasks import covered_s

TIMES = st.integers(0, 40)
INTERVALS = st.lists(st.tuples(TIMES, TIMES), max_size=8)


class TestCovered:
    @given(intervals=INTERVALS, within=st.tuples(TIMES, TIMES))
    def test_counts_each_moment_once(self, intervals, within):
        """
        As many seconds as there are whole seconds inside one interval or more, and inside the
        bounds; an interval that finishes before it starts covers nothing.
        """
        seconds = {
            second
            for start_s, finish_s in intervals
            for second in range(max(start_s, within[0]), min(finish_s, within[1]))
        }

        assert covered_s(intervals, within) == len(seconds)

    def test_without_bounds_all_counts(self):
        """
        Before zero as after.
        """
        assert covered_s([(2.0, 3.5), (-4.0, -3.0), (3.0, 4.0)]) == 3.0
        assert math.isclose(covered_s([(0.1, 0.2)]), 0.1)
