"""
Errors of a prediction, and metrics over those of all cells.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.records.score import Score
from harness.scoring import METRICS, i_accu, relative_error, signed_error
from harness.scoring.metrics.calibration import calibration

times = st.floats(0.1, 1e5)
rows = st.lists(st.tuples(times, times), min_size=1, max_size=12)


class TestErrors:
    @given(times)
    def test_perfect_prediction_scores_zero(self, time):
        """
        No distance, no sign.
        """
        assert relative_error(time, time) == signed_error(time, time) == 0

    @given(times, times, st.floats(0.01, 100))
    def test_units_cancel(self, predicted, measured, c):
        """
        Minutes have the errors of seconds.
        """
        assert signed_error(c * predicted, c * measured) == pytest.approx(
            signed_error(predicted, measured), abs=1e-9
        )

    @given(times, times, times)
    def test_indicator_is_the_difference_of_the_errors(self, actual, model, whatif):
        """
        Eq. (6): above 0 is better than What-If, and the two parts stand beside it.
        """
        indicator = i_accu(actual, model, whatif)
        parts = indicator["whatif_error_percent"] - indicator["prophet_error_percent"]

        assert indicator["i_accu_percent"] == pytest.approx(parts, abs=1e-6)
        assert i_accu(actual, whatif, whatif)["i_accu_percent"] == 0

    @pytest.mark.parametrize("actual", [0, -1, math.nan, math.inf, "3", True])
    def test_time_that_is_none_is_refused(self, actual):
        """
        Nothing can be a share of it.
        """
        with pytest.raises(ValueError, match="not"):
            i_accu(actual, 1.0, 1.0)


class TestCalibration:
    @given(
        st.lists(st.integers(1, 10_000), min_size=3, max_size=12, unique=True),
        st.floats(0.1, 10),
        st.floats(-5, 5),
    )
    def test_finds_the_line_on_which_all_points_lie(self, predicted, slope, intercept):
        """
        Points on a line give its slope and intercept, and R2 of 1.
        """
        line = calibration(predicted, [intercept + slope * p for p in predicted])

        assert line.slope == pytest.approx(slope, rel=1e-6)
        assert line.intercept_s == pytest.approx(intercept, abs=1e-4 * max(predicted))
        assert line.r2 == pytest.approx(1, abs=1e-9)

    def test_known_scatter(self):
        """
        Four points, worked out by hand: slope 0.6, intercept 2.5, R2 0.9.
        """
        line = calibration([1, 2, 3, 4], [3, 4, 4, 5])

        assert (line.slope, line.intercept_s, line.r2) == pytest.approx((0.6, 2.5, 0.9))

    @pytest.mark.parametrize(
        ("predicted", "measured"),
        [([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5]), ([], [])],
    )
    def test_says_nothing_where_nothing_is_known(self, predicted, measured):
        """
        Two points always lie on a line, and one time makes none.
        """
        assert calibration(predicted, measured) is None


def scored(pairs, floor=0.05, **fields):
    """
    Scores of one model, of pairs of predicted and measured seconds.
    """
    return [
        Score(
            model="m", cell=f"c{place}", level="job", quantity="job_s", speed="raw",
            predicted_s=predicted, measured_s=measured, trials=2, floor=floor,
            signed_error=signed_error(predicted, measured),
            relative_error=relative_error(predicted, measured), **fields,
        )
        for place, (predicted, measured) in enumerate(pairs)
    ]  # fmt: skip


def values(scores):
    """
    All metrics, as numbers with their intervals.
    """
    return {name: metric.compute(scores) for name, metric in METRICS.items()}


class TestEveryMetric:
    @pytest.mark.parametrize("name", METRICS)
    def test_says_what_it_is_and_what_is_good(self, name):
        """
        A line for `harness list metrics` and the notes of tables, and the heading of a column.
        """
        metric = METRICS[name]

        assert metric.description
        assert "\n" not in metric.description
        assert not metric.description.endswith(".")
        assert metric.title

    @given(rows, st.randoms())
    def test_does_not_depend_on_the_order(self, pairs, random):
        """
        The same cells in any order have the same values.
        """
        model = scored(pairs)
        mixed = random.sample(model, len(model))

        for name, value in values(model).items():
            other = METRICS[name].compute(mixed)
            assert (value is None) == (other is None)
            assert value is None or other.value == pytest.approx(value.value, rel=1e-9, abs=1e-9)

    @given(rows, st.floats(0.01, 100))
    def test_units_cancel(self, pairs, factor):
        """
        Minutes have the values of seconds, but for a metric that is itself a time.
        """
        model = values(scored(pairs))
        scaled = values(scored([(factor * p, factor * m) for p, m in pairs]))

        for name, metric in METRICS.items():
            if metric.unit != "seconds" and model[name] is not None and scaled[name] is not None:
                assert scaled[name].value == pytest.approx(model[name].value, rel=1e-5, abs=1e-6)

    @given(st.lists(times, min_size=3, max_size=12, unique=True))
    def test_a_perfect_prediction_scores_best(self, seconds):
        """
        By the direction that the metric itself names.
        """
        best = {"lowest": 0, "nearest to 0": 0, "nearest to 1": 1}
        for name, value in values(scored([(time, time) for time in seconds])).items():
            if METRICS[name].unit != "spread" and METRICS[name].best in best and value:
                expected = best[METRICS[name].best]
                assert value.value == pytest.approx(expected, abs=1e-4 * max(seconds))


class TestMetrics:
    def test_the_interval_holds_the_mean(self):
        """
        Errors of 10, 20 and 60 %: 30 % on average, the worst 60 %.
        """
        shown = values(scored([(110, 100), (80, 100), (160, 100)]))

        assert shown["mape"].value == pytest.approx(0.3)
        assert shown["mape"].low < 0.3 < shown["mape"].high
        assert shown["signed_error"].value == pytest.approx(0.5 / 3)
        assert shown["worst_error"].value == pytest.approx(0.6)

    def test_noise_stands_beside_the_errors(self):
        """
        One of two errors lies inside a floor of 15 %; without a floor nothing is known.
        """
        shown = values(scored([(110, 100), (80, 100)], floor=0.15))
        unknown = values(scored([(110, 100)], floor=None))

        assert (shown["noise_floor"].value, shown["within_noise"].value) == (0.15, 0.5)
        assert (unknown["noise_floor"], unknown["within_noise"]) == (None, None)

    def test_the_indicator_is_a_mean_over_the_cells_that_have_one(self):
        """
        20 and 10 points are 15; a cell without What-If counts in none.
        """
        better = scored([(110, 100)], i_accu_percent=20.0)
        worse = scored([(120, 100)], i_accu_percent=10.0)
        alone = scored([(300, 100)])

        assert METRICS["i_accu"].compute(better + worse + alone).value == 15.0
        assert METRICS["i_accu"].compute(alone) is None
