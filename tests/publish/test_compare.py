"""
Which conclusions carry over from one measurement to another.
"""

import pytest

from harness.base.records.score import Comparison, MetricValue, Ranking, Score, ScoreBook, Summary
from harness.publish.compare import conclude


def scores(verdict="nearer", better="a", error=(0.1, 0.05, 0.15), errors=(0.1,) * 6):
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
