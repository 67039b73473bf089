"""
Tests for `harness.core.evaluate.changes` and `budgets`: what two runs have in common, and what
moved.
"""

import math

from collections import defaultdict
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from harness.base.errors import SpecError
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile, Statistic
from harness.base.records.score import Measurement, Score, ScoreBook
from harness.base.records.trial import HISTORY, Cell, ClusterSpec, NodeSpec, WorkloadSpec
from harness.base.units import MIB
from harness.core.evaluate.budgets import judge, read_budgets
from harness.core.evaluate.changes import (
    Side,
    changes,
    differences,
    sensitivities,
    sentence,
    shared_cells,
)
from harness.core.experiment.grid import axis_values, readable

SIZES = tuple(16 * MIB * count for count in range(1, 9))
DISK = 20 * MIB


def cells(sizes=SIZES, *, name="terasort", disk=None, **configuration):
    """
    A cell for each size of the input.
    """
    cluster = ClusterSpec(node=NodeSpec(disk_bytes_per_s=disk))
    return [
        Cell(
            cluster=cluster,
            workload=WorkloadSpec(name=name, input_bytes=size),
            configuration=configuration,
        )
        for size in sizes
    ]


def side(tmp_path, grid, repeats_s, run="one", **given):
    """
    A run that measured the cells of *grid*, each as long as *repeats_s* says.
    """
    made = Side.__new__(Side)
    folder = tmp_path / run
    folder.mkdir(exist_ok=True)
    made.run = SimpleNamespace(id=run, path=folder)
    made.run.measured = made.run
    made.cells = {cell.id: cell for cell in grid}
    made.trials = {
        cell.id: [
            Measurement(
                cell=cell.id, workload=cell.workload.name, trial="", reference_s={},
                raw_s={"job_s": float(seconds)},
            )
            for seconds in times_s
        ]
        for cell, times_s in zip(grid, repeats_s, strict=True)
    }  # fmt: skip
    made.axes = defaultdict(set)
    for cell in grid:
        for axis, value in axis_values(cell).items():
            made.axes[axis].add(readable(axis, value))
    made.facts = {axis: ", ".join(sorted(texts)) for axis, texts in made.axes.items()}
    lists = {"profiles": {}, "scores": ScoreBook(), "predictions": [], "rates": [], "missing": []}
    for name, value in (lists | given).items():
        setattr(made, name, value)
    made.scored = {(each.model, each.quantity, each.cell): each for each in made.scores.scores}
    return made


def noisy(generator, mean_s=10.0, *, noise=0.04, count=2):
    """
    Seconds of so many repeats of each cell.
    """
    return mean_s * np.exp(noise * generator.standard_normal((len(SIZES), count)))


def moved(changed):
    """
    What changed beyond the noise.
    """
    return [each for each in changed if each.verdict in ("larger", "smaller")]


