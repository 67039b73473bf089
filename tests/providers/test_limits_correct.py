"""
Tests for `harness.providers.limits.correct`: settings are corrected until nodes are what was asked.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ClusterError
from harness.providers.limits.correct import MOST_CORRECTION, asked_of, correct
from harness.records.hardware import CONTROLS, TOLERANCE
from harness.records.trial import ClusterSpec, Hardware, NodeSpec

MIB = 2**20


class Machine:
    """
    Nodes that give a part of what they are set to, and never more than the machine has.
    """

    def __init__(self, gains=None, most=float("inf"), memory=1.0):
        self.gains, self.most, self.memory = gains or {}, most, memory
        self.settings, self.measurements = {}, []

    def set(self, settings):
        for node, dials in settings.items():
            self.settings.setdefault(node, {}).update(dials)

    def measure(self, field, asked):
        self.measurements.append((field, sorted(asked)))
        return {node: self.node(node, field) for node in asked}

    def node(self, node, field):
        gain = self.gains.get(node, 1.0)
        return {d: min(self.most, gain * self.settings[node][d]) for d in CONTROLS[field]}

    def unwaited(self, asked):
        return {node: self.memory * self.node(node, "disk_bytes_per_s")["disk_write"]
                for node in asked}  # fmt: skip


def spec(workers=2, nodes=None, **limits):
    """
    A cluster whose workers are limited so.
    """
    return ClusterSpec(workers=workers, node=NodeSpec(**limits), nodes=nodes or {})


class TestCorrect:
    @given(st.dictionaries(st.sampled_from(["worker1", "worker2"]), st.floats(0.82, 1.2)))
    def test_settings_make_up_for_what_is_lost_or_gained(self, gains):
        """
        Whatever part of its setting a node gives, in the end it gives what was asked.
        """
        asked = asked_of(spec(cores=0.5, disk_bytes_per_s=5 * MIB, network_bytes_per_s=10**6))

        found = correct(asked, Machine(gains), where="here")

        assert found.keys() == asked.keys()
        for node, limits in found.items():
            for dial, limit in limits.items():
                assert limit.requested == asked[node][dial]
                assert limit.measured == pytest.approx(limit.requested, rel=TOLERANCE)
                gain = gains.get(node, 1.0)
                assert limit.measured == pytest.approx(gain * limit.setting)

    def test_what_is_right_at_once_is_measured_once(self):
        """
        Each limit is measured on all nodes together, and not again where it is met.
        """
        machine = Machine()

        correct(asked_of(spec(cores=1, nodes={"worker2": Hardware(disk_bytes_per_s=MIB)})), machine,
                where="here")  # fmt: skip

        assert machine.measurements == [
            ("cores", ["worker1", "worker2"]),
            ("disk_bytes_per_s", ["worker2"]),
        ]

    def test_what_the_machine_does_not_have_is_an_error(self):
        """
        The error names each node and dial, what was asked, and the best that there was.
        """
        with pytest.raises(ClusterError) as caught:
            correct(asked_of(spec(cores=2)), Machine(most=1.5), where="local cluster 'c'")

        assert caught.value.what == (
            "nodes cannot be made what was asked:"
            " worker1, cores: 2 cores asked, 1.5 cores measured at best;"
            " worker2, cores: 2 cores asked, 1.5 cores measured at best"
        )
        assert caught.value.where == "local cluster 'c', 5 settings tried"

    def test_a_busy_machine_is_not_made_up_for(self):
        """
        A setting far above what was asked would hold nothing once the machine is quiet again.
        """
        machine = Machine({"worker1": 0.5, "worker2": 0.5})

        with pytest.raises(ClusterError, match=r"0\.5 cores asked, 0\.312 cores measured at best"):
            correct(asked_of(spec(cores=0.5)), machine, where="here")

        assert machine.settings["worker1"]["cores"] == pytest.approx(0.5 * MOST_CORRECTION)

    def test_a_setting_that_holds_nothing_is_an_error(self):
        """
        A node that gives the same whatever it is set to is not limited.
        """
        machine = Machine()
        machine.node = lambda node, field: {"disk_write": 1e9, "disk_read": 1e9}

        with pytest.raises(ClusterError, match="disk_write: 1 MiB/s asked, 954 MiB/s measured"):
            correct(asked_of(spec(workers=1, disk_bytes_per_s=MIB)), machine, where="here")

    @pytest.mark.parametrize(("times", "felt"), [(1.0, True), (1.4, True), (100.0, False)])
    def test_a_limit_that_memory_takes_up_is_not_felt(self, times, felt):
        """
        What is written and waited for may be held, and what is not waited for may not.
        """
        asked = asked_of(spec(workers=1, disk_bytes_per_s=MIB))

        limits = correct(asked, Machine(memory=times), where="here")["worker1"]

        assert (limits["disk_write"].is_enforced, limits["disk_read"].is_enforced) == (felt, True)


def test_only_limited_workers_are_asked_of():
    """
    The master and workers without limits stay as the machine gives them.
    """
    nodes = {"worker2": Hardware(network_bytes_per_s=10**6)}

    assert asked_of(spec(nodes=nodes)) == {"worker2": {"network_out": 1e6, "network_in": 1e6}}
