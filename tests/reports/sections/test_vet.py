"""
The section of vet: the overhead of jobs.
"""

import dataclasses
import json
import math

import numpy as np
import pytest

from harness.base.documents.document import Figures, Table, Text
from harness.base.documents.drawing import drawing, render_figure
from harness.base.records.prediction import JobConfig
from harness.base.records.trace import TASK_COUNTER
from harness.base.records.vet import JobVet, RepeatsTest, TaskUnits, VetBook
from harness.core.reports import REPORTS
from harness.core.reports.sections import make_document, vet
from harness.core.reports.sections.vet import MOST_FIGURES
from harness.models.vet.assessment import assess, vet_curve
from harness.models.vet.equations import ks_two_sample

TWICE = {
    f"{TASK_COUNTER}.MAP_OUTPUT_BYTES": 10**6, f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS": 10**4,
    f"{TASK_COUNTER}.SPILLED_RECORDS": 2 * 10**4,
}  # fmt: skip


def tasks(repetition, tail, kind="map"):
    """
    Two tasks with a tail of so many times the usual unit.
    """
    for number in range(2):
        random = np.random.default_rng([repetition, number, kind == "map"])
        units = np.concatenate([
            random.lognormal(-9, 0.1, 1200), 1e-4 * tail * (1 + random.pareto(1.3, 30))
        ])  # fmt: skip
        name = f"attempt_1_{kind[0]}_{number:06d}_0"
        yield TaskUnits(name, kind, 5, units.tolist(), 3.0 + number, spill_s=0.9, counters=TWICE)


def job(cell, repetition=0, tail=50.0):
    """
    The vet of one job.
    """
    every = [*tasks(repetition, tail), *tasks(repetition, tail, "reduce")]
    curves = tuple(vet_curve(t, JobConfig()) for t in (every[0], every[2]))
    return JobVet(f"t{repetition}", cell, repetition, assess(every, JobConfig()), curves)


def blocks(data, kind):
    """
    Blocks of one kind of the section of vet.
    """
    return [block for block in vet.section(data).shown() if isinstance(block, kind)]


def texts_of(data):
    """
    Paragraphs of the section of vet.
    """
    return [block.text for block in blocks(data, Text)]


def tables_of(data):
    """
    Tables of the section of vet: of jobs, and of the tests between repeats.
    """
    return blocks(data, Table)


def figures_of(data):
    """
    Figures of the section of vet.
    """
    return [figure for block in blocks(data, Figures) for figure in block.figures]


@pytest.fixture
def measured(whole):
    """
    The whole run with the vet of two repeats of its first cell.
    """
    cell = next(iter(whole.cells))
    jobs = (job(cell, 1), job(cell, 0))
    values = [j.kinds[0].job.vet_tasks for j in jobs]
    repeats = (RepeatsTest(cell, "map", (0, 1), ks_two_sample(*values)),)
    return dataclasses.replace(whole, vet=VetBook(jobs, repeats))


class TestTables:
    def test_a_row_for_each_job_and_kind(self, measured):
        """
        In the order of repeats; numbers of the record, flags in words.
        """
        shown = tables_of(measured)[0]
        rows, place = shown.texts(), shown.columns.index
        maps = measured.vet.jobs[1].kinds[0]

        assert [row[1:4] for row in rows] == [
            ["0", "read-map", "2"], ["0", "reduce-write", "2"],
            ["1", "read-map", "2"], ["1", "reduce-write", "2"],
        ]  # fmt: skip
        assert rows[0][0] == measured.label(measured.vet.jobs[0].cell)
        assert rows[0][4] == f"{maps.job.vet_job:.2f}"
        assert rows[0][place("On 100")] == f"{maps.buckets[100].vet_job:.2f}"
        assert "several spills: 2" in rows[0][-1]
        assert "several spills" not in rows[1][-1]

    def test_repeats_are_told_apart_by_p(self, measured):
        """
        D and p of each pair; what deserves a look is marked.
        """
        (row,) = tables_of(measured)[1].rows
        other = dataclasses.replace(measured.vet.repeats[0], ks=ks_two_sample([1] * 9, [2] * 9))
        apart = dataclasses.replace(measured, vet=VetBook((), (other,)))

        assert [v.text for v in row[1:3]] == ["read-map", "0 and 1"]
        assert row[4].tone == ""
        assert tables_of(apart)[0].rows[0][4].tone == "mark"

    def test_nothing_without_units(self, whole):
        """
        The section says which experiment measures them, and that is all.
        """
        (text,) = texts_of(whole)

        assert vet.section(whole).is_missing()
        assert "'trace: units'" in text


