"""``harness trace``: what was recorded in the tasks of a stored trial."""

import gzip
import json

from dataclasses import replace

import pytest

from click.testing import CliRunner

from harness.base.errors import DataError, HarnessError
from harness.base.records.tasks import RecordLoop, Span, TaskSpans
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import TrialRecord, Versions
from harness.core.experiment.grid import expand, order
from harness.core.experiment.model import Experiment, WorkloadAxes
from harness.core.store import Store
from harness.tracer.command import trace as command

VERSIONS = Versions(hadoop="3.5.0", java="17.0.1")


class Recorded:
    """One map and one reduce, of two and of five seconds."""

    def __init__(self, *kinds):
        self.kinds = kinds

    def tasks(self):
        """Their recordings."""
        loop = RecordLoop(7, 1.0, 0.5, 0.0, 0.0, 0, 9, 0.7, 3, 0.0, 0, ())
        for kind in self.kinds:
            span = Span("main", "main", 10.0, 1.0, 0.5, -1)
            yield TaskSpans(name_of(kind), "closed", 10.0, 9.5, 0.004, 0, 5, loop, (span,))

    def units(self):
        """None were asked for."""
        return iter(())


def name_of(kind):
    """The id of the only attempt of that kind."""
    return f"attempt_1_0001_{kind}_000000_0"


@pytest.fixture
def trial(tmp_path):
    """Stores a trial whose *kinds* of tasks were recorded; gives its id."""

    def build(*kinds, jobs=1):
        work = WorkloadAxes(name="wordcount", input_bytes=(2**20,))
        experiment = Experiment(name="small", question="q", workloads=(work,))
        run = Store(tmp_path).open_run(experiment, "text", new=True)
        planned = order(experiment, expand(experiment), VERSIONS)[0]
        record = TrialRecord(
            trial=planned, state="done", started_s=10.0, finished_s=20.0, versions=VERSIONS
        )
        folder = run.start_trial(planned)
        folder.commit(record)
        attempts = tuple(
            TaskAttempt(name_of(k), f"task_1_0001_{k}_000000", kind, "succeeded", 9.0, end, "w1")
            for k, kind, end in (("m", "map", 11.0), ("r", "reduce", 14.0))
        )
        job = JobTrace("job_1_0001", "n", "me", "SUCCEEDED", 8.0, 8.5, 15.0, 1, 1, attempts)
        empty = [replace(job, job_id=f"job_1_{n:04}", attempts=()) for n in range(2, jobs + 1)]
        run.write_trace(planned.id, [job, *empty], Recorded(*kinds) if kinds else None)
        return planned.id

    return build


def run(tmp_path, *arguments):
    """What the command prints."""
    reported = [*arguments, "--results-dir", str(tmp_path)]
    return (
        CliRunner().invoke(command, reported, catch_exceptions=False, standalone_mode=False).output
    )


class TestShow:
    def test_lists_the_tasks_and_draws_the_longest(self, tmp_path, trial):
        """
        The begin of an id is enough.
        """
        printed = run(tmp_path, trial("m", "r")[:5])

        assert printed.splitlines()[0] == "job_1_0001: 2 attempts, 2 recorded"
        assert f"{name_of('r')}: reduce on w1, 5.0 s" in printed

    def test_draws_the_task_asked_for(self, tmp_path, trial):
        """
        A part of its id is enough.
        """
        printed = run(tmp_path, trial("m", "r"), "--task", "m_000000")

        assert printed.splitlines()[0] == f"{name_of('m')}: map on w1, 2.0 s"

    def test_of_several_jobs_shows_all_or_the_one_asked_for(self, tmp_path, trial):
        """
        All jobs without a word, and how to see one; the tasks of the first are none of the second.
        """
        known = trial("m", "r", jobs=3)

        everything, first = run(tmp_path, known), run(tmp_path, known, "--job", "1")
        assert "job_1_0001 to job_1_0003: 2 attempts, 2 recorded" in everything
        assert "3 jobs, one after the other; --job K shows one of them" in everything
        assert first.splitlines()[0] == "job_1_0001: 2 attempts, 2 recorded"
        with pytest.raises(DataError, match="nothing was recorded in the tasks"):
            run(tmp_path, known, "--job", "2")

    def test_gives_one_json_document(self, tmp_path, trial):
        """
        Longest first; estimates are named.
        """
        document = json.loads(run(tmp_path, trial("m", "r"), "--json"))

        reported = [(t["attempt_id"], t["sampled"], len(t["spans"])) for t in document["tasks"]]
        assert reported == [(name_of("r"), ["output_s"], 1), (name_of("m"), ["output_s"], 1)]
        assert {t["outcome"] for t in document["tasks"]} == {"succeeded"}

    @pytest.mark.parametrize(("name", "opener"), [("job.json", open), ("job.json.gz", gzip.open)])
    def test_writes_what_perfetto_opens(self, tmp_path, trial, name, opener):
        """
        A JSON object with a list of events, compressed where the name says so.
        """
        run(tmp_path, trial("m"), "-o", str(tmp_path / name))

        with opener(tmp_path / name, "rt") as file:
            events = json.load(file)["traceEvents"]
        assert sorted({e["name"] for e in events if e["ph"] == "X"}) == [
            "job",
            "main",
            "map attempt",
            "reduce attempt",
        ]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "what"),
        [
            (["zz"], "no trial 'zz'"),
            ([""], "matches several trials|no trial ''"),
            (["{id}", "--task", "m_000009"], "no recorded attempt is called 'm_000009'"),
            (["{id}", "-o", "/nowhere/x.json"], "no such file"),
            (["{id}", "--job", "2"], "left the history of 1 job"),
        ],
    )
    def test_say_what_and_where(self, tmp_path, trial, arguments, what):
        """
        A wrong name is no traceback.
        """
        known = trial("m")
        with pytest.raises(HarnessError, match=what):
            run(tmp_path, *(a.replace("{id}", known) for a in arguments))

    def test_a_trial_without_recordings_says_how_to_get_them(self, tmp_path, trial):
        """
        Stock logs have no spans.
        """
        with pytest.raises(DataError, match="nothing was recorded") as error:
            run(tmp_path, trial())
        assert "trace: spans" in error.value.fix

    def test_the_newest_run_of_a_trial_is_shown(self, tmp_path, trial):
        """
        A trial's id is the same in each run of its experiment.
        """
        trial("m")
        printed = run(tmp_path, trial("m", "r"))

        assert "2 recorded" in printed
