"""
Tests for `harness.core.evaluate.observations` and ``harness vet``: from stored units to the vet of
jobs.
"""

import json

from pathlib import Path

import numpy as np
import pytest

from click.testing import CliRunner

from harness.base.errors import DataError
from harness.base.records.tasks import RecordLoop, Span, TaskSpans, UnitTimes
from harness.base.records.trace import TASK_COUNTER, JobTrace, TaskAttempt
from harness.base.records.trial import Tracing, TrialRecord, Versions
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.experiment.model import Experiment, WorkloadAxes
from harness.core.store import Store
from harness.core.store.published import ORIGINALS
from harness.models.vet.equations import ks_two_sample, vet_job
from harness.tracer.command import vet as command

VERSIONS = Versions(hadoop="3.5.0", java="17.0.1")
MAPS = ("m_000000_0", "m_000001_0", "m_000002_0")
REDUCES = ("r_000000_0", "r_000001_0")
NAMES = [f"attempt_1_0001_{end}" for end in (*MAPS, *REDUCES)]
LOST = "attempt_1_0001_m_000000_1"


def seconds(trial, attempt):
    """
    The units of an attempt: others in each trial.
    """
    random = np.random.default_rng([trial, NAMES.index(attempt) if attempt in NAMES else 9])
    return tuple((1e-5 * (1 + random.pareto(1.3, 900))).tolist())


class Recorded:
    """
    What the tracer left of all attempts of one trial.
    """

    def __init__(self, trial):
        self.trial = trial

    def tasks(self):
        loop = RecordLoop(4500, 1.0, 0.5, 0.0, 0.0, 0, 9, 0.7, 3, 0.0, 0, ())
        spill = Span("spill", "SpillThread", 10.0, 0.8, 0.5, -1)
        for name in (*NAMES, LOST):
            yield TaskSpans(name, "closed", 10.0, 9.5, 0.004, 0, 5, loop, (spill, spill))

    def units(self):
        for name in (*NAMES, LOST):
            yield UnitTimes(name, 5, seconds(self.trial, name))


def attempt(name, state="succeeded"):
    """
    A map of four seconds, or a reduce; with its counters.
    """
    counters = {
        f"{TASK_COUNTER}.MAP_OUTPUT_BYTES": 10**6, f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": 4500,
        f"{TASK_COUNTER}.SPILLED_RECORDS": 9000,
    }  # fmt: skip
    kind = "map" if "_m_" in name else "reduce"
    task, finish = name.rsplit("_", 1)[0].replace("attempt", "task"), 13.0 + int(name[-3])
    return TaskAttempt(name, task, kind, state, 9.0, finish, "w1", counters=counters)


@pytest.fixture
def stored(tmp_path):
    """
    A run of two repeats of one cell, traced in *mode*.
    """

    def build(mode="units"):
        work = WorkloadAxes(name="terasort", input_bytes=(2**20,))
        experiment = Experiment(
            name="small", question="q", workloads=(work,), repeat=2, tracing=Tracing(mode=mode)
        )
        run = Store(tmp_path).open_run(experiment, "text", new=True)
        trials = order(experiment, expand(experiment), VERSIONS)
        run.write_plan(trials)
        for trial in trials:
            run.start_trial(trial).commit(
                TrialRecord(
                    trial=trial, state="done", started_s=1.0, finished_s=2.0, versions=VERSIONS
                )
            )
            attempts = (*map(attempt, NAMES), attempt(LOST, "killed"))
            job = JobTrace("job_1_0001", "n", "me", "SUCCEEDED", 8.0, 8.5, 15.0, 3, 2, attempts)
            recorded = Recorded(trial.repetition) if mode == "units" else None
            run.write_trace(trial.id, [job], recorded)
        return run

    return build


def read_vets(run):
    """
    The vet of all its jobs.
    """
    evaluation = Evaluation(run, run.experiment(), run.read_plan())
    return evaluation.vet(evaluation.done.values())


