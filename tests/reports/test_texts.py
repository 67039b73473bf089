"""
Tests for the JSON, Markdown and terminal formats, and for what holds of all.
"""

import dataclasses
import json
import re
import subprocess
import sys

import pytest

from harness.base.documents.document import Document, Figure, Figures, Section, Text, table
from harness.base.documents.formats import (
    render_json,
    render_latex,
    render_markdown,
    render_terminal,
)
from harness.base.documents.formats.latex import latex_text
from harness.base.documents.formats.markdown import escape
from harness.core.reports import REPORTS
from harness.core.reports.data import ReportData
from harness.core.reports.sections import make_document
from harness.core.reports.sections.task_times import bars
from tests.reports.test_html import hostile


@pytest.fixture(scope="module")
def values(document):
    """The JSON report of the whole run, read back."""
    return json.loads(render_json(document))


@pytest.fixture(scope="module")
def markdown(document):
    """The Markdown report of the whole run."""
    return render_markdown(document)


class TestJson:
    def test_holds_every_score_exactly(self, whole, values):
        """
        A script reads back each score as it was computed.
        """
        assert [{k: v for k, v in s.items() if k != "label"} for s in values["scores"]] == [
            s.model_dump(mode="json") for s in whole.score_book.scores
        ]

    def test_holds_every_metric_by_its_name(self, whole, values):
        """
        Each summary has the values of all metrics that its scores determine.
        """
        first = values["summaries"][0]

        assert first["metrics"].keys() == whole.score_book.summaries[0].metrics.keys()
        assert first["metrics"]["mape"]["value"] == whole.score_book.summaries[0].value("mape")

    def test_answers_the_question(self, whole, values):
        """
        Question, answer, failed trials with evidence, and manifest are there.
        """
        assert values["schema_version"] == 2
        assert values["question"] == whole.experiment.title
        assert values["answer"]["headline"].startswith("whatif-mr2 is nearest")
        assert [t["evidence"] for t in values["failed_trials"]] == [
            f"trials/{r.trial.id}/raw" for r in whole.trials if r.state != "done"
        ]
        assert values["manifest"] == json.loads(json.dumps(whole.manifest))

    def test_keeps_its_keys(self, values):
        """
        Scripts find everything where it was.
        """
        assert values.keys() >= {
            "answer", "cells", "comparisons", "decompositions", "experiment", "failed_trials",
            "inside", "manifest", "measurements", "predictions", "profiles", "question",
            "schema_version", "scores", "seal", "summaries", "trials", "vet",
        }  # fmt: skip

    def test_holds_where_the_time_went(self, whole, values):
        """
        The bars of the HTML report with their sources and estimates, and what logs show.
        """
        first, second = values["inside"]
        times = whole.task_times[whole.timelines[0][0].trial.id]
        (bar, *_) = bars(times.parts)

        assert first["parts"][0] == {
            "kind": "map", "host": "", "tasks": 8, "source": "spans",
            "seconds": dict(bar.seconds), "estimated": ["collect", "map_function"],
            "total_s": bar.total_s,
        }  # fmt: skip
        ratios = {d["name"]: d["ratio"] for d in first["logs_beside_spans"]}
        assert ratios["map_s_per_record"] == pytest.approx(2.0)
        assert second == {
            "trial": whole.timelines[1][0].trial.id, "workload": "terasort",
            "parts": [], "logs_beside_spans": [],
        }  # fmt: skip

    def test_numbers_that_are_none_become_null(self, whole):
        """
        JSON has no infinity; strict parsers must be able to read the report.
        """
        data = dataclasses.replace(whole, manifest={"load": float("inf"), "list": [float("nan")]})

        manifest = json.loads(REPORTS["json"].render(make_document(data)))["manifest"]
        assert manifest == {"load": None, "list": [None]}


class TestMarkdown:
    def test_tables_are_rectangular(self, markdown):
        """
        Each row of a table has as many bars as its rule.
        """
        tables = [block for block in markdown.split("\n\n") if block.startswith("|")]
        widths = [
            {line.replace("\\|", "").count("|") for line in each.splitlines()} for each in tables
        ]

        assert len(tables) > 10
        assert all(len(width) == 1 for width in widths)

    def test_holds_every_cell_and_failed_trial(self, whole, markdown):
        """
        Scored cells and failed trials all occur.
        """
        names = {whole.cells[s.cell][1] for s in whole.score_book.scores}
        names |= {r.trial.id for r in whole.trials if r.state != "done"}

        assert [n for n in names if n not in markdown] == []

    def test_the_data_of_a_figure_stands_in_its_place(self, markdown):
        """
        Each part of the bars is a row, and what logs show otherwise is another table.
        """
        assert "### Where the time of a job went" in markdown
        part = r"\| map \| worker1 \| blocked: buffer full \| [0-9.]+ \| 6.\d % "
        assert re.search(part, markdown)
        assert re.search(r"\| map\\_s\\_per\\_record \| .* \| \+100 % \|", markdown)

    def test_folded_and_endless_tables_are_left_out(self):
        """
        What opens on demand elsewhere is not there; of what is too long there is the number.
        """
        tables = [
            table("folded", ("a",), "l", [("x",)], folded=True),
            table("long", ("a",), "l", [("y",)] * 501),
        ]
        section = Section("s", "Title", tables)
        text = render_markdown(Document("n", "q", "h", [section]))

        assert "folded" not in text
        assert "long: 501 rows, in report.html." in text

    def test_a_section_without_content_is_left_out(self):
        """
        What is missing is said by reports that have room for it.
        """
        section = Section("s", "Title", [Text("lead")], missing="nothing")

        assert "Title" not in render_markdown(Document("n", "q", "h", [section]))

    def test_a_link_is_only_text(self):
        """
        Addresses from outside do not become links.
        """
        assert escape("see http://a.b [x](y)") == "see http&#58;//a.b \\[x\\](y)"


