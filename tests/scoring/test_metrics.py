"""
Errors of a prediction, and metrics over those of all cells.
"""

import math

from typing import NamedTuple

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.base.records.score import Score
from harness.base.stats.resampling import jackknife_interval, mean_interval
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

    @given(times, times)
    def test_sign_says_whether_a_prediction_is_too_long(self, predicted, measured):
        """
        As a share of what was measured, and the relative error is its size.
        """
        error = signed_error(predicted, measured)

        assert measured * (1 + error) == pytest.approx(predicted)
        assert relative_error(predicted, measured) == abs(error)

    def test_largest_time_that_has_an_error(self):
        """
        1e100 s, of either sign; beyond that sums might overflow.
        """
        assert signed_error(1e100, 1.0) == 1e100
        assert signed_error(-1e100, 1e100) == -2.0
        for predicted, measured in ((1.1e100, 1.0), (-1.1e100, 1.0), (1.0, 1.1e100)):
            with pytest.raises(ValueError, match=r"not both finite numbers up to 1e\+100"):
                signed_error(predicted, measured)

    @pytest.mark.parametrize("predicted", [math.nan, math.inf, "3", None, False])
    def test_prediction_that_is_no_number_is_refused(self, predicted):
        """
        By its value, in an error that is short.
        """
        with pytest.raises(ValueError, match=f"times {predicted!r} and 2.0 are not both finite"):
            signed_error(predicted, 2.0)
        with pytest.raises(ValueError, match="finite") as refused:
            signed_error("9" * 999, 2.0)
        assert len(str(refused.value)) < 200

    def test_worked_example(self):
        """
        Prophet's table: 67 s and What-If's 75 s of 70 s.
        """
        assert i_accu(70, 67, 75) == pytest.approx(
            {
                "i_accu_percent": 2 / 0.7,
                "prophet_error_percent": 3 / 0.7,
                "whatif_error_percent": 5 / 0.7,
            }
        )

    @pytest.mark.parametrize("actual", [0, -1, math.nan, math.inf, "3", True])
    def test_time_that_is_none_is_refused(self, actual):
        """
        Nothing can be a share of it.
        """
        with pytest.raises(ValueError, match="not"):
            i_accu(actual, 1.0, 1.0)

    def test_a_refused_time_says_of_what(self):
        """
        The time, and that its error was asked for.
        """
        with pytest.raises(ModelError) as refused:
            relative_error(1.0, 0.0)
        assert "0.0 is not above 0" in refused.value.what
        assert refused.value.where == "relative error"


def line_of(predicted, measured):
    """
    The line through all points: slope, intercept and R2.
    """
    x, y = np.asarray(predicted, dtype=float), np.asarray(measured, dtype=float)
    lines = calibration(x, y, np.ones((1, len(x)), dtype=bool))
    return tuple(float(numbers[0]) for numbers in lines)