class TestVetBook:
    def test_is_the_vet_of_attempts_that_succeeded(self, stored):
        """
        From the units and the times of the history; a killed attempt is in no mean.
        """
        jobs = {job.repetition: job for job in read_vets(stored()).jobs}

        maps = jobs[0].kinds[0]
        assert list(maps.attempts) == NAMES[:3]
        assert maps.job == vet_job([seconds(0, n) for n in NAMES[:3]], [4.0, 5.0, 6.0])
        assert maps.flags["multi_spill"] == 3
        assert maps.spill_share == pytest.approx((1.6 / 4 + 1.6 / 5 + 1.6 / 6) / 3)

    def test_draws_the_typical_task_of_each_kind(self, stored):
        """
        Maps first; the curve is that of the attempt with the median vet.
        """
        (job, _) = read_vets(stored()).jobs

        assert [c.kind for c in job.curves] == ["map", "reduce"]
        assert [c.attempt_id for c in job.curves] == [k.typical for k in job.kinds]

    def test_compares_the_repeats_of_a_cell(self, stored):
        """
        One test for maps and one for reduces.
        """
        vets = read_vets(stored())
        first, second = sorted(vets.jobs, key=lambda job: job.repetition)

        assert [(t.kind, t.repetitions) for t in vets.repeats] == [
            ("map", (0, 1)), ("reduce", (0, 1)),
        ]  # fmt: skip
        a, b = (job.kinds[0].job.vet_tasks for job in (first, second))
        assert vets.repeats[0].ks == ks_two_sample(a, b)

    def test_is_empty_without_units(self, stored):
        """
        Spans alone tell of no record.
        """
        assert read_vets(stored("spans")).jobs == ()


class TestCommand:
    def printed(self, *arguments):
        return CliRunner().invoke(
            command, [str(a) for a in arguments], catch_exceptions=False, standalone_mode=False
        ).stdout  # fmt: skip

    def test_of_a_trial_prints_its_kinds(self, stored, tmp_path):
        """
        The begin of an id is enough.
        """
        trial = stored().trial_ids()[0]

        text = self.printed(trial[:8], "--results-dir", tmp_path)

        assert [text.count(name) for name in ("read-map", "reduce-write")] == [1, 1]
        assert "several spills: 3" in text

    def test_of_a_run_as_json_holds_every_task(self, stored):
        """
        Both jobs with each vet, and the tests between them.
        """
        run = stored()

        document = json.loads(self.printed(run.path, "--json"))

        assert [len(k["job"]["vet_tasks"]) for j in document["jobs"] for k in j["kinds"]] == [
            3, 2, 3, 2,
        ]  # fmt: skip
        assert len(document["repeats"]) == 2
        assert document["jobs"][0]["kinds"][0]["typical_task"]["n"] == 900

    def test_without_units_says_what_to_do(self, stored):
        """
        They have to be asked for before a job runs.
        """
        with pytest.raises(DataError, match="no finished task has times") as error:
            self.printed(stored("spans").path)

        assert "trace: units" in error.value.fix

    def test_a_run_may_be_an_experiment_file(self, tmp_path):
        """
        As for every command that takes a RUN: the newest run that measured the same.
        """
        file = Path(__file__).parents[2] / "experiments/smoke.yaml"
        words = (file, "--results-dir", tmp_path)
        with pytest.raises(DataError, match="no run of experiment smoke"):
            self.printed(*words)
        text = file.read_text(encoding="utf-8")
        run = Store(tmp_path).open_run(read_experiment(text, file.name), text)
        run.write_plan(())

        with pytest.raises(DataError, match="no run of this experiment has a trial yet"):
            self.printed(*words)

    def test_units_that_were_not_published_are_told(self, stored):
        """
        To measure them once more would not bring those of the run.
        """
        run = stored()
        (run.path / ORIGINALS).write_text('{"schema_version": 8, "level": "traces"}')
        for trial_id in run.trial_ids():
            (run.trial_dir(trial_id) / "trace/units.parquet").unlink()

        with pytest.raises(DataError, match="published with its traces") as error:
            self.printed(run.path)

        assert "trace: units" not in error.value.fix
