"""
Tests for `harness.clusters.monitor.rates` and the Java class that it runs (`make setup` builds it).
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MachineError
from harness.base.records.manifest import NodeRates
from harness.clusters.hadoop_home.home import find_java
from harness.clusters.host import LocalHost
from harness.clusters.monitor.probe import probe_jar
from harness.clusters.monitor.rates import (
    RATES,
    are_rates_required,
    measure_rates,
    rate_statistics,
    read_rates,
)

PRINTED = """\
disk_write 80
disk_write 100
disk_read 300
how direct
mem_write 5000
mem_read 7000
"""
READ = NodeRates(
    disk_read_bps=(300,), disk_write_bps=(80, 100), mem_read_bps=(7000,), mem_write_bps=(5000,),
    how="direct",
)  # fmt: skip


def make_host(folder, before=()):
    """
    This machine as a node with a folder of its own; *before* stands before its commands.
    """
    return LocalHost("worker1", "127.0.0.1", str(folder), lambda argv: [*before, *argv], {})


class TestMeasure:
    @pytest.mark.process
    def test_real_rates(self, tmp_path):
        """
        Each rate was measured, and nothing is left in the folder.
        """
        java = find_java().launcher
        rates = measure_rates(make_host(tmp_path), java, str(probe_jar()), str(tmp_path))

        assert min(rate for name in RATES for rate in getattr(rates, name)) > 1e6
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.process
    def test_a_folder_that_does_not_exist(self, tmp_path):
        """
        The error has the folder, and the first line that the measurement wrote.
        """
        folder, java = str(tmp_path / "none"), find_java().launcher

        with pytest.raises(MachineError, match=r"rates of worker1 .*NoSuchFile") as caught:
            measure_rates(make_host(tmp_path), java, str(probe_jar()), folder)
        assert caught.value.where == folder

    @pytest.mark.process
    def test_a_measurement_that_fails(self, tmp_path):
        """
        What it printed before does not count.
        """
        before = ["sh", "-c", f"printf '{PRINTED}'; exit 1"]

        with pytest.raises(MachineError, match="it wrote nothing"):
            measure_rates(make_host(tmp_path, before), "java", "probe.jar", str(tmp_path))


class TestRead:
    def test_each_pass(self):
        """
        By the names of the statistics.
        """
        assert read_rates(PRINTED) == READ

    @pytest.mark.parametrize("line", PRINTED.splitlines()[2:])
    def test_half_a_measurement_is_none(self, line):
        """
        All rates, or nothing.
        """
        assert read_rates(PRINTED.replace(line + "\n", "")) is None

    @pytest.mark.process
    @pytest.mark.parametrize(
        "line", ["how guess", "mem_read 0", "mem_read -1", f"disk_read {10**16}"]
    )
    def test_what_is_not_plausible(self, line):
        """
        A host may print what it likes.
        """
        name = line.partition(" ")[0]
        lines = [line if other.startswith(f"{name} ") else other for other in PRINTED.splitlines()]

        assert read_rates("\n".join(lines)) is None

    @pytest.mark.process
    @given(st.text() | st.lists(st.sampled_from(PRINTED.splitlines())).map("\n".join))
    def test_any_text_gives_rates_or_nothing(self, text):
        """
        And what is given makes statistics.
        """
        rates = read_rates(text)

        if rates is not None:
            assert rate_statistics({"n": rates}).keys() == set(RATES)


class TestStatistics:
    def test_are_medians_of_all_passes(self):
        """
        With their number, their spread, and how they were measured.
        """
        statistic = rate_statistics({"worker1": READ})["disk_write_bps"]

        assert (statistic.value, statistic.count, statistic.nodes) == (90.0, 2, {"worker1": 90.0})
        assert statistic.spread == pytest.approx(200**0.5)
        assert statistic.source == "a file of 64 MiB, direct, on worker1"

    def test_page_cache_is_named(self):
        """
        A file system without direct access measures something else.
        """
        cached = rate_statistics({"worker1": READ.model_copy(update={"how": "cached"})})

        assert "through the page cache" in cached["disk_read_bps"].source

    def test_no_rates_are_no_statistics(self):
        """
        As where nothing was measured.
        """
        assert rate_statistics({}) == {}


@pytest.mark.parametrize(
    ("models", "required"), [(["whatif"], False), (["whatif", "spn-gc"], True), (["mine"], True)]
)
def test_rates_are_required_by_some_models(models, required):
    """
    Only then they are measured: it takes a second or two.
    """
    assert are_rates_required(models) == required