# How far a value is from the best, by each direction that a metric can name.  How many cells an
# interval should hold is its level, which neither many nor few cells say.
DISTANCES = {
    "lowest": float,
    "highest": lambda value: -value,
    "nearest to 0": abs,
    "nearest to 1": lambda value: abs(value - 1),
    "nearest to its level": lambda value: 0.0,
}


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
        line = line_of(predicted, [intercept + slope * p for p in predicted])

        assert line[0] == pytest.approx(slope, rel=1e-6)
        assert line[1] == pytest.approx(intercept, abs=1e-4 * max(predicted))
        assert line[2] == pytest.approx(1, abs=1e-9)

    def test_known_scatter(self):
        """
        Four points, worked out by hand: slope 0.6, intercept 2.5, R2 0.9.
        """
        assert line_of([1, 2, 3, 4], [3, 4, 4, 5]) == pytest.approx((0.6, 2.5, 0.9))

    @pytest.mark.parametrize("unit", [1e-13, 1e13])
    def test_is_the_same_in_any_unit(self, unit):
        """
        Of hours in nanoseconds too there is a line.
        """
        predicted, measured = (unit * np.asarray(row) for row in ([1, 2, 3, 4], [3, 4, 4, 5]))

        assert line_of(predicted, measured) == pytest.approx((0.6, 2.5 * unit, 0.9))

    def test_three_points_make_a_line(self):
        """
        Two times that were predicted, or two that were measured, are enough.
        """
        assert line_of([1, 1, 3], [1, 3, 6]) == pytest.approx((2.0, 0.0, 16 / 19))
        assert line_of([1, 2, 3], [1, 1, 4]) == pytest.approx((1.5, -1.0, 0.75))

    def test_each_row_has_its_own_cells(self):
        """
        Those of the first three lie on a line, all four do not.
        """
        kept = np.asarray([[True, True, True, False], [True] * 4])

        lines = calibration(np.asarray([1.0, 2, 3, 4]), np.asarray([3.0, 5, 7, 0]), kept)

        assert lines.slope == pytest.approx((2.0, -0.7))
        assert lines.r2[0] == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("predicted", "measured"),
        [
            ([1, 2], [1, 2]),
            ([1, 1, 1], [1, 2, 3]),
            ([1, 2, 3], [5, 5, 5]),
            ([1e-200, 2e-200, 3e-200], [1, 2, 3]),
            ([1, 2, 3], [1e-200, 2e-200, 3e-200]),
        ],
    )
    def test_says_nothing_where_nothing_is_known(self, predicted, measured):
        """
        Two points always lie on a line, one time makes none, nor do times too close to be squared.
        """
        assert np.isnan(line_of(predicted, measured)).all()


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
        By the direction that each metric itself names: wrong predictions are no nearer to it.
        """
        perfect = values(scored([(time, time) for time in seconds]))
        spoiled = values(scored([(time * (3, 0.5)[n % 2], time) for n, time in enumerate(seconds)]))

        for name, metric in METRICS.items():
            distance = DISTANCES[metric.best]
            if perfect[name] is not None and spoiled[name] is not None:
                reached, missed = (distance(of[name].value) for of in (perfect, spoiled))
                assert reached <= missed + 1e-4 * max(seconds), name


class TestMetrics:
    def test_three_cells_have_a_mean_and_a_range(self):
        """
        Errors of 10, 20 and 60 %: 30 % on average, the worst 60 %.
        """
        shown = values(scored([(110, 100), (80, 100), (160, 100)]))

        assert shown["mape"].value == pytest.approx(0.3)
        assert (shown["mape"].low, shown["mape"].high) == pytest.approx((0.1, 0.6))
        assert shown["signed_error"].value == pytest.approx(0.5 / 3)
        assert shown["worst_error"].value == pytest.approx(0.6)

    def test_in_sample_misses_and_the_errors_without_them(self):
        """
        Where one cell has none, there is no levelled error of all.
        """
        model = scored([(110, 100), (80, 100)], in_sample_miss=-0.1, levelled_error=0.2)
        one = [model[0], *scored([(80, 100)])]

        shown = values(model)
        assert (shown["in_sample"].value, shown["levelled"].value) == pytest.approx((-0.1, 0.2))
        assert values(one)["levelled"] is None
        assert {values(scored([(1, 1)]))[name] for name in ("in_sample", "levelled")} == {None}

    def test_the_line_has_a_metric_for_each_of_its_numbers(self):
        """
        Measured over predicted times, as `calibration` finds them; fewer than three have none.
        """
        shown = values(scored([(1, 3), (2, 4), (3, 4), (4, 5)]))
        names = ("calibration_slope", "calibration_intercept_s", "calibration_r2")

        assert [shown[name].value for name in names] == pytest.approx([0.6, 2.5, 0.9])
        assert {values(scored([(1, 3), (2, 4)]))[name] for name in names} == {None}

    def test_times_that_differ_by_rounding_are_one(self):
        """
        Through them leads no line, whichever of both rows they are; nor have they an order.
        """
        names = [name for name in METRICS if name.startswith(("calibration", "robust", "recal"))]
        last_bits = [70.0, 70.0 + 2**-46, 70.0 - 2**-46, 70.0, 70.0 + 2**-45, 70.0 * (1 + 9e-10)]
        measured = [61.0, 70.0, 75.0, 82.0, 90.0, 99.0]
        names += ["tau"]
        model = scored(zip(last_bits, measured, strict=True), input="i")
        known = scored(zip(measured, measured[::-1], strict=True), input="i", floor=0.0)
        of_several_inputs = scored(zip(measured, measured[::-1], strict=True))

        assert {name: METRICS[name].compute(model) for name in names} == dict.fromkeys(names)
        assert METRICS["tau"].compute(known).value == -1.0
        assert None not in [METRICS[name].compute(of_several_inputs) for name in names[:-1]]
        same_measured = scored(zip(measured, last_bits, strict=True))
        of_lines = [name for name in names if name.startswith("calibration")]
        assert {METRICS[name].compute(same_measured) for name in of_lines} == {None}

    def test_two_cells_of_one_time_have_no_slope(self):
        """
        By Theil and Sen: 3, 3.5 and 2.5 to the third one, whatever their last bits.
        """
        pairs = [(1.0, 2.0), (1.0 + 2**-50, 1.0), (3.0, 8.0), (1.0 - 2**-50, 3.0)]
        slope = METRICS["robust_slope"].compute(scored(pairs)).value

        assert slope == pytest.approx(3.0)

    def test_an_error_as_large_as_the_floor_lies_inside_it(self):
        """
        The median floor is that of the cells that have one.
        """
        shown = values(
            scored([(110, 100)], floor=0.1)
            + scored([(150, 100)], floor=0.4)
            + scored([(100, 100)], floor=0.2)
            + scored([(100, 100)], floor=None)
        )

        assert shown["noise_floor"].value == 0.2
        assert shown["within_noise"].value == pytest.approx(2 / 3)

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

    def test_coverage_is_known_where_every_cell_has_an_interval(self):
        """
        Two of three cells in their interval; one that is unbounded leaves nothing to be said.
        """
        cells = [scored([(110, 100)], covered_80=each)[0] for each in (True, False, True, None)]

        assert METRICS["coverage_80"].compute(cells[:3]).value == pytest.approx(2 / 3)
        assert METRICS["coverage_80"].compute(cells) is None
        assert METRICS["coverage_90"].compute(cells) is None

    def test_the_floor_has_the_interval_of_its_repeats(self):
        """
        Ten cells of two trials each are ten degrees of freedom.
        """
        floor = values(scored([(110, 100)] * 10, floor=0.2))["noise_floor"]

        assert (floor.value, floor.low, floor.high) == pytest.approx(
            (0.2, 0.2 * math.sqrt(10 / 20.483), 0.2 * math.sqrt(10 / 3.247)), rel=1e-3
        )


class Cell(NamedTuple):
    """
    What the metrics of lines read of a score.
    """

    predicted_s: float
    measured_s: float
    input: str = ""


CHANCE = 0.01  # of a share of 1000 runs, one and a half standard errors
LINE = [(10, 31), (20, 49), (30, 72), (40, 88), (50, 113), (60, 129)]


class TestLines:
    def test_slope_and_intercept_have_intervals_from_six_cells_on(self):
        """
        Which are those of leaving one cell out; five cells have none.
        """
        six, five = values(scored(LINE)), values(scored(LINE[:5]))
        left = [line_of(*zip(*(LINE[:i] + LINE[i + 1 :]), strict=True))[0] for i in range(6)]
        slope = six["calibration_slope"]
        assert (slope.low, slope.high) == pytest.approx(
            jackknife_interval(slope.value, np.asarray(left)), rel=1e-6
        )
        assert six["calibration_intercept_s"].low < 10 < six["calibration_intercept_s"].high
        assert {five[name].low for name in ("calibration_slope", "calibration_intercept_s")} == {
            None
        }

    def test_a_power_is_a_line_between_logarithms(self):
        """
        Three times the root of what was predicted.
        """
        shown = values(scored([(p, 3 * p**0.5) for p in (1, 4, 9, 16, 25, 36)]))

        assert shown["calibration_exponent"].value == pytest.approx(0.5)
        assert shown["calibration_factor"].value == pytest.approx(3)
        assert shown["calibration_factor"].low == pytest.approx(3)

    def test_no_logarithm_of_nothing(self):
        """
        A prediction of 0 s has no power, and still a line.
        """
        shown = values(scored([(0, 1), (2, 3), (4, 5)]))

        assert (shown["calibration_exponent"], shown["calibration_slope"].value) == (None, 1)

    def test_one_odd_cell_does_not_move_the_robust_line(self):
        """
        Five cells on 5 + 2 x, one far off.
        """
        shown = values(scored([(x, 5 + 2 * x) for x in (10, 20, 30, 40, 50)] + [(60, 900)]))

        assert shown["robust_slope"].value == pytest.approx(2)
        assert shown["robust_intercept_s"].value == pytest.approx(5)
        assert shown["calibration_slope"].value > 5

    def test_recalibrated_errors_are_those_of_the_others_line(self):
        """
        Five cells on a line, one 100 % above it: the five are corrected by lines that the odd one
        bends, the odd one by theirs.
        """
        pairs = [(x, 2 * x) for x in (10, 20, 30, 40, 50)] + [(60, 240)]
        errors = []
        for i, (x, y) in enumerate(pairs):
            slope, intercept, _ = line_of(*zip(*(pairs[:i] + pairs[i + 1 :]), strict=True))
            errors.append(abs(intercept + slope * x - y) / y)

        assert errors[-1] == pytest.approx(0.5)
        found = values(scored(pairs))["recalibrated_error"]
        assert found.value == pytest.approx(sum(errors) / 6)
        low, high = mean_interval(errors)
        assert (found.low, found.high) == pytest.approx((max(0.0, low), high))

    @pytest.mark.parametrize("name", ["robust_slope", "robust_intercept_s", "recalibrated_error"])
    def test_some_lines_are_of_job_times_alone(self, name):
        """
        For every phase they would take a while.
        """
        jobs = scored(LINE)
        phases = [row.model_copy(update={"level": "phase"}) for row in jobs]

        assert METRICS[name].compute(jobs) is not None
        assert METRICS[name].compute(phases) is None

    def test_two_cells_have_no_robust_line(self):
        """
        Three have.
        """
        assert METRICS["robust_slope"].compute(scored(LINE[:2])) is None
        assert METRICS["robust_slope"].compute(scored(LINE[:3])) is not None

    def test_cells_of_one_input_are_left_out_together(self):
        """
        None corrects another of its own input.
        """
        pairs = [(10, 20), (20, 40), (30, 60), (40, 800), (50, 1000)]
        apart = scored(pairs)
        shared = [
            each.model_copy(update={"input": "large" if each.measured_s > 100 else each.cell})
            for each in apart
        ]

        errors = [each.compute(scores).value for each in [METRICS["recalibrated_error"]]
                  for scores in (apart, shared)]  # fmt: skip
        assert errors[1] > errors[0]

    def test_too_few_cells_are_not_recalibrated(self):
        """
        Three leave two, which have no line.
        """
        assert values(scored(LINE[:3]))["recalibrated_error"] is None
        assert values(scored(LINE[:4]))["recalibrated_error"] is not None


class TestCoverage:
    """Simulated: an interval at 95 % contains the truth in 93 to 97 % of runs."""

    @pytest.mark.parametrize("cells", [6, 10])
    @pytest.mark.parametrize(
        ("name", "truth"), [("calibration_exponent", 0.9), ("calibration_factor", 2.0)]
    )
    def test_of_lines_between_logarithms(self, cells, name, truth):
        """
        Noise that grows with the time, as that of jobs does.
        """
        generator, contained = np.random.default_rng(cells), 0
        for _ in range(1000):
            predicted = np.exp(generator.uniform(np.log(10), np.log(300), cells))
            measured = 2 * predicted**0.9 * np.exp(0.1 * generator.standard_normal(cells))
            value = METRICS[name].compute(
                [Cell(*pair) for pair in zip(predicted, measured, strict=True)]
            )
            contained += value.low <= truth <= value.high

        assert 0.93 - CHANCE <= contained / 1000 <= 0.97 + CHANCE


class TestOrder:
    def tau(self, pairs, inputs, floor=0.0):
        """
        Kendall's tau-b of cells of these inputs.
        """
        scores = [
            each.model_copy(update={"input": name})
            for each, name in zip(scored(pairs, floor), inputs, strict=True)
        ]
        value = METRICS["tau"].compute(scores)
        return None if value is None else value.value

    def test_the_order_of_one_input(self):
        """
        Right, reversed, and one pair of three the other way round.
        """
        measured = (10, 20, 30)
        taus = [
            self.tau(list(zip(predicted, measured, strict=True)), "aaa")
            for predicted in ((1, 2, 3), (3, 2, 1), (2, 1, 3))
        ]

        assert taus == pytest.approx([1, -1, 1 / 3])

    def test_is_scipys_where_only_values_are_tied(self):
        """
        The same predictions twice.
        """
        from scipy.stats import kendalltau

        predicted, measured = [1, 2, 2, 4, 3], [10, 30, 20, 40, 50]
        tau = self.tau(list(zip(predicted, measured, strict=True)), "aaaaa")

        assert tau == pytest.approx(kendalltau(predicted, measured).statistic)

    def test_inputs_are_not_ordered_among_each_other(self):
        """
        Larger inputs take longer, which says nothing of a model.
        """
        pairs = [(1, 20), (2, 10), (100, 2000), (200, 1000)]

        assert self.tau(pairs, "aabb") == -1
        assert self.tau(pairs, "abcd") is None

    def test_times_within_the_noise_are_ties(self):
        """
        100 and 104 s with 2 % each may be the same time: a pair in the wrong order counts nothing.
        """
        pairs = [(2, 100), (1, 104), (3, 200)]

        assert self.tau(pairs, "aaa") == pytest.approx(1 / 3)
        assert self.tau(pairs, "aaa", floor=0.02) == pytest.approx(2 / math.sqrt(6))

    def test_nothing_but_ties_has_no_order(self):
        """
        One predicted time for all.
        """
        assert self.tau([(5, 10), (5, 20)], "aa") is None
