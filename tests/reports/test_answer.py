"""
Tests for `harness.reports.answer`.
"""

import dataclasses

from harness.records.prediction import Prediction
from harness.records.score import MetricValue, ScoreBook
from harness.reports.answer import answer, not_applicable

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


def errors(data, **changes):
    """The run with changed summaries of the job time."""
    values = {name: MetricValue(value=value) for name, value in changes.items()}
    summaries = tuple(
        s.model_copy(update={"metrics": s.metrics | values}) for s in data.score_book.summaries
    )
    score_book = data.score_book.model_copy(update={"summaries": summaries})
    return dataclasses.replace(data, score_book=score_book)


class TestHeadline:
    def test_names_the_nearest_model_with_its_interval_and_the_reason(self, whole):
        """
        Where one model is proved to be nearer than the other.
        """
        (first,) = (
            s
            for s in whole.score_book.summaries
            if (s.quantity, s.workload, s.speed, s.model) == (*ALL_RAW, "whatif-mr2")
        )

        headline = answer(with_verdict(whole, "nearer", "chance gives it in 0.1 %")).headline

        assert headline.startswith(f"whatif-mr2 is nearest: over {first.cells} cells")
        error = first.metrics["mape"]
        assert f"{100 * error.value:.0f} % (95 % interval {100 * error.low:.0f} to" in headline
        assert headline.endswith("against every other model: chance gives it in 0.1 %.")

    def test_what_is_undecided_has_its_reason(self, whole):
        """
        No model is called nearer or better anywhere in the answer.
        """
        answered = answer(with_verdict(whole, "undecided"))
        details = " ".join(answered.details)

        assert answered.headline.startswith("Which model is nearest is undecided: over 10 cells")
        assert answered.headline.endswith("; of whatif-mr2 and whatif: 4 more repeats would tell.")
        assert "which is undecided: 4 more repeats would tell." in details
        assert not any(word in details for word in ("is nearer", "is nearest", "better"))

    def test_equal_models_are_equally_near(self, whole):
        """
        And that is an answer.
        """
        answered = answer(with_verdict(whole, "equal", "they differ by less than 2 points"))

        assert answered.headline.startswith("whatif-mr2 and whatif are equally near: over 10 cells")
        assert "whatif and whatif-mr2 are equally near" not in answered.headline
        assert "It and whatif-mr2 are equally near: they differ by less than 2 points." in " ".join(
            answered.details
        )

    def test_without_a_ranking_the_reason_is_the_answer(self, whole):
        """
        Every cell's job is mostly frame.
        """
        data = with_verdict(
            whole, "nearer", models=(), errors=(), nearest=(), cells=0, left_out={"a": "b"}
        )
        (first, *_), score_book = data.score_book.rankings, data.score_book
        framed = first.model_copy(update={"reason": "all is frame"})
        data = dataclasses.replace(
            data, score_book=score_book.model_copy(update={"rankings": (framed,)})
        )

        assert answer(data).headline == "No verdict: all is frame."

    def test_bodies_answer_where_jobs_cannot(self, whole):
        """
        The verdict is then on the times without the frame.
        """
        (raw, *_), score_book = whole.score_book.rankings, whole.score_book
        none = {"models": (), "errors": (), "nearest": (), "cells": 0, "reason": "all is frame"}
        rankings = (raw.model_copy(update=none), raw.model_copy(update={"quantity": "body_s"}))
        bodies = tuple(s.model_copy(update={"quantity": "body_s"}) for s in score_book.summaries
                       if s.quantity == "job_s")  # fmt: skip
        data = dataclasses.replace(
            whole,
            score_book=score_book.model_copy(update={"rankings": rankings, "summaries": bodies}),
        )

        answered = answer(data)
        assert "its predicted job times without their frame are off by" in answered.headline
        assert "Job times are compared in no cell: all is frame." in answered.details

    def test_who_is_not_ranked_is_named_with_the_reason(self, whole):
        """
        And its error is on no line.
        """
        data = with_verdict(whole, "nearer", left_out={"lucky": "it answers 1 of 10 cells"})

        assert "lucky is not ranked: it answers 1 of 10 cells." in answer(data).details

    def test_few_cells_have_a_range(self, whole):
        """
        Below six cells nothing is called an interval.
        """
        few = tuple(s.model_copy(update={"cells": 5}) for s in whole.score_book.summaries)
        score_book = whole.score_book.model_copy(update={"summaries": few})
        data = dataclasses.replace(whole, score_book=score_book)
        answered = answer(with_verdict(data, "nearer", cells=5))

        assert "(range " in answered.headline
        assert "interval" not in answered.headline
        assert answered.cards[0].lines[0].startswith("range ")

    def test_one_model_is_compared_with_nothing(self, whole):
        """
        The only model is neither nearest nor farthest.
        """
        only = tuple(s for s in whole.score_book.summaries if s.model == "whatif")
        alone = {"models": ("whatif",), "errors": (0.2,), "nearest": ("whatif",)}
        rankings = tuple(r.model_copy(update=alone) for r in whole.score_book.rankings)
        score_book = ScoreBook(scores=whole.score_book.scores, summaries=only, rankings=rankings)

        assert answer(dataclasses.replace(whole, score_book=score_book)).headline.startswith(
            "whatif is off by"
        )

    def test_says_what_is_missing(self, make):
        """
        Each stage of an unfinished run has its own sentence.
        """
        nothing = {"score_book": ScoreBook(), "timelines": ()}
        answered = [
            answer(make(**nothing, trials=())).headline,
            answer(make(**nothing, predictions=())).headline,
            answer(make(**nothing, measurements=())).headline,
            answer(make(**nothing)).headline,
        ]

        assert answered == [
            "No answer yet: no trial has been run.",
            "No answer yet: 52 trials done, and no model has predicted anything.",
            "No answer yet: predictions are there, and no scored cell has been measured.",
            "No answer: no prediction could be scored.",
        ]


