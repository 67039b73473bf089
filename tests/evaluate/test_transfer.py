"""A profile of one machine for another."""

import numpy as np
import pytest

from harness.errors import DataError
from harness.evaluate.transfer import drawn_costs, transferred
from harness.profiling import fit_profile
from harness.profiling.platform import fit_platform, works
from harness.records.hardware import Cost, MachineCosts
from harness.records.profile import SpeedCorrection
from tests.profiling.recordings import recorded_grid

UNCORRECTED = SpeedCorrection(reference_rate=1.0, coefficient=0.0, gain=0.0, count=0)


@pytest.fixture(scope="module")
def jobs():
    """
    Recorded jobs of one workload.
    """
    return recorded_grid()


@pytest.fixture(scope="module")
def here(jobs):
    """
    The machine that they ran on.
    """
    return MachineCosts(measured_s=1.0, costs=fit_platform(works(jobs, UNCORRECTED)))


def slower(machine, times, *begins):
    """
    The machine with costs that many times as high, those whose names begin so.
    """

    def changed(name, cost):
        if not name.startswith(begins):
            return cost
        return Cost(value=times * cost.value, unit=cost.unit, source=cost.source)

    costs = {name: changed(name, cost) for name, cost in machine.costs.items()}
    return machine.model_copy(update={"costs": costs})


def ratios(jobs, here, there):
    """
    By how much each cost of the profile is larger there.
    """
    profile = fit_profile("w", jobs)
    moved = transferred(profile, works(jobs, UNCORRECTED), here, there)
    return {
        name: moved.costs[name].value / cost.value
        for name, cost in profile.costs.items()
        if cost.value
    }


def test_the_same_machine_changes_nothing(jobs, here):
    """
    A profile for its own machine is itself.
    """
    ratios_there = ratios(jobs, here, here)

    assert [*ratios_there.values()] == pytest.approx([1.0] * len(ratios_there))


def test_a_slower_network_makes_copying_longer_and_nothing_else(jobs, here):
    """
    What belongs to disks, to HDFS and to the job stays.
    """
    ratios_there = ratios(jobs, here, slower(here, 5.0, "network"))

    assert ratios_there.pop("network_s_per_byte") == pytest.approx(5.0)
    assert [*ratios_there.values()] == pytest.approx([1.0] * len(ratios_there))


def test_functions_take_as_much_longer_as_sorting_and_serialising(jobs, here):
    """
    The job's own computing is not known there: two kernels of a task's JVM stand for it.
    """
    ratios_there = ratios(jobs, here, slower(here, 2.0, "sort", "serde"))

    assert ratios_there["map_cpu_s_per_record"] == pytest.approx(2.0)
    assert ratios_there["reduce_cpu_s_per_record"] == pytest.approx(2.0)
    assert ratios_there["hdfs_read_s_per_byte"] == pytest.approx(1.0)


def test_costs_that_are_known_exactly_leave_nothing_to_draw(jobs, here):
    """
    Each of 200 draws is the profile itself.
    """
    exact = slower(here, 1.0, *here.costs)
    moved = transferred(fit_profile("w", jobs), works(jobs, UNCORRECTED), exact, exact)

    assert len(moved.draws) == 200
    assert {round(times, 9) for draw in moved.draws for times in draw.values()} == {1.0}


def test_an_uncertain_network_spreads_what_is_copied_and_nothing_else(jobs, here):
    """
    By as much as its interval says.
    """
    exact = slower(here, 1.0, *here.costs)
    ends = {"low": 0.8, "high": 1.2}
    network = exact.costs["network_s_per_byte"]
    unsure = network.model_copy(
        update={name: times * network.value for name, times in ends.items()}
    )
    there = exact.model_copy(update={"costs": exact.costs | {"network_s_per_byte": unsure}})
    draws = transferred(fit_profile("w", jobs), works(jobs, UNCORRECTED), exact, there).draws

    copied = np.array([draw["network_s_per_byte"] for draw in draws])
    covered = np.mean((copied >= 0.8) & (copied <= 1.2))
    assert 0.82 <= covered <= 0.97
    assert {round(draw["hdfs_read_s_per_byte"], 9) for draw in draws} == {1.0}


def test_errors_that_go_together_are_drawn_together():
    """
    Two costs of which the sum is known and neither alone.
    """
    without = {f"t{n}": (-1) ** n * 0.3 for n in range(10)}

    def cost(sign):
        known = {unit: 1.0 + sign * error for unit, error in without.items()}
        return Cost(value=1.0, unit="s", source="fit", without=known)

    machine = MachineCosts(measured_s=1.0, costs={"a": cost(1), "b": cost(-1)})
    random = np.random.default_rng(1)
    drawn = [drawn_costs(machine, random).costs for _ in range(50)]

    assert np.std([each["a"].value for each in drawn]) > 0.1
    sums = [each["a"].value + each["b"].value for each in drawn if 0.1 < each["a"].value < 1.9]
    assert sums == pytest.approx([2.0] * len(sums))


def test_a_cost_that_a_machine_lacks_is_named(jobs, here):
    """
    Never a typical value in its place.
    """
    costs = {n: cost for n, cost in here.costs.items() if not n.startswith("network")}

    with pytest.raises(DataError, match=r"network_s_per_byte.*, which copy_s of w needs"):
        ratios(jobs, here, here.model_copy(update={"costs": costs}))
