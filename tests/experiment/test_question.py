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
        ("written", "what", "fix"),
        [("{title: Why?}", "question: asks nothing", "write one of how_far, nearer, choice"),
         ("{how_far: best, choice: 1}", "question: asks 2 things", "write one of"),
         ("{nearer: [prophet]}", "question: compares one model with none", "nearer: [A, B]"),
         ("{nearer: [prophet, watif]}", "question.nearer: predict.models has no 'watif'", "whatif"),
         ("{how_far: scaling}", "question.how_far: predict.models has no 'scaling'", "whatif"),
         ("{claims: vet}", "question.claims: nothing is known of the paper 'vet'", "prophet"),
         ("{choice: 0}", "question.choice '0' is not a whole number", "3"),
         ("{nearer: [prophet, whatif], scope: all}", "question.scope 'all'", "jobs or inputs"),
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
