"""A damaged file of one's own results is one clear error, which names the file and what to do."""

import pytest

from harness.base.errors import DataError
from harness.base.records.score import Score, ScoreBook
from harness.base.records.tasks import RecordLoop, Span, TaskSpans, UnitTimes
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.observe.storage import tables


def read_segments(opener, trial):
    """Rows of a table that the harness writes for others."""
    path = opener.root / "trials" / trial / "trace" / "segments.parquet"
    return list(tables.read_table(opener, path, tables._SEGMENT))


READERS = {
    "manifest.json": lambda run, trial: run.read_manifest(),
    "plan.jsonl": lambda run, trial: run.read_plan(),
    "trials/*/trial.json": lambda run, trial: run.trials(),
    "trials/*/raw/containers/c_1/syslog.gz": lambda run, trial: (
        run.raw(trial).open("containers/c_1/syslog").read()
    ),
    "trials/*/trace/job.json": lambda run, trial: run.read_trace(trial),
    "trials/*/trace/attempts.parquet": lambda run, trial: run.read_trace(trial),
    "trials/*/trace/counters.parquet": lambda run, trial: run.read_trace(trial),
    "trials/*/trace/tasks.parquet": lambda run, trial: list(run.read_recordings(trial)),
    "trials/*/trace/spans.parquet": lambda run, trial: list(run.read_recordings(trial)),
    "trials/*/trace/segments.parquet": lambda run, trial: read_segments(run.opener, trial),
    "trials/*/trace/units.parquet": lambda run, trial: list(run.read_units(trial)),
    "profiles/wordcount.json": lambda run, trial: run.read_profiles(),
    "predictions/whatif.jsonl": lambda run, trial: run.read_predictions(),
    "predictions/sealed.json": lambda run, trial: run.seal.check(),
    "scores/scores.json": lambda run, trial: run.read_scores(),
}
DAMAGE = {
    "truncated": lambda content: content[: 2 * len(content) // 5],
    "garbage": lambda content: bytes(255 - byte for byte in content),
    "a changed middle": lambda content: (
        content[: len(content) // 3] + b"\xff" * (len(content) // 3) + content[-len(content) // 3 :]
    ),
}


class Recorded:
    """The recording of one task."""

    def tasks(self):
        """One task with a span and a copied segment."""
        loop = RecordLoop(7, 1.0, 2.0, 0.5, 0.1, 2, 9, 0.7, 1, 0.0, 0, (0, 3, 4))
        spans = (
            Span("main", "main", 1.0, 1.0, None, -1),
            Span("segment", "fetcher#1", 5.0, 1.0, None, 0, text="m_1", details=(7, 12, 1)),
        )
        return [TaskSpans("a_1", "closed", 1.0, None, 0.1, 0, 5, loop, spans)]

    def units(self):
        """Some times of units."""
        return [UnitTimes("a_1", 5, (1.0, 0.5, 0.25))]


@pytest.fixture
def whole(run, make):
    """A run that has each kind of file."""
    trial, *_ = plan = make.trials()
    attempt = TaskAttempt("a_1", "t_1", "map", "succeeded", 1.0, 2.0, "w", counters={"T.A": 1})
    job = JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, (attempt,), counters={"X": 2})
    score = Score(
        model="m", cell="c", level="job", quantity="job_s", speed="raw", predicted_s=1.5,
        measured_s=2.0, trials=2, floor=None, signed_error=-0.25, relative_error=0.25,
    )  # fmt: skip
    run.write_plan(plan)
    make.commit(run, trial)
    run.write_trace(trial.id, [job], Recorded())
    run.write_profile(make.profile())
    run.write_predictions("whatif", [make.prediction()])
    run.seal.add()
    run.write_scores(ScoreBook(scores=(score,)))
    return run


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("pattern", READERS)
def test_a_damaged_file_is_named_with_a_fix(whole, pattern, damage):
    """
    Whatever is wrong with a file, reading it is `DataError` with its path and a command or a step.
    """
    (path,) = whole.path.glob(pattern)
    (trial,) = whole.trial_ids()
    READERS[pattern](whole, trial)
    path.write_bytes(damage(path.read_bytes()))

    with pytest.raises(DataError) as caught:
        READERS[pattern](whole, trial)

    assert path.name in caught.value.where or str(path.parent) in caught.value.where
    assert caught.value.fix
