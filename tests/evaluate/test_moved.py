"""
Changes between runs and budgets of them: numbers by hand, and what is said of each.
"""

import math

from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, SpecError
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import Measurement, ScoreBook
from harness.core.evaluate.budgets import Budget, judge, read_budgets
from harness.core.evaluate.changes import (
    Change,
    Side,
    changes,
    cost_estimates,
    family_of,
    job_sentence,
    mean_estimate,
    sentence,
    texts_by_axis,
    trials_by_cell,
)
from tests.evaluate.test_changes import DISK, SIZES, cells, side, statistic
from tests.evaluate.test_flow import RATES, evaluation, stored  # noqa: F401 - a fixture


def change(**given):
    """
    A change of a time of all cells of TeraSort, in run two.
    """
    fields = {"kind": "time", "workload": "terasort", "model": "", "name": "job_s", "cell": ""}
    fields |= {"run": "two", "base": 10.0, "other": 12.0, "base_spread": 0.3, "other_spread": 0.4}
    fields |= {"change": 0.2, "low": 0.1, "high": 0.3, "chance": 0.01, "verdict": "larger"}
    return Change(**{**fields, **given})


@pytest.fixture
def finished(stored):  # noqa: F811
    """
    A run that has come to its end.
    """
    if not stored.finished:
        stored.finish()
    return stored


class TestSide:
    def test_has_what_the_run_measured(self, finished):
        """
        All cells, those that feed profiles too; smaller inputs first.
        """
        made = Side(evaluation(finished))

        assert made.cells.keys() == {
            record.trial.cell.id for record in finished.trials().values() if record.state == "done"
        }
        assert {len(trials) for trials in made.trials.values()} == {3}
        assert made.profiles == finished.read_profiles()
        assert made.scores == finished.read_scores()
        assert made.missing == []
        assert set(made.rates) == set(RATES)
        assert made.varying == {"workload", "mapreduce.task.io.sort.factor"}

    def test_says_what_it_is(self, finished):
        """
        Axes, disturbed trials, the manifest's own facts, and the code of each model.
        """
        facts = Side(evaluation(finished)).facts

        assert facts["workload"] == "terasort, wordcount"
        assert facts["mapreduce.task.io.sort.factor"] == "10, 20, 3, 5"
        assert facts["disturbed trials"] == "0 %"
        assert facts["repeat"] == "3"
        assert facts["seed"] == "7"
        (code,) = {prediction.code for prediction in evaluation(finished).predictions}
        assert facts["code of whatif"] == facts["code of whatif-mr2"] == code[:12]
        assert not [name for name in facts if name.endswith((".load", ".free_bytes"))]

    def test_without_profiles_or_scores_says_who_makes_them(self, finished, monkeypatch):
        """
        It is compared without.
        """
        monkeypatch.setattr(type(finished), "read_profiles", lambda _: {})
        monkeypatch.setattr(type(finished), "read_scores", lambda _: ScoreBook())

        assert Side(evaluation(finished)).missing == [
            f"{finished.id} has no profiles: harness profile makes them",
            f"{finished.id} has no scores: harness score makes them",
        ]

    def test_of_an_unfinished_run_is_refused(self, tmp_path):
        """
        With how far it is.
        """
        run = SimpleNamespace(
            id="one",
            path=tmp_path,
            measured=SimpleNamespace(finished=False),
            trial_ids=lambda: ("a", "b"),
        )
        with pytest.raises(DataError) as caught:
            Side(SimpleNamespace(run=run, plan=[1, 2, 3]))
        assert caught.value.what == "run one is not finished: 2 of 3 trials have ended"
        assert caught.value.where == str(tmp_path)
        assert caught.value.fix == "go on with it (harness all FILE), then compare again"

    def test_trials_of_small_inputs_come_first(self, monkeypatch):
        """
        Each cell with all of its trials.
        """
        small, large = cells(SIZES[:2])

        def measured(cell, trial):
            return Measurement(
                cell=cell.id, workload="terasort", trial=trial, raw_s={}, reference_s={}
            )

        given = [measured(large, "a"), measured(small, "b"), measured(large, "c")]
        stored_trials = SimpleNamespace(
            published_measurements=tuple,
            cells={cell.id: cell for cell in (large, small)},
        )
        measure = "harness.core.evaluate.changes.measure_trials"
        monkeypatch.setattr(measure, lambda _, known, *, profiling: given if profiling else [])

        trials = trials_by_cell(stored_trials, ScoreBook())
        assert [*trials] == [small.id, large.id]
        assert [trial.trial for trial in trials[large.id]] == ["a", "c"]

    def test_axes_have_the_texts_of_all_cells(self):
        """
        As people write them.
        """
        axes = texts_by_axis([*cells(SIZES[:2]), *cells(SIZES[:1], disk=DISK)])

        assert axes["input"] == {"16 MiB", "32 MiB"}
        assert axes["disk"] == {"unlimited", "20 MiB/s"}