class TestTimes:
    def test_of_equal_runs_nothing_is_called_changed(self, tmp_path):
        """
        In 5 of 100 pairs of runs of one distribution at most, any time is; simulated 100 times.
        """
        generator, grid = np.random.default_rng(1), cells()
        false_alarms = [
            bool(moved(changes(*(side(tmp_path, grid, noisy(generator), run) for run in "ab"))))
            for _ in range(100)
        ]

        assert np.mean(false_alarms) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 100)

    def test_a_slower_disk_is_found_and_named(self, tmp_path):
        """
        The cells are matched although their clusters differ; the sentence says in what.
        """
        generator = np.random.default_rng(2)
        base = side(tmp_path, cells(), noisy(generator))
        other = side(tmp_path, cells(disk=DISK), noisy(generator, 16), "two")
        changed = changes(base, other)

        whole = next(each for each in changed if not each.cell)
        assert (whole.verdict, len(changed)) == ("larger", 9)
        assert whole.low < 0.6 < whole.high
        assert sentence(base, other, changed).startswith("terasort is 1.6")
        assert sentence(base, other, changed).endswith(
            " in run two: disk 20 MiB/s there, unlimited here"
        )

    def test_what_cells_are_matched_by_is_no_cause(self, tmp_path):
        """
        Another run had fewer inputs: the table says so, the sentence does not.
        """
        generator = np.random.default_rng(2)
        base = side(tmp_path, cells(), noisy(generator))
        other = side(tmp_path, cells(SIZES[1:], disk=DISK), noisy(generator, 20)[1:], "two")

        assert [name for name, *_ in differences(base, other)] == ["disk", "input"]
        text = sentence(base, other, changes(base, other))
        assert text.endswith(" in run two: disk 20 MiB/s there, unlimited here")

    def test_a_faster_run_is_called_faster(self, tmp_path):
        """
        The factor is above 1 either way.
        """
        generator = np.random.default_rng(3)
        base, other = (
            side(tmp_path, cells(), noisy(generator, mean_s), run)
            for run, mean_s in {"a": 20, "b": 10}.items()
        )

        text = sentence(base, other, changes(base, other))
        assert " times faster (1." in text
        assert text.endswith("in run b: nothing that the runs say of themselves differs")

    @pytest.mark.parametrize("repeats_s", [[[10.0]] * 8, [[10.0, 10.0]] * 8])
    def test_without_noise_nothing_is_decided(self, tmp_path, repeats_s):
        """
        A single repeat, or repeats that never differ, say nothing of it.
        """
        longer_s = [[2 * seconds for seconds in times_s] for times_s in repeats_s]
        base, other = (
            side(tmp_path, cells(), times_s, run)
            for run, times_s in {"a": repeats_s, "b": longer_s}.items()
        )
        changed = changes(base, other)

        assert {(each.verdict, each.low) for each in changed} == {("undecided", None)}
        assert sentence(base, other, changed) == (
            "cannot tell what moved in run b: nothing tells the noise of a and b, and no change"
            " would show; 8 more jobs in each run, 1 repeat of each cell, would tell the noise"
        )

    def test_equal_times_are_called_equal_where_that_is_shown(self, tmp_path):
        """
        With a noise of a thousandth.
        """
        generator = np.random.default_rng(4)
        base, other = (side(tmp_path, cells(), noisy(generator, noise=0.001), run) for run in "ab")

        assert {each.verdict for each in changes(base, other)} == {"equal"}


class TestStill:
    """
    What is said where nothing moved.
    """

    def test_of_little_noise_the_change_that_would_have_shown(self, tmp_path):
        """
        In percent, and it is less than ten.
        """
        generator = np.random.default_rng(5)
        base, other = (side(tmp_path, cells(), noisy(generator), run) for run in "ab")
        changed = changes(base, other)
        (shown,) = sensitivities(base, other, changed)

        assert 1.02 < shown.factor < 1.1
        assert sentence(base, other, changed) == (
            "nothing moved beyond the noise in run b:"
            f" a change by {100 * (shown.factor - 1):.2g} % would have shown"
        )

    def test_of_much_noise_that_nothing_can_be_told(self, tmp_path):
        """
        With the factor that would have shown, and how many more jobs show a change by a tenth.
        """
        generator = np.random.default_rng(6)
        base, other = (side(tmp_path, cells(), noisy(generator, noise=0.5), run) for run in "ab")
        changed = changes(base, other)
        (shown,) = sensitivities(base, other, changed)

        assert shown.factor > 1.5
        assert shown.change == pytest.approx(
            max(0.1, math.expm1(abs(math.log1p(changed[0].change))))
        )
        assert shown.jobs == 8 * shown.repeats
        assert sentence(base, other, changed) == (
            "cannot tell what moved in run b:"
            f" less than a factor of {shown.factor:.3g} would not show; {shown.jobs} more jobs in"
            f" each run, {shown.repeats} repeats of each cell, would show a change by"
            f" {100 * shown.change:.2g} %"
        )

    def test_where_one_run_has_no_repeats_the_other_says_how_many(self, tmp_path):
        """
        And no change would show now.
        """
        generator = np.random.default_rng(7)
        base = side(tmp_path, cells(), noisy(generator))
        other = side(tmp_path, cells(), noisy(generator, count=1), "two")
        text = sentence(base, other, changes(base, other))

        assert text.startswith(
            "cannot tell what moved in run two: nothing tells the noise of two, and no change would"
        )
        assert text.endswith("of each cell, would show a change by 10 %")

    def test_equal_times_are_called_so(self, tmp_path):
        """
        Where that is shown.
        """
        generator = np.random.default_rng(4)
        base, other = (side(tmp_path, cells(), noisy(generator, noise=0.001), run) for run in "ab")

        text = sentence(base, other, changes(base, other))
        assert text == "nothing moved in run b: job times are equal, to within 2 %"


