"""
A calibration: what its jobs will work on, which comes next, and when it ends.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness.base.errors import SpecError
from harness.base.records.trial import NETWORK_IN, NETWORK_OUT
from harness.base.units import MIB
from harness.core.run.session import Session
from harness.core.store import Store
from harness.hardware.calibrate import (
    TEXT,
    Calibration,
    known_costs,
    offered_information,
    planned_work,
)
from harness.observe.profiling.platform import PARTS, TYPICAL, writing_counts
from tests.run.fakes import VERSIONS, RecordingConsole

CLUSTER = "{provider: local, workers: 3, site: {dfs.blocksize: 32 MiB}}"


@pytest.fixture
def session(tmp_path, monkeypatch):
    """
    The session of a calibration of three workers, of which nothing was run.
    """
    monkeypatch.setattr(Session, "versions", VERSIONS)
    text = TEXT.format(cluster=CLUSTER)
    return Session(text, "calibrate", Path(tmp_path / "results"), (), RecordingConsole())


def test_every_cost_of_a_machine_is_shown_by_some_job(session):
    """
    All jobs together have information on each cost; a job that only starts has none.
    """
    cells = [trial.cell for trial in session.trials]
    whole = sum(offered_information(planned_work(cell), TYPICAL) for cell in cells)

    assert {cell.workload.name for cell in cells if not planned_work(cell)} == {"sleep"}
    assert dict(zip(TYPICAL, np.diag(whole) > 0, strict=True)) == dict.fromkeys(TYPICAL, True)


def test_planned_work_has_a_count_for_each_cost_of_its_part(session):
    """
    In their order, and none below 0.
    """
    for trial in session.trials:
        for part, counts in planned_work(trial.cell).items():
            assert tuple(counts) == PARTS[part]
            assert min(counts.values()) >= 0


def test_where_nothing_is_recorded_jobs_are_chosen_for_what_logs_show(tmp_path, monkeypatch):
    """
    What `dfsio` counts, copies, merges and whole spills: each cost of those, and no other.
    """
    monkeypatch.setattr(Session, "versions", VERSIONS)
    text = TEXT.format(cluster=CLUSTER) + "trace: logs\n"
    session = Session(text, "calibrate", Path(tmp_path / "results"), (), RecordingConsole())

    works = Calibration(session, budget_s=600.0).works.values()

    parts = {"map_read_s", "map_write_s", "spill_s", "map_merge_s", "copy_s"}
    assert {part for work in works for part in work} == parts
    whole = sum(offered_information(work, TYPICAL) for work in works)
    hidden = {"hdfs_read_s_per_record", "hdfs_write_s_per_record", *PARTS["collect_s"]}
    assert {
        name for name, known in zip(TYPICAL, np.diag(whole), strict=True) if not known
    } == hidden


def test_a_calibration_that_may_not_see_its_tasks_is_refused(tmp_path, monkeypatch):
    """
    Before anything starts.
    """
    monkeypatch.setattr(Session, "versions", VERSIONS)
    text = TEXT.format(cluster=CLUSTER) + "trace: off\n"
    session = Session(text, "calibrate", Path(tmp_path / "results"), (), RecordingConsole())

    with pytest.raises(SpecError, match="needs to know what tasks took"):
        Calibration(session, budget_s=600.0)


def test_a_small_buffer_spills_several_times_and_merges(session):
    """
    Of the same job with another sort buffer.
    """
    buffer = "mapreduce.task.io.sort.mb"
    cells = [trial.cell for trial in session.trials if trial.cell.workload.name == "sort"]
    merged = {cell.configuration[buffer] for cell in cells if "map_merge_s" in planned_work(cell)}

    assert {cell.configuration[buffer] for cell in cells} - merged == {"48"}
    assert merged == {"8"}


@pytest.mark.parametrize(("workers", "copies"), [(1, {0.0}), (3, {0.0, 160 * MIB})])
def test_jobs_write_one_copy_and_two_where_two_nodes_can_hold_them(
    workers, copies, tmp_path, monkeypatch
):
    """
    Else what writing costs is not told apart from what its copies cost.
    """
    monkeypatch.setattr(Session, "versions", VERSIONS)
    text = TEXT.format(cluster=CLUSTER.replace("workers: 3", f"workers: {workers}"))
    session = Session(text, "calibrate", Path(tmp_path / "results"), (), RecordingConsole())

    works = Calibration(session, budget_s=600.0).works.values()

    sorts = [work["reduce_write_s"] for work in works if "reduce_write_s" in work]
    assert {
        counts["hdfs_copy_s_per_byte"]
        for counts in sorts
        if counts["hdfs_write_s_per_byte"] + counts["hdfs_write_s_per_early_byte"] == 160 * MIB
    } == copies


def test_jobs_that_only_start_come_first_and_the_rest_is_chosen(session):
    """
    The next one is new, says what it is expected to tell, and is a look of its own.
    """
    calibration = Calibration(session, budget_s=600.0)
    run = Store(session.results_dir).open_run(session.experiment, session.text)
    run.write_plan(calibration.first_trials)

    (added,) = calibration.next_trials(run)

    assert {trial.cell.workload.name for trial in calibration.first_trials} == {"sleep"}
    assert added.cell.workload.name != "sleep"
    assert (added.look, added.profiling) == (1 + len(calibration.first_trials), True)
    assert "gain" in added.reason


def test_before_the_first_job_disks_and_networks_say_what_their_bytes_cost(session):
    """
    The slower of two nodes counts half; what nobody measured is typical.  A copy of what is written
    crosses the network.
    """
    run = Store(session.results_dir).open_run(session.experiment, session.text)
    run.write_plan(session.trials)
    disks = {"worker1": {"buffered_write": 1e8}, "worker2": {"buffered_write": 5e7}}
    run.update_manifest(micro=disks)
    costs = known_costs(run)

    assert costs["local_write_s_per_byte"] == pytest.approx(1.5e-8)
    assert costs["network_s_per_byte"] == TYPICAL["network_s_per_byte"]

    network = dict.fromkeys((NETWORK_IN, NETWORK_OUT), 1e7)
    run.update_manifest(micro={node: rates | network for node, rates in disks.items()})
    costs = known_costs(run)
    assert costs["hdfs_write_s_per_byte"] == pytest.approx(1.5e-8)
    assert costs["hdfs_copy_s_per_byte"] == costs["network_s_per_byte"] == pytest.approx(1e-7)


def test_a_slow_disk_makes_a_job_that_writes_to_it_tell_more_of_it():
    """
    Of a file of 64 MiB, on a typical disk what opens and closes it counts as much.
    """
    work = {"map_write_s": writing_counts(64.0 * MIB, records=0.0, copies=1)}
    place = [*TYPICAL].index("hdfs_write_s_per_byte")
    slow = TYPICAL | {"hdfs_write_s_per_byte": 1e-7}
    shares = [
        information[place, place] / np.trace(information)
        for information in (offered_information(work, costs) for costs in (TYPICAL, slow))
    ]

    assert shares[1] > shares[0]


def test_what_jobs_took_before_an_interruption_counts(session):
    """
    As what this process spends does; jobs of this process do not count twice.
    """
    calibration = Calibration(session, budget_s=600.0)
    before, after = (
        SimpleNamespace(started_s=calibration.began_s + start, finished_s=calibration.began_s + end)
        for start, end in ((-900.0, -800.0), (1.0, 31.0))
    )

    spent_s = calibration.spent_s(SimpleNamespace(attempts=lambda: [before, after]))

    assert 100.0 <= spent_s < 130.0


def test_nothing_is_chosen_once_the_budget_is_too_short_for_a_job(session):
    """
    Nor is anything begun that would go beyond it.
    """
    calibration = Calibration(session, budget_s=8.0)
    run = Store(session.results_dir).open_run(session.experiment, session.text)
    run.write_plan(calibration.first_trials)

    assert calibration.next_trials(run) == []
