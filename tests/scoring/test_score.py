"""
Tests for `harness.scoring.score`.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Question
from harness.base.records.score import Measurement
from harness.scoring import score

PHASES = {"map_main_s": 8.0, "shuffle_s": 4.0}


def prediction(model="whatif", cell="c0", job_s=100.0, **changes):
    """
    A prediction of a job, its tasks and two phases.
    """
    tasks = {"map_task_s": 10.0, "reduce_task_s": 20.0, "measurable": PHASES}
    return Prediction(model=model, cell=cell, job_s=job_s, **(tasks | changes))


def trial(cell="c0", number=0, workload="wordcount", *, raw=100.0, reference=None, **times):
    """
    A trial of a job of *raw* seconds.
    """
    reference_s = {"job_s": reference, **times} if reference is not None else {}
    return Measurement(
        cell=cell, workload=workload, trial=f"{cell}-{number}",
        raw_s={"job_s": raw, **times}, reference_s=reference_s,
    )  # fmt: skip


def repeats(cell, *seconds, workload="wordcount"):
    """
    Trials of one cell.
    """
    return [trial(cell, i, workload, raw=s) for i, s in enumerate(seconds)]


def row(score_book, model="whatif", quantity="job_s", speed="raw", cell="c0"):
    """
    The one score of that kind.
    """
    (matching,) = [
        s for s in score_book.scores
        if (s.model, s.quantity, s.speed, s.cell) == (model, quantity, speed, cell)
    ]  # fmt: skip
    return matching


def summary(score_book, model="whatif", workload="*", quantity="job_s"):
    """
    The one summary of that kind, of raw times.
    """
    (matching,) = [
        s for s in score_book.summaries
        if (s.model, s.workload, s.quantity, s.speed) == (model, workload, quantity, "raw")
    ]  # fmt: skip
    return matching


class TestRows:
    def test_error_stands_beside_the_noise_of_its_cell(self):
        """
        Trials of 90, 100 and 110 s: mean 100 with a floor of 10 % over the root of three, and 120 s
        is 20 % too slow.
        """
        score_book = score([prediction(job_s=120.0)], repeats("c0", 90.0, 100.0, 110.0))

        s = row(score_book)
        assert (s.measured_s, s.trials, s.floor) == (100.0, 3, pytest.approx(0.1 / 3**0.5))
        assert (s.signed_error, s.relative_error) == (pytest.approx(0.2), pytest.approx(0.2))

    def test_one_job_of_several_has_a_score_of_its_own(self):
        """
        Beside that of their sum; a trial of one job has no such score.
        """
        several_jobs = prediction(job_s=90.0, each_job_s=30.0, jobs=3.0)
        several = score([several_jobs], [trial(raw=120.0, each_job_s=40.0)])
        single = score([prediction()], [trial(each_job_s=40.0)])

        s = row(several, quantity="each_job_s")
        assert (s.level, s.predicted_s, s.measured_s) == ("job", 30.0, 40.0)
        assert {s.quantity for s in single.scores} == {"job_s"}

    def test_makespan_has_a_prediction_of_its_own(self):
        """
        A model that says nothing of it is not scored by it.
        """
        times = [trial(makespan_s=80.0)]

        s = row(score([prediction(makespan_s=100.0)], times), quantity="makespan_s")
        assert s.signed_error == pytest.approx(0.25)
        assert "makespan_s" not in {s.quantity for s in score([prediction()], times).scores}

    def test_bodies_of_several_jobs_are_scored_as_their_sum(self):
        """
        A trial's body is that of all its jobs, and so is what was published, of the job time.
        """
        several = prediction(job_s=96.0, body_s=20.0, published_s=25.0, frame_s=12.0, jobs=3.0)
        score_book = score([several], [trial(raw=100.0, body_s=75.0, frame_s=25.0)])

        pairs = {s.quantity: (s.predicted_s, s.measured_s) for s in score_book.scores}
        assert pairs == {
            "job_s": (96.0, 100.0), "body_s": (60.0, 75.0), "published_s": (75.0, 100.0),
            "frame_s": (36.0, 25.0),
        }  # fmt: skip

    def test_estimates_are_further_bodies(self):
        """
        Each is scored as the body is, of all jobs; models are not compared by them.
        """
        answers = [
            prediction(m, body_s=20.0, estimates={"shared_s": 30.0}, jobs=2.0) for m in ("a", "b")
        ]
        score_book = score(answers, [trial(body_s=50.0)])

        s = row(score_book, "a", "shared_s")
        assert (s.level, s.predicted_s, s.measured_s) == ("estimate", 60.0, 50.0)
        assert {c.quantity for c in score_book.comparisons} == {"job_s"}
        assert {r.quantity for r in score_book.rankings} == {"job_s", "body_s"}

    def test_equations_are_scored_one_by_one(self):
        """
        Against what recordings show of a task; models are not compared by them.
        """
        answers = [prediction(m, parts={"collect_s": 3.0}) for m in ("a", "b")]
        score_book = score(answers, [trial(collect_s=2.0)])

        s = row(score_book, "a", "collect_s")
        assert (s.level, s.predicted_s, s.measured_s) == ("equation", 3.0, 2.0)
        assert {c.quantity for c in score_book.comparisons} == {"job_s"}

    def test_what_was_published_has_the_noise_of_the_job(self):
        """
        Which is what it is compared with.
        """
        trials = repeats("c0", 90.0, 100.0, 110.0)
        score_book = score([prediction(published_s=70.0)], trials)

        assert row(score_book, quantity="published_s").floor == row(score_book).floor

    def test_a_body_without_a_frame_is_scored(self):
        """
        No job time is made of it, and the cell counts as without an answer there.
        """
        bare = prediction(job_s=None, body_s=50.0)
        score_book = score([bare], [trial(raw=100.0, body_s=75.0)])

        assert {s.quantity for s in score_book.scores} == {"body_s"}
        assert summary(score_book, quantity="body_s").not_applicable == 1

    def test_tasks_and_phases_are_scored_at_their_level(self):
        """
        Errors of phases cancel in a job, so each has its row.
        """
        score_book = score([prediction()], [trial(map_task_s=8.0, shuffle_s=5.0, sort_s=1.0)])

        levels = {s.quantity: s.level for s in score_book.scores}
        assert levels == {"job_s": "job", "map_task_s": "task", "shuffle_s": "phase"}

    def test_reference_speed_has_rows_of_its_own(self):
        """
        Raw and corrected times are both scored, always.
        """
        score_book = score([prediction()], [trial(raw=125.0, reference=100.0)])

        assert row(score_book, speed="raw").relative_error == pytest.approx(0.2)
        assert row(score_book, speed="reference").relative_error == 0

    def test_indicator_is_against_whatif_of_the_same_cell(self):
        """
        What-If 20 % off, the other 5 %: 15 points better; What-If itself 0.
        """
        both = [prediction(job_s=120.0), prediction("prophet", job_s=95.0)]
        score_book = score(both, [trial()])

        assert row(score_book, "prophet").i_accu_percent == pytest.approx(15.0)
        assert row(score_book).i_accu_percent == 0

    def test_no_indicator_without_whatif(self):
        """
        Nothing to compare with is not 0.
        """
        score_book = score([prediction("prophet")], [trial()])

        assert row(score_book, "prophet").i_accu_percent is None

    def test_cell_keeps_its_place_in_the_profiled_range(self):
        """
        And its names; the trials are counted.
        """
        outside = trial().model_copy(update={"range": "outside"})
        s = row(score([prediction()], [outside]))

        assert (s.range, s.level, s.predicted_s, s.trials) == ("outside", "job", 100.0, 1)

    def test_says_whether_the_interval_covers(self):
        """
        A mean of 100 s lies in 90 to 110 s, and not beside; unbounded says nothing.
        """
        intervals = {"job_s": {"80": (101.0, 110.0), "90": (90.0, 110.0)}}
        unbounded = {"job_s": {"80": (90.0, 110.0), "90": None}}
        near, far = (
            row(score([prediction(intervals=each)], repeats("c0", 99.0, 101.0)))
            for each in (intervals, unbounded)
        )

        assert (near.covered_80, near.covered_90) == (False, True)
        assert (far.covered_80, far.covered_90) == (True, None)

    def test_the_repeats_of_its_profile_say_whether_it_holds_with_any(self):
        """
        Of each model and cell, by the profile of the cell's workload.
        """
        models = {"whatif": 160.0, "ernest": 102.0}
        times = [trial for cell in "abcdef" for trial in repeats(cell, 99.0, 101.0)]

        def held(*moves):
            predictions = [
                prediction(
                    model, cell, job_s=job_s, profile="p",
                    repeats_s=tuple(job_s + move * (model == "whatif") for move in moves),
                )
                for model, job_s in models.items() for cell in "abcdef"
            ]  # fmt: skip
            (pair,) = [c for c in score(predictions, times).comparisons
                       if (c.quantity, c.speed) == ("job_s", "raw")]  # fmt: skip
            return pair.any_profile, "with any profile of this kind" in pair.reason

        assert held(1.0, -1.0, 2.0, -2.0) == ("nearer", True)
        assert held(60.0, -60.0, 40.0, -40.0) == ("undecided", False)
        assert held() == ("undecided", False)

    def test_a_quantity_has_the_trials_that_show_it(self):
        """
        One history of two lacks the shuffle.
        """
        s = row(
            score([prediction()], [trial(number=0, shuffle_s=5.0), trial(number=1)]),
            quantity="shuffle_s",
        )

        assert (s.trials, s.measured_s, s.floor) == (1, 5.0, None)

    def test_indicator_is_of_its_own_cell_quantity_and_speed(self):
        """
        What-If's answer for another cell is not compared with.
        """
        answers = [
            prediction(job_s=120.0), prediction("prophet", "c1", job_s=95.0),
            prediction("prophet", job_s=95.0, measurable={"sort_s": 3.0}),
        ]  # fmt: skip
        trials = [trial(raw=100.0, reference=80.0, sort_s=2.0), trial("c1")]
        score_book = score(answers, trials)

        assert row(score_book, "prophet", cell="c1").i_accu_percent is None
        assert row(score_book, "prophet", "sort_s").i_accu_percent is None
        raw, reference = (row(score_book, "prophet", speed=s) for s in ("raw", "reference"))
        assert raw.i_accu_percent == pytest.approx(15.0)
        assert reference.i_accu_percent == pytest.approx(50.0 - 18.75)

    def test_cells_of_a_workload_share_their_spread(self):
        """
        10 % of two trials each; a cell of one trial has it whole, another workload has none.
        """
        low, high = 100 - 50**0.5, 100 + 50**0.5
        trials = [
            *repeats("c0", low, high), *repeats("c1", low, high), *repeats("c2", 70.0),
            *repeats("c3", 70.0, workload="sort"),
        ]  # fmt: skip
        score_book = score([prediction(cell=f"c{i}") for i in range(4)], trials)

        floors = [row(score_book, cell=f"c{i}").floor for i in range(4)]
        assert floors == [*[pytest.approx(0.1 / 2**0.5)] * 2, pytest.approx(0.1), None]

    def test_profiling_trials_say_what_scored_ones_do_not(self):
        """
        Of the same workload, and where none of its scored cells was repeated.
        """
        low, high = 100 - 50**0.5, 100 + 50**0.5
        trials = [
            *repeats("c0", 70.0), *repeats("c1", 70.0, 90.0, workload="grep"),
            *repeats("c2", 70.0, workload="sort"),
        ]  # fmt: skip
        profiling = [*repeats("p0", low, high), *repeats("p1", 1.0, 9.0, workload="grep")]
        predictions = [prediction(cell=f"c{i}") for i in range(3)]
        score_book = score(predictions, trials, profiling=profiling)

        floors = [row(score_book, cell=f"c{i}").floor for i in range(3)]
        alone = row(score(predictions, trials), cell="c1").floor
        assert floors == [pytest.approx(0.1), alone, None]
        assert {found.cell for found in score_book.scores} == {"c0", "c1", "c2"}

    def test_what_is_compared_with_the_job_has_its_floor(self):
        """
        As published is measured as the job.
        """
        score_book = score([prediction(published_s=80.0)], repeats("c0", 90.0, 110.0))

        assert row(score_book, quantity="published_s").floor == row(score_book).floor > 0

    def test_single_trial_has_no_floor(self):
        """
        One run says nothing of its noise.
        """
        assert row(score([prediction()], [trial()])).floor is None

    def test_phase_measured_as_nothing_has_no_row(self):
        """
        Nothing can be a share of 0 s.
        """
        score_book = score([prediction(measurable={"sort_s": 1.0})], [trial(sort_s=0.0)])

        assert [s.quantity for s in score_book.scores] == ["job_s"]

    def test_cells_that_were_not_measured_are_left_out(self):
        """
        A failed cell is no error of a model.
        """
        assert score([prediction(cell="c9")], [trial("c0")]).scores == ()


class TestSummaries:
    def test_perfect_predictions_score_zero(self):
        """
        Every error is 0, and the line is the identity.
        """
        cells = {f"c{i}": 50.0 + 10 * i for i in range(5)}
        score_book = score(
            [prediction(cell=c, job_s=t) for c, t in cells.items()],
            [trial(c, raw=t) for c, t in cells.items()],
        )

        s = summary(score_book)
        error = s.metrics["mape"]
        assert (error.value, error.low, error.high, s.value("worst_error")) == (0, 0, 0, 0)
        line = [s.value(f"calibration_{name}") for name in ("slope", "intercept_s", "r2")]
        assert line == pytest.approx([1, 0, 1])

    def test_names_what_it_summarises(self):
        """
        Model, quantity, its level, and speed; a value that is not known is not there.
        """
        score_book = score([prediction("p")], [trial(map_task_s=8.0, reference=90.0)])

        rows = {(s.model, s.workload, s.quantity, s.level, s.speed) for s in score_book.summaries}
        assert rows == {
            ("p", workload, quantity, level, speed)
            for workload in ("wordcount", "*")
            for quantity, level in (("job_s", "job"), ("map_task_s", "task"))
            for speed in ("raw", "reference")
        }
        assert summary(score_book, "p").cells == 1
        known = summary(score_book, "p").metrics.keys()
        assert {"mape", "signed_error", "worst_error"} <= known
        assert not {"i_accu", "calibration_slope", "tau"} & known

    def test_unanswered_cells_count_in_their_workload(self):
        """
        And over all, but not in another workload or of another model.
        """
        answers = [prediction(), prediction("p"), prediction(cell="c1", job_s=None),
                   prediction(cell="c2")]  # fmt: skip
        trials = [trial("c0"), trial("c1", workload="sort"), trial("c2", workload="sort")]
        score_book = score(answers, trials)

        counts = {w: summary(score_book, workload=w).not_applicable for w in ("wordcount", "sort")}
        assert counts == {"wordcount": 0, "sort": 1}
        assert summary(score_book).not_applicable == 1
        assert summary(score_book, "p").not_applicable == 0

    def test_workloads_apart_and_together(self):
        """
        One summary per workload, and one of all.
        """
        trials = [*repeats("c0", 100.0), *repeats("c1", 100.0, workload="terasort")]
        score_book = score([prediction(job_s=110.0), prediction(cell="c1", job_s=130.0)], trials)

        errors = {
            w: summary(score_book, workload=w).value("mape") for w in ("wordcount", "terasort", "*")
        }
        assert errors == pytest.approx({"wordcount": 0.1, "terasort": 0.3, "*": 0.2})

    def test_interval_holds_the_mean_and_is_reproducible(self):
        """
        The same data, the same interval.
        """
        trials = [t for i in range(6) for t in repeats(f"c{i}", 100.0 + i, 101.0 + i)]
        answers = [prediction(cell=f"c{i}", job_s=100.0 + i * i) for i in range(6)]
        one, other = summary(score(answers, trials)), summary(score(answers, trials))

        assert one == other
        error = one.metrics["mape"]
        assert error.low < error.value < error.high

    def test_share_within_the_floor(self):
        """
        One cell of two is as good as its repeats.
        """
        trials = [*repeats("c0", 90.0, 110.0), *repeats("c1", 99.0, 101.0, workload="sort")]
        score_book = score([prediction(job_s=105.0), prediction(cell="c1", job_s=105.0)], trials)

        assert summary(score_book).value("within_noise") == 0.5

    def test_cells_without_an_answer_are_counted(self):
        """
        A model that lacks statistics is not applicable there, and is not scored better for it.
        """
        unanswered = prediction(cell="c1", job_s=None, not_applicable=("network_s_per_byte",))
        score_book = score([prediction(), unanswered], [trial("c0"), trial("c1")])

        assert (summary(score_book).cells, summary(score_book).not_applicable) == (1, 1)


NEAR = dict(zip("abcdef", (105.0, 106.0, 104.0, 105.0, 103.0, 107.0), strict=True))
FAR = dict(zip("abcdef", (130.0, 128.0, 133.0, 131.0, 127.0, 134.0), strict=True))


class TestAnswer:
    """The question of a run, and what stands beside its scores."""

    def scored(self, *, ranges=(), **arguments):
        """
        A near and a far model on six cells of two trials.
        """
        predictions = [
            prediction(model, cell, job_s=job_s)
            for model, times in (("near", NEAR), ("far", FAR))
            for cell, job_s in times.items()
        ]
        trials = [t for cell in "abcdef" for t in repeats(cell, 99.0, 101.0)]
        placed = [
            t.model_copy(update={"range": "outside" if t.cell in ranges else "inside"})
            for t in trials
        ]
        return score(predictions, placed, **arguments)

    def test_who_asks_nothing_is_told_of_the_best_model(self):
        """
        As asked afterwards.
        """
        score_book = self.scored()

        found = score_book.answer
        assert (found.question, found.asked) == (Question(how_far=BEST), "afterwards")
        assert found.sentence.startswith("Of 2 models near errs least: off by 5.0 % on average")
        assert found.sentence.endswith(" It is nearer than far.")
        assert score_book.asked() == []

    def test_what_was_sealed_is_answered(self):
        """
        By a family of its own.
        """
        question = Question(nearer=("near", "far"))
        score_book = self.scored(question=question, asked="sealed")

        assert (score_book.answer.outcome, score_book.answer.asked) == ("yes", "sealed")
        (pair,) = score_book.asked()
        assert (pair.better, pair.worse, pair.chance) == ("near", "far", 1 / 64)
        assert self.scored(question=question, asked="explored").asked() == []

    def test_the_level_of_a_look_counts_for_what_is_asked(self):
        """
        One flip of 64 is more than 1.2 %.
        """
        question = Question(nearer=("near", "far"))

        assert self.scored(question=question, error=0.012).answer.outcome == "cannot tell"

    def test_controls_stand_beside_the_models(self):
        """
        By raw job times, in the cells that all ranked models answer.
        """
        score_book = self.scored()
        perfect, coin = score_book.controls

        assert (perfect.name, coin.name, coin.made_of) == ("perfect", "coin", "near")
        assert (perfect.quantity, perfect.cells, [*perfect.nearer]) == ("job_s", 6, ["near", "far"])
        assert score_book.control("perfect") == perfect
        assert score_book.control("coin") == coin
        assert score([], []).control("perfect") is None
        assert score_book.answer.floor == perfect.error

    def test_scope_is_that_of_the_question(self):
        """
        Six cells without an input are six inputs; of one input there are too few.
        """
        trials = [
            t.model_copy(update={"input": "x"}) for c in "abcdef" for t in repeats(c, 99.0, 101.0)
        ]
        answers = [
            prediction(model, cell, job_s=job_s)
            for model, times in (("near", NEAR), ("far", FAR))
            for cell, job_s in times.items()
        ]
        question = Question(nearer=("near", "far"), scope="inputs")
        score_book = score(answers, trials, question=question)

        assert score_book.answer.outcome == "cannot tell"
        assert score_book.asked()[0].reason == "from 6 inputs on it can be tested: 5 more inputs"
        assert score_book.control("perfect").nearer == {}

    def test_who_asks_about_extrapolation_asks_about_cells_outside(self):
        """
        All scores stay, and what is concluded is about these.
        """
        question = Question(how_far="near", extrapolate=True)
        score_book = self.scored(ranges="ab", question=question)

        assert score_book.answer.cells == 2
        assert score_book.ranking("raw").cells == 2
        assert score_book.control("perfect").cells == 2
        assert {s.cell for s in score_book.scores} == {*"abcdef"}
        assert summary(score_book, "near").cells == 2

    @pytest.mark.parametrize(
        ("ranges", "end"),
        [("a", "Extrapolated, and left out, is 1 cell."),
         ("ab", "Extrapolated, and left out, are 2 cells."), ("", " It is nearer than far.")],
    )  # fmt: skip
    def test_who_leaves_extrapolation_out_is_told_of_how_many_cells(self, ranges, end):
        """
        All scores stay, and what is concluded is about the others.
        """
        question = Question(how_far=BEST, extrapolate="out")
        score_book = self.scored(ranges=ranges, question=question)

        assert score_book.answer.sentence.endswith(end)
        assert score_book.answer.cells == score_book.ranking("raw").cells == 6 - len(ranges)
        assert summary(score_book, "near").cells == 6 - len(ranges)
        assert {s.cell for s in score_book.scores} == {*"abcdef"}

    def test_where_all_cells_are_inside_extrapolation_has_no_answer(self):
        """
        Nor controls.
        """
        question = Question(how_far="near", extrapolate=True)
        score_book = self.scored(question=question)

        assert (score_book.answer, score_book.controls, score_book.rankings) == (None, (), ())

    def test_without_a_job_time_there_is_no_answer(self):
        """
        Bodies alone are ranked, and answer nothing.
        """
        score_book = score([prediction(job_s=None, body_s=50.0)], [trial(body_s=75.0)])

        assert (score_book.answer, score_book.controls) == (None, ())
        assert [r.quantity for r in score_book.rankings] == ["body_s"]

    def test_earlier_predictions_count_where_models_are_explored(self):
        """
        Of cells that were measured; they are no scores of this run.
        """
        wild = dict(zip("abcdef", (190.0, 100.0, 160.0, 110.0, 180.0, 120.0), strict=True))
        earlier = [prediction("old", cell, job_s=job_s) for cell, job_s in wild.items()]
        earlier += [prediction("old", "unmeasured", job_s=100.0)]

        plain = self.scored()
        again = self.scored(earlier=earlier)
        (pair,) = [c for c in again.comparisons if c.speed == "raw"]
        (alone,) = [c for c in plain.comparisons if c.speed == "raw"]
        assert again.scores == plain.scores
        assert again.rankings == plain.rankings
        assert pair.low < alone.low

    def test_frames_make_no_ranking(self):
        """
        They are the same for most models.
        """
        answers = [prediction(m, frame_s=12.0, body_s=80.0) for m in ("a", "b")]
        score_book = score(answers, [trial(frame_s=20.0, body_s=80.0)])

        assert {s.quantity for s in score_book.scores} == {"job_s", "body_s", "frame_s"}
        assert {r.quantity for r in score_book.rankings} == {"job_s", "body_s"}

    @pytest.mark.parametrize("frame_s", [1.0, 70.0])
    def test_no_cell_leaves_for_its_frame(self, frame_s):
        """
        A frame counts as part of a prediction, however large its share.
        """
        trials = [
            trial(cell, number, raw=100.0 + number, frame_s=frame_s, body_s=100.0 - frame_s)
            for cell in "abcdef" for number in (0, 1)
        ]  # fmt: skip
        answers = [prediction(m, cell, job_s=s) for m, s in (("a", 105.0), ("b", 140.0))
                   for cell in "abcdef"]  # fmt: skip
        score_book = score(answers, trials)

        assert score_book.ranking("raw").cells == 6
        assert score_book.comparisons[0].verdict == "nearer"


@given(st.randoms())
def test_order_does_not_matter(random):
    """
    Trials and predictions in any order make the same score_book.
    """
    trials = [t for i in range(4) for t in repeats(f"c{i}", 100.1 + i, 103.7, 99.3 + 2 * i)]
    answers = [prediction(m, f"c{i}", job_s=90.0 + i) for i in range(4) for m in ("whatif", "p")]

    mixed = score(random.sample(answers, len(answers)), random.sample(trials, len(trials)))

    assert mixed == score(answers, trials)
