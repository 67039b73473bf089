"""
Tests for `profile_on: auto`: which cells are profiled, and which are extrapolated then.
"""

import pytest

from hypothesis import given, reject
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.ranges import ranges_of
from harness.core.evaluate.resolved import resolve_cells
from harness.core.experiment.cover import (
    LARGEST_SHARE,
    Situation,
    Times,
    choose_cells,
    covered_by,
)
from harness.core.experiment.grid import expand, is_profiling, order
from harness.core.experiment.model import Experiment, Predict
from harness.core.run.estimate import times_by_rule
from tests.experiment.test_grid import VERSIONS

MIB = 2**20
SLOWSTART = "mapreduce.job.reduce.slowstart.completedmaps"


def grid(inputs=(32, 64, 128, 256, 512, 1024), *, names=("terasort",), workers=(3,), **rest):
    """
    An experiment over these inputs (MiB) of each workload.
    """
    properties = {"mapreduce.job.reduces": ("2",), **rest.pop("configuration", {})}
    return Experiment(
        name="n",
        workloads=[
            {"name": name, "input_bytes": [MIB * size for size in inputs]} for name in names
        ],
        cluster={"workers": workers, "site": {"dfs.blocksize": (str(64 * MIB),)}},
        configuration=properties,
        predict=Predict(models=("whatif",), cells=()),
        **rest,
    )


def chosen(experiment, times=None):
    """
    The experiment with its profiling cells, and all its cells resolved.
    """
    cells = [*resolve_cells(expand(experiment)).values()]
    times = times or times_by_rule(cells, experiment.warmup)
    return experiment.with_cells(choose_cells(experiment, cells, times)), cells


def seconds_of(cells, repeats, times):
    """
    What trials of *cells* take, with all that is set up for them.
    """
    return repeats * sum(times.trial_s[cell.id] for cell in cells) + sum(
        times.of_setups(cells).values()
    )


@st.composite
def experiments(draw):
    """
    Grids over inputs, workloads, workers, and properties that change regimes.
    """
    sizes = st.lists(st.integers(1, 2048), min_size=3, max_size=8, unique=True)
    axes = {
        "mapreduce.job.reduces": draw(st.sampled_from([("2",), ("1", "9"), ("0", "2")])),
        SLOWSTART: draw(st.sampled_from([("1.0",), ("0.05", "1.0")])),
        "mapreduce.task.io.sort.mb": draw(st.sampled_from([("100",), ("16", "100")])),
        "mapreduce.map.output.compress": draw(st.sampled_from([("false",), ("false", "true")])),
    }
    return grid(
        draw(sizes),
        names=draw(st.sampled_from([("terasort",), ("wordcount", "terasort")])),
        workers=draw(st.sampled_from([(3,), (2, 4)])),
        configuration=axes,
        repeat=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 99)),
    )


@given(experiments())
def test_covers_what_it_can_within_a_third_of_the_time(experiment):
    """
    Each workload has a profile and a scored cell within it; a seed changes nothing.
    """
    try:
        settled, cells = chosen(experiment)
    except SpecError:
        reject()
    profiled = [cell for cell in cells if cell.id in settled.predict.cells]
    times = times_by_rule(cells, experiment.warmup)
    spent_s = seconds_of(profiled, experiment.repeat, times)
    again, _ = chosen(experiment.model_copy(update={"seed": experiment.seed + 1}))

    assert again.predict.cells == settled.predict.cells
    assert spent_s <= LARGEST_SHARE * seconds_of(cells, experiment.repeat, times) + 1e-6
    for covered in covered_by(cells, settled.predict.cells):
        assert covered.profiling
        assert len(covered.scored) > len(covered.lacking)


