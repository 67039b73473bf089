"""
Tests for limits of nodes in experiment files and in records.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.trial import ClusterSpec, Hardware, NodeSpec
from harness.base.units import MIB, format_bit_rate, format_rate, parse_rate
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import axis_values, expand, is_profiling, label, varying
from harness.core.experiment.model import Experiment

limits = st.builds(
    Hardware,
    cores=st.none() | st.floats(0.05, 64),
    disk_bytes_per_s=st.none() | st.integers(MIB, 2**40),
    network_bytes_per_s=st.none() | st.integers(125_000, 2**40),
    memory_bytes=st.none() | st.integers(2**30, 2**40),
)


def read(node="{}", nodes="{}", workers="2", *, predict=""):
    """
    An experiment whose workers are limited so.
    """
    cluster = f"{{workers: {workers}, node: {node}, nodes: {nodes}}}"
    text = (
        f"schema: 1\nname: e\nquestion: q?\ncluster: {cluster}\n"
        f"workloads: [{{name: wordcount, input: 1 MiB}}]\n{predict}"
    )
    return read_experiment(text, "f.yaml")


def complaint(**requested):
    """
    What is said of limits that cannot be.
    """
    with pytest.raises(SpecError) as caught:
        read(**requested)
    return str(caught.value)


class TestFile:
    def test_units_are_bytes_per_second_in_the_record(self):
        """
        Whatever units a file uses, a record holds cores and bytes per second.
        """
        (cell,) = expand(read("{cores: 0.5, disk: 20 MiB/s, network: 100 Mbit/s, memory: 4 GiB}"))

        assert cell.cluster.node == NodeSpec(
            cores=0.5,
            disk_bytes_per_s=20 * MIB,
            network_bytes_per_s=12_500_000,
            memory_bytes=2**32,
        )

    def test_lists_are_axes(self):
        """
        Each value makes a cluster of its own, named by it where clusters differ.
        """
        cells = expand(read("{disk: [5 MiB/s, unlimited]}"))

        assert [label(c, varying(cells)) for c in cells] == [
            "wordcount disk=5 MiB/s",
            "wordcount disk=unlimited",
        ]
        assert len({c.cluster.id for c in cells}) == 2

    def test_profiles_are_chosen_by_a_limit(self):
        """
        A limit is an axis for `profile_on`, in any unit.
        """
        predict = "predict: {models: whatif, profile_on: {network: 1000 kbit/s}}\n"
        e = read("{network: [1 Mbit/s, unlimited]}", predict=predict)

        assert [is_profiling(cell, e.predict) for cell in expand(e)] == [True, False]

    @pytest.mark.parametrize(
        ("requested", "message"),
        [
            ({"node": "{cores: 0}"}, "cluster.node.cores: '0' is not a number of cores from 0.05"),
            ({"node": "{cores: true}"}, "'true' is not a number of cores"),
            (
                {"node": "{disk: 20}"},
                "'20' is not a rate at: f.yaml:4:36 fix: write 20 MiB/s or 100 Mbit/s",
            ),
            (
                {"node": "{disk: 20 kB/s}"},
                "'20 kB/s' is too slow at: f.yaml:4:36 fix: write 1 MiB/s or more",
            ),
            (
                {"node": "{network: 9 bit/s}"},
                "'9 bit/s' is too slow at: f.yaml:4:39 fix: write 1 Mbit/s or more",
            ),
            ({"nodes": "{master: {cores: 1}}"}, "'master' is not the name of a worker"),
            ({"nodes": "{worker1: {}}"}, "cluster.nodes.worker1 limits nothing"),
            (
                {"nodes": "{worker1: {disc: 1 MiB/s}}"},
                "unknown key 'disc' in cluster.nodes.worker1",
            ),
            ({"nodes": "{worker1: {cores: [1, 2]}}"}, "cores is not a single value"),
            ({"nodes": "[worker1]"}, "cluster.nodes is not a mapping"),
            (
                {"nodes": "{worker3: {cores: 1}}", "workers": "[2, 3]"},
                "there is no 'worker3' in a cluster of 2 workers",
            ),
        ],
    )
    def test_refuses_what_cannot_be_set(self, requested, message):
        """
        The error says what is wrong with the value, and where it stands.
        """
        assert message in " ".join(complaint(**requested).split())

    def test_is_the_same_experiment_when_read_back(self):
        """
        What a run keeps of its experiment has all limits.
        """
        e = read("{cores: [0.5, unlimited]}", "{worker2: {disk: 5 MiB/s}}")

        assert Experiment.model_validate(e.model_dump(mode="json")) == e


class TestRecords:
    @given(limits, limits)
    def test_a_workers_own_limits_come_before_those_of_all(self, every, own):
        """
        Each limit is the worker's own, else that of all; other workers have that of all.
        """
        spec = ClusterSpec(node=NodeSpec(**every.limits()), nodes={"worker2": own})

        assert spec.hardware("worker1") == every
        assert spec.hardware("worker2").limits() == {
            name: value if value is not None else every.limits()[name]
            for name, value in own.limits().items()
        }
        assert spec.limited == (every.limited or own.limited)

    @given(limits)
    def test_are_read_as_they_were_written(self, hardware):
        """
        A limit survives its way through a file.
        """
        spec = ClusterSpec(node=NodeSpec(**hardware.limits()), nodes={"worker1": hardware})

        assert ClusterSpec.model_validate_json(spec.model_dump_json()) == spec


@given(st.integers(1, 2**50))
def test_formatted_rates_are_read_as_nearly_the_same(rate):
    """
    What reports write can be written into a file.
    """
    for shown in (format_rate(rate), format_bit_rate(rate)):
        assert parse_rate(shown) == pytest.approx(rate, rel=0.006, abs=1)


def test_cells_without_limits_say_so():
    """
    Every cell has a place on the axes of limits.
    """
    (cell,) = expand(read())

    values = axis_values(cell)
    assert {values[name] for name in ("cores", "disk", "network")} == {"unlimited"}
