"""A profile of one machine for another."""

import json
import re

from collections import defaultdict
from statistics import fmean

import numpy as np
import pytest

from harness.base.errors import DataError
from harness.base.records.hardware import Cost, MachineCosts
from harness.base.records.profile import SpeedCorrection
from harness.base.records.statistics import NETWORK_ALONE
from harness.cli import main
from harness.hardware.calibrate import hardware_of
from harness.hardware.ladder import ladder
from harness.hardware.transfer import (
    completed,
    drawn_costs,
    elsewhere,
    explained,
    factors,
    profiles_for,
    transferred,
)
from harness.observe.profiling import fit_profile
from harness.observe.profiling.platform import fit_platform, works
from tests.evaluate.test_flow import copy, evaluation, stored  # noqa: F401 - fixtures
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

    assert ratios_there.pop("network_s_per_byte") == pytest.approx(5.0, rel=0.1)
    assert [*ratios_there.values()] == pytest.approx([1.0] * len(ratios_there))


def test_what_costs_do_not_explain_is_not_the_disks(jobs, here):
    """
    A write that took ten times what the old machine's costs say takes longer by what the new one's
    disk takes longer, and not ten times that.
    """
    writes = [name for name in here.costs if name.startswith("hdfs_write")]
    quick = slower(here, 0.1, *writes)
    ratio = ratios(jobs, quick, slower(quick, 50.0, *writes))["hdfs_write_s_per_byte"]

    assert ratio == pytest.approx(0.9 + 50 * 0.1, rel=0.05)


@pytest.mark.parametrize(
    ("time_s", "work_s", "there_s", "after_s"),
    [(10.0, 4.0, 8.0, 20.0), (4.0, 10.0, 30.0, 24.0), (4.0, 10.0, 5.0, 2.0), (4.0, 0.0, 0.0, 8.0),
     (5.0, 5.0, 7.0, 7.0), (4.0, 10.0, 10.0, 4.0)],
)  # fmt: skip
def test_what_costs_explain_is_replaced_and_the_rest_is_the_processors(
    time_s, work_s, there_s, after_s
):
    """
    Twice as slow a processor; what was explained too well is no reason to take a part of a disk.
    """
    assert elsewhere(time_s, work_s, there_s, 2.0) == pytest.approx(after_s)


def test_a_segment_that_is_too_large_for_memory_is_written_by_the_disk(jobs, here):
    """
    Copying it takes longer on a slower disk; what the network takes for a byte does not.
    """
    by = factors(works(jobs, UNCORRECTED), here, slower(here, 20.0, "local_write"))

    assert by.of(["copy_s"]) > 1.2
    assert by.of([NETWORK_ALONE]) == pytest.approx(1.0, rel=0.01)


def test_functions_take_as_much_longer_as_sorting_and_serialising(jobs, here):
    """
    The job's own computing is not known there: what both took together stands for it.
    """
    ratios_there = ratios(jobs, here, slower(here, 2.0, "computing"))

    for name in ("map_cpu_s_per_record", "reduce_cpu_s_per_record", "sort_cpu_s_per_record"):
        assert ratios_there[name] == pytest.approx(2.0)
    assert ratios_there["hdfs_read_s_per_byte"] == pytest.approx(1.0)


def test_both_machines_are_compared_at_the_speed_of_the_run(jobs, here):
    """
    The old one was calibrated when it was slower than in the run; the new one's speed is its own.
    """
    speed = SpeedCorrection(reference_rate=100.0, coefficient=2.0, gain=0.3, count=9)
    profile = fit_profile("w", jobs).model_copy(update={"speed": speed})
    then = slower(here, 100 / 81, *here.costs).model_copy(update={"reference_rate": 90.0})
    there = slower(here, 3.0, *here.costs).model_copy(update={"reference_rate": 300.0})
    moved = transferred(profile, works(jobs, UNCORRECTED), then, there)

    assert moved.costs["hdfs_read_s_per_byte"].value == pytest.approx(
        3 * profile.costs["hdfs_read_s_per_byte"].value
    )
    assert (moved.speed.reference_rate, moved.speed.coefficient) == (300.0, 2.0)


