"""
The formats of a report: a `Document` as text, by the kind of its blocks.

None looks at the name of a section; HiBench's lines are made from the trials alone.
"""

from __future__ import annotations

import html
import re

from datetime import UTC, datetime
from fractions import Fraction
from importlib.resources import files
from typing import Any

from pydantic_core import to_json

from harness.records.trial import WorkloadSpec
from harness.reports.document import Document, Figures, Table, Text
from harness.reports.drawing import drawing, render_figure
from harness.reports.wording import UNKNOWN, aligned, count, one_line, typographic
from harness.text import printable

SCHEMA_VERSION = 2  # of the JSON report
DFSIO_MODE = "read"  # where an experiment does not say it
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$@!])")
_RULES = {"l": ":--", "c": ":--", "r": "--:"}
_MOST_ROWS = 500  # of a table in Markdown: a longer one is more than a review can hold
# Input and jobs are HiBench's: always, or with `hibench: true`.
HIBENCH_WORKLOADS = {"terasort": ("true", "false"), "wordcount": ("true",), "sort": ("true",)}
_HIBENCH_LINE = "{:<12} {:<10} {:<8} {:<20} {:<20} {:<20} {:<20}"
_HIBENCH_HEAD = (
    "Type", "Date", "Time", "Input_data_size", "Duration(s)", "Throughput(bytes/s)",
    "Throughput/node",
)  # fmt: skip


