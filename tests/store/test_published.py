"""
Tests for `harness.core.store.published`: what is said of a run that was published in part.
"""

import json

import pytest

from harness.base.errors import DataError
from harness.base.records.trial import SCHEMA_VERSION
from harness.core.store import Store
from harness.core.store.published import LACKS, ORIGINALS
from harness.core.store.sums import SUMS
from harness.core.store.traces import remake_trace

READERS = {
    "read_trace": lambda run, trial: run.read_trace(trial),
    "read_recordings": lambda run, trial: run.read_recordings(trial),
    "read_units": lambda run, trial: run.read_units(trial),
    "read_parts": lambda run, trial: run.read_parts(trial, "attempts"),
    "lock": lambda run, _: run.lock().__enter__(),
}


@pytest.fixture
def bundled(tmp_path, make):
    """
    Makes a run with one done trial, as a bundle has it at a level of evidence.
    """

    def build(level):
        run = Store(tmp_path / "bundle").open_run(make.experiment("runs"), "")
        (tmp_path / "bundle" / SUMS).touch()
        folder = run.start_trial(make.trials()[0])
        folder.commit(make.record(make.trials()[0]))
        document = {"schema_version": SCHEMA_VERSION, "level": level}
        (run.path / ORIGINALS).write_text(json.dumps(document))
        return run

    return build


def test_its_level_is_what_it_says(bundled, store, make):
    """
    One that this harness does not know is none, and so is that of a run that was measured here.
    """
    run = bundled("scores")
    levels = []
    for level in (*LACKS, "all", 3):
        document = {"schema_version": SCHEMA_VERSION, "level": level}
        (run.path / ORIGINALS).write_text(json.dumps(document))
        levels.append(run.published_level)

    assert levels == [*LACKS, "", ""]
    assert store.open_run(make.experiment(), "", new=True).published_level == ""


@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_or_writes_a_run_of_scores_is_told(bundled, reader):
    """
    One error, with what takes the run, and not a command that cannot work.
    """
    run = bundled("scores")
    (trial,) = run.trial_ids()

    with pytest.raises(DataError) as error:
        READERS[reader](run, trial)

    assert error.value.what == (
        "this run was published with its scores alone: it has no traces of its tasks"
    )
    assert error.value.where == str(run.path)
    assert error.value.fix == (
        "harness show, report, plot, export, score, predict, compare, profile, ask and tune take"
        " this run;"
        " harness compare and publish --check take its bundle"
    )


@pytest.mark.parametrize("several", [False, True])
def test_the_report_of_its_makers_is_named(bundled, several):
    """
    Of a bundle of several runs that of the run.
    """
    run = bundled("scores")
    report = run.path.parent.parent / (f"report-{run.id}.html" if several else "report.html")
    report.touch()

    with pytest.raises(DataError) as error:
        run.read_trace(run.trial_ids()[0])

    assert error.value.fix.endswith(f"; the report of its makers is {report}")


@pytest.mark.parametrize(
    ("level", "what"),
    [
        ("scores", "this run was published with its scores alone"),
        ("traces", "this run was published with its traces, and without its raw logs"),
        ("raw", "has no history"),
    ],
)
def test_traces_are_made_again_of_raw_logs_alone(bundled, level, what):
    """
    Where those were published, one without a history has lost it.
    """
    run = bundled(level)
    (record,) = run.trials().values()

    with pytest.raises(DataError, match=what):
        remake_trace(run, record)


@pytest.mark.parametrize("level", ["traces", "raw"])
def test_a_table_that_is_gone_is_missing(bundled, level):
    """
    It was published, so the error is that of any other run.
    """
    run = bundled(level)

    with pytest.raises(DataError, match=r"counters\.parquet is missing"):
        run.read_trace(run.trial_ids()[0])


def test_a_damaged_level_is_named(bundled):
    """
    It is a file like any other.
    """
    run = bundled("scores")
    (run.path / ORIGINALS).write_text("{")

    with pytest.raises(DataError, match=r"originals\.json is not JSON"):
        run.read_trace(run.trial_ids()[0])