class TestCells:
    def test_what_varies_within_a_run_must_be_equal(self, tmp_path):
        """
        Of a run on both clusters, that on the base's cluster is compared.
        """
        base = side(tmp_path, cells(), [[1.0]] * 8)
        other = side(tmp_path, [*cells(), *cells(disk=DISK)], [[1.0]] * 16, "two")

        assert shared_cells(base, other) == {cell.id: cell.id for cell in cells()}

    def test_a_setting_of_the_whole_run_may_differ(self, tmp_path):
        """
        It is named beside the cluster.
        """
        factor = {"mapreduce.task.io.sort.factor": "3"}
        base = side(tmp_path, cells(), [[1.0]] * 8)
        other = side(tmp_path, cells(**factor), [[1.0]] * 8, "two")

        assert len(shared_cells(base, other)) == 8
        assert differences(base, other) == [(*factor, "not set", "3")]

    def test_inputs_of_past_jobs_are_the_same_to_one_percent(self, tmp_path):
        """
        Each has the nearest twin, whatever tasks ran at once; those of experiments are exact.
        """

        def past(sizes, slots):
            """Cells of two families, whose tasks ran so many at once."""
            grid = []
            for name, size in product(("sort", "join"), sizes):
                limit = str(slots + len(name)) if name == "sort" else "9"
                (cell,) = cells((size,), name=name, **{"mapreduce.job.running.map.limit": limit})
                provider = cell.cluster.model_copy(update={"provider": HISTORY})
                grid.append(cell.model_copy(update={"cluster": provider}))
            return grid

        before = past((1000, 1030, 2000), 1)
        after = past((1004, 1995, 2021), 2)
        base = side(tmp_path, before, [[1.0]] * 6)
        other = side(tmp_path, after, [[1.0]] * 6, "two")
        twins = shared_cells(base, other)

        assert [place for place, cell in enumerate(before) if cell.id in twins] == [0, 2, 3, 5]
        assert [*twins.values()] == [after[place].id for place in (0, 1, 3, 4)]
        with pytest.raises(SpecError, match="the runs share no cell"):
            shared_cells(
                side(tmp_path, cells((1000,)), [[1.0]]),
                side(tmp_path, cells((1004,)), [[1.0]], "two"),
            )

    @pytest.mark.parametrize(
        ("grid", "text"),
        [
            (cells((5 * MIB,)), "the runs share no cell: input 16 MiB and 5 MiB"),
            (cells(SIZES[:1], name="sort"), "the runs share no cell: workload terasort and sort"),
        ],
    )
    def test_runs_without_a_common_cell_are_refused(self, tmp_path, grid, text):
        """
        With what keeps them apart.
        """
        base = side(tmp_path, cells(SIZES[:1]), [[1.0]])

        with pytest.raises(SpecError) as caught:
            shared_cells(base, side(tmp_path, grid, [[1.0]], "two"))
        assert caught.value.what == text


def statistic(value, spread=0.0, count=8):
    """
    As a profile has it.
    """
    return Statistic(value=value, spread=spread, count=count, source="x")


def costs_of(tmp_path, run, **costs):
    """
    A run with these fitted costs, from four trials.
    """
    profile = Profile(workload="terasort", costs=costs, trials=("1", "2", "3", "4"))
    grid = cells(SIZES[:1])
    return side(tmp_path, grid, [[1.0]], run, profiles={"terasort": profile})


