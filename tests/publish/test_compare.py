"""
Which conclusions carry over from one measurement to another.
"""

from pathlib import Path

import pytest

from harness.base.records.score import Comparison, MetricValue, Ranking, Score, ScoreBook, Summary
from harness.cli.commands.reading import shown_replication
from harness.publish.compare import Conclusion, Replication, conclude


def scores(
    verdict="nearer", better="a", error=(0.1, 0.05, 0.15), errors=(0.1,) * 6, other_times=None
):
    """
    Scores of two models: one comparison, and of the model `a` mean error and errors by cell.
    """
    of = {"quantity": "job_s", "speed": "raw"}
    worse = "b" if better == "a" else "a"
    pair = Comparison(
        better=better, worse=worse, cells=6, difference=-0.1, low=-0.2, high=-0.01,
        verdict=verdict, reason="", **of,
    )  # fmt: skip
    values = {"mape": MetricValue(value=error[0], low=error[1], high=error[2])}
    summary = Summary(model="a", workload="*", level="job", cells=6, metrics=values, **of)
    ranking = Ranking(cells=6, models=("a", "b"), errors=(0.1, 0.2), nearest=("a",), **of)
    by_cell = tuple(
        Score(model="a", cell=f"c{number}", level="job", predicted_s=1 + each, measured_s=1.0,
              trials=3, floor=None, signed_error=each, relative_error=abs(each), **of)
        for number, each in enumerate(errors)
    )  # fmt: skip
    if other_times is not None:
        cells = zip(by_cell, other_times, strict=True)
        by_cell += tuple(
            score.model_copy(update={"model": "b", "predicted_s": predicted_s, "signed_error": 0.0})
            for score, predicted_s in cells
        )
    return ScoreBook(comparisons=(pair,), summaries=(summary,), rankings=(ranking,), scores=by_cell)


def outcomes(published, measured):
    """
    The outcome of each conclusion, in the order verdict, error, bias.
    """
    return [each.outcome for each in conclude("run", published, measured)]


@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        ({}, "holds"),
        ({"better": "b"}, "does not hold"),
        ({"verdict": "equal"}, "does not hold"),
        ({"verdict": "undecided"}, "undecided"),
    ],
)
def test_a_verdict_holds_if_it_is_decided_the_same(again, outcome):
    """
    Decided otherwise it does not, and what is undecided there says nothing.
    """
    assert outcomes(scores(), scores(**again))[0] == outcome


@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        ((0.14, 0.10, 0.20), "holds"),
        ((0.18, 0.14, 0.22), "undecided"),
        ((0.30, 0.25, 0.35), "does not hold"),
        ((0.01, 0.005, 0.02), "does not hold"),
    ],
)
def test_a_mean_error_holds_within_its_interval(again, outcome):
    """
    Outside, it is contradicted only where both intervals have nothing in common.
    """
    assert outcomes(scores(), scores(error=again))[1] == outcome


@pytest.mark.parametrize(
    ("again", "outcome"),
    [
        ((0.3,) * 8, "holds"),
        ((-0.1,) * 6, "does not hold"),
        ((0.1,) * 5 + (-0.1,), "undecided"),
        ((0.1,) * 5, "undecided"),
        ((), "undecided"),
    ],
    ids=["the same", "the other", "both", "too few", "no answer"],
)
def test_a_bias_keeps_its_sign(again, outcome):
    """
    Where every cell had the same when it was published.
    """
    assert outcomes(scores(), scores(errors=again))[2] == outcome


@pytest.mark.parametrize("errors", [(0.1, -0.1) * 3, (0.1,) * 5, (0.0,) * 6])
def test_what_was_not_decided_is_no_conclusion(errors):
    """
    Neither an undecided verdict nor errors to both sides, or of few cells, can be contradicted.
    """
    published = scores(verdict="undecided", errors=errors)

    assert [each.what for each in conclude("run", published, scores())] == ["mean error of a"]


@pytest.mark.parametrize("verdict", ["nearer", "equal"])
def test_of_a_pair_that_predicts_the_same_nothing_is_concluded(verdict):
    """
    But for rounding, in all cells: such a pair is equal on every cluster.
    """
    same = scores(verdict, other_times=[1.1 + 2**-52] * 6)
    apart = scores(verdict, other_times=[1.1] * 5 + [1.1 + 1e-6])

    kinds = [[each.kind for each in conclude("run", book, book)] for book in (same, apart)]
    assert kinds == [["mean error", "bias"], [verdict, "mean error", "bias"]]


def test_kinds_are_counted_apart():
    """
    What holds of verdicts is not hidden among equalities and errors.
    """
    conclusions = [
        Conclusion(run="r", what="w", published="p", measured="m", outcome=outcome, kind=kind)
        for kind, outcome in [
            ("nearer", "holds"), ("nearer", "does not hold"), ("equal", "holds"),
            ("mean error", "undecided"), ("", "holds"),
        ]
    ]  # fmt: skip
    replication = Replication(
        bundle="b", runs=("r",), conclusions=tuple(conclusions), differences={}
    )

    lines = [part for part in shown_replication(replication, Path("b")) if isinstance(part, str)]
    assert lines == [
        "nearer: of 2 conclusions 1 hold, 1 do not hold, 0 undecided",
        "equal: of 1 conclusion 1 hold, 0 do not hold, 0 undecided",
        "mean error: of 1 conclusion 0 hold, 0 do not hold, 1 undecided",
        "bias: of 0 conclusions 0 hold, 0 do not hold, 0 undecided",
    ]
