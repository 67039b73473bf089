"""
Tests for `harness.scoring.weights`, and of all numbers that weigh cells.
"""

from random import Random

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.question import BEST, Question
from harness.base.records.score import Score
from harness.scoring import score
from harness.scoring.comparisons import FAMILY_ERROR, compare
from harness.scoring.metrics.errors import mean_error
from harness.scoring.weights import relative_weights, weighted_mean
from tests.scoring.test_definitions import drifts, measured, predicted, questions
from tests.strategies import SEEDS


def scores_of(errors, weights=None, *, model="m", inputs=None):
    """
    Scores of a model with these errors, cell by cell.
    """
    weights = weights or [None] * len(errors)
    return [
        Score(
            model=model, cell=f"c{place:02}", level="job", quantity="job_s", speed="raw",
            predicted_s=100 * (1 + error), measured_s=100.0, trials=2, floor=0.02,
            signed_error=error, relative_error=abs(error), weight=weight,
            input=inputs[place] if inputs else "",
        )
        for place, (error, weight) in enumerate(zip(errors, weights, strict=True))
    ]  # fmt: skip


def without_weights(book):
    """
    What a score book says, but for the weights themselves.
    """
    plain = {"weight": None}
    return book.model_copy(
        update={
            "measurements": tuple(each.model_copy(update=plain) for each in book.measurements),
            "scores": tuple(each.model_copy(update=plain) for each in book.scores),
        }
    )


@pytest.mark.process
@given(SEEDS, st.floats(1e-3, 1))
def test_equal_weights_change_no_bit(seed, weight):
    """
    Of any score, ranking, comparison, control, summary or answer.
    """
    random = Random(seed)
    measurements = [each.model_copy(update={"weight": None}) for each in measured(random)]
    predictions = [*predicted(random, measurements)]
    given = {"question": questions(random), "drift": drifts(random)}
    weighed = [each.model_copy(update={"weight": weight}) for each in measurements]

    plain = score(predictions, measurements, **given)
    assert without_weights(score(predictions, weighed, **given)) == plain


def test_weights_are_relative():
    """
    A common factor is none, and where one is not known all count alike.
    """
    assert relative_weights(scores_of([0.1, 0.2], [1.0, 3.0])).tolist() == [0.5, 1.5]
    assert relative_weights(scores_of([0.1, 0.2], [0.7, 0.7])).tolist() == [1, 1]
    assert relative_weights(scores_of([0.1, 0.2], [0.7, None])).tolist() == [1, 1]
    assert weighted_mean([1.0, 3.0], scores_of([0.1, 0.2], [1.0, 3.0])) == 2.5


def test_a_cell_that_weighs_twice_counts_as_two():
    """
    In a mean error and its interval, where units are inputs, and in a pair as it is tested.
    """
    errors = [0.1, -0.2, 0.05, 0.3, 0.15, -0.1, 0.25]
    others = [0.2, 0.25, 0.1, -0.2, 0.3, 0.2, 0.3]
    names = [f"w {place}" for place in range(7)]
    weights = [2.0, *[1.0] * 6]
    doubled = [0, *range(7)]

    def rows(chosen, **given):
        inputs = [names[place] for place in chosen]
        one = scores_of([errors[place] for place in chosen], inputs=inputs, **given)
        other = scores_of([others[place] for place in chosen], inputs=inputs, model="n", **given)
        return one, other

    weighed = rows(range(7), weights=weights)
    twice = rows(doubled)
    one, two = mean_error(weighed[0], "inputs"), mean_error(twice[0], "inputs")
    assert (one.value, one.low, one.high) == pytest.approx((two.value, two.low, two.high))
    assert one.value != pytest.approx(mean_error(scores_of(errors)).value)

    question = Question(how_far=BEST, scope="inputs")
    pairs = [
        compare([*a, *b], question=question, error=FAMILY_ERROR)[1][0] for a, b in (weighed, twice)
    ]
    found = [(pair.difference, pair.low, pair.high, pair.chance) for pair in pairs]
    assert found[0] == pytest.approx(found[1])