class TestEstimates:
    def of_times(self, tmp_path, *repeats_s):
        """
        Estimates of the job times of a cell for each list of repeats.
        """
        made = side(tmp_path, cells(SIZES[: len(repeats_s)]), repeats_s)
        return [estimate for _, estimate in made.time_estimates("job_s", "terasort")]

    def test_of_times_are_logarithms_of_means(self, tmp_path):
        """
        With the freedom of all cells where each has few repeats.
        """
        first, second = self.of_times(tmp_path, [9.0, 11.0], [20.0, 20.0, 26.0])

        assert first[0] == pytest.approx(math.log(10))
        assert second[0] == pytest.approx(math.log(22))
        assert (first[2], second[2]) == (3, 3)
        assert first[1] > 0
        assert first[3] == 0

    def test_of_many_repeats_have_their_own_freedom(self, tmp_path):
        """
        One less than there are.
        """
        many = [10.0 + number for number in range(12)]
        first, second = self.of_times(tmp_path, many, [9.0, 11.0])

        assert first[2] == 11
        assert second[2] == 12

    def test_of_a_single_time_have_no_noise(self, tmp_path):
        """
        It is not known; times of 0 are none.
        """
        (only,) = self.of_times(tmp_path, [10.0, 0.0])

        assert only[0] == pytest.approx(math.log(10))
        assert math.isnan(only[1])
        assert self.of_times(tmp_path, [0.0]) == []

    def test_of_costs_are_those_of_trials(self):
        """
        Tasks of one trial vary together; a fitted cost has its error already.
        """
        profile = Profile(
            workload="w",
            trials=("1", "2", "3", "4"),
            statistics={
                "many": statistic(2.0, 0.8, count=16),
                "few": statistic(3.0, 0.6, count=2),
                "one": statistic(4.0, 0.5, count=1),
            },
            frame={"start_s": statistic(5.0, 0.8, count=9)},
            costs={"fitted": statistic(6.0, 0.8, count=16)},
        )

        made = dict(cost_estimates(profile))
        assert made["many"] == pytest.approx((2.0, 0.4, 15, 0.0))
        assert made["few"] == pytest.approx((3.0, 0.6 / 2**0.5, 1, 0.0))
        assert made["start_s"] == pytest.approx((5.0, 0.4, 8, 0.0))
        assert made["fitted"] == pytest.approx((6.0, 0.8, 15, 0.0))
        assert made["one"][0] == 4.0
        assert math.isnan(made["one"][1])
        untried = profile.model_copy(update={"trials": ()})
        assert dict(cost_estimates(untried))["many"][1] == pytest.approx(0.8)
        assumed = statistic(2.0, 0.8, count=16).model_copy(update={"assumed": True})
        known = profile.model_copy(update={"statistics": {"many": assumed}})
        assert dict(cost_estimates(known))["many"][1] == pytest.approx(0.8)

    def test_of_the_probe_are_of_two_trials_at_least(self, tmp_path):
        """
        Mean rate, and the standard error of that.
        """
        made = side(tmp_path, cells(SIZES[:1]), [[1.0]], rates=[90.0, 110.0, 100.0, 100.0])
        key = ("cost", "", "", "speed_probe_rate", "")

        estimate = dict(made.estimates({}))[key]
        assert estimate == pytest.approx((100.0, (200 / 3) ** 0.5 / 2, 3, 0.0))
        made.rates = [90.0]
        assert key not in dict(made.estimates({}))

    def test_are_named_by_their_cells(self, tmp_path):
        """
        Those that are asked for.
        """
        first, second = cells(SIZES[:2])
        made = side(tmp_path, [first, second], [[1.0, 1.1], [2.0, 2.1]])

        assert [key for key, _ in made.estimates({second.id: "large"})] == [
            ("time", "terasort", "", "job_s", "large")
        ]

    def test_together_have_the_mean_and_a_smaller_error(self):
        """
        Independent errors shrink with their number, shared ones do not.
        """
        assert mean_estimate([(1.0, 3.0, 4, 0.5), (3.0, 4.0, 7, 1.5)]) == pytest.approx(
            (2.0, 2.5, 7, 1.0)
        )

    def test_are_judged_with_those_of_their_family(self):
        """
        All costs are one; times and errors have one for each quantity.
        """
        assert family_of(("cost", "w", "", "a", "")) == family_of(("cost", "v", "", "b", ""))
        assert family_of(("time", "w", "", "job_s", "")) == family_of(
            ("time", "v", "", "job_s", "c")
        )
        assert family_of(("time", "w", "", "job_s", "")) != family_of(
            ("time", "w", "", "body_s", "")
        )
        assert family_of(("time", "w", "", "job_s", "")) != family_of(
            ("error", "w", "", "job_s", "")
        )


