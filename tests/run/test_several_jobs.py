"""
A stored run whose trials have several jobs, from its histories to its report.
"""

import json

import pytest

from harness.base.errors import DataError
from harness.base.records.prediction import JobInput
from harness.base.records.trace import BYTES_READ
from harness.base.records.trial import TrialRecord
from harness.clusters.monitor.machine import PROBE_LOG
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.observations import input_read
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.store import Store
from harness.core.store.traces import remake_trace
from harness.observe.profiling.fit import JOBS_PER_TRIAL
from tests.records.test_trace import job
from tests.run.fakes import VERSIONS, Rounds, recorded_history

EXPERIMENT = """
schema: 1
name: rounds
question: Do several jobs make one trial?
cluster: {workers: 2, site: {dfs.blocksize: 2m}}
workloads:
  - {name: rounds, input: 6000000}
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.mb: 1
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
  mapreduce.task.io.sort.factor: [3, 5, 10]
repeat: 2
predict:
  models: [whatif-mr2, scaling]
  profile_on: {mapreduce.task.io.sort.factor: [3, 10]}
"""
JOBS = 12  # more than ten: the order of names is not that of numbers


def commit(run, trial, jobs):
    """
    A trial as its execution leaves it, of so many jobs.
    """
    folder = run.start_trial(trial)
    for number in range(jobs):
        history, _ = recorded_history(number + 1)
        (folder.raw / f"job-{number}-history.jhist").write_bytes(history)
    (folder.raw / PROBE_LOG).write_text("# probe\n")
    record = TrialRecord(
        trial=trial, state="done", started_s=1.0, finished_s=2.0, versions=VERSIONS,
        job_ids=tuple(recorded_history(n + 1)[1] for n in range(jobs)),
    )  # fmt: skip
    folder.commit(record)
    remake_trace(run, record)


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    """
    Profiling trials of 12 and of 10 jobs; those that are scored have 12.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WORKLOADS, "rounds", Rounds(None))
        experiment = read_experiment(EXPERIMENT, "rounds.yaml")
        run = Store(tmp_path_factory.mktemp("results")).open_run(experiment, EXPERIMENT)
        trials = order(experiment, expand(experiment), VERSIONS)
        run.write_plan(trials)
        for trial in trials:
            commit(run, trial, JOBS - 2 if trial.profiling and trial.repetition else JOBS)
        e = Evaluation(run, run.experiment(), run.read_plan())
        e.profile()
        e.predict()
        e.score()
        yield e


def test_all_jobs_are_read_in_their_order(evaluation):
    """
    Job 10 comes after job 9.
    """
    record = next(r for r in evaluation.done.values() if not r.trial.profiling)

    assert tuple(j.job_id for j in evaluation.jobs(record)) == record.job_ids


def test_every_job_feeds_the_profile(evaluation):
    """
    Each is an observation of its own, and how many there were is a statistic.
    """
    profile = evaluation.run.read_profiles()["rounds"]

    result = profile.statistics[JOBS_PER_TRIAL]
    assert (result.value, result.count) == (JOBS - 1, 4)
    assert len(profile.jobs) == 2 * JOBS + 2 * (JOBS - 2)
    assert {j.number for j in profile.jobs} == set(range(JOBS))


def test_a_trial_takes_the_sum_of_its_jobs(evaluation):
    """
    Measured and predicted alike; each job has a score of its own.
    """
    (first, second) = evaluation.measurements()
    answers = {m: p[0] for m, p in evaluation.run.read_predictions().items()}
    scored = {s.quantity for s in evaluation.run.read_scores().scores}

    assert first.raw_s["job_s"] == pytest.approx(sum(first.jobs_s))
    assert first.raw_s["each_job_s"] == pytest.approx(first.jobs_s[0])
    assert len(first.jobs_s) == len(second.jobs_s) == JOBS
    answer = answers["whatif-mr2"]
    assert answer.job_s == pytest.approx((JOBS - 1) * answer.each_job_s)
    whole = answers["scaling"]
    assert whole.job_s == pytest.approx((JOBS - 1) * whole.each_job_s)
    assert 0 < whole.body_s < whole.each_job_s
    assert {"job_s", "each_job_s"} <= scored


@pytest.mark.process
def test_the_report_shows_them(evaluation):
    """
    A row for each job, the timeline of all, and the document for scripts.
    """
    html, markdown, document, _ = (path.read_text() for path in evaluation.report()[0])

    assert "each job of a trial" in markdown
    assert f"{JOBS} jobs, one after the other" in html
    assert len(json.loads(document)["measurements"][0]["jobs_s"]) == JOBS


def test_a_done_trial_without_a_job_is_refused(evaluation, monkeypatch):
    """
    Its trace was spoilt.
    """
    record = next(iter(evaluation.done.values()))
    monkeypatch.setattr(type(evaluation.run), "read_trace", lambda *_, **__: ())

    with pytest.raises(DataError, match="its trace has no job"):
        evaluation.jobs(record)


PLANNED = JobInput(input_bytes=1000, num_files=2, num_splits=2, split_bytes=500.0)


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({BYTES_READ: 1009}, PLANNED),
        ({}, PLANNED),
        (
            {BYTES_READ: 600},
            JobInput(input_bytes=600, num_files=2, num_splits=2, split_bytes=300.0),
        ),
    ],
)
def test_input_of_a_job(counters, expected):
    """
    The plan's, unless its counters tell of other bytes.
    """
    assert input_read(job(0, **counters), PLANNED) == expected


def test_input_in_other_splits():
    """
    A job that reads what another wrote has that one's files.
    """
    result = input_read(job(0, **{BYTES_READ: 1000}), PLANNED.model_copy(update={"num_splits": 5}))

    assert (result.input_bytes, result.num_splits) == (1000, 2)