def test_of_a_spill_with_a_combiner_only_writing_follows_the_disk(here):
    """
    What combining takes is the job's, though both happen at once.
    """
    quick = slower(here, 0.2, "local_write")  # so that most of a spill is combining
    ratios_there = ratios(recorded_grid(combine=True), quick, slower(quick, 10.0, "local_write"))

    assert ratios_there["local_write_s_per_byte"] == pytest.approx(10.0)
    assert ratios_there["combine_cpu_s_per_record"] == pytest.approx(1.0)


def test_costs_that_are_known_exactly_leave_nothing_to_draw(jobs, here):
    """
    Each of 200 draws is the profile itself.
    """
    exact = slower(here, 1.0, *here.costs)
    moved = transferred(fit_profile("w", jobs), works(jobs, UNCORRECTED), exact, exact)

    assert len(moved.draws) == 200
    assert {round(times, 9) for draw in moved.draws for times in draw.values()} == {1.0}


def test_a_machine_is_as_fast_at_another_hour_as_it_was_in_some_trial(jobs, here):
    """
    All times of a draw are longer by one factor, which spreads as rates did, times the coefficient.
    """
    speed = SpeedCorrection(reference_rate=100.0, coefficient=2.0, gain=0.3, count=9)
    profile = fit_profile("w", jobs).model_copy(update={"speed": speed})
    exact = slower(here, 1.0, *here.costs)
    draws = transferred(profile, works(jobs, UNCORRECTED), exact, exact, rate_spread=0.05).draws

    factors = [{round(times, 9) for name, times in draw.items() if name != "network_bps"}
               for draw in draws]  # fmt: skip
    assert {len(of_draw) for of_draw in factors} == {1}
    assert np.std(np.log([*map(min, factors)])) == pytest.approx(0.1, rel=0.15)
    assert all(draw["network_bps"] == pytest.approx(1 / draw["copy_s_per_byte"]) for draw in draws)


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


def test_a_file_by_no_job_is_told_that_jobs_take_time(jobs, here):
    """
    It was calibrated, in a budget that had no room for them: the same again would not help.
    """
    costs = {name: value for name, value in here.costs.items() if name != "computing"}
    with pytest.raises(DataError, match="no `computing`") as error:
        ratios(jobs, here.model_copy(update={"costs": costs}), here)

    assert "give it more time, as --budget 10m" in error.value.fix


def with_rate(machine, seconds, *, trials):
    """
    The machine with so many trials behind its costs, whose network takes *seconds* for a byte.
    """
    costs = {name: cost.model_copy(update={"trials": trials})
             for name, cost in machine.costs.items()}  # fmt: skip
    name = "network_s_per_byte"
    costs[name] = costs[name].model_copy(update={"micro": seconds})
    return machine.model_copy(update={"costs": costs})


def test_a_machine_known_by_rates_alone_has_the_other_ones_costs_and_its_own_network(here):
    """
    A byte takes longer by what the network takes longer, and all else as long.
    """
    rates_alone = Cost(value=1e-7, unit="s/B", source="rates", micro=1e-7)
    there = here.model_copy(update={"costs": {"network_s_per_byte": rates_alone}})

    whole, assumed = completed(there, with_rate(here, 2e-8, trials=3))

    longer_s = {name: whole.costs[name].value - cost.value for name, cost in here.costs.items()}
    assert longer_s.pop("network_s_per_byte") == pytest.approx(8e-8)
    assert [*longer_s.values()] == [0.0] * len(longer_s)
    assert set(assumed) == set(here.costs)


def test_a_machine_with_jobs_of_its_own_takes_no_cost_from_another(here):
    """
    What it lacks stays missing, and is named where it is needed.
    """
    there = with_rate(here, 1e-7, trials=3)
    there.costs.pop("hdfs_read_s_per_byte")

    assert completed(there, with_rate(here, 2e-8, trials=3)) == (there, [])