class TestNumbers:
    def test_of_a_time_are_in_seconds(self, tmp_path):
        """
        Both, their spreads, and the share by which it is longer.
        """
        grid = cells(SIZES[:1])
        base = side(tmp_path, grid, [[9.0, 11.0, 10.0, 10.0]])
        other = side(tmp_path, grid, [[19.0, 21.0, 20.0, 20.0]], "two")

        whole, cell = changes(base, other)
        assert (whole.kind, whole.workload, whole.name, whole.cell) == (
            "time",
            "terasort",
            "job_s",
            "",
        )
        assert cell.cell
        assert whole.run == "two"
        assert (whole.base, whole.other) == (pytest.approx(10.0), pytest.approx(20.0))
        assert whole.change == pytest.approx(1.0)
        assert whole.low < 1.0 < whole.high
        assert whole.base_spread / 10 == pytest.approx(2 * whole.other_spread / 20, rel=0.3)
        assert whole.verdict == "larger"

    def test_of_a_cost_are_relative_to_the_base(self, tmp_path):
        """
        In the unit that they have.
        """

        def run(name, value):
            profile = Profile(workload="terasort", costs={"c": statistic(value, value / 100)})
            return side(tmp_path, cells(SIZES[:1]), [[1.0]], name, profiles={"terasort": profile})

        (cost,) = [made for made in changes(run("a", 2e-9), run("b", 3e-9)) if made.kind == "cost"]
        assert (cost.base, cost.other) == (2e-9, 3e-9)
        assert (cost.base_spread, cost.other_spread) == (pytest.approx(2e-11), pytest.approx(3e-11))
        assert cost.change == pytest.approx(0.5)

    def test_of_one_measurement_are_no_times(self, tmp_path):
        """
        An analysis has the times of its run.
        """
        grid = cells(SIZES[:1])
        profiles = {"terasort": Profile(workload="terasort", costs={"c": statistic(1.0)})}
        made = [side(tmp_path, grid, [[1.0, 1.1]], profiles=profiles) for _ in range(2)]

        assert {change.kind for change in changes(*made)} == {"cost"}


