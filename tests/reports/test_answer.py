"""
Tests for `harness.core.reports.answer`.
"""

import dataclasses

import pytest

from harness.base.records.prediction import Prediction
from harness.base.records.question import BEST, Answer, Question
from harness.base.records.score import MetricValue, ScoreBook, Tally
from harness.base.records.trial import Limit, LimitedCluster, MachineLoad
from harness.core.reports.answer import facts, headline, not_applicable

MODELS = ("whatif", "whatif-mr2")


def with_verdict(data, verdict, reason="4 more repeats would tell", **ranking):
    """The run with that verdict on its two models, and so changed rankings."""
    score_book = data.score_book
    compared = tuple(
        c.model_copy(update={"verdict": verdict, "reason": reason}) for c in score_book.comparisons
    )
    nearest = MODELS[1:] if verdict == "nearer" else MODELS[::-1]
    rankings = tuple(
        r.model_copy(update={"nearest": nearest, **ranking}) for r in score_book.rankings
    )
    changed = score_book.model_copy(update={"comparisons": compared, "rankings": rankings})
    return dataclasses.replace(data, score_book=changed)


class TestHeadline:
    def test_names_the_nearest_model_with_its_interval_and_the_reason(self, whole):
        """
        Where one model is proved to be nearer than the other.
        """
        sentence = headline(with_verdict(whole, "nearer", "chance gives it in 0.1 %"))

        assert sentence.startswith("whatif-mr2 is nearest: its predicted job times are off by 13 %")
        assert "13 % (95 % interval 11 to 14 %)" in sentence
        assert sentence.endswith("against every other model: chance gives it in 0.1 %.")

    def test_undecided_models_are_named_with_their_errors(self, whole):
        """
        No model is called nearer; what would tell stands beside it.
        """
        data = with_verdict(whole, "undecided")

        assert headline(data) == (
            "Which model is nearest is undecided: the mean relative errors of whatif-mr2 and"
            " whatif, 13 to 22 % of the job times, cannot be distinguished."
        )
        assert facts(data).would_decide == (
            "Between whatif-mr2 and whatif: 4 more repeats would tell.",
        )

    def test_equal_models_are_equally_near(self, whole):
        """
        And that is an answer: nothing is open.
        """
        data = with_verdict(whole, "equal", "they differ by less than 2 points")

        assert headline(data).startswith("whatif-mr2 and whatif are equally near: ")
        assert headline(data).endswith("; they differ by less than 2 points.")
        assert facts(data).would_decide == ()

    def test_without_a_ranking_the_reason_is_the_answer(self, whole):
        """
        Every cell's job is mostly frame.
        """
        none = {"models": (), "errors": (), "nearest": (), "cells": 0, "reason": "all is frame"}
        rankings = tuple(r.model_copy(update=none) for r in whole.score_book.rankings)
        score_book = whole.score_book.model_copy(update={"rankings": rankings})
        data = dataclasses.replace(whole, score_book=score_book)

        assert headline(data) == "No verdict: all is frame."

    def test_bodies_answer_where_jobs_cannot(self, whole):
        """
        The verdict is then on the times without the frame, which is explained.
        """
        (raw, *_), score_book = whole.score_book.rankings, whole.score_book
        none = {"models": (), "errors": (), "nearest": (), "cells": 0, "reason": "all is frame"}
        rankings = (raw.model_copy(update=none), raw.model_copy(update={"quantity": "body_s"}))
        data = dataclasses.replace(
            whole, score_book=score_book.model_copy(update={"rankings": rankings})
        )

        assert "its predicted job times without their frame are off by" in headline(data)
        assert any(
            each.startswith("Job times are compared in no cell: all is frame. The frame is what")
            for each in facts(data).caveats
        )

    def test_few_cells_have_a_range(self, whole):
        """
        Below six cells nothing is called an interval.
        """
        few = tuple(s.model_copy(update={"cells": 5}) for s in whole.score_book.summaries)
        score_book = whole.score_book.model_copy(update={"summaries": few})
        data = dataclasses.replace(whole, score_book=score_book)
        sentence = headline(with_verdict(data, "nearer", cells=5))

        assert "(range " in sentence
        assert "interval" not in sentence

    def test_one_model_is_compared_with_nothing(self, whole):
        """
        The only model is neither nearest nor farthest.
        """
        alone = {"models": ("whatif",), "errors": (0.2,), "nearest": ("whatif",)}
        rankings = tuple(r.model_copy(update=alone) for r in whole.score_book.rankings)
        score_book = whole.score_book.model_copy(update={"comparisons": (), "rankings": rankings})

        assert headline(dataclasses.replace(whole, score_book=score_book)).startswith(
            "whatif is off by"
        )

    @pytest.mark.process
    def test_says_what_is_missing(self, make):
        """
        Each stage of an unfinished run has its own sentence.
        """
        nothing = {"score_book": ScoreBook(), "timelines": ()}
        sentences = [
            headline(make(**nothing, trials=())),
            headline(make(**nothing, predictions=())),
            headline(make(**nothing, measurements=())),
            headline(make(**nothing)),
            headline(make(score_book=ScoreBook(measurements=make().measurements), timelines=())),
        ]

        assert sentences == [
            "No answer yet: no trial has been run.",
            "No answer yet: 52 trials done, and no model has predicted anything.",
            "No answer yet: predictions are there, and no scored cell has been measured.",
            "No answer yet: what was measured has not been scored (harness score RUN).",
            "No answer: no prediction could be scored.",
        ]


