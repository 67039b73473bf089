"""
Tests for `harness.clusters.monitor.machine`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trace import SpeedSample
from harness.clusters.monitor.machine import mean_rate, named_after

times = st.integers(0, 1000)
samples = st.lists(
    st.builds(
        SpeedSample,
        at_s=times.map(float),
        thread=st.integers(0, 3),
        units=st.integers(1, 10),
        cpu_s=st.floats(0.001, 0.1),
    ),
    max_size=20,
)


def test_files_are_named_after_nodes():
    """
    A name for each machine.
    """
    assert named_after("machine.jsonl", "worker1") == "machine-worker1.jsonl"


class TestRate:
    """Units per CPU second."""

    @given(samples, times, times)
    def test_equals_the_obvious_sum(self, taken, start, end):
        """
        All units over all CPU seconds of the samples whose middle lies in the window.
        """
        units = cpu_s = 0
        for sample in taken:
            if start <= sample.at_s - 0.5 <= end:
                units, cpu_s = units + sample.units, cpu_s + sample.cpu_s

        expected = pytest.approx(units / cpu_s) if units else None
        assert mean_rate(iter(taken), start, end) == expected

    def test_of_a_steady_machine(self):
        """
        Ten units in 8 ms of CPU time each make 1250 units per CPU second.
        """
        steady = [SpeedSample(float(t), thread, 10, 0.008) for t in range(9) for thread in (0, 1)]

        assert mean_rate(steady, 2.0, 6.0) == pytest.approx(1250)

    def test_of_nothing_is_nothing(self):
        """
        No sample in the window, no number.
        """
        assert mean_rate([SpeedSample(5.0, 0, 10, 0.01)], 10.0, 20.0) is None
