"""The line fitted through measured over predicted job times, for each model."""

from __future__ import annotations

from collections.abc import Sequence

from harness.records.score import Score, Summary
from harness.reports.data import ReportData
from harness.reports.document import Figure, Figures, Section, table
from harness.reports.drawing import INK, SERIES, Canvas
from harness.reports.sections.predicted import PANEL, Range, draw_points, scored_panels, square_axes
from harness.reports.wording import UNKNOWN, number, seconds

_LEAD = (
    "A line fitted through measured over predicted times distinguishes a constant error"
    " (the intercept: what a job takes whatever its size) from a proportional one"
    " (the slope: costs that are too low or too high)."
)


def section(results: ReportData) -> Section:
    """One panel per model that has a calibration: the points and the line through them."""
    panels = []
    for model, scores, limits in scored_panels(results):
        summary = results.summary(model, "raw")
        if summary is not None and "calibration_slope" in summary.metrics:
            panels.append(fit_panel(results, summary, scores, limits.highest))
    return Section(
        id="calibration",
        title="Calibration",
        blocks=[Figures(panels, _LEAD, side_by_side=True)],
        missing="No calibration line was fitted; it needs at least three scored cells.",
    )


def fit_panel(
    results: ReportData, summary: Summary, scores: Sequence[Score], longest: float
) -> Figure:
    """Points of one model and the line through them; as data the lines of all its summaries."""
    model, place = summary.model, results.models().index(summary.model)
    slope, intercept_s, r2 = (
        summary.value(f"calibration_{name}") or 0.0 for name in ("slope", "intercept_s", "r2")
    )

    def draw(canvas: Canvas) -> None:
        axes = square_axes(canvas, Range(0.0, longest, logarithmic=False), model)
        ends = (0.0, longest)
        axes.plot(ends, ends, color=INK, linewidth=0.9, linestyle=(0, (2, 3)),
                  label="measured = predicted")  # fmt: skip
        line = [intercept_s + slope * end for end in ends]
        axes.plot(ends, line, color=SERIES[place % len(SERIES)], linewidth=1.6, label="fit")
        draw_points(results, canvas, axes, scores, place)

    rows = []
    for job_summary in results.score_book.summaries:
        if job_summary.model == model and job_summary.level == "job":
            numbers = (UNKNOWN,) * 4
            if "calibration_slope" in job_summary.metrics:
                numbers = (
                    number(job_summary.value("calibration_slope"), 0.02),
                    number(job_summary.value("calibration_intercept_s"), 0.2),
                    number(job_summary.value("calibration_r2"), 0.02),
                    str(job_summary.cells),
                )
            workload = "all" if job_summary.workload == "*" else job_summary.workload
            rows.append((workload, job_summary.quantity, job_summary.speed, *numbers))
    columns = ("Workload", "Quantity", "Speed", "Slope", "Intercept, s", "R²", "Cells")
    sign = "+" if intercept_s >= 0 else "\u2212"
    title = f"{model}: measured job time fitted as a line in the predicted one"
    height = PANEL + 0.25
    caption = (
        f"{model}: measured = {slope:.2f} \u00d7 predicted {sign}"
        f" {seconds(abs(intercept_s), 0.2)}, R² {r2:.2f}, {summary.cells} cells."
    )
    data = table(f"{model}: calibration by workload", columns, "lllrrrr", rows, folded=True)
    return Figure(f"fit{place}", title, PANEL, height, caption, data, draw)