class TestFacts:
    def test_what_the_verdict_rests_on(self, whole):
        """
        Cells, repeats, profiling cells, noise, and whether it is blind.
        """
        seal = {"not_blind": [], "order": "blind by the owner's word"}
        rests_on = facts(dataclasses.replace(whole, seal=seal)).rests_on

        assert rests_on[0] == (
            "10 cells (workload, input and configuration), 2 to 3 repeats of each."
        )
        assert "8 other cells" in rests_on[1]
        assert rests_on[2].startswith("Noise 4 %")
        assert rests_on[3].startswith("Longer jobs: ")
        assert rests_on[4].startswith("Blind by the owner's word: ")

    @pytest.mark.parametrize(
        ("power", "text"),
        [((1.0, 0.9, 1.1), "whatif-mr2 0 % (-7 % to +7 %)"), ((2.0, 1.9, 2.1), "+100 % (+87 %")],
    )
    def test_whether_errors_grow_with_the_job(self, whole, power, text):
        """
        In a doubling of the time: of measured times that grow with the square of it, by 100 %.
        """
        value, low, high = power
        exponent = MetricValue(value=value, low=low, high=high)
        book = whole.score_book
        changed = tuple(
            each.model_copy(update={"metrics": {**each.metrics, "calibration_exponent": exponent}})
            for each in book.summaries
        )
        book = book.model_copy(update={"summaries": changed})

        (sentence,) = (
            line
            for line in facts(dataclasses.replace(whole, score_book=book)).rests_on
            if line.startswith("Longer jobs: ")
        )

        assert text in sentence

    def test_a_profiling_trial_that_failed_taught_nothing(self, whole):
        """
        The cells from which models learnt are those that were done.
        """
        first = next(record for record in whole.trials if record.trial.profiling)
        lost = [
            record.model_copy(update={"state": "failed"})
            if record.trial.cell.id == first.trial.cell.id
            else record
            for record in whole.trials
        ]

        assert "7 other cells" in facts(dataclasses.replace(whole, trials=lost)).rests_on[1]

    def test_growth_is_not_said_without_an_interval(self, whole):
        """
        Too few cells have no exponent, or one without ends.
        """
        book = whole.score_book
        changed = tuple(each.model_copy(update={"metrics": {}}) for each in book.summaries)
        book = book.model_copy(update={"summaries": changed})

        lines = facts(dataclasses.replace(whole, score_book=book)).rests_on

        assert not any("Longer jobs" in line for line in lines)

    def test_not_blind_has_its_reason(self, whole):
        """
        As the evidence gives it.
        """
        seal = {"not_blind": ["it has no evidence"], "order": ""}

        assert facts(dataclasses.replace(whole, seal=seal)).rests_on[-1] == (
            "Not blind: it has no evidence."
        )

    def test_says_that_the_noise_is_unknown(self, make):
        """
        Without repeats there is none, and the first screen says so.
        """
        assert any("Noise is not known" in each for each in facts(make(repeat=1)).rests_on)

    def test_an_unfinished_run_says_how_much_is_missing(self, whole):
        """
        Trials of the plan, and cells without a measurement.
        """
        gone = whole.measurements[0].cell
        kept = [each for each in whole.measurements if each.cell != gone]
        data = dataclasses.replace(whole, planned=60, measurements=kept)

        assert facts(data).caveats[0] == (
            "The run is not finished: 6 of 60 trials are missing, and 1 of 10 scored cells has no"
            " measurement."
        )
        assert "finished" not in facts(whole).caveats[0]

    def test_failed_and_disturbed_trials_are_counted(self, whole):
        """
        The first failed ones with their reasons.
        """
        caveats = facts(whole).caveats

        assert caveats[0] == "2 of 54 trials failed or ran out of time: in no figure."
        assert caveats[1].endswith(": NodeManager worker2 is gone: no heartbeat for 30 s")
        assert "1 of 54 trials ran disturbed: others used the machine. It counts." in caveats

    def test_one_cell_outside_the_profile_lies_there(self, whole):
        """
        And several lie there.
        """
        answered = [score for score in whole.score_book.scores if score.range]
        first = answered[0].cell

        def said(is_outside):
            scores = [
                score.model_copy(update={"range": "outside" if is_outside(score) else "inside"})
                for score in whole.score_book.scores
            ]
            book = whole.score_book.model_copy(update={"scores": tuple(scores)})
            return facts(dataclasses.replace(whole, score_book=book)).caveats

        one = "1 of 10 cells lies outside the range that was profiled."
        assert one in said(lambda score: score.cell == first)
        assert "10 of 10 cells lie outside the range that was profiled." in said(lambda _: True)

    def test_cells_that_the_question_leaves_out_are_counted(self, whole):
        """
        What is compared and what is not adds up.
        """
        first = whole.scores("job_s", "raw")[0].cell
        moved = [
            score.model_copy(update={"range": "outside" if score.cell == first else "inside"})
            for score in whole.score_book.scores
        ]
        question = Question(how_far=BEST, extrapolate="out")
        found = Answer(question=question, asked="sealed", outcome="yes", sentence="")
        ranking = whole.score_book.ranking("raw")
        fewer = ranking.model_copy(update={"cells": ranking.cells - 1})
        rankings = tuple(fewer if row == ranking else row for row in whole.score_book.rankings)
        counts = {"quantity": "job_s", "planned": 10, "done": 10, "usable": 10, "scored": 10}
        tallies = [Tally(unit=unit, **counts) for unit in ("trial", "cell")]
        update = {"scores": tuple(moved), "answer": found, "rankings": rankings}
        update["tallies"] = tuple(tallies)
        book = whole.score_book.model_copy(update=update)
        said = facts(dataclasses.replace(whole, score_book=book))

        assert any(
            line.startswith("Compared: ") and "1 not: extrapolated" in line
            for line in said.rests_on
        )
        assert any(line.endswith(": left out of verdicts and means.") for line in said.caveats)

    def test_limits_that_do_not_hold_are_counted(self, whole):
        """
        Not near what was asked, or not enforced.
        """
        limits = {
            "cores": Limit(requested=1, setting=1, measured=0.7),
            "disk_write": Limit(requested=1, setting=1, measured=1, buffered_write=9),
            "disk_read": Limit(requested=1, setting=1, measured=1),
        }
        start = LimitedCluster(cluster="c", measured_s=0, nodes={"worker1": limits})
        manifest = {**whole.manifest, "limits": [start.model_dump(mode="json")]}

        assert any(
            each.startswith("2 of 3 limits of nodes did not hold as requested")
            for each in facts(dataclasses.replace(whole, manifest=manifest)).caveats
        )

    def test_another_verdict_at_reference_speed_is_said(self, whole):
        """
        One that is the same is not.
        """
        raw, reference = whole.score_book.rankings
        other = reference.model_copy(update={"nearest": ("whatif-mr2", "whatif")})
        score_book = whole.score_book.model_copy(update={"rankings": (raw, other)})
        caveats = facts(dataclasses.replace(whole, score_book=score_book)).caveats

        assert any("undecided between whatif-mr2 and whatif" in each for each in caveats)
        assert not any("verdict is another" in each for each in facts(whole).caveats)

    def test_who_is_not_ranked_is_named_with_the_reason(self, whole):
        """
        So are the limits of the cluster.
        """
        data = with_verdict(whole, "nearer", left_out={"lucky": "it answers 1 of 10 cells"})
        manifest = {**whole.manifest, "limitations": ["no byte crosses a network"]}
        caveats = facts(dataclasses.replace(data, manifest=manifest)).caveats

        assert "lucky is not ranked: it answers 1 of 10 cells." in caveats
        assert "The cluster: no byte crosses a network." in caveats

    def test_models_that_lack_the_same_share_a_sentence(self, whole):
        """
        With the first names of statistics that the profile lacks.
        """
        names = ("a_s", "b_s", "c_s", "d_s", "e_s")
        unanswered = [
            Prediction(model=m, cell="c", job_s=None, not_applicable=names)
            for m in ("spn-gc", "spn-gc-mr2")
        ]

        (sentence,) = not_applicable(dataclasses.replace(whole, predictions=unanswered))

        assert sentence.endswith("in 1 cell: the profile lacks a_s, b_s, c_s and 2 more.")