ALL_RAW = ("job_s", "*", "raw")


class TestDetails:
    def test_say_which_way_models_err(self, whole):
        """
        One-sided errors have a direction, others are said to go both ways.
        """
        short = answer(errors(whole, mape=0.2, signed_error=-0.2)).details
        both = answer(errors(whole, mape=0.2, signed_error=0.01)).details

        assert any("are too short: on average by 20 %" in d for d in short)
        assert any("err in both directions" in d for d in both)

    def test_say_whether_the_floor_can_be_split(self, whole):
        """
        Into repeats and starts of the cluster, where cells were repeated on two of them.
        """
        twice = [m.model_copy(update={"start": s}) for m in whole.measurements for s in "ab"]
        alone, split = (
            " ".join(answer(each).details)
            for each in (whole, dataclasses.replace(whole, measurements=twice))
        )

        assert "it cannot be split into repeat and start of the cluster" in alone
        assert "between repeats, by" in split

    def test_say_that_the_noise_is_unknown(self, make):
        """
        Without repeats there is no noise floor, and the answer says so.
        """
        assert any("noise floor is not known" in d for d in answer(make(repeat=1)).details)

    def test_count_failed_and_disturbed_trials(self, whole):
        """
        Trials that are missing or marked are counted in the answer.
        """
        details = " ".join(answer(whole).details)

        assert "2 of 54 trials failed or ran out of time" in details
        assert "1 of 54 trials ran disturbed" in details

    def test_say_what_the_cluster_cannot_show(self, whole):
        """
        As the manifest has it.
        """
        manifest = {**whole.manifest, "limitations": ["no byte crosses a network"]}
        answered = answer(dataclasses.replace(whole, manifest=manifest)).details

        assert "The cluster: no byte crosses a network." in answered

    def test_name_what_a_model_lacks(self, whole):
        """
        A model without an answer is named with the statistics that the profile lacks.
        """
        unanswered = Prediction(
            model="prophet", cell="c", job_s=None, not_applicable=("spill_s", "copy_s")
        )

        details = answer(
            dataclasses.replace(whole, predictions=(*whole.predictions, unanswered))
        ).details

        assert details[-1] == (
            "prophet is not applicable in 1 cell: the profile lacks copy_s and spill_s."
        )

    def test_models_that_lack_the_same_share_a_sentence(self, whole):
        """
        And where the reader has one line only, it names as many as it is told to.
        """
        names = ("a_s", "b_s", "c_s", "d_s")
        unanswered = [
            Prediction(model=m, cell="c", job_s=None, not_applicable=names)
            for m in ("spn-gc", "spn-gc-mr2")
        ]

        answered = not_applicable(dataclasses.replace(whole, predictions=unanswered), 2)

        (sentence,) = answered
        assert sentence == (
            "spn-gc and spn-gc-mr2 are not applicable in 1 cell: the profile lacks a_s, b_s and"
            " 2 more."
        )
