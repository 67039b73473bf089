"""What a bundle claims, in sentences that `verify.py` makes again from its tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import fmean, median
from typing import NamedTuple

from harness.evaluate.flow import Evaluation
from harness.evaluate.provenance import blind_refusals
from harness.publish.data import hardware_of
from harness.records.score import ScoreBook
from harness.scoring.comparisons import FRAMED, MOST_FRAME

CLAIM, CLAIM_END = "<!-- claim -->", "<!-- /claim -->"


class Claim(NamedTuple):
    """A *title*, the *date* (ISO) of the measurements, and the *lines* about each run."""

    title: str
    date: str
    lines: tuple[str, ...]


def make_claim(evaluations: Sequence[Evaluation], end_s: float) -> Claim:
    """Claim of a bundle of *evaluations*, whose date is that of *end_s*."""
    names = dict.fromkeys(evaluation.experiment.name for evaluation in evaluations)
    by_name = sorted(evaluations, key=lambda each: (each.experiment.name, each.run.id))
    lines = [line for evaluation in by_name for line in _lines(evaluation)]
    title = f"Performance models of Hadoop MapReduce compared: {', '.join(names)}"
    return Claim(title, datetime.fromtimestamp(end_s, UTC).date().isoformat(), tuple(lines))


def _lines(evaluation: Evaluation) -> list[str]:
    """Four lines about one run; the form is fixed (docs/rules.md), as it is computed again."""
    run, score_book = evaluation.run, evaluation.run.read_scores()
    ranking, name = score_book.ranking("raw"), f"- {evaluation.experiment.name} ({run.id})"
    floors: list[float | None] = []
    if ranking is None or not ranking.models:
        first = f"{name}: no model can be ranked."
    else:
        of = (ranking.models[0], ranking.quantity, "raw")
        answers = [
            {score.cell: score for score in score_book.scores if score.quantity == of[1]
             and score.speed == "raw" and score.model == model}
            for model in ranking.models
        ]  # fmt: skip
        common = set.intersection(*map(set, answers)) - _framed(score_book, of[1])
        floors = [row.floor for key, row in answers[0].items() if key in common]
        errors = dict(zip(ranking.models, ranking.errors, strict=True))
        near = [errors[model] for model in ranking.nearest]
        over, ends = f"over {ranking.cells} cells", (f"{100 * each:.1f} %" for each in near[:1])
        if len(near) == 1:
            first = f"{name}: {ranking.nearest[0]} is nearest by {of[1]},"
            first += f" {next(ends)} off on average {over}."
        else:
            *others, last = ranking.nearest
            first = f"{name}: no model is nearest by {of[1]}: {', '.join(others)} and {last},"
            first += f" {next(ends)} to {100 * max(near):.1f} % off on average {over},"
            first += " cannot be told apart."
    records = run.trials().values()
    done = [each for each in evaluation.done.values() if not each.trial.profiling]
    scored = {trial.cell.id for trial in evaluation.plan if not trial.profiling}
    disturbed = sum(bool(record.disturbed) for record in done)
    failed = sum(record.state != "done" for record in records)
    known = [floor for floor in floors if floor is not None]
    noise = f"{100 * median(known):.1f} %" if known else "not known"
    rests_on = f"  It rests on {len(done)} trials of {len(scored)} scored cells, of which"
    rests_on += f" {disturbed} are disturbed and {failed} failed; the noise of a cell's mean is"
    order = "  The predictions were sealed before what they are scored on was measured."
    if blind_refusals(run, evaluation.done.values()):
        order = "  The predictions were sealed after the measurement: their models could have been"
        order += " chosen by it."
    reach = f"  It holds for {hardware_of(evaluation)} and these inputs; nothing is said of other"
    return [first, f"{rests_on} {noise} (median).", order, f"{reach} systems."]


def _framed(score_book: ScoreBook, quantity: str) -> set[str]:
    """Cells whose frame is too much of the job for a verdict on *quantity*."""
    times = defaultdict[str, list[tuple[float, float]]](list)
    for each in score_book.measurements:
        if "frame_s" in each.raw_s:
            times[each.cell].append((each.raw_s["frame_s"], each.raw_s.get("job_s", 0.0)))
    shares = {
        cell: fmean(frame_s for frame_s, _ in pairs) / (fmean(job_s for _, job_s in pairs) or 1)
        for cell, pairs in times.items()
    }
    return {cell for cell, share in shares.items() if share > MOST_FRAME and quantity in FRAMED}
