"""Every stage from raw logs to scores, made again by the present code and compared with results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.evaluate.flow import Evaluation
from harness.run.traces import remake_trace
from harness.store import Run
from harness.store.compare import Difference, compare_files

# Stages in their order, each with its files; what is made of raw logs is the first.
STAGES = {
    "trace": "trials/*/trace/*",
    "profiles": "profiles/*.json",
    "predictions": "predictions/*.jsonl",
    "scores": "scores/*.json",
}
_HISTORIES = "trials/*/raw/job-*-history.jhist.gz"


def reproduce(
    run: Run, folder: Path, given: str, *, is_lean: bool = False
) -> Iterator[tuple[str, list[Difference]]]:
    """
    Each stage after *given*, made in the empty *folder* of those before, with what differs.

    Ends before the first stage of which *run* has nothing; `EvidenceError`: it was tampered with.
    *is_lean*: what comes before all that the run has is taken as it is stored, as in a bundle.
    """
    run.check_evidence()
    if run.seal.exists():
        run.seal.check()
    experiment = run.experiment()
    plan = run.read_plan()
    stages = list(STAGES)
    first = stages.index(given) + 1 if given in stages else 0
    first = first if run.measured is run else max(first, 1)  # traces are the run's
    has_traces = not is_lean or next(run.path.glob(STAGES["trace"]), None) is not None
    has_logs = not is_lean or next(run.path.glob(_HISTORIES), None) is not None
    first = max(first, 0 if has_logs else 1 if has_traces else 2)
    known = () if has_traces else run.read_scores().measurements
    again = run.link_to(folder, stages[:first])
    evaluation = Evaluation(again, experiment, plan)
    make: dict[str, Callable[[], object]] = {
        "trace": lambda: [remake_trace(again, record) for record in again.trials().values()],
        "profiles": evaluation.profile,
        "predictions": evaluation.predict,
        "scores": lambda: evaluation.score(known),
    }
    for stage in stages[first:]:
        if next(run.opener.glob(STAGES[stage]), None) is None:
            break
        make[stage]()
        yield stage, list(compare_files(run.opener, again.opener, STAGES[stage]))
