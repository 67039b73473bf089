"""Every stage from raw logs to scores, made again by the present code and compared with results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.model import Experiment
from harness.core.experiment.question import with_question
from harness.core.store import Run
from harness.core.store.compare import Difference, compare_files
from harness.core.store.traces import remake_all_traces

# Stages in their order, each with its files; what is made of raw logs is the first.
STAGES = {
    "trace": "trials/*/trace/*",
    "profiles": "profiles/*.json",
    "predictions": "predictions/*.jsonl",
    "scores": "scores/*.json",
}
_HISTORIES = "trials/*/raw/job-*-history.jhist.gz"


def keep_draw(run: Run, remade_run: Run) -> None:
    """Give *remade_run* the cells that *run* drew: what was drawn is drawn."""
    draw = run.measured.read_draw()
    if draw is not None and remade_run.measured.read_draw() is None:
        remade_run.measured.write_draw(draw)


def reproduce(
    run: Run, folder: Path, given: str, *, is_lean: bool = False
) -> Iterator[tuple[str, list[Difference]]]:
    """
    Each stage after *given*, made in the empty *folder* of those before, with what differs.

    Ends before the first stage of which *run* has nothing; `EvidenceError`: it was tampered with.
    *is_lean*: what comes before all that the run has is taken as it is stored, as in a bundle; so
    it is of a run that was published.  So are profiles of another run.
    """
    run.check_evidence()
    if run.seal.exists():
        run.seal.check()
    experiment = experiment_as_asked(run)
    is_lean = is_lean or run.published_level != ""
    has_traces = not is_lean or has_any(run, STAGES["trace"])
    made_stages = stages_made(run, given, is_lean=is_lean, has_traces=has_traces)
    if experiment.predict.source:
        made_stages = [stage for stage in made_stages if stage != "profiles"]
    stored = None if has_traces else run.read_scores()
    remade_run = run.link_to(folder, [stage for stage in STAGES if stage not in made_stages])
    keep_draw(run, remade_run)
    evaluation = Evaluation(remade_run, experiment, run.read_plan())

    def predict() -> None:
        evaluation.predict()
        if run.seal.exists():  # with what was sealed: older seals have no question
            remade_run.seal.add(run.seal.question())

    def score() -> None:
        scores = evaluation.score(stored)
        if experiment.question.moved_since:  # the answer rests on a run that is not made again
            answered = scores.model_copy(update={"answer": run.read_scores().answer})
            remade_run.write_scores(answered)

    make: dict[str, Callable[[], object]] = {
        "trace": lambda: remake_all_traces(remade_run),
        "profiles": evaluation.profile,
        "predictions": predict,
        "scores": score,
    }
    for stage in made_stages:
        if next(run.opener.glob(STAGES[stage]), None) is None:
            break
        make[stage]()
        yield stage, list(compare_files(run.opener, remade_run.opener, STAGES[stage]))


def stages_made(run: Run, given: str, *, is_lean: bool, has_traces: bool) -> list[str]:
    """The stages after *given* that can be made of what *run* has."""
    stages = list(STAGES)
    has_logs = not is_lean or has_any(run, _HISTORIES)
    has_logs = has_logs and run.published_level in ("", "raw")  # or there are no recordings
    first = stages.index(given) + 1 if given in stages else 0
    if run.measured is not run or not has_logs:  # of an analysis: traces are the run's
        first = max(first, stages.index("profiles"))
    if not has_logs and not has_traces:
        first = max(first, stages.index("predictions"))
    return stages[first:]


def experiment_as_asked(run: Run) -> Experiment:
    """Experiment of *run*, with the question that was asked of it afterwards, if one was."""
    experiment = run.experiment()
    found = run.read_scores().answer if run.is_scored else None
    if found is None or found.asked != "afterwards":
        return experiment
    return with_question(experiment, found.question)


def has_any(run: Run, pattern: str) -> bool:
    """Whether *run* has a file of this *pattern*."""
    return next(run.path.glob(pattern), None) is not None
