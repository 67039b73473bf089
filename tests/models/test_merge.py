"""
Tests for `harness.models.merge`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ModelError
from harness.models.merge import (
    final_merge,
    first_pass,
    inter_merge,
    merge_equal,
    merge_passes,
    simulate_merge,
)

factors = st.integers(2, 20)
sizes = st.lists(st.integers(0, 1000), max_size=80)


def slow_merge(sizes, factor):
    """
    The merge queue as the specification writes it: a list that is sorted again and again.
    """
    files, merges, read = sorted(sizes), 0, 0
    while len(files) > factor:
        take = first_pass(len(files), factor) if merges == 0 else factor
        read += sum(files[:take])
        files = sorted([*files[take:], sum(files[:take])])
        merges += 1
    return (merges + 1 if len(sizes) > 1 else 0), read, len(files)


class TestClosedForm:
    @pytest.mark.parametrize("factor", range(2, 21))
    def test_equals_the_simulation_up_to_the_square(self, factor):
        """
        For 1 < N <= F^2 Eqs. (22), (23) and (26) give what the merge queue does.
        """
        for n in range(2, factor * factor + 1):
            simulated = simulate_merge([1] * n, factor)
            closed = merge_passes(n, factor), inter_merge(n, factor), final_merge(n, factor)
            assert closed == (
                simulated.passes,
                simulated.intermediate_units,
                simulated.final_fan_in,
            ), n

    def test_is_left_above_the_square(self):
        """
        At N = 101, F = 10 the printed forms would give 92 and 19; the queue reads 103 and 10.
        """
        assert (inter_merge(101, 10), final_merge(101, 10)) == (103, 10)

    @given(st.integers(2, 5000), factors)
    def test_first_pass_lets_every_later_pass_take_all(self, n, factor):
        """
        After the first pass, whole passes of F files lead to exactly F files.
        """
        left = n - first_pass(n, factor) + 1
        assert n <= factor or (left - factor) % (factor - 1) == 0


class TestSimulation:
    @given(sizes, factors)
    def test_equals_the_slow_queue(self, sizes, factor):
        """
        The heap gives what sorting after every merge gives.
        """
        fast = simulate_merge(sizes, factor)
        assert (fast.passes, fast.intermediate_bytes, fast.final_fan_in) == slow_merge(
            sizes, factor
        )

    @given(st.integers(0, 3000), factors)
    def test_equal_files_need_no_queue(self, n, factor):
        """
        Runs of equal merges at once give what one after the other gives.
        """
        one_by_one = simulate_merge([1] * n, factor)
        assert merge_equal(n, factor) == one_by_one

    def test_a_billion_files_are_no_effort(self):
        """
        The number of steps grows with the levels of the merge, not with the files.
        """
        merged = merge_equal(10**9, 10)
        assert merged.final_fan_in == 10
        assert merged.passes == 1 + (10**9 - 10) // 9 + ((10**9 - 10) % 9 > 0)

    @given(sizes.filter(len), factors, st.randoms())
    def test_order_of_files_does_not_matter(self, sizes, factor, random):
        """
        Files are taken by size, wherever they stand.
        """
        shuffled = random.sample(sizes, len(sizes))
        assert simulate_merge(shuffled, factor) == simulate_merge(sizes, factor)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: first_pass(3, 1), "merge_factor"),
        (lambda: inter_merge(-1, 10), "num_segments"),
        (lambda: final_merge(2.5, 10), "num_segments"),
        (lambda: merge_passes("3", 2), "num_segments"),
        (lambda: simulate_merge([1, 2], 0), "merge_factor"),
        (lambda: simulate_merge([1, float("nan")], 2), "segment_bytes"),
        (lambda: simulate_merge([-1], 2), "segment_bytes"),
        (lambda: simulate_merge(["1"], 2), "segment_bytes"),
    ],
)
def test_bad_input_is_named(call, field):
    """
    A factor below 2, a count that is none, a size that is none: the error says which.
    """
    with pytest.raises(ModelError, match=field):
        call()
