"""
What was hunted down: each is refused at the first door, by one error that says what, where and fix.
"""

import json

from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.anchoring.stamp import verify_stamp
from harness.base.errors import DataError, SpecError
from harness.base.records.hardware import MachineCosts
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import ClusterSpec
from harness.core.run.anchors import Notary, ask, words_of
from harness.core.store import Run, Store, ledger
from harness.core.store.anchors import measured_seal, read_anchor
from harness.core.store.published import ORIGINALS
from harness.hardware.transfer import read_hardware
from harness.nightly.columns import read_csv
from harness.nightly.records import Point
from harness.publish import verifiers, verify
from tests.hostile.whole import ANCHOR
from tests.store.conftest import Make
from tests.store.test_damage import Recorded

LATE = (1e999, 1e300, 253402300800, 10**18, -1, float("nan"))


@pytest.fixture
def run(tmp_path):
    """
    A run of one trial with tables.
    """
    make = Make()
    made = Store(tmp_path / "results").open_run(make.experiment(), "text")
    trial, *_ = plan = make.trials()
    attempt = TaskAttempt("a_1", "t_1", "map", "succeeded", 1.0, 2.0, "w", counters={"T.A": 1})
    job = JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, (attempt,), counters={"X": 2})
    made.write_plan(plan)
    make.commit(made, trial)
    made.write_trace(trial.id, [job], Recorded())
    return made


def changed(path, **fields):
    """
    Put *fields* into the first line of a JSON file.
    """
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | fields))
    return path


def refusal(act):
    """
    What is said of what *act* reads: what, where and fix.
    """
    with pytest.raises(DataError) as caught:
        act()
    assert caught.value.where
    assert caught.value.fix
    return caught.value.what


@pytest.mark.parametrize("moment", LATE)
def test_a_moment_that_no_calendar_has(run, moment, tmp_path):
    """
    Of a trial, a manifest, and an entry of the ledger.
    """
    (trial,) = run.trial_ids()
    for path, field in (
        (run.trial_dir(trial) / "trial.json", "finished_s"),
        (run.path / "manifest.json", "created_s"),
    ):
        whole = path.read_bytes()
        changed(path, **{field: moment})
        assert field in refusal(lambda: (Run(run.path).trials(), Run(run.path).read_manifest()))
        path.write_bytes(whole)

    entry = {"schema_version": 14, "run": "r", "experiment": "e", "lines": 1, "line": "x",
             "finished": True, "noted_s": moment}  # fmt: skip
    noted = tmp_path / "runs.jsonl"
    noted.write_text(json.dumps(entry) + "\n")
    with patch.object(ledger, "ledger_file", lambda: noted):
        assert "noted_s" in refusal(ledger.registered)


@pytest.mark.parametrize("job_id", ["", "job", "job_1", "job_1_x", "job_1_" + "9" * 400, "\ud800"])
def test_an_id_that_no_job_has(run, job_id):
    """
    Laws, and what is estimated, take ids apart.
    """
    (trial,) = run.trial_ids()
    changed(run.trial_dir(trial) / "trial.json", job_ids=[job_id])

    assert "job_ids" in refusal(lambda: Run(run.path).trials())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e300, -1e18])
def test_seconds_of_a_table(run, number):
    """
    None that is no number, and none beyond all calendars.
    """
    (trial,) = run.trial_ids()
    for table, column in (("attempts", "finish_s"), ("attempts", "sort_finish_s"),
                          ("spans", "wall_s"), ("units", "seconds")):  # fmt: skip
        path = run.trial_dir(trial) / "trace" / f"{table}.parquet"
        whole = path.read_bytes()
        put_into(path, column, number)
        what = refusal(lambda: (run.read_trace(trial), [*run.read_recordings(trial)],
                                [*run.read_units(trial)]))  # fmt: skip
        assert f"a value of {column} is no number of seconds" in what
        path.write_bytes(whole)


@pytest.mark.parametrize("parent", [0, 1, 2**62, -2])
def test_a_span_within_one_that_comes_later(run, parent):
    """
    Whoever draws it goes from the outer ones to the inner ones.
    """
    (trial,) = run.trial_ids()
    put_into(run.trial_dir(trial) / "trace/spans.parquet", "parent", parent)

    assert "comes later" in refusal(lambda: [*run.read_recordings(trial)])


def put_into(path, column, value):
    """
    Put *value* into the first row of a *column* of a table.
    """
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    values = [value, *table[column].to_pylist()[1:]]
    table = table.set_column(
        place, table.schema.field(place), pa.array(values, table.schema.types[place])
    )
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


@pytest.mark.parametrize("fields", [{"num_maps": 2**31}, {"num_reduces": -1}, {"finish_s": 1e999},
                                    {"submit_s": -1}])  # fmt: skip
def test_a_job_with_numbers_that_hadoop_has_not(run, fields):
    """
    In the record of a trial's jobs.
    """
    (trial,) = run.trial_ids()
    path = run.trial_dir(trial) / "trace/job.json"
    document = json.loads(path.read_text())
    document["jobs"][0] |= fields
    path.write_text(json.dumps(document))

    assert min(fields) in refusal(lambda: run.read_trace(trial))


