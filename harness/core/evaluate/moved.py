"""The answer to what has moved since an earlier run: that of comparing the two."""

from __future__ import annotations

from harness.base.errors import HarnessError
from harness.base.records.question import Answer, Asked, Outcome, Question
from harness.core.evaluate.changes import Change, Side, changes, sentence
from harness.core.evaluate.stored import StoredTrials
from harness.core.store import Run, Store
from harness.scoring.answers import no_answer


def answer_moved(run: Run, question: Question, asked: Asked) -> Answer:
    """Say what has moved in *run*, which is scored, since the run that *question* names."""
    results_dir = run.measured.path.absolute().parent.parent
    try:
        earlier = Side(StoredTrials.of(Store(results_dir).find(question.moved_since)))
        present = Side(StoredTrials.of(run))
        changed = changes(earlier, present)
    except HarnessError as error:
        return no_answer(question, asked, error.what)
    verdict = sentence(earlier, present, changed)
    return Answer(
        question=question,
        asked=asked,
        outcome=outcome_of(changed),
        sentence=f"{verdict[:1].upper()}{verdict[1:]}.",
        cells=len({change.cell for change in changed if change.cell}),
    )


def outcome_of(changed: list[Change]) -> Outcome:
    """Whether something has moved; it cannot be told where nothing did and not all is equal."""
    verdicts = {change.verdict for change in changed}
    if verdicts & {"larger", "smaller"}:
        return "yes"
    return "no" if verdicts == {"equal"} else "cannot tell"
