"""
Tests for `harness.reports.answer`.
"""

import dataclasses

from harness.records.prediction import Prediction
from harness.records.score import MetricValue, ScoreBook
from harness.reports.answer import answer, not_applicable


def with_verdict(data, *, outside):
    """The run with all its comparisons inside or outside the noise."""
    compared = tuple(
        c.model_copy(update={"outside_noise": outside}) for c in data.score_book.comparisons
    )
    score_book = data.score_book.model_copy(update={"comparisons": compared})
    return dataclasses.replace(data, score_book=score_book)


def errors(data, **changes):
    """The run with changed summaries of the job time."""
    values = {name: MetricValue(value=value) for name, value in changes.items()}
    summaries = tuple(
        s.model_copy(update={"metrics": s.metrics | values}) for s in data.score_book.summaries
    )
    score_book = data.score_book.model_copy(update={"summaries": summaries})
    return dataclasses.replace(data, score_book=score_book)


class TestHeadline:
    def test_names_the_nearest_model_with_its_interval(self, whole):
        """
        Outside the noise, the model with the smallest mean error is called nearest.
        """
        first = min(
            (s for s in whole.score_book.summaries if (s.quantity, s.workload, s.speed) == ALL_RAW),
            key=lambda s: s.value("mape"),
        )

        headline = answer(with_verdict(whole, outside=True)).headline

        assert headline.startswith(f"{first.model} is nearest: over {first.cells} cells")
        error = first.metrics["mape"]
        assert f"{100 * error.value:.0f} % (95 % interval {100 * error.low:.0f} to" in headline

    def test_nothing_is_nearest_inside_the_noise(self, whole):
        """
        Inside the noise no model is called nearer or better anywhere in the answer.
        """
        answered = answer(with_verdict(whole, outside=False))
        details = " ".join(answered.details)

        assert answered.headline.startswith("No model is nearest")
        assert "inside the noise" in details
        assert not any(word in details for word in ("is nearest", "better", "smaller by"))

    def test_without_comparison_nothing_is_claimed(self, whole):
        """
        Models that were not compared cell by cell are not ranked by their means alone.
        """
        score_book = whole.score_book.model_copy(update={"comparisons": ()})

        assert "is not known" in answer(dataclasses.replace(whole, score_book=score_book)).headline

    def test_one_model_is_compared_with_nothing(self, whole):
        """
        The only model is neither nearest nor farthest.
        """
        only = tuple(s for s in whole.score_book.summaries if s.model == "whatif")
        score_book = ScoreBook(scores=whole.score_book.scores, summaries=only)

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
