"""
Tests for `harness.scoring.table`: anybody's numbers, scored as a run is.
"""

from contextlib import suppress

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.base.records.question import Question
from harness.scoring.table import read_table

HEAD = "cell,repeat,measured,good,bad\n"


def table(cells=8, repeats=2, head=HEAD):
    """
    A good model that is 5 % off, and a bad one that is 30 to 40 % off.
    """
    rows = [
        f"c{cell},{number},{100 + number},{105},{130 + cell}"
        for cell in range(cells) for number in range(repeats)
    ]  # fmt: skip
    return head + "\n".join(rows) + "\n"


def refusal(text):
    """
    What, where and fix.
    """
    with pytest.raises(DataError) as caught:
        read_table(text, "t.csv")
    return caught.value


class TestReads:
    def test_rows_are_trials_and_columns_models(self):
        """
        A cell is predicted once.
        """
        found = read_table(table(), "t.csv")

        assert found.models == ("good", "bad")
        assert len(found.measurements) == 16
        assert len(found.predictions) == 16
        assert found.measurements[0].raw_s == {"job_s": 100.0}

    def test_a_prediction_may_stand_in_the_first_row_alone(self):
        """
        A cell without one has no answer.
        """
        text = HEAD + "a,1,10,9,\na,2,11,,\nb,1,20,,18\n"
        found = {(p.model, p.cell): p.job_s for p in read_table(text, "t.csv").predictions}

        assert found == {
            ("good", "a"): 9.0, ("good", "b"): None, ("bad", "a"): None, ("bad", "b"): 18.0
        }  # fmt: skip

    def test_inputs_may_be_named(self):
        """
        For a question about inputs of a kind.
        """
        text = "cell,repeat,measured,input,m\na,1,10,x,9\nb,1,10,,9\n"

        assert [m.input for m in read_table(text, "t.csv").measurements] == ["x", ""]
        assert read_table(text, "t.csv").models == ("m",)


class TestAnswers:
    def test_how_far_the_best_model_is_off(self):
        """
        Unless something else is asked.
        """
        book = read_table(table(), "t.csv").score()

        assert book.answer.sentence.startswith("Of 2 models good errs least: off by 4.5 %")
        assert book.answer.sentence.endswith("It is nearer than bad.")
        assert book.control("perfect").nearer["bad"] == 1.0

    def test_who_is_nearer(self):
        """
        By the same code as of a run.
        """
        book = read_table(table(), "t.csv").score(Question(nearer=("bad", "good")))

        assert book.answer.outcome == "no"
        assert book.asked()[0].better == "bad"

    def test_without_repeats_there_is_no_floor(self):
        """
        And no number from nothing; a verdict needs none.
        """
        book = read_table(table(repeats=1), "t.csv").score()

        assert book.control("perfect") is None
        assert "the noise is not known" in book.answer.sentence
        assert book.ranking("raw").nearest == ("good",)

    def test_one_cell_tells_nothing(self):
        """
        Its errors are said, and that more cells would tell.
        """
        book = read_table(table(cells=1), "t.csv").score()

        (pair,) = [pair for pair in book.comparisons if pair.speed == "raw"]
        assert (pair.verdict, pair.chance) == ("undecided", None)
        assert pair.reason == "from 6 cells on it can be tested: 5 more cells"


class TestAsks:
    @pytest.mark.parametrize(
        ("question", "what"),
        [(Question(how_far="best", extrapolate=True), "extrapolate is a question to a run"),
         (Question(moved_since="x"), "moved_since is a question to a run"),
         (Question(choice=1), "the question is about inputs"),
         (Question(nearer=("good", "bad"), scope="inputs"), "the question is about inputs")],
    )  # fmt: skip
    def test_what_no_table_shows_is_refused(self, question, what):
        """
        Instead of an answer to something else.
        """
        with pytest.raises(DataError) as caught:
            read_table(table(), "t.csv").score(question)
        assert caught.value.what.startswith(what)
        is_of_inputs = what.endswith("inputs")
        assert caught.value.where == ("t.csv" if is_of_inputs else "--question")
        assert caught.value.fix == (
            "add a column input" if is_of_inputs else "ask how_far, nearer or choice"
        )

    def test_models_without_an_answer_are_refused(self):
        """
        Nothing is said of nothing, but what to write.
        """
        with pytest.raises(DataError, match="no model has an answer") as caught:
            read_table("cell,repeat,measured,m\na,1,10,\n", "t.csv").score()
        assert caught.value.where == "t.csv"
        assert caught.value.fix == "write what they predict into their columns"

    @pytest.mark.parametrize("name", ["My Model", "b.2", "=cmd", "best", "a, b"])
    def test_a_model_that_cannot_be_asked_by_name_is_refused(self, name):
        """
        As in an experiment.
        """
        error = refusal(f'cell,repeat,measured,"{name}"\na,1,10,9\n')
        assert error.what == f"'{name}' cannot name a model"

    def test_more_models_than_are_compared_are_refused(self):
        """
        By their number.
        """
        names = ",".join(f"m{n}" for n in range(61))
        assert refusal(f"cell,repeat,measured,{names}\n").what.startswith("it has 61 models, of 60")


class TestRefuses:
    @pytest.mark.parametrize(
        ("cell", "what"),
        [("abc", "measured is 'abc', which is no time from 1e-06 to 1e+100 seconds"),
         ("-3", "measured is '-3'"),
         ("0", "measured is '0'"), ("nan", "measured is 'nan'"), ("inf", "measured is 'inf'"),
         ("1e200", "measured is '1e200'"), ("", "measured is ''"),
         ("1e-300", "measured is '1e-300'"), ("1_0", "measured is '1_0'"),
         ("\u0661\u0662", "measured is ")],
    )  # fmt: skip
    def test_what_is_no_time(self, cell, what):
        """
        With its line.
        """
        error = refusal(f"{HEAD}a,1,10,9,9\na,2,{cell},9,9\n")

        assert error.what.startswith(what)
        assert error.where == "t.csv:3"
        assert "leave out a row that was not measured" in error.fix

    @pytest.mark.parametrize(
        ("text", "what"),
        [("", "it has no column cell and no column repeat and no column measured"),
         ("cell,repeat,measured\na,1,2\n", "it has no column of a model"),
         (HEAD, "it has no row"),
         ("cell,repeat,measured,m,m\na,1,2,3,4\n", "the column 'm' is there twice"),
         ("cell,repeat,measured,\na,1,2,3\n", "'' cannot name a model"),
         (HEAD + "a,1,2,3\n", "the row has not 5 fields"),
         (HEAD + "a,1,2,3,4,5\n", "the row has not 5 fields"),
         (HEAD + "a,1,2,3,4\na,1,2,3,4\n", "repeat 1 of cell a is there twice"),
         (HEAD + ",1,2,3,4\n", "cell is empty"),
         (HEAD + "a,1,2,3,4\na,2,2,5,4\n", "good predicts 3 and 5 of cell a"),
         (HEAD + 'a,1,2,"3,4\n', "it is no CSV: ")],
    )  # fmt: skip
    def test_what_is_no_table(self, text, what):
        """
        What, where, and what to write.
        """
        error = refusal(text)

        assert error.what.startswith(what)
        assert error.where.startswith("t.csv")
        assert error.fix

    @given(st.text(max_size=200))
    def test_whatever_it_holds_there_is_one_error(self, text):
        """
        And no other kind.
        """
        with suppress(DataError):
            assert read_table(HEAD + text, "t.csv").measurements
