"""What choosing a setting by a model is worth, by the clock: over the scored cells of a run."""

from __future__ import annotations

import math

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

from harness.base.documents.wording import count, listing, percent
from harness.base.hadoop.properties import JOB_PROPERTIES
from harness.base.records.prediction import JobConfig
from harness.base.records.score import ScoreBook
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.judge import joint_judge, judges_of

AT_RANDOM = "at random"
NEAR = 0.05  # within which of the best a setting is near it


def regrets(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """
    What each model's choice among the scored cells of one input is worth, by the clock.

    A model chooses among the cells that it answers; the best one and the default are those of all.
    Of cells that it predicts alike it may choose any: all is a mean over them, and the last row,
    `AT_RANDOM`, is of who knows nothing.  `regret` is by how much the chosen cell takes longer than
    the one measured to be fastest, `from_default` by how much less than the cell nearest to
    Hadoop's defaults (the mean of several), `curse` by how much it was predicted longer (below 0:
    shorter) than it took, `ranks` the rank correlation of predicted and measured times, `noise` the
    floors of both cells together (`None`: one was not repeated), `measured` how many cells, the
    shortest predicted one first, must be measured until one is within `NEAR` of the best.
    """
    from pandas import DataFrame

    score_book = evaluation.run.read_scores()
    kind = ("job_s", score_book.speed)
    scores = map(vars, score_book.scores)
    frame = DataFrame(row for row in scores if (row["quantity"], row["speed"]) == kind)
    if not len(frame):
        return
    for input_name, rows in frame.groupby("input"):
        predicted = rows.pivot_table(index="cell", columns="model", values="predicted_s")
        if len(predicted) < 2:
            continue
        measured = MeasuredCells.of(rows, evaluation)
        for model, predicted_s in predicted.assign(**{AT_RANDOM: 0.0}).items():
            worth = measured.worth_of_choice(predicted_s)
            if model == AT_RANDOM:
                worth["curse"] = None
            yield {"input": input_name, "model": model, **worth}


@dataclass(frozen=True)
class MeasuredCells:
    """
    The scored cells of one input: pandas columns by the ids of cells.

    *measured_s* are their mean times, *floors* the noise of these, as shares; *defaults* are the
    cells nearest to Hadoop's defaults, *labels* their names for people.
    """

    measured_s: Any
    floors: Any
    defaults: Sequence[str]
    labels: Mapping[str, str]

    @classmethod
    def of(cls, scores: Any, evaluation: Evaluation) -> Self:
        """The cells of *scores*, rows of one input, which *evaluation* knows."""
        cells = scores.groupby("cell").first()  # as they were measured, whoever predicted them
        distances = {cell: _from_defaults(evaluation.resolved[cell]) for cell in cells.index}
        nearest = min(distances.values())
        return cls(
            cells["measured_s"],
            cells["floor"].astype(float),
            [cell for cell in cells.index if distances[cell] == nearest],
            evaluation.labels,
        )

    def worth_of_choice(self, predicted_s: Any) -> dict[str, Any]:
        """What the choice by *predicted_s* is worth, as `regrets` has it."""
        from pandas import DataFrame

        measured_s = self.measured_s
        best = measured_s.idxmin()
        times_s = DataFrame({"predicted": predicted_s, "measured": measured_s})
        ranks = times_s.corr("spearman").loc["predicted", "measured"]
        chosen = predicted_s.index[predicted_s == predicted_s.min()]
        chosen_s = measured_s[chosen].mean()
        noise = math.hypot(self.floors[chosen].mean(skipna=False), self.floors[best])
        return {
            "cells": int(predicted_s.count()),
            "of": len(measured_s),
            "chosen": self.labels[chosen[0]] if len(chosen) == 1 else "",
            "best": self.labels[best],
            "regret": chosen_s / measured_s[best] - 1,
            "noise": None if math.isnan(noise) else noise,
            "from_default": 1 - chosen_s / measured_s[self.defaults].mean(),
            "curse": (predicted_s / measured_s)[chosen].mean() - 1,
            "ranks": None if math.isnan(ranks) else ranks,
            "measured": self.tries(predicted_s),
        }

    def tries(self, predicted_s: Any) -> float:
        """How many cells must be measured, the shortest predicted first, until one is near."""
        is_near = self.measured_s <= (1 + NEAR) * self.measured_s.min()
        order_s = predicted_s.fillna(math.inf)  # cells without an answer come last
        near_s = order_s[is_near].min()
        is_alike = order_s == near_s
        # Of n cells alike in any order, k of them near, the first near one is at (n + 1) / (k + 1).
        mean_place = (is_alike.sum() + 1) / ((is_alike & is_near).sum() + 1)
        tries: float = (order_s < near_s).sum() + mean_place
        return tries


def _from_defaults(cell: ResolvedCell) -> tuple[int, float, int]:
    """
    How far the settings of *cell* that models read are from Hadoop's defaults.

    How many differ, then by what ratios; of those alike, the one with fewer splits is nearer.
    """
    configuration, _, job_input = cell.model_inputs
    pairs = [(getattr(configuration, name), getattr(JobConfig(), name)) for name in JOB_PROPERTIES]
    ratios = (abs(math.log(value / default)) for value, default in pairs if value > 0 < default)
    differing = sum(value != default for value, default in pairs)
    return differing, math.fsum(ratios), job_input.num_splits


def answer_of(rows: Sequence[Mapping[str, Any]], scores: ScoreBook) -> dict[str, Any]:
    """
    The *rows* of `regrets` with their means, and what they come to in one sentence.

    The judge is the model with the smallest mean regret, over all workloads of *scores*.
    """
    means = mean_regret(rows)
    best = min(means.keys() - {AT_RANDOM}, key=lambda name: (means[name], name), default=AT_RANDOM)
    workloads = {measurement.workload for measurement in scores.measurements}
    by_workload = [judges_of(scores, workload) for workload in sorted(workloads)]
    judge = joint_judge(best, [judges[best] for judges in by_workload if best in judges])
    inputs = count(len({row["input"] for row in rows}), "input")
    text = f"what {best} chooses takes {percent(means[best])} longer than the best that was"
    text += f" measured, a choice at random {percent(means[AT_RANDOM])}, on {inputs}"
    says = f"{text}{noise_clause(rows, best, means[best])}; {judge.clause}"
    return {"says": says, **judge.document(), "regrets": rows, "mean": means}


def noise_clause(rows: Sequence[Mapping[str, Any]], model: str, regret: float) -> str:
    """What is to be said of the noise of a *model*'s mean *regret*; empty: it lies beyond it."""
    unknown_inputs = [row["input"] for row in rows if row["noise"] is None]
    if len(unknown_inputs) == len(rows):
        return "; the noise of that is not known: nothing was repeated"
    if unknown_inputs:
        inputs = listing(sorted({*unknown_inputs}))
        return f"; the noise of {inputs} is not known: it was not repeated"
    noise = mean_noise(rows, model)
    return f"; the noise of that is {percent(noise)}: it may be none" if regret <= noise else ""


def mean_noise(rows: Sequence[Mapping[str, Any]], model: str) -> float:
    """Mean noise of what *model* chose, over all inputs; of inputs that were all repeated."""
    return fmean(row["noise"] for row in rows if row["model"] == model)


def mean_regret(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean regret of each model over all inputs, the smallest first."""
    from pandas import DataFrame

    means: dict[str, float] = DataFrame(rows).groupby("model")["regret"].mean().to_dict()
    return dict(sorted(means.items(), key=lambda pair: pair[1]))
