"""The report as one HTML file: opens offline, needs no script, prints, works in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from harness.records.score import Summary
from harness.reports.answer import answer, ranking
from harness.reports.data import ReportData, failed, insides, summary, workloads
from harness.reports.decomposition import decomposition_table
from harness.reports.hardware import disks_table, hardware_table, hardware_texts
from harness.reports.inside.differences import differences_table
from harness.reports.jobs import jobs_table
from harness.reports.method import (
    disturbed_table,
    failed_table,
    load_text,
    manifest_table,
    order_text,
    setup_table,
    trial_table,
)
from harness.reports.overhead import overhead_texts
from harness.reports.plots.canvas import Figure, drawing
from harness.reports.plots.errors import errors_per_cell
from harness.reports.plots.inside import task_tracks, time_bars
from harness.reports.plots.machine import corrections, speed_over_time
from harness.reports.plots.phases import phase_bars
from harness.reports.plots.scatter import calibrations, predicted_and_measured
from harness.reports.plots.schedule import schedules
from harness.reports.plots.timeline import timeline
from harness.reports.plots.waterfall import waterfalls
from harness.reports.profile_tables import correction_text, profile_tables
from harness.reports.score_tables import (
    all_scores,
    comparison_table,
    full_table,
    overhead_table,
    phase_table,
    score_table,
)
from harness.reports.tables import Table
from harness.reports.vet import drawn_text, repeats_table, vet_figures, vet_table, vet_texts
from harness.reports.wording import clean, floor_percent, percent, typographic

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Part:
    """Tables under a heading of their own, with what there is to remark."""

    title: str
    remarks: Sequence[str]
    tables: Sequence[Table]


@dataclass(frozen=True, slots=True)
class Section:
    """
    One section: sentences, figures, tables; *missing* stands where it has none of them.

    *panels* are small figures side by side, *figures* wide ones; *folded* tables open on demand.
    """

    id: str
    title: str
    missing: str
    lead: Sequence[str] = ()
    panels: Sequence[Figure] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    folded: Sequence[Table] = ()
    parts: Sequence[Part] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.panels or self.figures or self.tables or self.parts)


@dataclass(frozen=True, slots=True)
class Card:
    """One model at a glance."""

    model: str
    error: str
    interval: str
    reference: str
    floor: str


def render_html(data: ReportData) -> str:
    """One HTML document with style sheet and drawings inside; equal data gives equal bytes."""
    with drawing():
        sections = [make(data) for make in _SECTIONS]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            experiment=data.experiment,
            answer=answer(data),
            cards=[_card(data, s) for s in ranking(data, "raw")],
            sections=sections,
            style=files("harness.reports").joinpath("templates/report.css").read_text("utf-8"),
        )
    )


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def visible(value: Any) -> Any:
        return value if isinstance(value, Markup) else clean(value)

    environment = Environment(
        loader=PackageLoader("harness.reports"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typographic"] = typographic
    # Drawings come from `Canvas`, which escapes what it writes, and the style sheet is ours.
    environment.filters["trusted"] = Markup
    return environment


def _card(data: ReportData, s: Summary) -> Card:
    half = (s.mape_high - s.mape_low) / 2 or None
    reference = summary(data, s.model, speed="reference")
    known = reference if reference is not None and reference.cells else None
    low = percent(s.mape_low, half).removesuffix(" %")
    interval = f"{low} to {percent(s.mape_high, half)}" if half else ""
    return Card(
        model=s.model,
        error=percent(s.mape, half),
        interval=interval,
        reference=percent(known.mape if known else None, half),
        floor=floor_percent(s.median_floor),
    )


def _present(tables: Iterable[Table | None]) -> list[Table]:
    return [t for t in tables if t is not None and t.rows]


def _scores(data: ReportData) -> Section:
    return Section(
        id="scores",
        title="Scores",
        missing="No prediction has been scored.",
        tables=_present([score_table(data), comparison_table(data)]),
        folded=_present(
            [comparison_table(data, all_quantities=True), full_table(data), all_scores(data)]
        ),
    )


def _predicted(data: ReportData) -> Section:
    return Section(
        id="predicted",
        title="Predicted and measured",
        missing="No cell has both a prediction and a measurement.",
        lead=(_PREDICTED,),
        panels=predicted_and_measured(data),
    )


_PREDICTED = (
    "Each point is a cell: the mean of its repeats, as measured, with their spread as a"
    " bar. On the line, prediction and measurement agree; the bands hold predictions"
    " within 10 % and 20 % of the measured time."
)


def _cells(data: ReportData) -> Section:
    return Section(
        id="cells",
        title="Errors per cell",
        missing="No cell has both a prediction and a measurement.",
        lead=(_CELLS,),
        figures=errors_per_cell(data),
    )


_CELLS = (
    "The noise floor of a cell is the coefficient of variation of its repeats."
    " No model can be blamed, or praised, for less."
)


def _calibration(data: ReportData) -> Section:
    return Section(
        id="calibration",
        title="Calibration",
        missing="No calibration line was fitted; it needs at least three scored cells.",
        lead=(_CALIBRATION,),
        panels=calibrations(data),
    )


_CALIBRATION = (
    "A line fitted through measured over predicted times tells a constant error"
    " (the intercept: what a job takes whatever its size) from a proportional one"
    " (the slope: costs that are too low or too high)."
)


def _phases(data: ReportData) -> Section:
    tables = [phase_table(data, w) for w in workloads(data)]
    decompositions = [decomposition_table(data, w) for w in workloads(data)]
    jobs = [jobs_table(data, w) for w in workloads(data)]
    return Section(
        id="phases",
        title="Tasks and phases",
        missing="No task or phase has been scored.",
        lead=("Where the error of a job comes from. Errors of phases can cancel in their sum.",),
        figures=[*phase_bars(data), *waterfalls(data)],
        tables=_present([*tables, *jobs, *decompositions, overhead_table(data)]),
    )


def _timeline(data: ReportData) -> Section:
    return Section(
        id="timeline",
        title="Timeline of a job",
        missing="No job has been traced.",
        lead=(_TIMELINE,),
        figures=[f for n in range(len(data.timelines)) for f in _of_job(data, n)],
    )


_TIMELINE = (
    "One representative job of each workload, or all jobs of such a trial, every attempt in the"
    " slot where it ran. Where the inside of the tasks is known, the threads of a typical task and"
    " of the slowest one follow; then the same tasks as the models' scheduler runs them."
)


def _of_job(data: ReportData, place: int) -> Iterator[Figure]:
    record, job = data.timelines[place]
    yield timeline(data, place, record, job)
    if threads := task_tracks(place, job, *insides(data)[place]):
        yield threads
    if planned := schedules(data, place, record, data.jobs.get(record.trial.id, (job,))):
        yield planned


def _inside(data: ReportData) -> Section:
    found = insides(data)
    figures = [time_bars(n, name, inside) for n, (name, inside) in enumerate(found)]
    shown = [f for f in figures if f is not None]
    return Section(
        id="inside",
        title="Where the time of a job went",
        missing="Nothing tells what happened inside the tasks: no recording, and no log of theirs.",
        lead=(_INSIDE,) if shown else (),
        figures=shown,
        tables=_present(differences_table(name, inside.differences) for name, inside in found),
    )


_INSIDE = (
    "The jobs of the timelines, part by part: what a task's main thread did or waited for, from the"
    " launch of its container to the end that the application master saw. Parts that the source"
    " cannot tell apart stand as their sum."
)


def _vet(data: ReportData) -> Section:
    return Section(
        id="vet",
        title="Overhead of finished tasks (vet)",
        missing="No times of records were recorded: that takes 'trace: units' in the experiment.",
        lead=[*vet_texts(data), *drawn_text(data)],
        figures=vet_figures(data),
        tables=_present([vet_table(data), repeats_table(data)]),
    )


def _profile(data: ReportData) -> Section:
    parts = [Part(name, p.warnings, profile_tables(p)) for name, p in data.profiles.items()]
    return Section(
        id="profile",
        title="Profile",
        missing="No profile has been made.",
        lead=(_PROFILE,) if parts else (),
        parts=parts,
    )


_PROFILE = (
    "What the models were given, all of it from profiling trials, which are never scored. The"
    " spread of a dataflow statistic is its standard deviation, that of a fitted cost its standard"
    " error. Values marked assumed are shares of a group of costs that the trials could not tell"
    " apart."
)


def _method(data: ReportData) -> Section:
    speed = speed_over_time(data)
    return Section(
        id="method",
        title="How it was measured",
        missing="",
        lead=[
            s
            for s in (
                order_text(data),
                load_text(data),
                *(correction_text(name, p.speed) for name, p in data.profiles.items()),
                *hardware_texts(data),
                *overhead_texts(data),
            )
            if s
        ],
        figures=[speed] if speed else [],
        panels=corrections(data),
        tables=_present(
            [
                setup_table(data),
                hardware_table(data),
                disks_table(data),
                disturbed_table(data),
                manifest_table(data),
            ]
        ),
    )


def _failed(data: ReportData) -> Section:
    none = "No trial failed." if data.trials else "No trial has been run."
    lead = ("Their times are in no figure and no score.",) if failed(data) else ()
    return Section(
        id="failed",
        title="Failed trials",
        missing=none,
        lead=lead,
        tables=_present([failed_table(data)]),
    )


def _trials(data: ReportData) -> Section:
    return Section(
        id="trials",
        title="Every trial",
        missing="No trial has been run.",
        tables=_present([trial_table(data)]),
    )


_SECTIONS: tuple[Callable[[ReportData], Section], ...] = (
    _scores,
    _predicted,
    _cells,
    _calibration,
    _phases,
    _timeline,
    _inside,
    _vet,
    _profile,
    _method,
    _failed,
    _trials,
)