def test_a_cost_that_one_job_shows_is_taken_from_the_other_machine(here):
    """
    So are all where none has more; with what rates say of both.
    """
    there = with_rate(here, 1e-7, trials=1)
    few = {name: cost.model_copy(update={"trials": 1}) for name, cost in there.costs.items()}
    whole, assumed = completed(
        there.model_copy(update={"costs": few}), with_rate(here, 2e-8, trials=3)
    )

    known = here.costs["network_s_per_byte"].value
    assert whole.costs["network_s_per_byte"].value == pytest.approx(known + 8e-8)
    assert set(assumed) == set(here.costs)


@pytest.mark.process
def test_what_logs_do_not_show_takes_as_much_longer_as_computing(jobs, here):
    """
    Of a part of which both machines know some costs, the rest is the processor's.
    """
    by_file = {"hdfs_read_s_per_byte": 0.25, "hdfs_read_s_per_record": None}
    costs = {name: cost.model_copy(update={"value": by_file.get(name, 1) * cost.value})
             for name, cost in here.costs.items() if by_file.get(name, 1)}  # fmt: skip
    logged = here.model_copy(update={"costs": costs, "conditions": {"tracing": "logs"}})

    assert ratios(jobs, logged, logged)["hdfs_read_s_per_byte"] == pytest.approx(1.0)
    slow = ratios(jobs, logged, slower(logged, 2.0, "computing"))
    slow_disk = ratios(jobs, logged, slower(logged, 2.0, "hdfs_read"))
    assert slow["map_cpu_s_per_record"] == pytest.approx(2.0)
    assert 1.05 < slow_disk["hdfs_read_s_per_byte"] < 1.95
    recorded = logged.model_copy(update={"conditions": {}})
    with pytest.raises(DataError, match="no cost of hdfs_read_s_per_record"):
        ratios(jobs, recorded, recorded)


def test_costs_by_logs_and_by_recordings_are_no_pair(stored, here, tmp_path):  # noqa: F811
    """
    Whichever is the old machine's; what to do is said.
    """
    logged = here.model_copy(update={"conditions": {"tracing": "logs"}})
    files = [tmp_path / "recorded.json", tmp_path / "logged.json"]
    for file, machine in zip(files, (here, logged), strict=True):
        file.write_text(machine.model_dump_json())

    for pair in (files, files[::-1]):
        with pytest.raises(DataError, match=r"those of .*recorded.json by recordings") as error:
            profiles_for(stored, pair, [])
        assert error.value.where == str(files[1])
        assert "--logs" in error.value.fix
    profiles_for(stored, [files[1], files[1]], [])


def test_a_faster_network_leaves_some_of_a_cost(here):
    """
    A tenth: a cost is not its rate alone.
    """
    there = here.model_copy(
        update={"costs": {"network_s_per_byte": Cost(value=0.0, unit="s/B", source="", micro=0)}}
    )
    known = with_rate(here, 1.0, trials=3)

    whole, _ = completed(there, known)

    name = "network_s_per_byte"
    assert whole.costs[name].value == pytest.approx(0.1 * here.costs[name].value)


def test_a_ladder_has_each_way_of_predicting_each_cell(stored):  # noqa: F811
    """
    Profiles that were moved to the same machine predict as those that are as they were.
    """
    target = evaluation(stored)
    rungs = [*ladder(target, stored, {"by same.json": stored.read_profiles()})]

    by_way = {}
    for rung in rungs:
        by_way.setdefault(rung.way, {})[rung.model, rung.cell] = rung.predicted_s
    assert set(by_way) >= {"as it is", "by same.json", "its own profile"}
    assert by_way["by same.json"] == by_way["as it is"] == by_way["its own profile"]
    assert any(rung.error is not None for rung in rungs)


