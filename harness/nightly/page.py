"""
The page of a history of nights: what moved, since when and why, and how each number went.

And nights for other programs: OpenMetrics, CSV for Apache Otava, cases of a test report.
"""

from __future__ import annotations

import csv
import io

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, cycle
from math import nan
from statistics import fmean, median
from typing import TYPE_CHECKING

from harness.base.documents.document import (
    Document,
    Facts,
    Figure,
    Figures,
    Section,
    Table,
    Value,
    table,
)
from harness.base.documents.drawing import BAD, MUTED, SERIES, SURFACE, Canvas, grid
from harness.base.documents.wording import count, moment, one_line, percent, share_with_interval
from harness.base.text import printable
from harness.nightly.records import SPREAD, Alarm, Night, Point, Series
from harness.nightly.shifts import FEWEST_NIGHTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTIVE = ("open", "confirmed")
_NIGHTS = 120
_FIGURES = 24
_TEXTS = 4  # that are shown: the page stays below 2 MB
_FIRST = "all cells: mean job time"
_MODELS = "models: measured over predicted"
_LEAST = 3.0  # percent up and down: noise is not drawn as if it were a change
_LEAD = (
    "Each point is the mean of a night, in percent from the median of all nights here of the same"
    " machine, experiment, Hadoop and workers; a bar spans its repeats, or its cells. Hollow"
    " points, which no line joins, are of nights that are not whole, or not comparable with the"
    " last one. Upright lines are alarms, before the first night of the change: dashed while open"
    " or confirmed."
)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})  # of OpenMetrics
CanvasPoint = tuple[float, float, str]  # x, y and what is shown over it
Sample = tuple[dict[str, str], float]  # of a family of metrics: its labels and its value
Line = dict[int, list[float]]  # percent from the median, of each repeat, by the number of the night


def nightly_document(
    name: str, nights: Sequence[Night], alarms: Sequence[Alarm], notes: Sequence[str] = ()
) -> Document:
    """Make the page; *alarms* as they stand now, *notes* are sentences on what may change them."""
    ordered = sorted(alarms, key=lambda alarm: (alarm.state not in ACTIVE, -alarm.raised))
    figures = trend_figures(nights, ordered)
    lead = _LEAD
    if len(nights) > _NIGHTS or len(figures) > _FIGURES:
        lead += f" Drawn are the last {_NIGHTS} of {len(nights)} nights and {_FIGURES} of"
        lead += f" {len(figures)} figures, at most: otava.csv has all."
    compared = f"{len(comparable(nights))} of {count(len(nights), 'night')} are compared: whole,"
    compared += " and of the machine, experiment, Hadoop and workers of the last."
    lacks = [f"The last night: {lack}." for lack in nights[-1].lacks] if nights else []
    trends = Figures(figures[1:_FIGURES], lead, side_by_side=True)
    return Document(
        name=name,
        question="What moved, and since which night?",
        headline=headline(nights, ordered),
        sections=[
            Section("trends", "Trends", [trends]),
            Section("nights", "Nights", [night_table(nights, ordered)], "There is none yet."),
        ],
        facts=Facts(rests_on=[compared], caveats=[*map(one_line, (*notes, *lacks))]),
        overview=alarm_table(nights, ordered),
        figure=figures[0] if figures else None,
    )


def comparable(nights: Sequence[Night]) -> list[Night]:
    """Whole nights of the same machine, experiment, Hadoop and workers as the last one."""
    return [night for night in nights if night.whole and night.series == nights[-1].series]


def is_about(alarm: Alarm, point: Point, nights: Sequence[Night]) -> bool:
    """Whether *point* is among what moved, by the factors of the detector."""
    kind, _, name = alarm.cause.partition(": ")
    if kind == "code":  # the night itself says what differs
        return any(point.name in night.changed_by(name) for night in nights[alarm.since - 1 :][:1])
    factor_names = {factor_name for _, factor_name in point.factors}
    if "all cells" in factor_names:
        return point.cell in alarm.cells
    return not factor_names.isdisjoint((alarm.series, name))


