"""What is asked of a run, and the answer to it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from harness.base.records.trial import Record

Scope = Literal["jobs", "inputs"]
Range = Literal["inside", "edge", "outside"]  # of a cell, in what was profiled
Kind = Literal["how_far", "nearer", "choice", "claims", "moved_since"]
# Sealed with the predictions; asked when all had been measured; or beside the sealed one.
Asked = Literal["sealed", "afterwards", "explored"]
Outcome = Literal["yes", "no", "cannot tell"]
# Whether extrapolated cells count: they alone, like all others, or not at all.
Extrapolate = bool | Literal["out"]

BEST = "best"  # in the place of a model: whichever errs least
KINDS: tuple[Kind, ...] = ("how_far", "nearer", "choice", "claims", "moved_since")
KIND_WORDS = ", ".join(KINDS)


class Question(Record):
    """
    What is asked of a run: *title* in words, and one of the kinds.

    *how_far* is a model (or `BEST`): how far it is off.  *nearer* are models: whether the first is
    nearer than each of the others.  *choice*: which model chooses best among the settings of an
    input, with so many first choices tried.  *claims* names a paper, *moved_since* an earlier run.
    *scope* says for what the answer is to hold: these jobs, or inputs of their kind.  *extrapolate*
    says whether cells outside of what was profiled are its only subject (true), count like others
    (false) or not at all (out).  *anyway*: it is asked although the design may decide nothing, and
    its answer counts as explored.
    """

    title: str = ""
    how_far: str = ""
    nearer: tuple[str, ...] = ()
    choice: int = 0
    claims: str = ""
    moved_since: str = ""
    scope: Scope = "jobs"
    extrapolate: Extrapolate = False
    anyway: bool = False

    @property
    def kind(self) -> Kind:
        """Which of the kinds it is."""
        return next(kind for kind in KINDS if getattr(self, kind))

    @property
    def models(self) -> tuple[str, ...]:
        """Models that it names."""
        return self.nearer or tuple(name for name in (self.how_far,) if name not in ("", BEST))

    @property
    def is_about_pairs(self) -> bool:
        """Whether it asks which of two models is nearer."""
        return bool(self.nearer or self.claims)

    @property
    def asks(self) -> Question:
        """What is asked, without the words: what is sealed."""
        return Question(**{**self.as_record().model_dump(), "title": ""})

    def is_about(self, place: Range) -> bool:
        """Whether a cell at that *place* in what was profiled is among its subject."""
        if self.extrapolate == "out":
            return place != "outside"
        return place == "outside" or not self.extrapolate

    def as_record(self) -> Question:
        """It as it is stored, whatever file it came from."""
        return Question(**{name: getattr(self, name) for name in Question.model_fields})

    def as_words(self) -> str:
        """Say in a sentence what is asked: for who gave it no title."""
        match self.kind:
            case "how_far":
                model = "the best model" if self.how_far == BEST else self.how_far
                return f"How far is {model} off?"
            case "nearer":
                first, *rivals = self.nearer
                return f"Is {first} nearer than {' and '.join(rivals)}?"
            case "choice":
                return "Which model chooses the best settings?"
            case "claims":
                return f"Do the claims of {self.claims} hold?"
            case "moved_since":
                return f"What has moved since {self.moved_since}?"

    @model_validator(mode="after")
    def _is_one_question(self) -> Self:
        asked = [kind for kind in KINDS if getattr(self, kind)]
        if len(asked) != 1:
            asks = f"asks {len(asked)} things" if asked else "asks nothing"
            raise ValueError(f"{asks}; write one of {KIND_WORDS}")
        if self.nearer and len(self.nearer) < 2:
            raise ValueError("compares one model with none; write nearer: [A, B]")
        if len(set(self.nearer)) < len(self.nearer):
            raise ValueError("compares a model with itself; name each model once")
        return self


class Answer(Record):
    """
    What a run says to a *question*, which was *asked* in the order of `Asked`.

    *sentence* says it, on so many *cells*.  *model* is who is meant, *error* what it has (of a
    choice: its regret), from *low* to *high* at 95 %; *worst* is that of the *worst_cell*, which
    has no name where several are as far off.  *floor* is what a perfect model would have, and at
    most *floor_high* in 95 of 100 cases.  What was asked of pairs of models stands among the
    comparisons of the scores.
    """

    question: Question
    asked: Asked
    outcome: Outcome
    sentence: str
    cells: int = 0
    model: str = ""
    error: float | None = None
    low: float | None = None
    high: float | None = None
    worst: float | None = None
    worst_cell: str = ""
    floor: float | None = None
    floor_high: float | None = None