class TestTexts:
    def test_say_when_the_measure_does_not_apply(self, measured):
        """
        Several spills, long spills, the size of a unit.
        """
        text = " ".join(texts_of(measured))

        assert "A unit is 5 records" in text
        assert "4 of 4 map tasks spilled more than once" in text
        assert "Spills ran for up to 26 % of the time of a map task" in text

    @pytest.mark.parametrize(("ran", "sentences"), [(("j1",), 0), (("j1", "j2"), 1)])
    def test_say_that_the_tasks_of_several_jobs_are_put_together(self, measured, ran, sentences):
        """
        A trial of one job needs no such word.
        """
        trial = measured.trials[0].trial.model_copy(update={"id": measured.vet.jobs[0].trial})
        record = measured.trials[0].model_copy(update={"trial": trial, "job_ids": ran})
        texts = texts_of(dataclasses.replace(measured, trials=[record]))

        assert sum("several jobs" in text for text in texts) == sentences

    def test_hint_where_overhead_speaks_for_fewer_tasks(self, whole):
        """
        Section 5.5 of the paper: vet above the tasks at once on a node.
        """
        cell = next(iter(whole.cells))
        slow = job(cell)
        kind = slow.kinds[0]
        high = dataclasses.replace(kind.job, vet_tasks=(9.0, 9.0))
        kinds = (dataclasses.replace(kind, job=high),)
        crowded = dataclasses.replace(whole, vet=VetBook((dataclasses.replace(slow, kinds=kinds),)))

        assert "suggests fewer at once" in texts_of(crowded)[-1]
        assert whole.label(cell) in texts_of(crowded)[-1]


@pytest.mark.process
class TestFigures:
    def test_a_figure_for_each_job_up_to_a_page(self, whole):
        """
        First repeats first; each with both kinds, its change points, and some of its points.
        """
        cells = list(whole.cells)[:9]
        jobs = tuple(job(cell, n) for n in range(2) for cell in reversed(cells))

        data = dataclasses.replace(whole, vet=VetBook(jobs))
        figures = figures_of(data)
        with drawing():
            svg = render_figure(figures[0])

        (block,) = blocks(data, Figures)
        assert block.lead == "16 of 18 jobs are drawn, the first repeats first."
        assert len(figures) == MOST_FIGURES < len(jobs)
        assert "repeat 0" in figures[8].caption
        assert "repeat 1" in figures[9].caption
        assert svg.count("change point") == 1
        assert ["read-map: vet" in svg, "reduce-write: vet" in svg] == [True] * 2
        assert {row[0].text for row in figures[0].data.rows} == {
            "attempt_1_m_000000_0", "attempt_1_r_000000_0",
        }  # fmt: skip

    @pytest.mark.parametrize("units", [[1e-5 * n for n in range(1, 90)], [0.0] * 60 + [1.0] * 9])
    def test_draws_what_has_no_tail(self, whole, units):
        """
        A straight line needs no logarithm, and units of no time have none.
        """
        task = TaskUnits("attempt_1_m_000000_0", "map", 5, units, 3.0)
        drawn = JobVet("t", "c", 0, assess([task], JobConfig()), (vet_curve(task, JobConfig()),))

        with drawing():
            (figure,) = figures_of(dataclasses.replace(whole, vet=VetBook((drawn,))))
            svg = render_figure(figure)

        assert "the shortest first" in svg


class TestFormats:
    def test_markdown_has_tables_and_sentences(self, measured):
        """
        The section with what there is to know before its table.
        """
        text = REPORTS["markdown"].render(make_document(measured))

        section = text.partition("## Overhead of finished tasks")[2].partition("\n## ")[0]
        assert section.index("Vet is what the records") < section.index("| read-map")
        assert "Kolmogorov-Smirnov" in section.replace("\\", "")

    def test_json_holds_every_task(self, measured):
        """
        All that was measured, and nothing that JSON cannot say.
        """
        document = json.loads(REPORTS["json"].render(make_document(measured)))["vet"]

        kind = measured.vet.jobs[1].kinds[0]
        assert document["jobs"][0]["kinds"][0]["job"]["vet_tasks"] == list(kind.job.vet_tasks)
        assert document["jobs"][0]["kinds"][0]["typical_task"]["vet"] == kind.job.vet_tasks[0]
        assert document["repeats"][0]["ks"]["p_value"] == measured.vet.repeats[0].ks.p_value

    def test_json_of_an_infinite_index_is_null(self, measured):
        """
        Equal units have no tail.
        """
        (first, *_) = measured.vet.jobs
        kind = dataclasses.replace(first.kinds[0], alpha=math.inf)
        own = dataclasses.replace(first, kinds=(kind,))
        data = dataclasses.replace(measured, vet=VetBook((own,)))

        document = json.loads(REPORTS["json"].render(make_document(data)))
        (job_values, *_) = document["vet"]["jobs"]
        assert job_values["kinds"][0]["alpha"] is None
