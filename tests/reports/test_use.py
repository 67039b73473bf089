"""
Tests for `harness.core.reports.use`.
"""

import dataclasses

import pytest

from harness.base.records.question import BEST, Answer, Question
from harness.base.records.trial import MachineLoad
from harness.core.reports.answer import facts

BOTH = ("whatif", "whatif-mr2")


def used(data, question, outcome, model="", error=None, **ranking):
    """
    What a run with such an answer is good for.
    """
    found = Answer(
        question=question, asked="sealed", outcome=outcome, sentence="S.", model=model, error=error
    )
    rankings = tuple(one.model_copy(update=ranking) for one in data.score_book.rankings)
    changed = data.score_book.model_copy(update={"answer": found, "rankings": rankings})
    return [*facts(dataclasses.replace(data, score_book=changed)).good_for]


@pytest.mark.parametrize(
    ("question", "outcome"), [(Question(how_far=BEST), "yes"), (Question(nearer=BOTH), "yes")]
)
def test_a_model_that_is_near_is_to_be_asked(whole, question, outcome):
    """
    And differences above its error are worth a trial.
    """
    assert used(whole, question, outcome, "whatif", 0.084) == [
        (
            "Asking whatif what a setting would do, without a job: harness ask RUN --model whatif"
            " --setting KEY=VALUE. Differences above 8.4 %, its mean error here, are worth a trial."
        )
    ]


def test_one_that_is_far_off_is_good_for_a_guess(whole):
    """
    However much nearer it is than another.
    """
    assert used(whole, Question(how_far="whatif"), "yes", "whatif", 0.41) == [
        (
            "A first guess alone: whatif is off by 41 %, and smaller differences between settings"
            " are lost in that."
        )
    ]


def test_where_the_first_is_farther_the_other_is_to_be_asked(whole):
    """
    The one that errs least of those that were asked about.
    """
    ranked = {"models": ("x", *BOTH[::-1]), "errors": (0.02, 0.1, 0.2)}
    (sentence,) = used(whole, Question(nearer=BOTH), "no", "whatif", 0.2, **ranked)

    assert sentence.startswith("Asking whatif-mr2 what a setting would do")
    assert "above 10 %" in sentence


def test_where_nothing_is_told_the_open_errors_are(whole):
    """
    The larger of both.
    """
    ranked = {"models": BOTH[::-1], "errors": (0.1, 0.138)}

    assert used(whole, Question(nearer=BOTH), "cannot tell", "whatif", 0.138, **ranked) == [
        (
            "No choice between whatif and whatif-mr2 yet: either will do where errors of 14 % do no"
            " harm."
        )
    ]


def test_without_errors_there_is_no_choice(whole):
    """
    Nobody is ranked.
    """
    assert used(whole, Question(nearer=BOTH), "no", "whatif", models=(), errors=()) == [
        "No choice of whatif: nothing says that it is nearer."
    ]


@pytest.mark.parametrize("question", [Question(choice=3), Question(claims="prophet")])
def test_other_questions_name_no_model(whole, question):
    """
    They have an answer of their own.
    """
    assert used(whole, question, "yes", "whatif", 0.1) == []


def test_a_model_without_a_rank_is_no_choice(whole):
    """
    Nothing is said of how far the other one is off, as if it were of both.
    """
    ranked = {"models": ("whatif-mr2",), "errors": (0.1,)}

    assert used(whole, Question(nearer=BOTH), "cannot tell", "whatif", 0.2, **ranked) == [
        "No choice of whatif: nothing says that it is nearer."
    ]


def test_of_several_any_will_do(whole):
    """
    With the largest of their errors.
    """
    names = ("a", "b", "c")
    ranked = {"models": names, "errors": (0.1, 0.12, 0.2)}
    (sentence,) = used(whole, Question(nearer=names), "cannot tell", "a", 0.1, **ranked)

    assert sentence.endswith("a, b and c yet: any of them will do where errors of 20 % do no harm.")


def test_what_is_no_measurement_is_good_for_nothing(whole):
    """
    Where others used the machine most of the time, no model is to be asked.
    """
    load = MachineLoad(busy=0.9, steal=0.0, others=0.6, swap_bytes_per_s=0.0)
    trials = [one.model_copy(update={"loads": {"m": load}}) for one in whole.trials]
    disturbed = dataclasses.replace(whole, trials=trials)

    assert used(disturbed, Question(how_far=BEST), "yes", "whatif", 0.1) == []


def test_a_model_of_sizes_alone_is_asked_about_sizes(whole):
    """
    One that is fitted to whole jobs knows of no setting.
    """
    assert used(whole, Question(how_far=BEST), "yes", "ernest", 0.068) == [
        (
            "Asking ernest how long a job takes with another size of its input, within 6.8 %: it"
            " knows of no setting."
        )
    ]
