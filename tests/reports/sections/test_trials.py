"""
The section of jobs, and trials of several jobs in all others.
"""

import dataclasses
import json

import pytest

from harness.base.documents.drawing import drawing, render_figure
from harness.base.records.trace import joined
from harness.core.reports import REPORTS
from harness.core.reports.sections import make_document
from harness.core.reports.sections.timeline import schedule_figure, timeline
from harness.core.reports.sections.trials import jobs_table, trial_table
from tests.reports.conftest import job_trace


def after(job, number, seconds):
    """
    The same job under another number, so many seconds later.
    """
    times = ("start_s", "finish_s", "map_finish_s", "shuffle_finish_s", "sort_finish_s")

    def moved(record, names):
        known = {n: getattr(record, n) for n in names}
        return {n: None if at is None else at + seconds for n, at in known.items()}

    attempts = tuple(
        dataclasses.replace(
            a, attempt_id=a.attempt_id.replace("_0007_", f"_{number:04}_"), **moved(a, times)
        )
        for a in job.attempts
    )
    return dataclasses.replace(
        job, job_id=f"job_1767225600000_{number:04}", attempts=attempts,
        **moved(job, ("submit_s", "launch_s", "finish_s")),
    )  # fmt: skip


@pytest.fixture(scope="module")
def iterative(whole):
    """
    The run, as if the trials of its first workload had had three jobs.
    """
    first = whole.timelines[0]
    name = first[0].trial.cell.workload.name
    jobs = [after(job_trace(maps=3, reduces=1), 7 + n, 40.0 * n) for n in range(3)]
    measurements = [
        m.model_copy(update={"jobs_s": (20.0, 10.0, 12.0 + m.raw_s["job_s"] / 100)})
        if m.workload == name
        else m
        for m in whole.measurements
    ]
    changes = {"jobs": 3.0, "each_job_s": 11.0}
    return dataclasses.replace(
        whole,
        timelines=[(first[0], joined(jobs)), *whole.timelines[1:]],
        jobs={first[0].trial.id: jobs},
        measurements=measurements,
        predictions=[p.model_copy(update=changes) for p in whole.predictions],
    )


class TestTable:
    def test_has_a_row_for_each_job_of_a_cell(self, iterative):
        """
        Measured mean, its noise, and what each model says of one job.
        """
        name = iterative.timelines[0][0].trial.cell.workload.name
        cells = {m.cell for m in iterative.measurements if m.workload == name}
        shown = jobs_table(iterative, name)

        rows = [[v.text for v in row] for row in shown.rows]
        assert len(rows) == 3 * len(cells)
        assert [row[1] for row in rows[:3]] == ["1", "2", "3"]
        assert (float(rows[0][3]), rows[0][4]) == (20.0, "0.0 %")
        assert float(rows[0][5]) == 11.0

    def test_says_how_many_jobs_a_trial_has(self, iterative):
        """
        One number, or from the smallest to the largest.
        """
        name = iterative.timelines[0][0].trial.cell.workload.name
        first, *others = iterative.predictions
        fewer = [first.model_copy(update={"jobs": 2.5}), *others]
        none = [p.model_copy(update={"each_job_s": None}) for p in iterative.predictions]

        notes = [
            jobs_table(dataclasses.replace(iterative, predictions=each), name).note
            for each in (iterative.predictions, fewer, none)
        ]
        assert notes[0].endswith("a trial has 3 of them.")
        assert notes[1].endswith("a trial has 2.5 to 3 of them.")
        assert notes[2].endswith("predict the same for each.")

    def test_is_absent_where_trials_are_single_jobs(self, iterative):
        """
        Nothing is said of jobs where the trial is the job.
        """
        other = iterative.timelines[1][0].trial.cell.workload.name

        assert jobs_table(iterative, other).rows == ()

    def test_counts_the_trials_that_had_so_many(self, iterative):
        """
        A trial that ended earlier has no part in the later jobs.
        """
        name = iterative.timelines[0][0].trial.cell.workload.name
        first = next(m for m in iterative.measurements if m.workload == name)
        trials = [m for m in iterative.measurements if m.cell == first.cell]
        trials[0] = first.model_copy(update={"jobs_s": first.jobs_s[:1]})
        shown = jobs_table(dataclasses.replace(iterative, measurements=trials), name)

        counted = [int(row[2].text) for row in shown.rows]
        assert counted == [len(trials), len(trials) - 1, len(trials) - 1]


class TestFigures:
    @pytest.mark.process
    def test_a_timeline_has_all_jobs(self, iterative):
        """
        One after the other, each with its number; the end is that of the last.
        """
        figure = timeline(iterative, 0, *iterative.timelines[0])
        with drawing():
            svg = render_figure(figure)

        assert [f"job {n}" in svg for n in (1, 2, 3, 4)] == [True, True, True, False]
        assert "3 jobs, one after the other, 9 maps, 3 reduces" in figure.caption
        in_jobs = sum(j.job_s for j in next(iter(iterative.jobs.values())))
        assert f"from submission to end, {in_jobs:.1f} s of them in jobs." in figure.caption
        assert "seconds since the first job was submitted" in svg

    def test_schedules_compare_the_typical_job(self, iterative):
        """
        A model's tasks are those of one job: the measured ones are, too.
        """
        record, _ = iterative.timelines[0]
        figure = schedule_figure(iterative, 0, record, iterative.jobs[record.trial.id])

        assert " of 3: every task" in figure.caption


@pytest.mark.parametrize(("ran", "there"), [(("j1", "j2"), True), (("j1",), False)])
def test_every_trial_says_how_many_jobs_it_had(whole, ran, there):
    """
    In a column of its own, where any trial had several.
    """
    first, *others = whole.trials
    trials = [first.model_copy(update={"job_ids": ran}), *others]
    shown = trial_table(dataclasses.replace(whole, trials=trials))

    assert ("Jobs" in shown.columns) == there
    if there:
        place = shown.columns.index("Jobs")
        assert "2" in {row[place].text for row in shown.rows}


def test_every_format_has_the_jobs(iterative):
    """
    The table is in the reports for people, the numbers in the document for scripts.
    """
    markdown = REPORTS["markdown"].render(make_document(iterative))
    values = json.loads(REPORTS["json"].render(make_document(iterative)))

    assert "each job of a trial" in markdown
    assert "takes the sum of their times" in markdown
    assert any(len(m["jobs_s"]) == 3 for m in values["measurements"])
    assert {p["jobs"] for p in values["predictions"]} == {3.0}
