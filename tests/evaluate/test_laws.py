"""
Tests for `harness.core.evaluate.laws`, on a real run of three trials: whole, and forged.
"""

import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.core.evaluate.laws import LAWS, broken_laws, most_at_once
from harness.core.store.run import Run
from tests.run.test_older import OLDER

NEWEST = max(OLDER.glob("shape-*.tar.gz"), key=lambda path: int(path.name[6:-7]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """
    The run as it was measured.
    """
    results = tmp_path_factory.mktemp("results")
    assert main(["unpack", str(NEWEST), "--results-dir", str(results)]) == 0
    (manifest,) = results.glob("*/*/manifest.json")
    return manifest.parent


@pytest.fixture
def forged(whole, tmp_path):
    """
    A copy of it, whose files are changed.
    """
    copy = tmp_path / whole.name
    shutil.copytree(whole, copy)
    return Run(copy)


def trial_files(run):
    """
    Records of its trials by their start.
    """
    paths = run.path.glob("trials/*/trial.json")
    return sorted(paths, key=lambda path: json.loads(path.read_text())["started_s"])


def change(path, **fields):
    """
    Replace *fields* of a JSON file.
    """
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def change_column(run, table, column, new_value):
    """
    Replace a column of a table of the first trial; *new_value* is given the old one.
    """
    (path,) = trial_files(run)[0].parent.glob(f"trace/{table}.parquet")
    rows = pq.read_table(path)
    place = rows.schema.get_field_index(column)
    pq.write_table(rows.set_column(place, rows.schema.field(place), new_value(rows[column])), path)


def places(run):
    """
    Which laws are broken.
    """
    return {breach.law for breach in broken_laws(run)}


def cut_plan(run):
    """
    A cell at which a model is bad is taken out, with its trial.
    """
    lines = (run.path / "plan.jsonl").read_text().splitlines(keepends=True)
    scored = [line for line in lines if '"profiling":false' in line.replace(" ", "")]
    (run.path / "plan.jsonl").write_text("".join(line for line in lines if line != scored[-1]))
    shutil.rmtree(run.path / "trials" / json.loads(scored[-1])["id"])


def copy_repeat(run):
    """
    A trial gets the jobs and the logs of another one.
    """
    first, second = trial_files(run)[:2]
    record = json.loads(first.read_text())
    change(second, job_ids=record["job_ids"])
    for file_name in ("raw", "trace", "evidence.json"):
        source, target = first.parent / file_name, second.parent / file_name
        if source.is_dir():
            shutil.rmtree(target)
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


def overlap(run):
    """
    A trial starts before the one before it has ended.
    """
    first, second = trial_files(run)[:2]
    change(second, started_s=json.loads(first.read_text())["started_s"] + 2.0)


def end_later(run):
    """
    A trial ends after it was stored.
    """
    last = trial_files(run)[-1]
    change(last, finished_s=json.loads(last.read_text())["finished_s"] + 60.0)


def exchange_jobs(run):
    """
    The first trial has a job of the last one's number.
    """
    first, *_, last = trial_files(run)
    first_ids, last_ids = (json.loads(path.read_text())["job_ids"] for path in (first, last))
    change(first, job_ids=last_ids)
    change(last, job_ids=first_ids)


def start_before_seal(run):
    """
    A scored trial started when nothing was sealed.
    """
    change(trial_files(run)[-1], started_s=1.0)


def crowd(run):
    """
    All tasks of a job run at once, and there are some more of them.
    """
    for path in run.path.glob("trials/*/trace/attempts.parquet"):
        table = pq.read_table(path)
        pq.write_table(pa.concat_tables([table] * 3), path)
    change_column(run, "attempts", "start_s", lambda column: pa.repeat(pc.min(column), len(column)))


def count_more(run):
    """
    A job has more records than its tasks.
    """
    (path,) = trial_files(run)[0].parent.glob("trace/counters.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    of_maps = [row for row in rows if row["scope"] == "map_counters"]
    (records,) = [row for row in of_maps if row["name"].endswith(".MAP_INPUT_RECORDS")]
    records["value"] += 1
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def read_less(run):
    """
    The input of a trial is larger than what its job has read.
    """
    path = trial_files(run)[0]
    change(path, input_bytes=2 * json.loads(path.read_text())["input_bytes"])


def record_elsewhere(run):
    """
    What was recorded inside a task lies an hour before it.
    """
    change_column(run, "spans", "start_s", lambda column: pc.subtract(column, 3600.0))


FORGERIES = {
    cut_plan: "plan.jsonl",
    copy_repeat: "trial.json: job_ids",
    overlap: "trial.json: moments",
    end_later: "trials.jsonl",
    exchange_jobs: "job ids",
    start_before_seal: "predictions/sealed.json",
    crowd: "slots",
    count_more: "counters",
    read_less: "input",
    record_elsewhere: "spans.parquet",
}


@pytest.mark.process
def test_a_run_that_was_measured_keeps_all(whole):
    """
    None is broken, so a breach says something.
    """
    assert broken_laws(Run(whole)) == []


@pytest.mark.process
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forgery_breaks_the_law_of_its_place(forged, forge):
    """
    Although every hash could be made anew.
    """
    forge(forged)
    assert FORGERIES[forge] in places(forged)


def test_each_law_has_a_place_of_its_own():
    """
    And a sentence.
    """
    assert len({law.place for law in LAWS}) == len(LAWS)
    assert all(law.sentence and law.breaches.__doc__ for law in LAWS)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=12))
def test_most_at_once_is_the_most_of_any_moment(pairs):
    """
    Counted at each half moment, the slow way.
    """
    windows = [(start, start + length) for start, length in pairs]
    slow = max(
        (sum(start < at < end for start, end in windows) for at in [0.5 + i for i in range(30)]),
        default=0,
    )
    assert most_at_once(windows) == slow