class TestCosts:
    @pytest.mark.parametrize(
        ("one", "two", "verdict"),
        [
            (statistic(1e-9, 5e-11), statistic(3e-9, 5e-11), "larger"),
            (statistic(1e-9, 5e-11), statistic(1.1e-9, 5e-11), "undecided"),
            (statistic(100), statistic(100), "equal"),
            (statistic(100), statistic(90), "smaller"),
            (statistic(0, 1e-9), statistic(0, 2e-9), "undecided"),
            (statistic(0, 1e-9), statistic(5e-8, 2e-9), "larger"),
            (statistic(0), statistic(0), "equal"),
            (statistic(1, 1, count=1), statistic(2, 1, count=1), "undecided"),
        ],
    )
    def test_are_judged_by_their_spread(self, tmp_path, one, two, verdict):
        """
        What never varies is certain; what was seen once is not known.
        """
        base, other = (
            costs_of(tmp_path, run, c=cost) for run, cost in {"a": one, "b": two}.items()
        )
        (change,) = (each for each in changes(base, other) if each.kind == "cost")

        assert change.verdict == verdict

    def test_equal_profiles_are_seldom_called_changed(self, tmp_path):
        """
        In 5 of 100 pairs at most: 20 costs over eight tasks of four trials, which vary together.
        """
        generator, alarms = np.random.default_rng(5), 0
        for _ in range(100):
            sides = []
            for run in "ab":
                trials = 0.5 * generator.standard_normal((20, 4, 1))
                tasks = (trials + generator.standard_normal((20, 4, 2))).reshape(20, 8) / 10 + 1
                statistics = {
                    f"c{place}": statistic(each.mean(), each.std(ddof=1))
                    for place, each in enumerate(tasks)
                }
                profile = Profile(
                    workload="terasort", statistics=statistics, trials=("1", "2", "3", "4")
                )
                profiles = {"terasort": profile}
                sides.append(side(tmp_path, cells(SIZES[:1]), [[1.0]], run, profiles=profiles))
            alarms += bool(moved(changes(*sides)))

        assert alarms <= 5 + 2 * math.sqrt(100 * 0.05 * 0.95)


def scored(tmp_path, run, errors, refits=(), *, floor=0.02):
    """
    A run in which a model erred by *errors*; *refits* are shares of its times, by refits.
    """
    grid, key, times = cells(), {"model": "m", "quantity": "body_s"}, [1 + each for each in errors]
    scores = [
        Score(
            **key, cell=cell.id, level="job", speed="raw", predicted_s=time_s, measured_s=1.0,
            trials=2, floor=floor, signed_error=time_s - 1, relative_error=abs(time_s - 1),
        )
        for cell, time_s in zip(grid, times, strict=True)
    ]  # fmt: skip
    predictions = [
        Prediction(
            model="m",
            cell=cell.id,
            refits={"body_s": tuple(share * time_s for share in refits)} if refits else {},
        )
        for cell, time_s in zip(grid, times, strict=True)
    ]
    score_book = ScoreBook(scores=tuple(scores))
    return side(tmp_path, grid, [[1.0, 1.1]] * 8, run, scores=score_book, predictions=predictions)


SMALL = (0.02, 0.04, 0.03, 0.05, 0.02, 0.03, 0.04, 0.03)
LARGE = tuple(error + 0.2 for error in SMALL)


class TestErrors:
    @pytest.mark.parametrize(
        ("refits", "verdict"),
        [((), "undecided"), ((0.99, 1.0, 1.01, 1.0), "larger"), ((0.7, 1, 1.4, 1), "undecided")],
    )
    def test_count_the_noise_of_the_profile(self, tmp_path, refits, verdict):
        """
        It is known where the profile was fitted again without each cell; else none is in the
        interval, and there is no verdict.
        """
        base, other = scored(tmp_path, "a", SMALL, refits), scored(tmp_path, "b", LARGE, refits)
        change, *of_cells = (each for each in changes(base, other) if each.kind == "error")

        assert (change.verdict, change.name, change.model) == (verdict, "body_s", "m")
        assert (change.cell, len(of_cells)) == ("", 8)
        assert change.low < 0.2 < change.high
        assert (change.chance is None) == (not refits)

    @pytest.mark.process
    def test_of_equal_runs_are_seldom_called_changed(self, tmp_path):
        """
        In 5 of 100 pairs at most: a model 10 % too long, by profiles of six noisy cells each.
        """
        generator, alarms = np.random.default_rng(7), 0
        for _ in range(100):
            sides = []
            for run in "ab":
                profiled = 1 + 0.06 * generator.standard_normal(6)
                mean = profiled.mean()
                refits = [(profiled.sum() - each) / 5 / mean for each in profiled]
                errors = 1.1 * mean / (1 + 0.03 * generator.standard_normal(8)) - 1
                sides.append(scored(tmp_path, run, errors, refits, floor=0.03))
            alarms += any(each.kind == "error" for each in moved(changes(*sides)))

        assert alarms <= 5 + 2 * math.sqrt(100 * 0.05 * 0.95)