def sentence(alarm: Alarm, nights: Sequence[Night]) -> str:
    """Say what moved by how much, since which night, and why, without a full stop."""
    change = share_with_interval(alarm.change, alarm.low, alarm.high, "95 %: ")
    what = f"{alarm.series} moved"
    if alarm.cause == SPREAD:
        what = f"the spread of {alarm.series} grew"
    text = f"{what} by {change} since night {_dated(nights, alarm.since)}"
    suspect = f"; first suspect: {alarm.suspects[0]}" if alarm.suspects else ""
    return one_line(f"{text}, cause {alarm.cause}, {alarm.state}{suspect}")


def headline(nights: Sequence[Night], alarms: Sequence[Alarm]) -> str:
    """Say in one sentence what is open, or that nothing is; *alarms* open ones first."""
    active = sum(alarm.state in ACTIVE for alarm in alarms)
    compared = len(comparable(nights))
    if active:
        text = "An alarm is open" if active == 1 else f"{active} alarms are open, the last"
        return f"{text}: {sentence(alarms[0], nights)}."
    text = f"Nothing {'is open after' if alarms else 'moved in'} {count(compared, 'night')}"
    if compared < FEWEST_NIGHTS:
        text = f"Too few nights to see a shift: {compared} of {FEWEST_NIGHTS}"
    is_whole = not nights or nights[-1].whole
    return f"{text}{'' if is_whole else '; the last one is not whole, and not compared'}."


def _dated(nights: Sequence[Night], number: int) -> str:
    date = f" ({moment(nights[number - 1].time_s)[:10]})" if number <= len(nights) else ""
    return f"{number}{date}"


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = [f"{len(texts) - _TEXTS} more"] if len(texts) > _TEXTS else []
    return between.join([*(one_line(text, 120) for text in texts[:_TEXTS]), *more])


def alarm_table(nights: Sequence[Night], alarms: Sequence[Alarm]) -> Table | None:
    """A row for each alarm, in the order given; `None`: there is none."""
    rows = []
    for alarm in alarms:
        state = Value(alarm.state, "mark" if alarm.state in ACTIVE else "")
        since, raised = (_dated(nights, number) for number in (alarm.since, alarm.raised))
        change = share_with_interval(alarm.change, alarm.low, alarm.high)
        rest = (_some(alarm.suspects, "\n"), _some(alarm.cells))
        rows.append((alarm.id, state, alarm.cause, alarm.series, since, raised, change, *rest))
    columns = (
        "Alarm",
        "State",
        "Cause",
        "What moved",
        "Since night",
        "Raised in",
        "Change (95 %)",
        "Suspects",
        "Cells",
    )
    return table("Alarms", columns, "clllrrrll", rows) if rows else None


def night_table(nights: Sequence[Night], alarms: Sequence[Alarm]) -> Table:
    """A row for each of the last nights, the last one first."""
    rows = []
    for number, night in list(enumerate(nights, 1))[: -_NIGHTS - 1 : -1]:
        last_series = nights[-1].series
        differing = [key for key, value in night.series if value != getattr(last_series, key)]
        remarks = [*night.lacks, *(f"another {key}" for key in differing)]
        whole = one_line("; ".join(["whole" if night.whole else "not whole", *remarks]))
        raised = ", ".join(alarm.id for alarm in alarms if alarm.raised == number)
        facts = night.facts_since(nights[max(number - 2, 0)])
        when = moment(night.time_s)[:16]
        rows.append((str(number), when, night.run, whole, raised, _some(facts, "\n")))
    columns = ("Night", "UTC", "Run", "Whole", "Alarms", "Facts that changed")
    return table("The last nights", columns, "rrclcl", rows)