def test_jobs_after_the_budget_do_not_count(stored, monkeypatch):  # noqa: F811
    """
    As if the calibration had ended then; with no job nothing is said.
    """
    began_s = stored.read_manifest().created_s
    records = {
        name: record.model_copy(update={"finished_s": began_s + 10.0 * number})
        for number, (name, record) in enumerate(stored.trials().items(), start=1)
    }
    monkeypatch.setattr(type(stored), "trials", lambda _: records)

    first = hardware_of(stored, within_s=25.0)

    assert (len(first.chosen), first.spent_s) == (2, 20.0)
    assert len(hardware_of(stored).chosen) > 2
    with pytest.raises(DataError, match="no trial is done within 5 s"):
        hardware_of(stored, within_s=5.0)


def test_what_tasks_took_stands_beside_what_their_work_costs(jobs, here, stored, monkeypatch):  # noqa: F811
    """
    By the file that was fitted to them they are the same; what belongs to a job is not there.
    """
    monkeypatch.setattr("harness.core.evaluate.flow.Evaluation.observe", lambda *_: jobs)

    rows = explained(here, stored)

    assert {part for _, part, _, _ in rows} >= {"map_read_s", "copy_s", "reduce_write_s"}
    assert "map_function_s" not in {part for _, part, _, _ in rows}
    for _, part, took_s, by_file_s in rows:
        if part in ("map_read_s", "collect_s", "reduce_write_s"):
            assert by_file_s == pytest.approx(took_s, rel=0.1), part


def test_a_machine_is_fitted_to_some_of_the_workloads_of_a_run(stored):  # noqa: F811
    """
    Of one that has not run there is nothing to say.
    """
    records, few = stored.trials(), hardware_of(stored, workloads=["terasort"])

    assert {records[each["trial"]].trial.cell.workload.name for each in few.chosen} == {"terasort"}
    with pytest.raises(DataError, match="no trial of sort is done") as error:
        hardware_of(stored, workloads=["terasort", "sort"])
    assert "terasort" in error.value.fix


