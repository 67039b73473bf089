"""
Tests for `harness.scoring.tallies`: what is scored is counted, and nothing leaves by its time.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.base.records.prediction import Prediction
from harness.base.records.score import Measurement, Tally
from harness.scoring import score
from harness.scoring.tallies import (
    CONTROL,
    NO_ANSWER,
    NO_BODY,
    NO_MODEL,
    NOT_MEASURED,
    NOT_POSITIVE,
    NOT_SHOWN,
    PlannedTrial,
    refuted_quantities,
)

FRAME_S = 10.0
SHARES = st.floats(min_value=0.01, max_value=1.0)


def measurement(cell, job_s, *, trial="0", workload="wordcount", **times):
    """
    A trial of a job of *job_s* seconds.
    """
    raw_s = {"job_s": job_s, **times}
    return Measurement(
        cell=cell, workload=workload, trial=f"{cell}-{trial}", raw_s=raw_s, reference_s=raw_s
    )


def framed(cell, job_s, **changes):
    """
    A trial of a job with a frame of ten seconds.
    """
    return measurement(cell, job_s, frame_s=FRAME_S, body_s=job_s - FRAME_S, **changes)


def prediction(model, cell, job_s, **changes):
    """
    A prediction of a job, with the same frame.
    """
    return Prediction(model=model, cell=cell, job_s=job_s, body_s=job_s - FRAME_S, **changes)


def summary(score_book, model, quantity="job_s"):
    """
    The summary of a model over all cells; `None` where it has no score.
    """
    rows = [
        row
        for row in score_book.summaries
        if (row.model, row.workload, row.quantity, row.speed) == (model, "*", quantity, "raw")
    ]
    return rows[0] if rows else None


class TestRefuted:
    """What has no relative error is scored in no cell of its workload."""

    def test_a_job_shorter_than_its_frame_refutes_all_bodies(self):
        """
        No body of the run is scored, of no workload; the job times of all cells are.
        """
        trials = [framed("a", 40.0), framed("b", 8.0), framed("c", 50.0, workload="terasort")]
        answers = [prediction("whatif", cell, 45.0) for cell in "abc"]

        book = score(answers, trials)

        assert {row.quantity for row in book.scores} == {"job_s"}
        assert summary(book, "whatif").cells == 3
        assert book.ranking("raw").quantity == "job_s"
        assert book.ranking("raw").cells == 3
        assert refuted_quantities(trials) == {
            ("wordcount", "body_s"): NO_BODY,
            ("wordcount", "frame_s"): NO_BODY,
            ("terasort", "body_s"): NO_BODY,
            ("terasort", "frame_s"): NO_BODY,
        }

    def test_a_phase_of_less_than_nothing_leaves_with_its_workload(self):
        """
        In all of its cells, those that show it included; other workloads keep theirs.
        """
        trials = [
            measurement("a", 40.0, map_main_s=4.0),
            measurement("b", 40.0, map_main_s=-0.5),
            measurement("c", 40.0, map_main_s=4.0, workload="terasort"),
        ]
        answers = [
            prediction("whatif", cell, 45.0, measurable={"map_main_s": 5.0}) for cell in "abc"
        ]

        book = score(answers, trials)

        assert [row.cell for row in book.scores if row.quantity == "map_main_s"] == ["c", "c"]
        tally = book.tally("cell", "map_main_s")
        assert (tally.planned, tally.scored, tally.left_out) == (3, 1, {NOT_POSITIVE: 2})

    @pytest.mark.parametrize(("repeats", "is_refuted"), [((0.0, 0.0), True), ((0.0, 1.0), False)])
    def test_nothing_in_all_repeats_is_no_time(self, repeats, is_refuted):
        """
        A repeat of 0 s beside others counts in their mean.
        """
        trials = [
            measurement("a", 40.0, trial=str(number), sort_s=seconds)
            for number, seconds in enumerate(repeats)
        ]

        assert (("wordcount", "sort_s") in refuted_quantities(trials)) is is_refuted

    def test_one_cell_without_a_time_is_enough(self):
        """
        However long another cell of the workload takes.
        """
        trials = [measurement("a", 40.0, sort_s=0.0), measurement("b", 40.0, sort_s=9.0)]

        assert refuted_quantities(trials) == {("wordcount", "sort_s"): NOT_POSITIVE}


class TestTally:
    """Planned, done, usable, scored, left out because: it adds up."""

    def test_each_reason_is_counted(self):
        """
        Of seven trials one is scored, and six are not for six reasons.
        """
        planned = [
            PlannedTrial("a-0", "a", "wordcount", "done"),
            PlannedTrial("b-0", "b", "wordcount", "failed"),
            PlannedTrial("c-0", "c", "wordcount", "timed_out"),
            PlannedTrial("d-0", "d", "wordcount", ""),
            PlannedTrial("e-0", "e", "wordcount", "done"),
            PlannedTrial("f-0", "f", "wordcount", "done"),
            PlannedTrial("g-0", "g", "wordcount", "done", is_asked=False),
        ]
        trials = [measurement("a", 40.0), measurement("e", 40.0), measurement("g", 40.0)]
        lacking = Prediction(model="whatif", cell="e", not_applicable=("copy_s_per_byte",))

        book = score([prediction("whatif", "a", 45.0), lacking], trials, planned=planned)

        tally = book.tally("trial")
        assert (tally.planned, tally.done, tally.usable, tally.scored) == (7, 4, 3, 1)
        assert tally.left_out == {
            "failed": 1,
            "ran out of time": 1,
            "not run yet": 1,
            NO_MODEL: 1,
            NOT_MEASURED: 1,
            CONTROL: 1,
        }
        assert book.tally("cell", model="whatif").left_out[NO_ANSWER] == 1

    def test_a_cell_comes_as_far_as_its_best_trial(self):
        """
        One repeat failed, the other is scored: the cell is.
        """
        planned = [
            PlannedTrial("a-0", "a", "wordcount", "failed"),
            PlannedTrial("a-1", "a", "wordcount", "done"),
        ]

        book = score(
            [prediction("whatif", "a", 45.0)],
            [measurement("a", 40.0, trial="1")],
            planned=planned,
        )

        assert book.tally("cell").scored == 1
        assert book.tally("trial").left_out == {"failed": 1}

    def test_what_a_history_does_not_show_is_counted(self):
        """
        A task's time that only one of two cells shows.
        """
        trials = [measurement("a", 40.0, map_task_s=4.0), measurement("b", 40.0)]
        answers = [prediction("whatif", cell, 45.0, map_task_s=5.0) for cell in "ab"]

        tally = score(answers, trials).tally("cell", "map_task_s", "whatif")

        assert (tally.scored, tally.left_out) == (1, {NOT_SHOWN: 1})

    @pytest.mark.parametrize(
        "changes", [{"scored": 2}, {"left_out": {}}, {"done": 5}, {"usable": 0}]
    )
    def test_a_count_that_does_not_add_up_is_no_record(self, changes):
        """
        No report can be made of one.
        """
        counts = {"planned": 3, "done": 2, "usable": 1, "scored": 1, "left_out": {"failed": 2}}

        with pytest.raises(ValidationError):
            Tally(unit="cell", quantity="job_s", **(counts | changes))

    @given(st.data())
    def test_it_adds_up_whatever_is_missing(self, data):
        """
        Any states, any quantities, any answers: of every tally, and none is left out unnamed.
        """
        cells = "abcdef"
        states = data.draw(
            st.lists(st.sampled_from(["", "failed", "done"]), min_size=6, max_size=6)
        )
        planned = [
            PlannedTrial(f"{cell}-0", cell, "wordcount", state)
            for cell, state in zip(cells, states, strict=True)
        ]
        trials = [
            framed(trial.cell, data.draw(st.floats(1.0, 100.0)))
            for trial in planned
            if trial.state == "done" and data.draw(st.booleans())
        ]
        answers = [
            prediction(model, cell, data.draw(st.floats(11.0, 90.0)))
            for model in ("whatif", "scaling")
            for cell in data.draw(st.sets(st.sampled_from(cells)))
        ]

        book = score(answers, trials, planned=planned)

        assert {tally.planned for tally in book.tallies} == {6}
        for tally in book.tallies:
            assert tally.scored + sum(tally.left_out.values()) == 6
            assert "" not in tally.left_out
        scored_cells = {row.cell for row in book.scores if row.quantity == "job_s"}
        assert book.tally("cell").scored == len(scored_cells)


class TestMetamorphic:
    """No stated error of a model that was too long falls because jobs became shorter."""

    @given(
        measured_s=st.lists(st.floats(12.0, 400.0), min_size=1, max_size=8),
        shorter=st.data(),
        factor=st.floats(1.0, 3.0),
    )
    def test_shorter_jobs_make_no_model_better_that_was_too_long(self, measured_s, shorter, factor):
        """
        The same frame, jobs that are shorter by any share, down to less than the frame itself.

        Stated are means over cells by job time, and by body where bodies are scored.
        """
        cells = [f"c{place}" for place in range(len(measured_s))]
        shares = [shorter.draw(st.one_of(st.just(1.0), SHARES)) for _ in cells]
        answers = [
            prediction("whatif", cell, factor * job_s)
            for cell, job_s in zip(cells, measured_s, strict=True)
        ]
        before = [framed(cell, job_s) for cell, job_s in zip(cells, measured_s, strict=True)]
        after = [
            framed(cell, share * job_s)
            for cell, job_s, share in zip(cells, measured_s, shares, strict=True)
        ]

        first = score(answers, before)
        second = score(answers, after)

        stated = summary(second, "whatif")
        assert stated.cells == len(cells)
        assert error(stated) >= error(summary(first, "whatif")) * (1 - 1e-9)
        if (bodies := summary(second, "whatif", "body_s")) is not None:
            assert bodies.cells == len(cells)
            assert error(bodies) >= error(summary(first, "whatif", "body_s")) * (1 - 1e-9)

    @given(
        measured_s=st.lists(st.floats(12.0, 400.0), min_size=1, max_size=6),
        factor=st.sampled_from([3.0, 1 / 3]),
    )
    def test_another_clock_rate_changes_no_error(self, measured_s, factor):
        """
        All times of jobs and models by the same factor: relative errors stay as they were.
        """
        cells = [f"c{place}" for place in range(len(measured_s))]

        def errors(scale):
            trials = [
                measurement(cell, scale * job_s)
                for cell, job_s in zip(cells, measured_s, strict=True)
            ]
            answers = [Prediction(model="whatif", cell=cell, job_s=scale * 50.0) for cell in cells]
            return error(summary(score(answers, trials), "whatif"))

        assert math.isclose(errors(1.0), errors(factor), rel_tol=1e-9)

    @given(st.lists(st.floats(12.0, 400.0), min_size=1, max_size=6))
    def test_a_job_that_is_there_twice_changes_no_error(self, measured_s):
        """
        A repeat that took as long: of each cell the mean is the same.
        """
        cells = [f"c{place}" for place in range(len(measured_s))]
        answers = [prediction("whatif", cell, 60.0) for cell in cells]
        once = [framed(cell, job_s) for cell, job_s in zip(cells, measured_s, strict=True)]
        twice = [
            *once,
            *(
                framed(cell, job_s, trial="1")
                for cell, job_s in zip(cells, measured_s, strict=True)
            ),
        ]

        first = score(answers, once)
        second = score(answers, twice)

        assert math.isclose(
            error(summary(first, "whatif")), error(summary(second, "whatif")), rel_tol=1e-9
        )
        assert second.tally("trial").scored == 2 * first.tally("trial").scored


def error(of_model):
    """
    The mean relative error of a summary.
    """
    return of_model.value("mape")