def render_html(document: Document) -> str:
    """
    One HTML file with style sheet and drawings inside; equal data gives equal bytes.

    It opens offline, needs no script, prints, and works in both themes.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("harness.reports"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typographic"] = typographic
    environment.filters["rows"] = lambda shown: Markup(_table_rows(shown))  # noqa: S704 - escaped
    # Drawings are written by an XML library, which escapes texts; the rest is ours.
    environment.filters["svg"] = lambda figure: Markup(render_figure(figure))  # noqa: S704
    style = files("harness.reports").joinpath("templates/report.css").read_text("utf-8")
    with drawing():
        return environment.get_template("report.html.j2").render(
            document=document,
            style=Markup(style),  # noqa: S704
        )


def _table_rows(shown: Table) -> str:
    """Rows of a table as HTML: a page has a hundred thousand values, too many for a template."""
    lines = []
    for row in shown.rows:
        cells = list[str]()
        for letter, value in zip(shown.align, row, strict=True):
            text = printable(value.text)
            # Words and short numbers are not broken.
            plain = "n" if letter == "l" and len(text) < 24 and " " not in text else ""
            text = html.escape(typographic(text) if letter == "r" else text)
            tag, tone = ("td", value.tone) if cells else ('th scope="row"', "")
            # Most values are numbers: theirs is the look without a class.
            names = " ".join(
                filter(None, (letter if letter != "r" or not cells else "", plain, tone))
            )
            shown_as = f' class="{names}"' if names else ""
            cells.append(f"<{tag}{shown_as}>{text}</{tag[:2]}>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "\n".join(lines)


def render_markdown(document: Document) -> str:
    """Write the first screen, and below it the sections: data for drawings, no folded table."""
    blocks = [
        f"# {escape(document.question)}",
        f"Experiment {escape(document.name)}{document.mark and f', **{document.mark}**'}.",
        f"**{escape(document.headline)}**",
        *(_table_blocks(document.overview) if document.overview else ()),
    ]
    for title, sentences in document.facts.titled():
        blocks += [f"{title}:", "\n".join(f"- {escape(sentence)}" for sentence in sentences)]
    blocks.append("## Details")
    for section in document.sections:
        shown = []
        for block in [] if section.is_missing() else section.shown():
            match block:
                case Text():
                    mark = "#### " if block.kind == "heading" else ""
                    shown.append(mark + escape(block.text))
                case Table():
                    shown += _table_blocks(block)
                case Figures():
                    for figure in block.figures:
                        shown += _table_blocks(figure.data)
        blocks += [f"### {escape(section.title)}", *shown] if shown else []
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    r"""
    *text* in one line, with everything that Markdown or HTML would act upon made literal.

    >>> escape("a|b <script> _c_")
    'a\\|b \\<script\\> \\_c\\_'
    """
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("://", "&#58;//")


def _table_blocks(table: Table) -> list[str]:
    if table.folded or not table.rows:
        return []
    caption = escape(table.caption)
    if len(table.rows) > _MOST_ROWS:
        return [f"{caption}: {count(len(table.rows), 'row')}, in report.html."]
    lines = [
        " | ".join(map(escape, table.columns)),
        " | ".join(_RULES[align] for align in table.align),
        *(" | ".join(map(escape, row)) for row in table.texts()),
    ]
    body = "\n".join(f"| {line} |" for line in lines)
    return [caption, body, *([escape(table.note)] if table.note else [])]


def render_json(document: Document) -> str:
    """
    One JSON document: question, answer, and the values of every section, none of them formatted.

    Numbers that are not finite become `null`, as JSON has no word for them.
    """
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "question": document.question,
        "answer": {
            "headline": document.headline,
            "mark": document.mark,
            **document.facts._asdict(),
        },
        **document.values(),
    }
    for section in document.sections:
        values |= section.values()
    text = to_json(values, indent=1, inf_nan_mode="null", ensure_ascii=True, fallback=str)
    return text.decode().replace("\x7f", "\\u007f") + "\n"  # it cannot control a terminal


def render_terminal(document: Document) -> str:
    """Write the first screen as text, unescaped."""
    lines = []
    if (shown := document.overview) is not None:
        rows = [[*map(one_line, texts)] for texts in (shown.columns, *shown.texts())]
        lines += [*(line.rstrip() for line in aligned(rows, shown.align)), ""]
    lines += [f"Predictions were {document.mark}."] if document.mark else []
    lines.append(one_line(document.headline))
    for title, sentences in document.facts.titled():
        lines += [f"{title}:", *(f"  {one_line(sentence)}" for sentence in sentences)]
    return "\n".join(lines).replace(UNKNOWN, "-") + "\n"


def render_hibench(document: Document) -> str:
    """
    Write lines in the form of HiBench's ``hibench.report``: scripts that read those read these.

    There is one for each done trial whose client was timed, in the order in which they ended.
    Columns and arithmetic are those of HiBench's ``gen_report`` (its
    ``bin/functions/workload_functions.sh``): what is divided is cut to a whole number.  The
    duration is that of the client, from its start to its end.  Dates and times are in UTC.
    """
    done = [
        record
        for record in document.trials
        if record.state == "done" and "client_s" in record.harness_s
    ]
    lines = [_HIBENCH_LINE.format(*_HIBENCH_HEAD)]
    for record in sorted(done, key=lambda record: (record.finished_s, record.trial.id)):
        workload = record.trial.cell.workload
        # Nothing of a job that sleeps; of a test of HDFS what it moves.
        size = 0 if workload.name == "sleep" else workload.input_bytes
        if workload.name not in ("sleep", "dfsio") and record.input_bytes is not None:
            size = record.input_bytes
        duration = Fraction(int(1000 * record.harness_s["client_s"]), 1000)
        rate = int(size / duration) if duration else 0
        ended = datetime.fromtimestamp(int(record.finished_s), UTC)
        # Three decimals, and no 0 before the point: so ``bc`` writes them.
        seconds = f"{float(duration):.3f}"
        seconds = seconds.removeprefix("0") if seconds != "0.000" else "0"
        name = hibench_name(workload)
        date = f"{ended:%Y-%m-%d}"
        time = f"{ended:%H:%M:%S}"
        node_rate = rate // record.trial.cell.cluster.workers
        lines.append(_HIBENCH_LINE.format(name, date, time, size, seconds, rate, node_rate))
    return "\n".join(lines) + "\n"


def hibench_name(workload: WorkloadSpec) -> str:
    """
    HiBench's type of a workload whose input and jobs are HiBench's; of others a name of our own.

    >>> [hibench_name(WorkloadSpec(name=n, input_bytes=1)) for n in ("terasort", "gpu-kmeans")]
    ['HadoopTerasort', 'HarnessGpuKmeans']
    """
    words = "".join(word.capitalize() for word in workload.name.split("-"))
    if workload.name == "dfsio":
        words += f"-{workload.parameters.get('mode', DFSIO_MODE)}"
    form = workload.parameters.get("hibench", "false")
    return f"{'Hadoop' if form in HIBENCH_WORKLOADS.get(workload.name, ()) else 'Harness'}{words}"
