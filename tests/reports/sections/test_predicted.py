"""
The sections of predicted against measured times, and of errors per cell.
"""

import dataclasses
import html

import pytest

from harness.base.documents.document import Figure, Figures, table
from harness.base.documents.drawing import Stack, drawing, render_figure, stacked
from harness.base.documents.wording import number
from harness.core.reports.sections import cells, predicted

NOTHING = table("", (), "", [])


def on_bodies(data):
    """
    The run, as if the frame had been most of its jobs: the verdict is on bodies.
    """
    rankings = tuple(
        each.model_copy(update={"quantity": "body_s"}) for each in data.score_book.rankings
    )
    score_book = data.score_book.model_copy(update={"rankings": rankings})
    return dataclasses.replace(data, score_book=score_book)


def figures_of(section):
    """
    Figures of a section, and what is said above them.
    """
    (block,) = (each for each in section.shown() if isinstance(each, Figures))
    return block.figures, block.lead


@pytest.mark.parametrize(
    "make",
    [
        lambda data: figures_of(predicted.section(data))[0],
        lambda data: [cells.errors_figure(data)],
    ],
)
def test_what_is_drawn_is_what_the_verdict_is_on(whole, make):
    """
    Bodies where the frame is too large a part of the jobs, and then the figures say so.
    """
    of_jobs, of_bodies = make(whole), make(on_bodies(whole))

    assert all("job time" in figure.title for figure in of_jobs)
    assert all("body" in figure.title or "frame" in figure.title for figure in of_bodies)
    assert [each.data.rows for each in of_jobs] != [each.data.rows for each in of_bodies]


def test_bodies_are_explained(whole):
    """
    Above the panels, and only where they are drawn.
    """
    leads = [figures_of(predicted.section(data))[1] for data in (whole, on_bodies(whole))]

    assert ["without their frame" in lead for lead in leads] == [False, True]


def test_intervals_and_the_line_stand_beside_the_times(whole):
    """
    What too few profiling cells cannot bound is said to be unbounded.
    """
    intervals = {"job_s": {"80": (10.0, 20.0), "90": None}}
    predictions = [p.model_copy(update={"intervals": intervals}) for p in whole.predictions]
    data = dataclasses.replace(whole, predictions=predictions)

    (panel, *_), _ = figures_of(predicted.section(data))

    slope = whole.summary("whatif", "raw").value("calibration_slope")
    assert {row[-2] for row in panel.data.texts()} == {"10.0 to 20.0"}
    assert {row[-1] for row in panel.data.texts()} == {"unbounded"}
    assert f"measured = {slope:.2f} \u00d7 predicted" in panel.caption


@pytest.mark.process
class TestDrawn:
    def test_every_point_has_its_tooltip(self, whole, drawn):
        """
        Points of one style are drawn at once; each shows its own cell.
        """
        scores = [s for s in whole.scores("job_s", whole.speed) if s.model == "whatif-mr2"]
        labels = [html.escape(whole.label(score.cell)) for score in scores]

        assert [drawn["scatter1"].count(f"<title>{label}: pred") > 0 for label in labels] == [
            True
        ] * len(labels)

    def test_bent_lines(self, whole):
        """
        Over logarithmic axes a line is drawn where it is above 0.
        """
        wide = tuple(
            s.model_copy(update={"predicted_s": s.predicted_s * (1 + 99 * (n % 5 == 0))})
            for n, s in enumerate(whole.score_book.scores)
        )
        score_book = whole.score_book.model_copy(update={"scores": wide})
        data = dataclasses.replace(whole, score_book=score_book)
        (figure, *_), _ = figures_of(predicted.section(data))
        with drawing():
            svg = render_figure(figure)

        assert ">fit<" in svg

    @pytest.mark.parametrize("pieces", [(3.0, -1.0, 2.0), (-2.0, -1.0), (0.0,)])
    def test_stacks_go_to_both_sides(self, pieces):
        """
        What is below 0 lies to its left; the sum of both stands at the right end.
        """
        stack = Stack("", "model", [("map", length, f"piece {length}") for length in pieces])
        height, draw = stacked([stack], "seconds", {"map": "map"})
        with drawing():
            svg = render_figure(Figure("s", "t", 5, height, "", NOTHING, draw))

        assert svg.count("<title>piece") == len(pieces)
        assert f">{number(sum(pieces))}<" in svg