@given(experiments())
def test_covers_all_where_its_time_is_nothing(experiment):
    """
    Where a control takes nearly all of the time, every regime and both ends of every range are
    covered, in each workload that has more cells than those.
    """
    control = grid([1], names=["sleep"], nightly={"controls": ("sleep",)})
    changes = {
        "workloads": (*experiment.workloads, *control.workloads),
        "nightly": control.nightly,
    }
    cells = [*resolve_cells(expand(experiment.model_copy(update=changes))).values()]
    trial_s = {cell.id: 1e9 if cell.spec.name == "sleep" else 1.0 for cell in cells}
    times = Times(trial_s, dict.fromkeys(trial_s, 0.0), 0.0)
    try:
        ids = choose_cells(experiment.model_copy(update=changes), cells, times)
    except SpecError:
        reject()
    for covered in covered_by([cell for cell in cells if cell.spec.name != "sleep"], ids):
        of_workload = [cell for cell in cells if cell.spec.name == covered.workload]
        regimes = frozenset().union(*(Situation.of(cell).regimes for cell in of_workload))
        ranges = ranges_of(Situation.of(cell).numbers for cell in of_workload)
        to_cover = len(regimes) + 2 * len(ranges)

        assert covered.lacking == {} or len(of_workload) <= to_cover


class TestChoice:
    def test_ends_of_ranges_and_regimes_come_first(self):
        """
        The smallest input, and the largest where reduces run beside maps.
        """
        settled, cells = chosen(grid(configuration={SLOWSTART: ("0.05", "1.0")}))
        profiled = [cell for cell in cells if cell.id in settled.predict.cells]
        (covered,) = covered_by(cells, settled.predict.cells)

        assert {cell.spec.input_bytes for cell in profiled} >= {32 * MIB, 1024 * MIB}
        assert {"reduces beside maps", "reduces behind maps"} <= {*covered.regimes}
        assert covered.lacking == {}

    def test_the_dearest_cells_are_left_to_be_extrapolated(self):
        """
        Where one input takes more than a third of the time, the rest is covered.
        """
        settled, cells = chosen(grid([1, 32, 64, 128, 4096], repeat=1))
        (covered,) = covered_by(cells, settled.predict.cells)
        sizes = {cell.id: cell.spec.input_bytes for cell in cells}

        assert [sizes[cell_id] for cell_id in covered.lacking] == [4096 * MIB]

    def test_a_grid_that_is_too_small_is_refused(self):
        """
        With the workload that has too few cells.
        """
        with pytest.raises(
            SpecError, match="no profiling cells among 2 cells of terasort"
        ) as caught:
            chosen(grid([32, 64]))

        assert caught.value.where == "predict.profile_on"
        assert "give an axis more values" in caught.value.fix

    def test_controls_have_no_profile(self):
        """
        No model is asked about them.
        """
        experiment = grid(names=("terasort", "sleep"), nightly={"controls": ("sleep",)})
        settled, cells = chosen(experiment)
        names = {cell.spec.name for cell in cells if cell.id in settled.predict.cells}

        assert names == {"terasort"}

    def test_an_interval_keeps_six_cells(self):
        """
        Beyond what covers the grid none is taken that a mean's interval needs.
        """
        settled, _ = chosen(grid([16, 48, 64, 80, 96, 112, 128, 144]))

        assert len(settled.predict.cells) == 2

    def test_further_cells_narrow_what_a_cell_costs(self):
        """
        Nine at most, the number from which predictions have intervals of 90 %.
        """
        inputs = [16 * number for number in range(1, 61)]
        settled, _ = chosen(grid(inputs))

        assert len(settled.predict.cells) == 9

    def test_a_cluster_is_not_started_for_nothing(self):
        """
        Each start takes time: ends of all axes are looked for on few clusters.
        """
        settled, cells = chosen(grid(workers=(2, 3, 4), repeat=1))
        (covered,) = covered_by(cells, settled.predict.cells)
        workers = {cell.cell.cluster.workers for cell in cells if cell.id in covered.profiling}

        assert workers == {2, 4}

    def test_chosen_cells_come_first_and_are_repeated_by_sentinels(self):
        """
        As those that are named by their axes.
        """
        settled, cells = chosen(grid(sentinels=4))
        trials = order(settled, [cell.cell for cell in cells], VERSIONS)
        profiling = [trial.profiling for trial in trials]
        sentinels = {trial.cell.id for trial in trials if trial.sentinel}

        assert profiling == sorted(profiling, reverse=True)
        assert sentinels <= {*settled.predict.cells}
        assert sentinels
        assert all(
            is_profiling(trial.cell, settled.predict) == (trial.use != "score") for trial in trials
        )