class TestOthers:
    ANSWER = Answer(
        question=Question(how_far="best"), asked="sealed", outcome="yes", sentence="whatif is off."
    )

    def used_by_others(self, data, *shares):
        """The run whose scored trials ran while others used these shares of the machine."""
        scored = [record for record in data.trials if record.trial.is_scored][: len(shares)]
        loads = {
            record.trial.id: {
                "this machine": MachineLoad(busy=0.9, steal=0.0, others=share, swap_bytes_per_s=0.0)
            }
            for record, share in zip(scored, shares, strict=True)
        }
        trials = [
            record.model_copy(update={"loads": loads.get(record.trial.id, {}), "state": "done"})
            for record in data.trials
        ]
        book = data.score_book.model_copy(update={"answer": self.ANSWER})
        return dataclasses.replace(data, score_book=book, trials=trials)

    def test_what_others_did_in_most_trials_is_said_before_any_model_is_named(self, whole):
        """
        Of two of three trials; the median counts.
        """
        sentence = headline(self.used_by_others(whole, 0.6, 0.02, 0.62))

        assert sentence == "Not a measurement: others used 60 % of the processors. whatif is off."

    @pytest.mark.parametrize("shares", [(0.02, 0.6, 0.03), (0.1,), (), (None, None)])
    def test_what_others_did_in_few_trials_is_no_head(self, whole, shares):
        """
        Nor what is not known, nor a tenth.
        """
        assert headline(self.used_by_others(whole, *shares)) == "whatif is off."
