"""Every stage from raw logs to scores, made again by the present code and compared with results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.evaluate.flow import Evaluation
from harness.run.traces import remake_trace
from harness.store import Run
from harness.store.compare import Difference, compare_files

# What is taken as it is stored, with the stage that is made of it, and the files of that stage.
STAGES = {
    "raw": ("trace", "trials/*/trace/*"),
    "trace": ("profiles", "profiles/*.json"),
    "profiles": ("predictions", "predictions/*.jsonl"),
    "predictions": ("scores", "scores/*"),
}


def reproduce(run: Run, folder: Path, given: str) -> Iterator[tuple[str, list[Difference]]]:
    """
    Each stage after *given*, made in the empty *folder* of those before, with what differs.

    Ends before the first stage of which *run* has nothing; `EvidenceError` where it was tampered
    with.
    """
    run.check_evidence()
    if run.seals.paths():
        run.check_seal()
    again = run.copy_to(folder, given)
    evaluation = Evaluation(again, again.experiment(), again.read_plan())

    def make_traces() -> None:
        for record in again.trials().values():
            remake_trace(again, record)

    makers: list[Callable[[], object]] = [make_traces]
    makers += [evaluation.profile, evaluation.predict, evaluation.score]
    stages = list(zip(STAGES.values(), makers, strict=True))
    for (stage, pattern), make in stages[list(STAGES).index(given) :]:
        if next(run.path.glob(pattern), None) is None:
            break
        make()
        yield stage, list(compare_files(run.path, again.path, pattern))
