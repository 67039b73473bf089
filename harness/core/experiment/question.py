"""A question that is asked of a run, as it is typed: `{nearer: [prophet, whatif]}`, or a text."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import ValidationError

from harness.base.errors import SpecError
from harness.base.records.question import Question
from harness.base.text import did_you_mean, excerpt
from harness.core.experiment.document import Document
from harness.core.experiment.model import AskedQuestion, Experiment

WHERE = "--question"
_EXAMPLE = "write one such as '{nearer: [prophet, whatif]}' or '{how_far: best}'"


def read_question(
    text: str, models: Collection[str], papers: Mapping[str, Collection[str]]
) -> AskedQuestion:
    """
    Read the question in *text*, about some of the *models*, or the claims of one of *papers*.

    `SpecError` says what is wrong with it.
    """
    try:
        document = Document(f"question: {text}\n", WHERE)
    except SpecError as error:
        raise SpecError(error.what, where=WHERE, fix=_EXAMPLE) from None
    if document.data.keys() != {"question"}:
        raise SpecError("it is more than one question", where=WHERE, fix=_EXAMPLE)
    try:
        asked = AskedQuestion.model_validate(
            document.data["question"], context={}, by_alias=True, by_name=False
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        what = f"{key} {first['msg'].removeprefix('Value error, ')}".strip()
        raise SpecError(excerpt(what, 200), where=WHERE, fix=_EXAMPLE) from None
    if asked.anyway:
        what = "anyway is about a design, and this was measured already"
        raise SpecError(what, where=WHERE, fix="leave it out")
    if asked.claims and asked.claims not in papers:
        what = f"nothing is known of the paper '{excerpt(asked.claims)}'"
        raise SpecError(what, where=WHERE, fix=did_you_mean(asked.claims, list(papers)))
    for model in (*asked.models, *papers.get(asked.claims, ())):
        if model not in models:
            what = f"there are no predictions of '{excerpt(model)}'"
            raise SpecError(what, where=WHERE, fix=did_you_mean(model, list(models)))
    return asked


def with_question(experiment: Experiment, question: Question) -> Experiment:
    """*experiment* with another *question*; its words stay where the new one has none."""
    title = question.title or question.as_words()
    return experiment.asking(question.model_copy(update={"title": title}))