def trend_figures(nights: Sequence[Night], alarms: Sequence[Alarm]) -> list[Figure]:
    """All cells, then what open alarms are about, then the rest: models, controls and each cell."""
    trends = defaultdict[str, dict[str, Line]](dict)
    alarms_about = defaultdict[str, dict[str, Alarm]](dict)
    for points in drawn_numbers(nights):
        percents_by_night = percents_from_median(points, nights)
        if not percents_by_night:
            continue
        last = points[max(points)]
        for title in figure_titles(last):
            line = trends[title].setdefault(last.model, defaultdict(list))
            for number, percents in percents_by_night.items():
                line[number] += [fmean(percents)] if title in (_FIRST, _MODELS) else percents
            for alarm in alarms:
                if is_about(alarm, last, nights):
                    alarms_about[title][alarm.id] = alarm

    def rank(title: str) -> tuple[bool, bool]:
        states = {alarm.state for alarm in alarms_about[title].values()}
        return title != _FIRST, states.isdisjoint(ACTIVE)

    figures = list[Figure]()
    for place, title in enumerate(sorted(trends, key=rank)):
        about = [*alarms_about[title].values()]
        figures.append(trend_figure(f"trend{place}", title, trends[title], about, nights))
    return figures


def drawn_numbers(nights: Sequence[Night]) -> Iterable[dict[int, Point]]:
    """Each number of each series, by the numbers of the last nights that have it."""
    numbers = defaultdict[tuple[str, Series], dict[int, Point]](dict)
    for number, night in list(enumerate(nights, 1))[-_NIGHTS:]:
        for point in night.points:
            if point.raw:
                numbers[point.name, night.series][number] = point
    return numbers.values()


def percents_from_median(points: Mapping[int, Point], nights: Sequence[Night]) -> Line:
    """How far each repeat of a number lies from the median of its whole nights, by night."""
    whole = [fmean(point.raw) for number, point in points.items() if nights[number - 1].whole]
    middle = median(whole) if whole else 0.0
    if not middle:
        return {}
    percents = dict[int, list[float]]()
    for number, point in points.items():
        percents[number] = [100 * (repeat / middle - 1) for repeat in point.raw]
    return percents


def figure_titles(point: Point) -> list[str]:
    """Titles of the figures that a number is drawn in."""
    titles = {
        ("measured", "job_s"): [_FIRST, point.cell],
        ("control", point.quantity): [f"control: {point.cell or point.quantity}"],
        ("residual", "job_s"): [_MODELS],
        ("residual", "body_s"): [_MODELS],  # of earlier series
    }
    return titles.get((point.kind, point.quantity), [])


def _written(percents: Sequence[float] | None) -> str:
    """Mean of *percents* and their range as a text."""
    shares = (summary(percents or [nan]) / 100 for summary in (fmean, min, max))
    mean, low, high = (percent(share, 0.005, signed=True) for share in shares)
    return mean if low == high else f"{mean} ({low.removesuffix(' %')} to {high})"


def trend_figure(
    name: str, title: str, lines: dict[str, Line], alarms: list[Alarm], nights: Sequence[Night]
) -> Figure:
    """Lines over the numbers of nights, and the alarms about any of them."""
    numbers = sorted(set().union(*lines.values()))

    def draw(canvas: Canvas) -> None:
        from matplotlib.ticker import MaxNLocator

        plot_axes = canvas.figure.add_subplot()
        plot_axes.axhline(0, color=MUTED, linewidth=0.8)
        for (label, line), colour in zip(lines.items(), cycle(SERIES), strict=False):
            if len(lines) == 1:
                draw_ranges(plot_axes, line, colour)
            compared, not_compared = mean_points(line, nights, label)
            style = {"color": colour, "marker": "o", "markersize": 3.2, "linewidth": 0.9}
            canvas.points(plot_axes, compared, **style, label=one_line(label, 24))
            style |= {"linestyle": "none", "markerfacecolor": SURFACE}
            canvas.points(plot_axes, not_compared, **style)
        shown = [alarm for alarm in alarms if numbers[0] <= alarm.since <= numbers[-1]]
        for place, alarm in enumerate(shown):
            draw_alarm(canvas, plot_axes, alarm, nights, place)
        low, high = plot_axes.get_ylim()
        plot_axes.set_ylim(min(low, -_LEAST), max(high, _LEAST))
        plot_axes.set(xlabel="night", xlim=(numbers[0] - 0.7, numbers[-1] + 0.7))
        plot_axes.set_title(one_line(title, 56))
        plot_axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        plot_axes.yaxis.set_major_formatter(lambda tick, _: f"{tick:g} %")
        grid(plot_axes, "both")
        if len(lines) > 1:
            canvas.figure.legend(loc="outside lower center", ncols=3)

    data = trend_table(title, numbers, lines, nights)
    (newest, *texts) = data.texts()[-1]
    newest_texts = [f"{label} {text}" for label, text in zip(lines, texts, strict=True)]
    caption = f"{title}, night {newest}: {'; '.join(newest_texts)}."
    return Figure(name, title, 5.0, 2.4, caption, data, draw)