class TestSentences:
    def run(self, name, facts):
        """
        A side that says this of itself.
        """
        return SimpleNamespace(
            is_of_past_jobs=False, run=SimpleNamespace(id=name), facts=facts, varying=set()
        )

    def test_of_a_slower_job_have_the_factor(self):
        """
        From the least to the most; of one cell its name.
        """
        assert job_sentence(change()) == "terasort is 1.2 times slower (1.1 to 1.3)"
        assert job_sentence(change(cell="a b")) == "a b is 1.2 times slower (1.1 to 1.3)"

    def test_of_a_faster_job_have_it_upside_down(self):
        """
        The factor is above 1 either way.
        """
        faster = change(change=-0.5, low=-0.6, high=-0.2)

        assert job_sentence(faster) == "terasort is 2 times faster (1.25 to 2.5)"

    def test_name_three_causes(self):
        """
        In the order in which they stand.
        """
        base = self.run("one", {"a": "1", "b": "2", "c": "3", "d": "4", "same": "x"})
        other = self.run("two", {"a": "5", "b": "6", "c": "7", "d": "8", "same": "x"})

        assert sentence(base, other, [change()]) == (
            "terasort is 1.2 times slower (1.1 to 1.3) in run two:"
            " a 5 there, 1 here; b 6 there, 2 here; c 7 there, 3 here"
        )

    def test_name_all_cells_together_or_else_each(self):
        """
        Where no mean moved.
        """
        sides = (self.run("one", {}), self.run("two", {}))
        end = " in run two: nothing that the runs say of themselves differs"
        whole = change()
        first = change(cell="c1")
        second = change(cell="c2", verdict="smaller", change=-0.5, low=-0.6, high=-0.2)

        assert sentence(*sides, [whole, first]) == (
            f"terasort is 1.2 times slower (1.1 to 1.3){end}"
        )
        assert sentence(*sides, [first, second]) == (
            "c1 is 1.2 times slower (1.1 to 1.3), c2 is 2 times faster (1.25 to 2.5)" + end
        )
        cost = change(kind="cost", name="c")
        assert sentence(*sides, [cost, change(verdict="equal")]) == (
            f"no job time moved beyond the noise, but 1 numbers did,{end}"
        )