class TestLatex:
    def test_holds_every_cell_and_no_command_of_others(self, whole, document):
        """
        Tables that are not folded are there, none longer than a page; hostile text stays text.
        """
        text = render_latex(document)
        bodies = [table.partition("\\midrule\n")[2] for table in text.split("\\bottomrule")[:-1]]

        assert len(bodies) > 5
        assert max(body.count("\\\\\n") for body in bodies) <= 40
        assert latex_text(document.headline) in text
        assert "\\input" not in render_latex(Document("n", "\\input{x}", "h", []))


class TestTerminal:
    def test_table_of_a_run(self, whole, document):
        """
        One line per model, the verdict, what it rests on, and why trials failed.
        """
        lines = render_terminal(document).splitlines()
        failed = [r.trial.id for r in whole.trials if r.state != "done"]

        assert re.split("  +", lines[0]) == [
            "Model", "Mean relative error", "Mean relative error at reference speed",
            "Signed at reference speed", "In noise", "Verdict",
        ]  # fmt: skip
        assert [re.split("  +", line)[::5] for line in lines[1:3]] == [
            ["whatif-mr2", "nearest"], ["whatif", "farther"],
        ]  # fmt: skip
        assert lines[4].startswith("whatif-mr2 is nearest")
        assert [line.split(":")[0].strip() for line in lines[12:14]] == failed
        assert len(lines) < 40

    def test_an_analysis_is_marked(self, whole, document):
        """
        In every format of the first screen.
        """
        marked = make_document(dataclasses.replace(whole, manifest={"analysis_of": "a"}))
        reports = [render(marked) for render in (render_terminal, render_markdown, render_json)]

        assert document.mark == ""
        assert all("sealed after the measurement" in report for report in reports)

    def test_is_plain_ascii_for_plain_names(self, document):
        """
        A terminal of any encoding can show it.
        """
        assert render_terminal(document).isascii()


class TestAllFormats:
    def test_a_new_section_is_in_every_format(self, document):
        """
        A section is one object: text, table, figure and values.
        """

        def draw(canvas):
            canvas.figure.add_subplot().plot([1], [2], "o")

        shown = table("numbers", ("name", "value"), "lr", [("answer", "42.5")])
        section = Section(
            "new", "A new section", [Text("What it is."), Figures(
                [Figure("f", "drawing", 2, 2, "caption", shown, draw)])],
            values=lambda: {"new": 42.5},
        )  # fmt: skip
        added = dataclasses.replace(document, sections=[section])

        assert "### A new section\n\nWhat it is.\n\nnumbers" in render_markdown(added)
        assert "| answer | 42.5 |" in render_markdown(added)
        assert json.loads(render_json(added))["new"] == 42.5

    @pytest.mark.parametrize("name", ["markdown", "terminal"])
    def test_hostile_text_steers_no_terminal(self, name, whole):
        """
        The plain reports hold no control character but line feeds.
        """
        text = REPORTS[name].render(make_document(hostile(whole)))

        assert re.findall("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text) == []

    def test_hostile_text_is_no_markup_in_markdown(self, whole):
        """
        Every mark that Markdown or HTML would act upon is escaped.
        """
        text = REPORTS["markdown"].render(make_document(hostile(whole)))

        assert re.findall(r"(?<!\\)<script", text) == []

    @pytest.mark.parametrize("name", sorted(REPORTS.keys() - {"hibench", "html"}))
    def test_an_experiment_without_a_trial_says_so(self, name, whole):
        """
        There is a report before anything was run.
        """
        text = REPORTS[name].render(make_document(ReportData(whole.experiment)))

        assert "no trial has been run" in text.lower()

    @pytest.mark.parametrize(("device", "expected"), [("cpu", True), ("cuda", False), ("", False)])
    def test_a_processor_is_never_called_a_gpu(self, whole, device, expected):
        """
        Trials in which it did the work of a device are named, above the tables and in each row.
        """
        trials = [r.model_copy(update={"device": device}) for r in whole.trials]
        text = REPORTS["markdown"].render(make_document(dataclasses.replace(whole, trials=trials)))

        assert ("the processor did the work of a device \\(device=cpu\\)" in text.replace(
            "(", "\\(").replace(")", "\\)")) == expected  # fmt: skip
        assert (f"device={device} |" in text) == bool(device)

    @pytest.mark.process
    def test_are_light_until_they_render(self):
        """
        Listing the reports imports neither matplotlib nor jinja2.
        """
        code = (
            "import sys, harness.core.reports;"
            " print({'matplotlib', 'jinja2', 'numpy'} & set(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )

        assert done.stdout == "set()\n"

    def test_each_is_described(self):
        """
        What `harness list reports` shows is one line for each.
        """
        assert all(r.description and "\n" not in r.description for r in REPORTS.values())