def trend_table(
    title: str, numbers: Sequence[int], lines: Mapping[str, Line], nights: Sequence[Night]
) -> Table:
    """What a figure shows: a row for each of the nights with these *numbers*."""
    rows = list[list[str]]()
    for number in numbers:
        texts = [_written(line.get(number)) for line in lines.values()]
        rows.append([_dated(nights, number), *texts])
    columns = ("Night", *(label or "From the median" for label in lines))
    return table(f"{title}: data", columns, "r" * len(columns), rows, folded=True)


def draw_ranges(plot_axes: Axes, line: Line, colour: str) -> None:
    """Draw a bar over the values of each night."""
    ends = list[tuple[int, float]]()
    for number, percents in line.items():
        ends += [(number, min(percents)), (number, max(percents)), (number, nan)]
    plot_axes.plot(*zip(*ends, strict=True), color=colour, linewidth=2, alpha=0.3)


def mean_points(
    line: Line, nights: Sequence[Night], label: str
) -> tuple[list[CanvasPoint], list[CanvasPoint]]:
    """The mean of each night: of those that are compared with the last one, and of all others."""
    compared = list[CanvasPoint]()
    not_compared = list[CanvasPoint]()
    for number, percents in sorted(line.items()):
        night = nights[number - 1]
        tooltip = f"{label} {_dated(nights, number)}: {_written(percents)}"
        is_compared = night.whole and night.series == nights[-1].series
        points = compared if is_compared else not_compared
        points.append((number, fmean(percents), tooltip))
    return compared, not_compared


def draw_alarm(
    canvas: Canvas, plot_axes: Axes, alarm: Alarm, nights: Sequence[Night], place: int
) -> None:
    """Draw an alarm before its first night; the *place* keeps the names of neighbours apart."""
    is_active = alarm.state in ACTIVE
    colour = BAD if is_active else MUTED
    upright = plot_axes.axvline(
        alarm.since - 0.5, color=colour, linestyle="--" if is_active else ":"
    )
    canvas.mark(upright, sentence(alarm, nights))
    plot_axes.text(
        alarm.since - 0.5,
        1 - place % 3 * 0.37,
        one_line(alarm.id, 12),
        rotation=90,
        transform=plot_axes.get_xaxis_transform(),
        fontsize=7.5,
        color=colour,
        ha="right" if alarm.change > 0 else "left",
        va="top",
    )