class TestBudgets:
    def judged(self, made, limit="slower", most=0.2, *, strict=False, **chosen):
        """
        Verdict and reason of a budget of job times about a change.
        """
        budget = Budget("b", limit, most, chosen or {"quantity": "job_s"})
        result = judge(budget, [made], strict=strict)
        return result.verdict, result.reason

    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [(0.21, 0.3, "broken"), (0.1, 0.2, "kept"), (-0.9, 0.2, "kept"), (0.2, 0.3, "undecided")],
    )
    def test_of_times_limit_what_is_longer(self, low, high, verdict):
        """
        However much is saved.
        """
        made, reason = self.judged(change(low=low, high=high))

        assert made == verdict
        assert reason == f"terasort in two: {100 * low:.3g} to {100 * high:.3g} %"

    @pytest.mark.parametrize(
        ("low", "high", "verdict"),
        [
            (-0.2, 0.2, "kept"),
            (-0.4, -0.21, "broken"),
            (0.21, 0.4, "broken"),
            (-0.21, 0.1, "undecided"),
            (-0.1, 0.21, "undecided"),
        ],
    )
    def test_of_costs_limit_both_ways(self, low, high, verdict):
        """
        A cost that shrinks is as strange as one that grows.
        """
        made = change(kind="cost", name="c", low=low, high=high)

        assert self.judged(made, "changes", statistic="c")[0] == verdict

    def test_of_errors_limit_that_of_the_other_run(self):
        """
        Its interval is that of the difference, as much narrower as its spread.
        """
        made = change(
            kind="error", model="m", name="job_s", other=0.3, change=0.1, high=0.2, low=0.0
        )

        assert self.judged(made, "error", most=0.38) == ("kept", "m terasort in two: 22 to 38 %")
        assert self.judged(made, "error", most=0.37)[0] == "undecided"
        assert self.judged(made, "error", most=0.21)[0] == "broken"
        bare = made._replace(base_spread=None, other_spread=None)
        assert self.judged(bare, "error", most=0.3) == ("kept", "m terasort in two: 30 to 30 %")

    def test_without_an_interval_are_undecided(self):
        """
        Strictly they are broken, and say why.
        """
        made = change(low=None)

        assert self.judged(made) == (
            "undecided",
            "terasort in two: the interval is not known",
        )
        assert self.judged(made, strict=True) == (
            "broken",
            "undecided, and --strict counts that: terasort in two: the interval is not known",
        )
        assert self.judged(change(high=None))[0] == "undecided"

    @pytest.mark.parametrize(
        "other",
        [
            {"kind": "cost"},
            {"name": "body_s"},
            {"cell": "one cell"},
            {"workload": "sort", "chosen": {"quantity": "job_s", "workload": "terasort"}},
        ],
    )
    def test_are_of_what_they_name_alone(self, other):
        """
        Of all cells together.
        """
        chosen = other.pop("chosen", {})

        assert self.judged(change(**other), **chosen) == (
            "undecided",
            "the runs have nothing of it in common",
        )

    def test_are_broken_by_the_worst(self):
        """
        The reason has all of that kind.
        """
        budget = Budget("b", "slower", 0.2, {"quantity": "job_s"})
        made = [
            change(low=0.0, high=0.1, run="kept"),
            change(low=0.3, high=0.4, run="x"),
            change(low=0.5, high=0.6, run="y"),
        ]

        result = judge(budget, made, strict=False)
        assert result == budget._replace(
            verdict="broken", reason="terasort in x: 30 to 40 %; terasort in y: 50 to 60 %"
        )

    def test_that_are_none_are_told_how_to_be_written(self, tmp_path):
        """
        A file as well as a line of it.
        """
        made = side(tmp_path, cells(SIZES[:1]), [[1.0]])
        for text, fix in (
            (
                "schema: 1\nbudgets: [{quantity: job_s}]\n",
                "5 %} or {statistic: network_s_per_byte, changes: 20 %}",
            ),
            (
                "schema: 1\n",
                "write 'schema: 1', 'budgets:' and lines such as '- {quantity: job_s, ",
            ),
        ):
            with pytest.raises(SpecError) as caught:
                read_budgets(text, "b.yaml", [made])
            assert fix in str(caught.value)

    def test_may_be_about_whatever_the_runs_have(self, tmp_path):
        """
        Models that only a run knows, and all that there are; any statistic where no run has one.
        """
        made = side(tmp_path, cells(SIZES[:1], name="mine"), [[1.0]], predictions=[
            Prediction(model="only-here")
        ])  # fmt: skip
        text = (
            "schema: 1\nbudgets:\n"
            "- {quantity: job_s, workload: mine, slower: 5 %}\n"
            "- {quantity: job_s, workload: sort, slower: 5 %}\n"
            "- {quantity: job_s, model: only-here, error: 5 %}\n"
            "- {quantity: job_s, model: whatif, error: 5 %}\n"
            "- {statistic: any, changes: 5 %}\n"
        )

        assert len(read_budgets(text, "b.yaml", [made])) == 5

    def test_are_read_with_what_they_choose(self, tmp_path):
        """
        A name of all that, and the share.
        """
        text = (
            "schema: 1\nbudgets:\n"
            "- {workload: terasort, quantity: job_s, slower: 12.5%}\n"
            "- {quantity: body_s, error: ' 5 % '}\n"
        )
        made = side(tmp_path, cells(SIZES[:1]), [[1.0]])

        assert read_budgets(text, "b.yaml", [made]) == [
            Budget(
                "terasort job_s slower 12.5%",
                "slower",
                0.125,
                {"workload": "terasort", "quantity": "job_s"},
            ),
            Budget("body_s error 5 %", "error", 0.05, {"quantity": "body_s"}),
        ]
