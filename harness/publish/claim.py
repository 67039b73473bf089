"""What a bundle claims, in sentences that `verify.py` makes again from its tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from harness.evaluate.flow import Evaluation
from harness.evaluate.provenance import blind_refusals
from harness.publish.data import hardware_of
from harness.scoring.comparisons import FRAMED, MOST_FRAME
from harness.scoring.score import frame_shares

CLAIM, CLAIM_END = "<!-- claim -->", "<!-- /claim -->"


class Claim(NamedTuple):
    """A *title*, the *date* (ISO) of the measurements, and the *lines* about each run."""

    title: str
    date: str
    lines: tuple[str, ...]

    @property
    def abstract(self) -> str:
        """All of it in one paragraph."""
        return " ".join(line.strip().removeprefix("- ") for line in self.lines)


def make_claim(evaluations: Sequence[Evaluation], end_s: float | None = None) -> Claim:
    """Claim of a bundle of *evaluations*, whose date is that of *end_s*, or of the last trial."""
    names = dict.fromkeys(evaluation.experiment.name for evaluation in evaluations)
    by_name = sorted(evaluations, key=lambda each: (each.experiment.name, each.run.id))
    lines = [line for evaluation in by_name for line in _lines(evaluation)]
    title = f"Performance models of Hadoop MapReduce compared: {', '.join(names)}"
    if end_s is None:
        runs = (evaluation.run for evaluation in evaluations)
        end_s = max(record.finished_s for run in runs for record in run.trials().values())
    return Claim(title, datetime.fromtimestamp(end_s, UTC).date().isoformat(), tuple(lines))


def _lines(evaluation: Evaluation) -> list[str]:
    """Four lines about one run; the form is fixed (docs/rules.md), as it is computed again."""
    run, score_book = evaluation.run, evaluation.run.read_scores()
    ranking, name = score_book.ranking("raw"), f"- {evaluation.experiment.name} ({run.id}):"
    noise, first = "not known", f"{name} no model can be ranked."
    if ranking is not None and ranking.models:
        floors: dict[str, dict[str, float | None]] = {model: {} for model in ranking.models}
        for score in score_book.scores:
            if (score.quantity, score.speed) == (ranking.quantity, "raw") and score.model in floors:
                floors[score.model][score.cell] = score.floor
        common = set.intersection(*map(set, floors.values()))
        if ranking.quantity in FRAMED:
            shares = frame_shares(score_book.measurements)
            common = {cell for cell in common if shares.get(cell, 0.0) <= MOST_FRAME}
        known = [floors[ranking.models[0]][cell] for cell in common]
        if numbers := [floor for floor in known if floor is not None]:
            noise = f"{100 * median(numbers):.1f} %"
        errors = dict(zip(ranking.models, ranking.errors, strict=True))
        near_errors = [errors[model] for model in ranking.nearest]
        lowest, highest = (f"{100 * each(near_errors):.1f} %" for each in (min, max))
        over, (*others, last) = f"off on average over {ranking.cells} cells", ranking.nearest
        first = f"{name} {last} is nearest by {ranking.quantity}, {lowest} {over}."
        if others:
            first = f"{name} no model is nearest by {ranking.quantity}: {', '.join(others)} and"
            first += f" {last}, {lowest} to {highest} {over}, cannot be told apart."
    done = [each for each in evaluation.done.values() if not each.trial.profiling]
    scored = {trial.cell.id for trial in evaluation.plan if not trial.profiling}
    disturbed = sum(bool(record.disturbed) for record in done)
    failed = sum(record.state != "done" for record in run.trials().values())
    rests_on = f"  It rests on {len(done)} trials of {len(scored)} scored cells, of which"
    rests_on += f" {disturbed} are disturbed and {failed} failed; the noise of a cell's mean is"
    order = "  The predictions were sealed before what they are scored on was measured."
    if blind_refusals(run, evaluation.done.values()):
        order = "  The predictions were sealed after the measurement: their models could have been"
        order += " chosen by it."
    reach = f"  It holds for {hardware_of(evaluation)} and these inputs; nothing is said of other"
    return [first, f"{rests_on} {noise} (median).", order, f"{reach} systems."]
