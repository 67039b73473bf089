"""
Tests for questions: in an experiment file, and as they are typed.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.records.question import BEST, Question
from harness.core.experiment.file import KnownNames, read_experiment
from harness.core.experiment.question import read_question, with_question

MODELS = ("whatif", "prophet", "scaling")
PAPERS = {"prophet": ("prophet", "whatif")}
KNOWN = KnownNames(("terasort",), MODELS, ("local",), papers=PAPERS)
TEXT = """\
schema: 1
name: n
question: {QUESTION}
workloads: [{name: terasort, input: [16 MiB, 32 MiB, 96 MiB]}]
predict: {models: [whatif, prophet], profile_on: {input: 16 MiB}}
"""


def experiment(question):
    """
    The experiment with that *question*.
    """
    return read_experiment(TEXT.replace("{QUESTION}", question), "f.yaml", known=KNOWN)


def refusal(question):
    """
    The error that an experiment with that *question* is.
    """
    with pytest.raises(SpecError) as caught:
        experiment(question)
    return caught.value


AUTO = TEXT.replace("profile_on: {input: 16 MiB}", "profile_on: auto")


class TestAuto:
    def test_no_cell_is_chosen_before_all_is_known(self):
        """
        The file alone says that some will be.
        """
        predict = read_experiment(AUTO.replace("{QUESTION}", "q"), "f.yaml", known=KNOWN).predict

        assert (predict.is_auto, predict.is_blind, predict.cells) == (True, True, ())
        assert predict.profile_on == {}

    def test_leaves_extrapolated_cells_out_unless_the_question_says(self):
        """
        One that is asked beside it, too; where cells are named they are in.
        """
        auto = read_experiment(AUTO.replace("{QUESTION}", "q"), "f.yaml", known=KNOWN)
        beside = read_question("{how_far: best}", MODELS, PAPERS)
        alone = read_question("{how_far: best, extrapolate: only}", MODELS, PAPERS)

        assert auto.asking(auto.question).question.extrapolate == "out"
        assert with_question(auto, beside).question.extrapolate == "out"
        assert with_question(auto, alone).question.extrapolate is True
        assert with_question(experiment("q"), beside).question.extrapolate is False

    @pytest.mark.parametrize(
        ("written", "what"),
        [("automatic", "predict.profile_on is not a mapping"),
         ("auto, from: 20261121T0323", "auto chooses cells to measure, and from takes")],
    )  # fmt: skip
    def test_is_a_word_alone(self, written, what):
        """
        What else may stand there is said.
        """
        text = AUTO.replace("profile_on: auto", f"profile_on: {written}").replace("{QUESTION}", "q")
        with pytest.raises(SpecError, match=what) as caught:
            read_experiment(text, "f.yaml", known=KNOWN)

        assert "f.yaml:5" in str(caught.value)

    def test_cells_are_no_key_of_a_file(self):
        """
        Their ids are chosen, not written.
        """
        text = AUTO.replace("profile_on: auto", "profile_on: auto, cells: [a]")
        with pytest.raises(SpecError, match="unknown key 'cells'"):
            read_experiment(text.replace("{QUESTION}", "q"), "f.yaml", known=KNOWN)


class TestFile:
    def test_a_text_is_a_title(self):
        """
        How far the best model is off, as in old files.
        """
        asked = experiment("Which model is nearest?")

        assert asked.title == asked.question.title == "Which model is nearest?"
        assert (asked.question.kind, asked.question.how_far) == ("how_far", BEST)

    @pytest.mark.parametrize(
        ("written", "kind", "words"),
        [("{how_far: whatif}", "how_far", "How far is whatif off?"),
         ("{how_far: best}", "how_far", "How far is the best model off?"),
         ("{nearer: [prophet, whatif]}", "nearer", "Is prophet nearer than whatif?"),
         ("{choice: 3}", "choice", "Which model chooses the best settings?"),
         ("{claims: prophet}", "claims", "Do the claims of prophet hold?"),
         ("{moved_since: 20261121T0323}", "moved_since", "What has moved since 20261121T0323?")],
    )  # fmt: skip
    def test_each_kind_has_its_words(self, written, kind, words):
        """
        Unless it is given a title.
        """
        asked = experiment(written)

        assert (asked.question.kind, asked.title) == (kind, words)
        titled = experiment(f"{{title: Why?, {written[1:]}")
        assert titled.title == "Why?"
        assert (
            titled.question.asks
            == asked.question.asks
            == Question(**{kind: getattr(asked.question, kind)})
        )

    def test_scope_and_extrapolation(self):
        """
        Jobs, unless it says inputs.
        """
        asked = experiment("{nearer: [prophet, whatif], scope: inputs, extrapolate: true}").question

        assert (asked.scope, asked.extrapolate, asked.anyway) == ("inputs", True, False)
        assert experiment("{choice: 1}").question.scope == "jobs"

    @pytest.mark.parametrize(
        ("word", "meant"),
        [("only", True), ("in", False), ("out", "out"), ("true", True), ("false", False)],
    )
    def test_extrapolated_cells_are_alone_in_or_out(self, word, meant):
        """
        Files of before have true and false.
        """
        asked = experiment(f"{{how_far: best, extrapolate: {word}}}").question

        assert asked.extrapolate == meant
        assert [where for where in ("inside", "edge", "outside") if asked.is_about(where)] == {
            True: ["outside"], False: ["inside", "edge", "outside"], "out": ["inside", "edge"],
        }[meant]  # fmt: skip

    def test_as_it_is_stored_it_is_read_again(self):
        """
        Seals of before have a flag there, and so has what means the same now.
        """
        for meant in (True, False, "out"):
            asked = Question(how_far=BEST, extrapolate=meant)
            stored = asked.model_dump(mode="json")

            assert stored["extrapolate"] is meant or stored["extrapolate"] == "out"
            assert Question.model_validate(stored) == asked

    @pytest.mark.parametrize(
        ("written", "what", "fix"),
        [("{title: Why?}", "question: asks nothing", "write one of how_far, nearer, choice"),
         ("{how_far: best, choice: 1}", "question: asks 2 things", "write one of"),
         ("{nearer: [prophet]}", "question: compares one model with none", "nearer: [A, B]"),
         ("{nearer: [prophet, watif]}", "question.nearer: predict.models has no 'watif'", "whatif"),
         ("{how_far: scaling}", "question.how_far: predict.models has no 'scaling'", "whatif"),
         ("{claims: vet}", "question.claims: nothing is known of the paper 'vet'", "prophet"),
         ("{choice: 0}", "question.choice '0' is not a whole number", "3"),
         ("{nearer: [prophet, whatif], scope: all}", "question.scope 'all'", "jobs or inputs"),
         ("{choice: 1, extrapolate: no}", "question.extrapolate 'no'", "only, in or out"),
         ("{neare: [prophet, whatif]}", "unknown key 'neare'", "nearer")],
    )  # fmt: skip
    def test_what_is_no_question(self, written, what, fix):
        """
        What, where, fix.
        """
        error = refusal(written)

        assert what.replace(": '", " '") in str(error).replace(": '", " '")
        assert "f.yaml:3" in str(error)
        assert fix in str(error)

    def test_models_need_a_question_and_no_models_need_none(self):
        """
        An experiment that asks no model has none.
        """
        without = TEXT.replace("question: {QUESTION}\n", "")
        with pytest.raises(SpecError, match="the experiment lacks 'question'"):
            read_experiment(without, "f.yaml", known=KNOWN)

        bare = without.partition("predict:")[0]
        assert read_experiment(bare, "f.yaml", known=KNOWN).title == "n"


class TestTyped:
    def test_is_read_as_in_a_file(self):
        """
        As a mapping, or as a text.
        """
        asked = read_question("{nearer: [prophet, whatif]}", MODELS, PAPERS)

        assert asked.nearer == ("prophet", "whatif")
        assert read_question("How far?", MODELS, PAPERS).how_far == BEST

    @pytest.mark.parametrize(
        ("text", "what"),
        [("{nearer: [prophet, gone]}", "there are no predictions of 'gone'"),
         ("{claims: ptc}", "nothing is known of the paper 'ptc'"),
         ("{nearer: [prophet]}", "compares one model with none"),
         ("{how_far: best, anyway: true}", "anyway is about a design, and this was measured"),
         ("{}", "asks nothing"), ("[a]", ""), ("nearer: x", "this is not YAML"), ("", "")],
    )  # fmt: skip
    def test_what_is_no_question(self, text, what):
        """
        One error, that says so.
        """
        with pytest.raises(SpecError) as caught:
            read_question(text, MODELS, PAPERS)
        assert what in caught.value.what
        assert str(caught.value.where).startswith("--question")

    def test_gives_words_to_an_experiment(self):
        """
        Its own, or those made of it.
        """
        asked = read_question("{nearer: [prophet, whatif]}", MODELS, PAPERS)

        again = with_question(experiment("Why?"), asked)
        assert again.title == "Is prophet nearer than whatif?"
        assert again.question.asks == asked.asks