BUDGETS = """\
schema: 1
budgets:
  - {workload: terasort, quantity: job_s, slower: 5 %}
  - {model: m, quantity: body_s, error: 10 %}
  - {statistic: c, changes: 20 %}
  - {workload: wordcount, quantity: job_s, slower: 5 %}
"""


class TestBudgets:
    def test_are_broken_kept_or_undecided(self, tmp_path):
        """
        By whole intervals; with `strict`, what cannot be decided is broken.
        """
        generator = np.random.default_rng(6)
        profiles = [
            {"terasort": Profile(workload="terasort", costs={"c": statistic(1e-9, spread)})}
            for spread in (1e-12, 1e-10)
        ]
        base, other = (
            side(tmp_path, cells(), noisy(generator, mean_s), run, profiles=profiles[place],
                 scores=scored(tmp_path, run, LARGE).scores, predictions=[Prediction(model="m")])
            for place, (run, mean_s) in enumerate({"a": 10, "b": 12}.items())
        )  # fmt: skip
        changed, budgets = changes(base, other), read_budgets(BUDGETS, "b.yaml", [base, other])

        judged = [judge(each, changed, strict=False) for each in budgets]
        assert [each.name for each in judged][:2] == [
            "terasort job_s slower 5 %", "m body_s error 10 %"
        ]  # fmt: skip
        assert [each.verdict for each in judged] == ["broken", "broken", "undecided", "undecided"]
        assert "the runs have nothing of it in common" in judged[3].reason
        strict = [judge(each, changed, strict=True) for each in budgets]
        assert [each.verdict for each in strict] == ["broken"] * 4
        roomy = [each._replace(most=9.0) for each in budgets[:3]]
        assert {judge(each, changed, strict=True).verdict for each in roomy} == {"kept"}

    @pytest.mark.parametrize(
        ("text", "place", "message"),
        [
            ("[]", "1:1", "is not schema 1"),
            ("schema: 2\nbudgets: [{quantity: job_s, slower: 5 %}]", "1:1", "is not schema 1"),
            ("schema: 1\nbudgets: {}", "1:1", "a list of budgets alone"),
            (
                "schema: 1\nname: x\nbudgets: [{quantity: job_s, slower: 5 %}]",
                "1:1",
                "budgets alone",
            ),
            ("{quantity: job_s, slower: 5}", "3:3", "a budget is a percentage"),
            ("{quantity: job_s, slower: [5 %]}", "3:3", "a budget is a percentage"),
            ("{quantity: job_s}", "3:3", "a budget is a percentage"),
            ("{slower: 5 %}", "3:3", "a budget is a percentage"),
            ("job_s", "3:3", "a budget is a percentage"),
            ("{quantity: jobs_s, slower: 5 %}", "3:14", "there is no quantity 'jobs_s'"),
            ("{quantity: job_s, workload: teresort, slower: 5 %}", "3:31", "did you mean terasort"),
            ("{quantity: job_s, model: m, slower: 5 %}", "3:21", "slower takes no 'model'"),
            ("{statistic: d, changes: 5 %}", "3:15", "there is no statistic 'd'"),
            ("{quantity: job_s, slower: 5 %, slower: 6 %}", "3:34", "is given twice"),
            ("{quantity: &a job_s, slower: 5 %}", "3:14", "anchors and aliases"),
        ],
    )
    def test_a_wrong_file_is_refused_at_its_place(self, tmp_path, text, place, message):
        """
        As experiment files are.
        """
        whole = text if "schema" in text or text == "[]" else f"schema: 1\nbudgets:\n- {text}\n"

        with pytest.raises(SpecError) as caught:
            read_budgets(whole, "b.yaml", [costs_of(tmp_path, "a", c=statistic(1.0))])
        assert f"b.yaml:{place}" in str(caught.value)
        assert message in str(caught.value)