@pytest.mark.process
def test_the_command_has_a_row_for_each_budget_and_a_picture(stored, here, tmp_path, capsys):  # noqa: F811
    """
    Of the same machine twice: the same errors, and an SVG.
    """
    files = [tmp_path / name for name in ("plain.json", "same.json")]
    for file in files:
        file.write_text(here.model_dump_json())
    picture = tmp_path / "ladder.svg"
    pairs = [text for file in files for text in ("--hardware", str(files[0]), str(file))]
    argv = ["hardware", "ladder", str(stored.path), "--from", str(stored.path), *pairs]
    argv += ["--with", str(stored.path)]

    assert main([*argv, "-o", str(picture), "--json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    rungs = answer["rungs"]
    assert answer["says"].startswith(f"nearest is {answer['judge']}, ")
    known = defaultdict(list)
    for rung in rungs:
        if rung["error"] is not None:
            known[rung["way"], rung["model"]].append(abs(rung["error"]))
    most = max(map(len, known.values()))
    assert answer["judge_error"] == min(
        fmean(way_errors) for way_errors in known.values() if len(way_errors) == most
    )
    assert answer["rests_on"]["cells"] == len({rung["cell"] for rung in rungs})
    errors = {(each["way"].partition(",")[0], each["model"], each["cell"]): each["error"]
              for each in rungs}  # fmt: skip
    own = {key[1:]: error for key, error in errors.items() if key[0] == "as it is"}
    for name in ("by plain.json", "by same.json", f"profiled in {stored.id}"):
        moved = {key[1:]: error for key, error in errors.items() if key[0] == name}
        assert moved == pytest.approx(own)
    assert picture.read_text().startswith("<?xml")


def test_a_cost_of_the_old_machine_leaves_times_as_they_were(stored, here, tmp_path, monkeypatch):  # noqa: F811
    """
    Whatever speed the old machine had when it was calibrated: it is brought to that of the run.
    """
    speed = SpeedCorrection(reference_rate=100.0, coefficient=2.0, gain=0.3, count=9)
    known = {name: profile.model_copy(update={"speed": speed})
             for name, profile in stored.read_profiles().items()}  # fmt: skip
    monkeypatch.setattr(type(stored), "read_profiles", lambda _: known)
    then = here.model_copy(update={"reference_rate": 90.0})
    there = here.model_copy(update={"costs": {}, "frame": {}, "reference_rate": 300.0})
    files = [tmp_path / "here.json", tmp_path / "there.json"]
    for file, machine in zip(files, (then, there), strict=True):
        file.write_text(machine.model_dump_json())

    profiles, _ = profiles_for(stored, files, [])
    for name, profile in profiles.items():
        costs = {cost: value.value for cost, value in profile.costs.items()}
        as_known = {cost: value.value for cost, value in known[name].costs.items()}
        assert costs == pytest.approx(as_known)
        assert "here.json are taken" in " ".join(profile.warnings)


@pytest.mark.process
def test_what_means_over_nodes_do_not_tell_is_named(stored, here, tmp_path):  # noqa: F811
    """
    One slow worker: jobs wait for it, and few bytes of the calibration crossed its network.
    """
    network = here.costs["network_s_per_byte"]
    far = network.model_copy(update={"micro": 4 * network.high})
    mixed = here.model_copy(
        update={
            "costs": here.costs | {"network_s_per_byte": far},
            "conditions": {"cluster.nodes.worker2.cores": 0.5},
        }
    )
    files = [tmp_path / "here.json", tmp_path / "mixed.json"]
    for file, machine in zip(files, (here, mixed), strict=True):
        file.write_text(machine.model_dump_json())

    profiles, _ = profiles_for(stored, files, [])
    back, _ = profiles_for(stored, files[::-1], [])
    texts = [" ".join(next(iter(each.values())).warnings) for each in (profiles, back)]
    for words in ("few of the bytes of mixed.json crossed", "waits for the slowest"):
        assert [words in each for each in texts] == [True, False]


@pytest.mark.process
def test_costs_of_another_machine_are_named_and_refused_if_strict(
    stored,  # noqa: F811
    copy,  # noqa: F811
    here,
    tmp_path,
    capsys,
):
    """
    With what differs; those of the machine at hand are taken as they are.
    """
    own = hardware_of(stored).conditions
    slower_disk = own | {"cluster.node.disk_bytes_per_s": 10 * 2**20}
    machines = {
        name: here.model_copy(update={"conditions": conditions})
        for name, conditions in (("here", own), ("there", slower_disk))
    }
    files = {name: tmp_path / f"{name}.json" for name in machines}
    for name, machine in machines.items():
        files[name].write_text(machine.model_dump_json())

    def predicted(name, *options):
        argv = ["predict", str(copy.path), "--from", str(stored.path), "--hardware"]
        status = main([*argv, str(files["here"]), str(files[name]), *options, "--json"])
        return status, capsys.readouterr()

    status, shown = predicted("there", "--strict")
    assert status == 7
    assert "node.disk_bytes_per_s: 10485760 there" in shown.err
    status, shown = predicted("there")
    assert status == 0
    assert (
        "warning: its costs were measured on another machine: node.disk_bytes"
        in shown.out + shown.err
    )
    status, shown = predicted("here", "--strict")
    assert status == 0
    answer = json.loads(shown.out)
    moved = f"profiles of {stored.id}, for the machine of here.json in the place of here.json; "
    assert answer["says"].startswith(moved)
    rested = r" off on job times there \((\d+) cells, (\d+) jobs, 3 repeats of each\); "
    cells, jobs = map(int, re.search(rested, answer["says"]).groups())
    scores = stored.read_scores().scores
    assert cells == len({score.cell for score in scores if score.quantity == "job_s"})
    assert jobs == 3 * cells
    assert answer["says"].endswith(f"; {answer['verdict']}")
    assert answer["verdict"]
    assert "another machine" not in shown.out + shown.err
