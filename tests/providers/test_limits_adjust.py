"""
Tests for `harness.clusters.adjust`: corrected settings, on nodes that are simulated.

The loads themselves are tested in `test_limits_load.py`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ClusterError
from harness.base.records.trial import CONTROLS, TOLERANCE, ClusterSpec, Hardware, NodeSpec
from harness.clusters.adjust import (
    MOST_CORRECTION,
    adjust,
    requested_by_worker,
    unsupported_limits,
)

MIB = 2**20


class Machine:
    """
    Nodes that achieve a part of their settings, and never more than the machine has.
    """

    def __init__(self, gains=None, most=float("inf"), page_cache=1.0):
        self.gains = gains or {}
        self.most = most
        self.page_cache = page_cache
        self.settings = {}
        self.measurements = []

    def apply(self, settings):
        for node, rates in settings.items():
            self.settings.setdefault(node, {}).update(rates)

    def measure(self, field, requested):
        self.measurements.append((field, sorted(requested)))
        return {node: self.achieved(node, field) for node in requested}

    def achieved(self, node, field):
        gain = self.gains.get(node, 1.0)
        settings = self.settings[node]
        return {name: min(self.most, gain * settings[name]) for name in CONTROLS[field]}

    def measure_buffered(self, requested):
        return {
            node: self.page_cache * self.achieved(node, "disk_bytes_per_s")["disk_write"]
            for node in requested
        }

    def adjust(self, spec, where="here"):
        return adjust(requested_by_worker(spec), self.apply, self, where=where)


def spec(workers=2, nodes=None, **limits):
    """
    A cluster with limits for all workers, and with *nodes* of their own limits.
    """
    return ClusterSpec(workers=workers, node=NodeSpec(**limits), nodes=nodes or {})


class TestCalibrate:
    @given(st.dictionaries(st.sampled_from(["worker1", "worker2"]), st.floats(0.82, 1.2)))
    def test_settings_compensate_for_gains_and_losses(self, gains):
        """
        Whatever part of its setting a node achieves, in the end it achieves what was requested.
        """
        limited = spec(cores=0.5, disk_bytes_per_s=5 * MIB, network_bytes_per_s=10**6)
        requested = requested_by_worker(limited)

        adjusted = Machine(gains).adjust(limited)

        assert adjusted.keys() == requested.keys()
        for node, limits in adjusted.items():
            for name, limit in limits.items():
                assert limit.requested == requested[node][name]
                assert limit.measured == pytest.approx(limit.requested, rel=TOLERANCE)
                assert limit.measured == pytest.approx(gains.get(node, 1.0) * limit.setting)

    def test_a_limit_that_is_met_is_measured_once(self):
        """
        Each limit is measured on all nodes together, and not again where it is met.
        """
        machine = Machine()

        machine.adjust(spec(cores=1, nodes={"worker2": Hardware(disk_bytes_per_s=MIB)}))

        assert machine.measurements == [
            ("cores", ["worker1", "worker2"]),
            ("disk_bytes_per_s", ["worker2"]),
        ]

    def test_more_than_the_machine_has_is_an_error(self):
        """
        The error names each node and limit, what was requested, and the best that was measured.
        """
        with pytest.raises(ClusterError) as caught:
            Machine(most=1.5).adjust(spec(cores=2), where="local cluster 'c'")

        assert caught.value.what == (
            "nodes do not achieve their limits:"
            " worker1, cores: 2 cores requested, 1.5 cores measured at best;"
            " worker2, cores: 2 cores requested, 1.5 cores measured at best"
        )
        assert caught.value.where == "local cluster 'c', 5 settings tried"

    def test_settings_do_not_compensate_for_a_busy_machine(self):
        """
        A setting far above what was requested would limit nothing on the machine when it is quiet.
        """
        machine = Machine({"worker1": 0.5, "worker2": 0.5})

        with pytest.raises(
            ClusterError, match=r"0\.5 cores requested, 0\.312 cores measured at best"
        ):
            machine.adjust(spec(cores=0.5))

        assert machine.settings["worker1"]["cores"] == pytest.approx(0.5 * MOST_CORRECTION)

    def test_a_setting_without_effect_is_an_error(self):
        """
        A node that achieves the same with every setting is not limited.
        """
        machine = Machine()
        machine.achieved = lambda node, field: {"disk_write": 1e9, "disk_read": 1e9}

        with pytest.raises(ClusterError, match="disk_write: 1 MiB/s requested, 954 MiB/s measured"):
            machine.adjust(spec(workers=1, disk_bytes_per_s=MIB))

    @pytest.mark.parametrize(("times", "enforced"), [(1.0, True), (1.4, True), (100.0, False)])
    def test_a_limit_that_the_page_cache_hides_is_not_enforced(self, times, enforced):
        """
        A writer that waits for the disk may be held to the limit while a buffered one is not.
        """
        machine = Machine(page_cache=times)

        limits = machine.adjust(spec(workers=1, disk_bytes_per_s=MIB))["worker1"]

        assert (limits["disk_write"].is_enforced, limits["disk_read"].is_enforced) == (
            enforced,
            True,
        )


def test_only_limited_workers_have_requests():
    """
    The master and workers without limits stay as the machine is.
    """
    nodes = {"worker2": Hardware(network_bytes_per_s=10**6)}

    assert requested_by_worker(spec(nodes=nodes)) == {
        "worker2": {"network_out": 1e6, "network_in": 1e6}
    }


def test_unsupported_limits_are_named_by_their_keys():
    """
    Limits of all nodes and of single ones have different keys; those that can be set are left out.
    """
    limited = spec(cores=1, disk_bytes_per_s=MIB, nodes={"worker1": Hardware(memory_bytes=MIB)})

    assert unsupported_limits(limited, {"cores"}) == [
        "cluster.node.disk: provider local cannot limit the disk of its nodes",
        "cluster.nodes: provider local cannot limit the memory of its nodes",
    ]
