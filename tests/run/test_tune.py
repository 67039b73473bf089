"""
The closed loop of tuning, with steps that are not measured but made.
"""

import pytest

from harness.core.evaluate.basis import basis_of_run
from harness.core.evaluate.predict import predict_cells
from harness.core.evaluate.resolved import resolve_cell
from harness.tuning.closed_loop import Tuning
from harness.tuning.learned import point_of
from harness.tuning.proposals import proposals
from tests.evaluate.test_flow import evaluation, stored  # noqa: F401 - a fixture
from tests.run.fakes import RecordingConsole

BASE_S, OTHER_S = (10.0, 10.4, 9.6), (8.0, 8.4, 7.6)


class MadeUp(Tuning):
    """
    A loop in which each proposal takes less time than the base.
    """

    def measure(self, number, cells):
        """
        Times of a step without running it.
        """
        for key in cells:
            times_s = BASE_S if key == self.basis.base.id else OTHER_S
            for repetition in range(self.repeats):
                self.times_s[key][number, repetition] = times_s[repetition]
        self.cells |= cells
        self.measured = [*getattr(self, "measured", ()), cells]
        return f"run {number}"


@pytest.fixture
def loop(stored, tmp_path):  # noqa: F811
    """
    Three repeats of each cell, judged by What-If.
    """
    run = evaluation(stored)
    return MadeUp(run, basis_of_run(run, ""), "whatif-mr2", 3, tmp_path, RecordingConsole())


def test_a_loop_says_by_how_much_the_best_is_faster(loop):
    """
    By pairs of the same step and repetition; it ends where the gain is below the noise.
    """
    steps = list(loop.steps(5))
    ratio, low, high = loop.speed_up()

    assert [step.run for step in steps] == [f"run {number}" for number in range(len(steps))]
    assert (steps[0].own_s, steps[0].best_s) == pytest.approx((10.0, 8.0))
    assert loop.best() != loop.basis.base.id
    assert low < ratio < high
    assert ratio == pytest.approx((10 * 10.4 * 9.6 / (8 * 8.4 * 7.6)) ** (1 / 3))
    assert len(steps) == 5 or "expected to save" in str(vars(loop.console))


def test_the_first_step_measures_hadoops_defaults_too(loop):
    """
    Beside the job's own settings and the proposal.
    """
    next(loop.steps(1))
    (first,) = loop.measured
    sort_mbs = {cell.configuration["mapreduce.task.io.sort.mb"] for cell in first.values()}

    assert len(first) == 3
    assert "100" in sort_mbs
    assert loop.basis.base.id in first
    (default,) = loop.defaults
    assert first[default].configuration["mapreduce.task.io.sort.mb"] == "100"
    if default != loop.best():
        assert loop.speed_up(default)[0] == pytest.approx(1.0)


def test_what_a_model_misses_corrects_it_nearby(loop):
    """
    The judge is told of times that are twice what it predicts, and prices the same cells so.
    """
    base = loop.basis.base
    profiles = {"terasort": loop.basis.profile}
    (answer,) = predict_cells(loop.judge, [loop.basis.resolved], profiles, {})
    loop.cells[base.id] = base
    for repetition in range(3):
        loop.times_s[base.id][0, repetition] = 2 * answer.job_s
    learned = loop.learn()
    plain, _ = proposals(loop.basis, ["search"], [loop.judge], loop.judge)
    corrected, _ = proposals(loop.basis, ["search"], [loop.judge], loop.judge, learned)

    config, _, job_input = resolve_cell(base).model_inputs
    factor = learned[loop.judge].factor(point_of(config, job_input.num_splits))
    assert factor == pytest.approx([2.0], rel=0.05)
    assert corrected[0].choice.job_s > plain[0].choice.job_s


def test_a_proposal_with_which_the_job_fails_ends_nothing(loop, monkeypatch):
    """
    The next step proposes something else, and what is near it is expected to take longer.
    """
    made_up, tried = loop.measure, []

    def measure(number, cells):
        tried.append([*cells][-1])
        if number:
            return made_up(number, cells)
        made_up(number, {key: cell for key, cell in cells.items() if key != tried[0]})
        loop.failed[tried[0]] = cells[tried[0]]
        return "run 0"

    monkeypatch.setattr(loop, "measure", measure)
    (step,) = loop.steps(2)

    assert step.run == "run 1"
    assert tried[0] != tried[1]
    assert tried[0] not in loop.cells
    assert len(loop.learn()[loop.judge].ratios) == len(loop.cells) + 1


def test_pairs_of_which_one_has_failed_give_no_interval(loop):
    """
    The means alone: no repetition has both.
    """
    next(loop.steps(1))
    own, best = loop.basis.base.id, loop.best()
    loop.times_s[own] = {(0, 0): 12.0}
    loop.times_s[best] = {(0, 1): 8.0}

    assert loop.speed_up() == (pytest.approx(1.5), None, None)


def test_nothing_is_measured_where_nothing_is_expected_to_be_faster(loop, monkeypatch):
    """
    It says so.
    """
    made, _ = proposals(loop.basis, ["search"], [loop.judge], loop.judge)
    slower = [each._replace(saved=-0.02) for each in made]
    monkeypatch.setattr("harness.tuning.closed_loop.proposals", lambda *_, **__: (slower, []))

    assert list(loop.steps(3)) == []
    assert "faster than the job's own settings" in str(vars(loop.console))


def test_hadoops_defaults_are_measured_even_so(loop, monkeypatch):
    """
    A judge may be wrong, and no loop ends below them.
    """
    made, _ = proposals(loop.basis, ["search", "hadoop"], [loop.judge], loop.judge)
    slower = [each._replace(saved=-0.02) for each in made]
    monkeypatch.setattr("harness.tuning.closed_loop.proposals", lambda *_, **__: (slower, []))

    (step,) = loop.steps(1)

    assert step.optimizer == "hadoop"
    assert loop.best() in loop.defaults
    assert loop.speed_up()[0] > 1


def test_each_step_measures_hadoops_defaults(loop):
    """
    Beside the job's own settings, the best one so far and what is proposed.
    """
    loop.repeats = 1
    steps = [*loop.steps(3)]

    assert steps
    for cells in loop.measured:
        assert loop.defaults <= cells.keys()
        assert loop.basis.base.id in cells


def test_one_pair_has_no_interval(loop):
    """
    The ratio alone.
    """
    loop.repeats = 1
    next(loop.steps(1))

    assert loop.speed_up() == (pytest.approx(1.25), None, None)
    assert loop.noise(loop.best()) == 0.0


def test_a_step_on_a_faster_cluster_makes_no_settings_better(loop):
    """
    The best one is faster than the job's own beside these, or the job's own are the best.
    """
    base = loop.basis.base
    loop.times_s[base.id] = {(0, 0): 10.0, (1, 0): 8.0}
    loop.times_s["other"] = {(1, 0): 8.5}

    assert loop.mean_s("other") < loop.mean_s(base.id)
    assert loop.best() == base.id
    assert loop.speed_up() == (1.0, 1.0, 1.0)
