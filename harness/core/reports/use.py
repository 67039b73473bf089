"""What a run is good for, by its answer: which model to ask, and how small a change it can tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.documents.wording import listing, percent
from harness.base.records.question import Answer
from harness.core.reports.data import ReportData
from harness.models import reads_settings

_MUCH = 0.25  # of a job's time: a model that errs by more says little of single settings


def uses(results: ReportData) -> Iterator[str]:
    """
    Yield what may be done with the answer of *results*.

    Nothing where no model was asked about, or where the answer is none.
    """
    found = results.score_book.answer
    if found is None:
        return
    match found.question.kind:
        case "how_far":
            if found.error is not None:
                yield use_of(found.model, found.error)
        case "nearer":
            yield use_of_nearer(results, found)
        case _:
            return


def use_of(model: str, error: float) -> str:
    """What *model* is good for, which errs by *error* on average."""
    if not reads_settings(model):
        return (
            f"Asking {model} how long a job takes with another size of its input, within"
            f" {percent(error)}: it knows of no setting."
        )
    if error > _MUCH:
        return (
            f"A first guess alone: {model} is off by {percent(error)}, and smaller differences"
            " between settings are lost in that."
        )
    return (
        f"Asking {model} what a setting would do, without a job: harness ask RUN --model {model}"
        f" --setting KEY=VALUE. Differences above {percent(error)}, its mean error here, are"
        " worth a trial."
    )


def use_of_nearer(results: ReportData, found: Answer) -> str:
    """Which of the models that were asked about to take, and for what."""
    asked = found.question.nearer
    errors = errors_of(results, asked)
    if found.outcome == "yes" and found.error is not None:
        return use_of(found.model, found.error)
    if len(errors) < len(asked):
        return f"No choice of {found.model}: nothing says that it is nearer."
    if found.outcome == "no":
        best = min(errors, key=errors.__getitem__)
        return use_of(best, errors[best])
    any_one = "either" if len(asked) == 2 else "any of them"
    return (
        f"No choice between {listing(asked)} yet: {any_one} will do where errors of"
        f" {percent(max(errors.values()))} do no harm."
    )


def errors_of(results: ReportData, models: Sequence[str]) -> dict[str, float]:
    """Mean errors of those of *models* that are ranked."""
    ranking = results.score_book.ranking()
    if ranking is None:
        return {}
    ranked = dict(zip(ranking.models, ranking.errors, strict=True))
    return {model: ranked[model] for model in models if model in ranked}