@pytest.mark.parametrize("pem", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nMIIB\n"])
def test_what_is_no_certificate(pem):
    """
    Whatever the stamp is.
    """
    with (
        patch("harness.anchoring.stamp.read_stamp"),
        pytest.raises(DataError, match="no certificate that can be read") as caught,
    ):
        verify_stamp(b"", "ab" * 32, [pem], "x")
    assert caught.value.fix


@pytest.mark.parametrize("answer", ["A", "TUlJQg9", "\u0661", "%%%%"])
def test_an_answer_of_an_anchor_that_nobody_can_decode(run, answer):
    """
    It is shown where it is asked for.
    """
    path = run.path / "anchors/seal.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ANCHOR | {"answer": answer}))

    assert "answer" in refusal(lambda: read_anchor(run, "seal"))


@pytest.mark.parametrize("files", [None, [], {}, {"predictions/sealed.json": 1}])
def test_a_published_run_that_does_not_say_which_seal_it_had(run, files):
    """
    Its anchors are of that.
    """
    text = json.dumps({"schema_version": 14, "level": "scores", "files": files})
    (run.path / ORIGINALS).write_text(text)

    assert "does not say which hash" in refusal(lambda: measured_seal(run))


@pytest.mark.parametrize("command", ["a 'b", 'a "', "a \\", "x" * 4097])
def test_a_command_that_is_none(command):
    """
    Of anchors.
    """
    with pytest.raises(SpecError) as caught:
        words_of(command)
    assert caught.value.where == "--anchor"
    assert caught.value.what in ask("seal", "ab" * 32, Notary(command)).error


@pytest.mark.parametrize("line", ["x y z", "", "ab" * 32, f"{'ab' * 32} HEAD", "\udc80"])
def test_a_list_of_former_verifiers_that_is_damaged(line, tmp_path):
    """
    By its line; to install again is what helps.
    """
    path = tmp_path / "former_verifiers.txt"
    path.write_text(f"# comment\n{line}\n", errors="surrogateescape")
    with (
        patch.object(verifiers, "FORMER_LIST", path),
        pytest.raises(DataError, match="is no SHA-256 with its commit") as caught,
    ):
        verifiers.former_verifiers.__wrapped__()
    assert caught.value.where == f"{path}:2"


@pytest.mark.parametrize(
    "text", ["3_0.6", "\u0663\u0660.\u0666", " 30.6", "30.6\n", "+1", "nan", "inf", ".5", "0x1p3"]
)
def test_a_number_that_python_alone_reads(text):
    """
    No other reader of CSV would have it.
    """
    with pytest.raises(ValueError, match="is no number"):
        verify.number_of(text)


@pytest.mark.parametrize("number", [0.0, 12, -3.5, 1e-9, 1.5e300, 0.1 + 0.2])
def test_a_number_as_tables_have_it(number):
    """
    It is read as it was.
    """
    assert verify.number_of(str(number)) == number


@pytest.mark.parametrize("number", ["1e308", "5e-324", "-1e200"])
def test_a_column_of_nights_beyond_all_that_is_measured(number, tmp_path):
    """
    Changes between such numbers would be none.
    """
    path = tmp_path / "nights.csv"
    path.write_text(f"time,job\n2026-01-01,1\n2026-01-02,{number}\n")

    assert "beyond all that is measured" in refusal(lambda: read_csv(path))


@pytest.mark.parametrize("seconds", [0, -1, 5e-324, 1e308, 1e999])
def test_a_night_with_times_that_have_no_logarithm(seconds):
    """
    Levels of nights are logarithms of means.
    """
    fields = {"kind": "measured", "quantity": "job_s"}
    with pytest.raises(ValueError, match="raw"):
        Point.model_validate({**fields, "raw": (1.0, seconds)})


@pytest.mark.parametrize(
    "job", [{}, {"trial": "a"}, {"trial": 1, "reason": "r", "seconds": 1.0},
            {"trial": "a", "reason": "r", "seconds": "1"},
            {"trial": "a", "reason": "r", "seconds": 1e999}]
)  # fmt: skip
def test_costs_of_a_machine_with_a_job_that_is_none(job, tmp_path):
    """
    Its page shows them.
    """
    path = tmp_path / "hardware.json"
    document = MachineCosts(measured_s=1.0, costs={}).model_dump(mode="json")
    path.write_text(json.dumps(document | {"chosen": [job]}))

    assert "a job has a trial, a reason, and the seconds" in refusal(lambda: read_hardware(path))


@pytest.mark.parametrize("workers", [0, 10**6 + 1, 2**63])
def test_a_cluster_of_more_workers_than_an_experiment_may_have(workers):
    """
    Each gets a name and an address wherever the cell is looked at.
    """
    with pytest.raises(ValueError, match="workers"):
        ClusterSpec(workers=workers)
