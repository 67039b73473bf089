"""
A drawn design: profiling cells are measured first, and of all others as many as are drawn.

They are drawn by how far the asked models disagree, and sealed with what these predict.
"""

from __future__ import annotations

from harness.base.errors import SpecError
from harness.core.experiment.model import Experiment

WHERE = "design"


def require_drawn(experiment: Experiment) -> None:
    """`SpecError` where *experiment* draws its cells, and asks what those cannot tell."""
    if not experiment.is_drawn:
        return
    question = experiment.question
    asked = experiment.asked_models
    what = ""
    fix = "take the whole grid: design: full"
    if not experiment.predict.is_blind:
        what = "design: drawn draws cells where models disagree, before they are measured"
        fix = "write predict with two models or more, profile_on and order: blind"
    elif len(asked) < 2:
        what = f"design: drawn draws cells where models disagree, and {asked[0]} alone is asked"
        fix = "ask two models or more, or take the whole grid: design: full"
    elif question.kind == "choice":
        what = "a choice needs all settings of an input, and design: drawn measures some of them"
    elif question.kind == "moved_since":
        what = "moved_since needs the cells of the earlier run, and design: drawn draws others"
    elif experiment.nightly.controls:
        what = "nights repeat the same cells, and design: drawn draws others each night"
    elif experiment.is_until_decided or experiment.fastest:
        what = "design: drawn chooses its cells before they are measured, and fastest and"
        what += " until decided choose them afterwards"
        fix = "write repeat: 2, and leave fastest out"
    if what:
        raise SpecError(what, where=WHERE, fix=fix)


def too_few_error(experiment: Experiment, candidates: int, where: str) -> SpecError:
    """Make the error for a grid that has fewer *candidates* than are to be drawn."""
    draws = experiment.design.points
    what = f"design: drawn draws {draws} cells, and the question is about {candidates}"
    fix = "give an axis more values, draw fewer, or measure all of them: design: full"
    return SpecError(what, where=where, fix=fix)
