"""
The report as one HTML file.
"""

import builtins
import dataclasses
import re

from html.parser import HTMLParser

import pytest

from harness.base.documents.formats import render_html
from harness.base.documents.wording import typographic
from harness.base.records.score import ScoreBook
from harness.core.experiment.model import AskedQuestion
from harness.core.reports import REPORTS
from harness.core.reports.data import ReportData
from harness.core.reports.sections import make_document
from harness.core.reports.sections.method import origin
from harness.core.reports.sections.task_times import PARTS, bars

pytestmark = pytest.mark.process

VOID = {"meta", "br"}
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e$\\frac{a}$ \u4f60 'x' \"y\" & {{ 7*7 }} ]]> -->"


class Page(HTMLParser):
    """A page taken apart: balanced tags are asserted, rows of tables and attributes kept."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.rows, self.text = [], [], [], [], []
        self.tags, self.keep = [], None
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self._seen(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self._seen(tag, dict(attrs))

    def _seen(self, tag, attrs):
        self.tags.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.links += [attrs[a] for a in ("href", "src", "xlink:href", "srcset") if a in attrs]
        assert not any(name.startswith("on") for name in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in {"td", "th"}:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def text(page_text):
    """The rendered report of the whole run."""
    return page_text


@pytest.fixture(scope="module")
def page(text):
    """The same, taken apart."""
    return Page(text)


class TestWholeRun:
    def test_every_score_occurs(self, whole, page):
        """
        Each has a place in the table of its quantity: row of its cell and speed, column of model.
        """
        shown = [row for row in page.rows if len(row) == 6 + len(whole.scored_models)]
        wanted = {(s.quantity, s.cell, s.speed) for s in whole.score_book.scores}
        rows = [row for row in shown if row[1] in ("raw", "reference")]
        corrected = {w for w in whole.workloads if len(whole.speeds(w)) > 1}
        named = {
            (quantity, whole.label(cell), speed)
            for quantity, cell, speed in wanted
            if speed == "raw" or whole.workload_of(cell) in corrected
        }

        assert corrected
        assert len(rows) == len(named)
        assert all("%" in error for row in rows for error in row[6:])

    def test_every_trial_occurs_in_order(self, whole, page):
        """
        The last table lists every trial as they ran.
        """
        ids = [row[1] for row in page.rows if len(row) == 15][-len(whole.trials) :]

        assert ids == [r.trial.id for r in whole.trials]

    def test_failed_trials_have_reason_and_evidence(self, whole, page):
        """
        A failed trial stands with its reason and the place of its logs.
        """
        failed = [r for r in whole.trials if r.state != "done"]
        rows = {row[0]: row for row in page.rows if len(row) == 7}

        assert [(rows[r.trial.id][4], rows[r.trial.id][5]) for r in failed] == [
            (r.reason, f"trials/{r.trial.id}/raw") for r in failed
        ]

    def test_question_and_answer_come_first(self, whole, page):
        """
        Before any table or drawing the reader has the question and the answer.
        """
        shown = "".join(page.text)

        assert page.tags.index("h1") < page.tags.index("table") < page.tags.index("details")
        assert whole.experiment.title in shown
        assert (
            typographic("whatif-mr2 is nearest: its predicted job times are off by 13 %") in shown
        )

    def test_day_and_machine_stand_above_the_question(self, whole):
        """
        Without a known machine the days alone, and nothing where no trial was run.
        """
        known = {"machine": {"cores": 2, "cpu": "A <processor>"}}
        measured = dataclasses.replace(whole, manifest=known)
        shown = render_html(make_document(measured))
        head = shown[shown.index("eyebrow") : shown.index("<h1>")]

        assert "measured 2026-01-01 on 2 x A &lt;processor&gt;" in head
        assert origin(dataclasses.replace(whole, manifest={})) == "measured 2026-01-01"
        assert origin(dataclasses.replace(whole, trials=())) == ""

    def test_the_figure_comes_before_the_facts(self, text):
        """
        A narrow screen shows them in this order; a wide one has the facts at the left.
        """
        drawing = text.index('<figure class="wide">')

        assert text.index('class="headline"') < drawing < text.index('<div class="facts">')
        assert ".facts { grid-area: 1 / 1; }" in text

    def test_assumed_costs_are_marked(self, page):
        """
        A share of a group is never shown as if it had been measured.
        """
        remarks = {row[0]: row[-1] for row in page.rows if len(row) == 7}

        assert remarks["serde_cpu_s_per_record"] == "assumed, group 1"

    def test_a_group_of_costs_is_named_once(self, text):
        """
        Its members stand below the table, not in every row.
        """
        note = "Group 1: partition_cpu_s_per_record, serde_cpu_s_per_record."

        assert text.count(note) == 2  # each of two profiles has one

    def test_the_parts_of_tasks_are_a_section(self, whole, page):
        """
        Every part of the bars stands in a row, with what is estimated and what logs show.
        """
        rows = [tuple(row) for row in page.rows if len(row) == 8]
        times = whole.task_times[whole.timelines[0][0].trial.id]
        (bar, *_) = bars(times.parts)

        assert [r[2] for r in rows if r[:2] == ("map", "all")] == [PARTS[p] for p in bar.seconds]
        assert {r[2] for r in rows if r[7] == "estimated"} == {
            "map function", "collect", "reduce function", "write"
        }  # fmt: skip
        assert [r[4] for r in rows if r[0] == "map_s_per_record"] == ["+100\u00a0%"]

    def test_is_one_file(self, text, page):
        """
        Nothing is fetched: links stay inside the page, and there is no script.
        """
        assert [link for link in page.links if not link.startswith("#")] == []
        assert re.findall(r"(?i)https?:|<script|@import|url\((?!#)", text) == []

    def test_ids_are_unique_and_links_meet(self, text, page):
        """
        Drawings share one page without sharing ids.
        """
        used = set(re.findall(r"url\(#([^)]*)\)", text)) | {k[1:] for k in page.links}

        assert len(set(page.ids)) == len(page.ids)
        assert used <= set(page.ids)

    def test_tables_and_drawings_are_named(self, text):
        """
        Every table has a caption and scoped heads, every drawing a role, a title and its data.
        """
        tables = re.findall(r"<table>.*?</table>", text, re.DOTALL)
        figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)

        assert all("<caption>" in t and 'scope="col"' in t for t in tables)
        assert all('role="img"' in f and "<title id=" in f for f in figures)
        assert ["<details>" in f for f in figures] == [False] + [True] * 12

    def test_all_but_the_first_screen_is_folded(self, document, text):
        """
        Each section opens on demand, and what is missing is one line.
        """
        head, main = text.split("<main>")

        assert "<details" not in head
        assert '<details class="section" open' not in main
        assert main.count('<details class="section">') == main.count("<section ") == sum(
            not section.is_missing() for section in document.sections
        )  # fmt: skip

    def test_same_data_same_bytes(self, document, text, reading_only, tmp_path):
        """
        Rendering again gives the same drawings and tables, and leaves the world as it was.
        """
        names = {"scores", "predicted", "timeline", "machine"}
        few = [section for section in document.sections if section.id in names]
        again = render_html(dataclasses.replace(document, sections=few))
        sections = re.findall(r"<section id=.*?</section>", again, re.DOTALL)

        assert len(sections) == len(few) == 4
        assert [section for section in sections if section not in text] == []
        assert list(tmp_path.iterdir()) == []


@pytest.fixture
def reading_only(tmp_path, monkeypatch):
    """
    Nothing may be opened to be written; the current folder is empty.
    """
    real = builtins.open

    def reading_only(file, mode="r", *args, **kwargs):
        assert not set(mode) & set("wax+"), f"{file} was opened to be written"
        return real(file, mode, *args, **kwargs)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "open", reading_only)


@pytest.mark.usefixtures("reading_only")
@pytest.mark.parametrize("name", sorted(set(REPORTS) - {"html"}))
def test_no_file_is_written(name, whole, tmp_path):
    """
    Reports answer text; the world stays as it was.
    """
    assert REPORTS[name].render(make_document(whole))
    assert list(tmp_path.iterdir()) == []


def hostile(data):
    """The run with hostile text wherever text comes from outside."""
    trials = [
        r.model_copy(update={"state": "failed", "reason": HOSTILE, "disturbed": HOSTILE})
        for r in data.trials[:2]
    ]
    record, job = data.timelines[0]
    attempts = tuple(
        dataclasses.replace(a, host=HOSTILE, attempt_id=f"{HOSTILE}{n}", error=HOSTILE)
        for n, a in enumerate(job.attempts)
    )
    profile = data.profiles["wordcount"]
    costs = {HOSTILE: profile.costs["map_cpu_s_per_record"].model_copy(update={"source": HOSTILE})}
    scores = tuple(s.model_copy(update={"model": HOSTILE}) for s in data.score_book.scores)
    summaries = tuple(s.model_copy(update={"model": HOSTILE}) for s in data.score_book.summaries)
    rankings = tuple(
        r.model_copy(update={"models": (HOSTILE,), "errors": (0.1,), "nearest": (HOSTILE,)})
        for r in data.score_book.rankings
    )
    hostile_scores = {"scores": scores, "summaries": summaries, "rankings": rankings}
    return dataclasses.replace(
        data,
        experiment=data.experiment.model_copy(
            update={"name": HOSTILE, "question": AskedQuestion(title=HOSTILE, how_far="best")}
        ),
        cells={cell: (spec, HOSTILE) for cell, (spec, _) in data.cells.items()},
        trials=[*trials, *data.trials[2:]],
        score_book=data.score_book.model_copy(update=hostile_scores),
        profiles={"wordcount": profile.model_copy(update={"costs": costs, "warnings": (HOSTILE,)})},
        manifest={HOSTILE: {HOSTILE: [HOSTILE]}},
        timelines=[(record, dataclasses.replace(job, name=HOSTILE, attempts=attempts))],
        evidence={r.trial.id: HOSTILE for r in trials},
    )


def render(data):
    """The HTML report of *data*."""
    return REPORTS["html"].render(make_document(data))


def test_hostile_text_stays_text(whole):
    """
    Markup, escapes, direction marks and formulas in names and reasons are only shown.
    """
    text = render(hostile(whole))
    page = Page(text)

    assert "script" not in page.tags
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text) == []
    assert "\\x1b[31m\\u202e" in "".join(page.text)
    assert "{{ 7*7 }}" in "".join(page.text)


class TestLittleData:
    def test_one_trial_without_scores(self, make):
        """
        A single trial is listed, and each section says what is missing.
        """
        data = make()
        little = ReportData(data.experiment, cells=data.cells, trials=data.trials[:1])
        text = render(little)
        missing = [each for each in make_document(little).sections if each.is_missing()]

        assert data.trials[0].trial.id in text
        assert text.count('class="missing"') == len(missing) > 0
        Page(text)

    def test_all_trials_failed(self, make):
        """
        A run in which nothing worked shows every reason.
        """
        data = make(score_book=ScoreBook(), measurements=(), timelines=(), profiles={})
        trials = [
            r.model_copy(update={"state": "failed", "reason": f"no node {n}"})
            for n, r in enumerate(data.trials)
        ]

        page = Page(render(dataclasses.replace(data, trials=trials)))

        assert "No answer: none of 54 trials was done." in "".join(page.text)
        assert {f"no node {n}" for n in range(54)} <= {v for row in page.rows for v in row}

    def test_job_without_attempts(self, make, traced):
        """
        A job that never got a container has an empty timeline, from submission to its end.
        """
        data, job = make(), dataclasses.replace(traced(), attempts=())

        text = render(ReportData(data.experiment, timelines=[(data.trials[0], job)]))

        assert f"finished, {job.job_s:.1f} s" in "".join(Page(text).text)
