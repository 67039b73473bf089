"""
Tests for `harness.monitor.rates` and the Java class that it runs (`make setup` builds it).
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import MachineError
from harness.hadoop_home.java import find_java
from harness.monitor.probe import probe_jar
from harness.monitor.rates import RATES, measure_rates, rate_statistics, read_rates, wanted
from harness.providers.host import LocalHost

PRINTED = """\
disk_write 80
disk_write 100
disk_read 300
how direct
mem_write 5000
mem_read 7000
"""
READ = {
    "disk_read_bps": [300], "disk_write_bps": [80, 100], "mem_read_bps": [7000],
    "mem_write_bps": [5000], "how": "direct",
}  # fmt: skip


def host(folder, before=()):
    """
    This machine as a node with a folder of its own; *before* stands before its commands.
    """
    return LocalHost("worker1", "127.0.0.1", str(folder), lambda argv: [*before, *argv], {})


class TestMeasure:
    def test_real_rates(self, tmp_path):
        """
        Each rate was measured, and nothing is left in the folder.
        """
        found = measure_rates(host(tmp_path), find_java().launcher, str(probe_jar()))

        assert all(found[name] for name in RATES)
        assert min(p for name in RATES for p in found[name]) > 1e6
        assert list(tmp_path.iterdir()) == []

    def test_a_part_that_lies_on_the_nodes_own_disk(self, tmp_path):
        """
        Is what is measured, not the folder around it.
        """
        with pytest.raises(MachineError) as caught:
            measure_rates(host(tmp_path), "/bin/false", "no.jar", part="data")

        assert caught.value.where == f"{tmp_path}/data"

    def test_a_folder_that_is_not_there(self, tmp_path):
        """
        The error has the folder, and what the measurement said.
        """
        with pytest.raises(MachineError, match=r"rates of worker1 .*NoSuchFile") as caught:
            measure_rates(host(tmp_path / "none"), find_java().launcher, str(probe_jar()))
        assert caught.value.where == str(tmp_path / "none")

    def test_a_measurement_that_fails(self, tmp_path):
        """
        What it printed before is worth nothing.
        """
        before = ["sh", "-c", f"printf '{PRINTED}'; exit 1"]

        with pytest.raises(MachineError, match="no message"):
            measure_rates(host(tmp_path, before), "java", "probe.jar")


class TestRead:
    def test_each_pass(self):
        """
        By the names of the statistics.
        """
        assert read_rates(PRINTED) == READ

    @pytest.mark.parametrize("line", PRINTED.splitlines()[2:])
    def test_without_one_of_them_nothing(self, line):
        """
        Half a measurement is none.
        """
        assert read_rates(PRINTED.replace(line + "\n", "")) == {}

    @given(st.text() | st.lists(st.sampled_from(PRINTED.splitlines())).map("\n".join))
    def test_any_text_gives_rates_or_nothing(self, text):
        """
        And what is given makes statistics.
        """
        found = read_rates(text)

        assert (rate_statistics({"n": found}).keys() == set(RATES)) == bool(found)


class TestStatistics:
    def test_are_medians_of_all_passes(self):
        """
        With their number, their spread, and how they were measured.
        """
        found = rate_statistics({"worker1": READ})["disk_write_bps"]

        assert (found.value, found.count, found.nodes) == (90.0, 2, {"worker1": 90.0})
        assert found.spread == pytest.approx(200**0.5)
        assert found.source == "a file of 64 MiB, direct, on worker1"

    def test_page_cache_is_named(self):
        """
        A file system without direct access measures something else.
        """
        found = rate_statistics({"worker1": READ | {"how": "cached"}})

        assert "through the page cache" in found["disk_read_bps"].source

    @pytest.mark.parametrize("nodes", [None, {}, [], {"w": None}, {"w": {"how": "direct"}}])
    def test_no_rates_are_no_statistics(self, nodes):
        """
        As where nothing was measured.
        """
        assert rate_statistics(nodes) == {}

    @pytest.mark.parametrize(
        "wrong",
        [{"how": "guess"}, *({"mem_read_bps": passes} for passes in ([], [0], ["7"], [10**16], 7))],
    )
    def test_what_is_no_rate_is_absent(self, wrong):
        """
        A manifest that somebody has changed gives no numbers.
        """
        assert rate_statistics({"w": READ | wrong}) == {}


@pytest.mark.parametrize(
    ("models", "asked"), [(["whatif"], False), (["whatif", "spn-gc"], True), (["none"], False)]
)
def test_are_measured_where_a_model_asks(models, asked):
    """
    Only then: it takes a second or two.
    """
    assert wanted(models) == asked