def open_metrics(name: str, nights: Sequence[Night], alarms: Sequence[Alarm]) -> str:
    """Write the last night, and the alarms of all, as OpenMetrics text."""
    last = nights[-1:]
    jobs = [point for point in _points(last) if point.quantity == "job_s"]
    states = [{"id": alarm.id, "cause": alarm.cause, "state": alarm.state} for alarm in alarms]
    families: dict[str, tuple[str, list[Sample]]] = {
        "nights": ("Nights in the history.", [({}, len(nights))]),
        "time_seconds": ("When the last night began.", [({}, night.time_s) for night in last]),
        "whole": ("1 if the last night is whole.", [({}, night.whole) for night in last]),
        "job_seconds": ("Mean time of each job in the last night.", job_times(jobs)),
        "model_error_ratio": (
            "Mean relative error of bodies in the last night.",
            model_errors(_points(last)),
        ),
        "alarm": ("1 for each alarm, whatever its state.", [(state, 1) for state in states]),
    }
    text = ""
    for family, (help_text, samples) in families.items():
        full_name = f"harness_nightly_{family}"
        unit = family.rpartition("_")[2]
        text += f"# TYPE {full_name} gauge\n# HELP {full_name} {help_text}\n"
        text += f"# UNIT {full_name} {unit}\n" if unit in ("seconds", "ratio") else ""
        for labels, value in samples:
            text += f"{full_name}{_metric_labels({'experiment': name, **labels})} {value:.17g}\n"
    return text + "# EOF\n"


def job_times(points: Iterable[Point]) -> list[Sample]:
    """Mean of the measured times among the *points* of jobs."""
    times = list[Sample]()
    for point in points:
        if point.kind != "residual" and point.raw:
            times.append(({"workload": point.workload, "cell": point.cell}, fmean(point.raw)))
    return times


def model_errors(points: Iterable[Point]) -> list[Sample]:
    """Mean relative error of the bodies that each model predicts, by the residuals of a night."""
    errors = defaultdict[str, list[float]](list)
    for point in points:
        ratio = fmean(point.raw) if point.raw else 0.0
        if point.kind == "residual" and ratio:
            errors[point.model].append(abs(1 / ratio - 1))
    return [({"model": model}, fmean(errors[model])) for model in errors]


def _metric_labels(labels: Mapping[str, str]) -> str:
    """Labels of a sample as OpenMetrics has them."""
    pairs = [f'{key}="{printable(text).translate(_ESCAPES)}"' for key, text in labels.items()]
    return f"{{{','.join(pairs)}}}"


def otava_csv(nights: Sequence[Night]) -> str:
    """Write the nights that the last one can be compared with, a column for each number."""
    chosen = comparable(nights)
    text = io.StringIO()
    names = dict.fromkeys(point.name for point in _points(chosen))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "commit", *map(printable, names)])
    for night in chosen:
        means = {point.name: fmean(point.raw) for point in night.points if point.raw}
        time = moment(night.time_s)[:19].replace(" ", "T")
        commit = night.facts.get("commit", "")
        values = (means.get(name, "nan") for name in names)
        writer.writerow([f"{time}Z", commit if commit.isalnum() else "", *values])
    return text.getvalue()


def junit_suites(
    nights: Sequence[Night], alarms: Sequence[Alarm]
) -> dict[str, list[tuple[str, str, str]]]:
    """Cases for `harness.base.documents.junit`: each number of the last night, by its kind."""
    suites: dict[str, list[tuple[str, str, str]]] = {}
    measured = _points_by_name(nights[-1:])
    points = _points_by_name(comparable(nights)) | measured
    active = [alarm for alarm in alarms if alarm.state in ACTIVE]
    for name, point in points.items():
        about = [sentence(alarm, nights) for alarm in active if is_about(alarm, point, nights)]
        outcome = ""
        message = ""
        if about:
            outcome = "failure"
            message = "; ".join(about)
        elif name not in measured or not nights[-1].whole:
            outcome = "skipped"
            message = "; ".join(("the last night lacks it, or is not whole", *nights[-1].lacks))
        suites.setdefault(point.kind, []).append((name, outcome, message))
    return suites


def _points(nights: Sequence[Night]) -> Iterator[Point]:
    """The points of all *nights* in their order."""
    return chain.from_iterable(night.points for night in nights)


def _points_by_name(nights: Sequence[Night]) -> dict[str, Point]:
    """The last point of each number of *nights*."""
    return {point.name: point for point in _points(nights)}
