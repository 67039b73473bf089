"""
Tests for `harness.core.experiment.grid`.
"""

import math

from collections import Counter
from itertools import groupby

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.base.records.trial import NodeSpec, Versions
from harness.core.experiment.grid import expand, is_profiling, label, meaning, order, varying
from harness.core.experiment.model import (
    ClusterAxes,
    Design,
    Experiment,
    Node,
    Predict,
    WorkloadAxes,
)

MIB = 2**20
REDUCES = "mapreduce.job.reduces"
VERSIONS = Versions(hadoop="3.5.0", java="17.0.1")

lengths = st.integers(1, 3)


def experiment(workers=1, slots=1, blocks=1, inputs=2, reduces=2, **rest):
    """
    An experiment whose axes have the given lengths; terasort has one input more than wordcount.
    """
    sizes = tuple(MIB * (i + 1) for i in range(inputs + 1))
    return Experiment(
        **{
            "name": "e",
            "question": "q",
            "cluster": ClusterAxes(
                workers=tuple(range(1, workers + 1)),
                node=Node(map_slots=tuple(range(1, slots + 1))),
                site={"dfs.blocksize": tuple(str(MIB * (i + 1)) for i in range(blocks))},
            ),
            "workloads": (
                WorkloadAxes(name="wordcount", input_bytes=sizes[:-1]),
                WorkloadAxes(name="terasort", input_bytes=sizes),
            ),
            "configuration": {REDUCES: tuple(str(i + 1) for i in range(reduces))},
            "repeat": 2,
            **rest,
        }
    )


class TestExpand:
    @given(lengths, lengths, lengths, lengths, lengths)
    def test_full_design_has_every_combination_once(self, workers, slots, blocks, inputs, reduces):
        """
        Cells are the product of all axes, added over the workloads.
        """
        cells = expand(experiment(workers, slots, blocks, inputs, reduces))

        assert len(cells) == workers * slots * blocks * reduces * (2 * inputs + 1)
        assert len({c.id for c in cells}) == len(cells)

    @pytest.mark.parametrize("kind", ["sobol", "latin"])
    def test_space_filling_design_takes_points_of_the_grid(self, kind):
        """
        At most the number asked for, all of them cells of the full design, spread over each axis.
        """
        full = experiment(workers=3, inputs=3, reduces=3)
        part = full.model_copy(update={"design": Design(kind=kind, points=20)})

        cells = expand(part)

        assert {c.id for c in cells} < {c.id for c in expand(full)}
        assert 15 <= len(cells) <= 20
        assert set(varying(cells)) == set(varying(expand(full)))
        assert {c.workload.name for c in cells} == {"wordcount", "terasort"}

    @pytest.mark.parametrize("kind", ["sobol", "latin"])
    def test_space_filling_design_follows_the_seed(self, kind):
        """
        The same seed gives the same cells, another seed others.
        """

        def cells(seed):
            design = Design(kind=kind, points=9)
            return expand(experiment(workers=3, inputs=3, reduces=3, design=design, seed=seed))

        assert cells(1) == cells(1) != cells(2)

    def test_grid_without_bounds_is_refused(self):
        """
        More cells than anybody can measure are refused before they are made.
        """
        wide = {f"p{i}": tuple(map(str, range(10))) for i in range(60)}

        with pytest.raises(SpecError, match="more than 10000 cells"):
            expand(experiment(configuration=wide))

    def test_many_axes_with_few_points_are_refused_too(self):
        """
        The size of what is made is bounded, not only its number.
        """
        wide = {f"p{i}": ("0", "1") for i in range(2000)}

        with pytest.raises(SpecError, match="values in its cells"):
            expand(experiment(configuration=wide, design=Design(kind="latin", points=9000)))


class TestOrder:
    def trials(self, **options):
        e = experiment(workers=2, inputs=2, reduces=2, repeat=3, **options)
        return order(e, expand(e), VERSIONS)

    def test_is_grouped_by_cluster(self):
        """
        Each cluster is started once.
        """
        clusters = [key for key, _ in groupby(self.trials(), lambda t: t.cell.cluster.id)]

        assert len(clusters) == 2

    def test_runs_clusters_in_turn_over_several_starts(self):
        """
        Each start has its share of the repeats, and every trial is there once.
        """
        trials = self.trials(starts=2)
        groups = [
            (key, {t.repetition for t in group})
            for key, group in groupby(trials, lambda t: t.cell.cluster.id)
        ]
        (first, second) = dict.fromkeys(cluster for cluster, _ in groups)

        assert groups == [(first, {0, 1}), (second, {0, 1}), (first, {2}), (second, {2})]
        assert {t.id for t in trials} == {t.id for t in self.trials()}

    @pytest.mark.parametrize("mode", ["blind", "mixed"])
    def test_profiling_cells_may_have_more_repeats(self, mode):
        """
        Five beside two, a share of both in each start.
        """
        predict = {"models": ("whatif",), "profile_on": {"input": (str(MIB),)}, "order": mode}
        predict = Predict(**predict, profile_repeat=5)
        e = experiment(workers=2, inputs=2, reduces=2, repeat=2, starts=2, predict=predict)
        trials = order(e, expand(e), VERSIONS)
        numbers = Counter((t.profiling, t.repetition) for t in trials)
        first_starts = {}
        for t in trials:
            first_starts.setdefault((t.cell.cluster.id, t.profiling), t.repetition)

        assert numbers == {(True, n): 8 for n in range(5)} | {(False, n): 12 for n in range(2)}
        assert len({t.id for t in trials}) == len(trials)
        assert set(first_starts.values()) == {0}
        in_order = [(t.profiling, t.repetition) for t in trials]
        last_of_first = max(n for n, of in enumerate(in_order) if of == (False, 0))
        first_of_second = min(n for n, of in enumerate(in_order) if of == (False, 1))
        assert last_of_first < first_of_second

    @pytest.mark.parametrize(
        ("workers", "starts", "says"),
        [
            (2, 4, "4 starts need as many repeats: each cell has 3 to begin with"),
            (1, 2, "starts spreads several clusters over the hours, and all cells run on one"),
        ],
    )
    def test_starts_that_spread_nothing_are_refused(self, workers, starts, says):
        """
        At their key.
        """
        with pytest.raises(SpecError) as caught:
            expand(experiment(workers=workers, repeat=3, starts=starts))

        assert (caught.value.what, caught.value.where) == (says, "starts")

    def test_interleaves_repeats(self):
        """
        On each cluster every cell is measured once before any is measured again.
        """
        for _, group in groupby(self.trials(), lambda t: t.cell.cluster.id):
            assert [t.repetition for t in group] == [0] * 10 + [1] * 10 + [2] * 10

    def test_is_shuffled_anew_in_each_round(self):
        """
        Rounds hold the same cells in different orders, so that drift hits all of them alike.
        """
        rounds = {
            key: [t.cell.id for t in group]
            for key, group in groupby(self.trials(), lambda t: (t.cell.cluster.id, t.repetition))
        }

        assert len({tuple(ids) for ids in rounds.values()}) == len(rounds)
        assert len({tuple(sorted(ids)) for ids in rounds.values()}) == 2

    def test_is_blind_where_something_is_predicted(self):
        """
        Profiling cells come first, on every cluster; that of the last goes on with its others, and
        each of the two parts is grouped and interleaved as ever.
        """
        trials = self.trials(predict=Predict(models=("whatif",), profile_on={"input": ("1 MiB",)}))
        groups = [
            (key, [t.repetition for t in group])
            for key, group in groupby(trials, lambda t: (t.profiling, t.cell.cluster.id))
        ]
        (first, second) = dict.fromkeys(cluster for (_, cluster), _ in groups)

        assert [key for key, _ in groups] == [
            (True, first), (True, second), (False, second), (False, first)
        ]  # fmt: skip
        assert all(repeats == sorted(repeats) for _, repeats in groups)

    def test_is_mixed_where_that_was_chosen(self):
        """
        The order of a file from before there was a choice; the trials are the same.
        """
        chosen = {"models": ("whatif",), "profile_on": {"input": ("1 MiB",)}}
        mixed = self.trials(predict=Predict(**chosen, order="mixed"))

        assert [t.id for t in mixed] == [t.id for t in self.trials()]
        assert {t.id for t in mixed} == {t.id for t in self.trials(predict=Predict(**chosen))}

    def test_has_no_cell_that_would_feed_a_profile_where_another_run_does(self):
        """
        The same scored cells as with profiles of its own.
        """
        chosen = {"models": ("whatif",), "profile_on": {"input": ("1 MiB",)}}
        own = self.trials(predict=Predict(**chosen))
        borrowed = self.trials(predict=Predict(**chosen, source="20261121"))

        assert {t.id for t in borrowed} == {t.id for t in own if not t.profiling}
        assert not any(t.profiling for t in borrowed)

    def test_follows_the_seed(self):
        """
        The order can be repeated, and chosen.
        """
        assert self.trials(seed=1) == self.trials(seed=1)
        assert self.trials(seed=1) != self.trials(seed=2)
        assert {t.id for t in self.trials(seed=1)} == {t.id for t in self.trials(seed=2)}

    def test_does_not_depend_on_the_order_of_cells(self):
        """
        An edit that only moves lines changes nothing.
        """
        e = experiment()
        cells = expand(e)

        assert order(e, cells, VERSIONS) == order(e, cells[::-1], VERSIONS)

    def test_marks_the_trials_that_feed_profiles(self):
        """
        Trials of profiling cells are marked, all others are not.
        """
        trials = self.trials(predict=Predict(models=("whatif",), profile_on={"input": ("1 MiB",)}))

        assert {t.cell.workload.input_bytes for t in trials if t.profiling} == {MIB}
        assert {t.cell.workload.input_bytes for t in trials if not t.profiling} == {
            2 * MIB, 3 * MIB
        }  # fmt: skip


class TestIsProfiling:
    @pytest.mark.parametrize(
        ("profile_on", "selected"),
        [
            ({}, 0),
            ({"input": ("1 MiB",)}, 8),
            ({"input": ("1048576", "2 MiB")}, 16),
            ({REDUCES: ("1.0",)}, 10),
            ({"workers": ("2",)}, 10),
            ({"workload": ("terasort",), REDUCES: ("2",)}, 6),
            ({"dfs.blocksize": ("1 MiB",)}, 20),
            ({"input": ("5 MiB",)}, 0),
        ],
    )
    def test_selects_by_the_meaning_of_values(self, profile_on, selected):
        """
        A cell is selected where each axis named has one of the values, however it is written.
        """
        cells = expand(experiment(workers=2, inputs=2, reduces=2))
        predict = Predict(models=("whatif",), profile_on=profile_on)

        assert sum(is_profiling(c, predict) for c in cells) == selected

    @given(st.integers(0, 2**40))
    def test_units_do_not_matter(self, size):
        """
        A size is the same in bytes and in KiB.
        """
        assert meaning(f"{size} KiB") == meaning(str(1024 * size)) == 1024 * size

    @given(st.text() | st.floats(allow_nan=False) | st.integers())
    def test_any_value_means_itself(self, value):
        """
        A meaning is equal to itself, so a set of values can be searched.
        """
        assert meaning(value) == meaning(value)
        assert not (isinstance(meaning(value), float) and math.isnan(meaning(value)))


class TestLabel:
    def test_shows_only_what_varies(self):
        """
        What all cells share is not repeated.
        """
        cells = expand(experiment(workers=1, inputs=2, reduces=2))

        assert label(cells[0], varying(cells)) == "wordcount 1 MiB reduces=1"
        assert label(cells[0], []) == "wordcount"

    def test_property_names_stay_apart(self):
        """
        Names are shortened only as far as they still tell one property from another.
        """
        names = [
            "mapreduce.map.memory.mb",
            "mapreduce.reduce.memory.mb",
            "mapreduce.task.io.sort.mb",
        ]
        cell = expand(experiment(configuration=dict.fromkeys(names, ("7",))))[0]

        assert label(cell, names) == "wordcount map.memory.mb=7 reduce.memory.mb=7 sort.mb=7"

    @given(lengths, lengths, lengths)
    def test_labels_of_different_cells_differ(self, workers, blocks, reduces):
        """
        A label tells a cell from all others of its experiment.
        """
        cells = expand(experiment(workers=workers, blocks=blocks, reduces=reduces))

        assert len({label(c, varying(cells)) for c in cells}) == len(cells)


class TestGpus:
    def test_are_an_axis(self):
        """
        Each number of GPUs is a cluster of its own, and has its name.
        """
        cluster = ClusterAxes(node=Node(gpus=(0, 1)))
        cells = expand(experiment(inputs=1, reduces=1, cluster=cluster))

        assert sorted({label(c, ["gpus"]) for c in cells if c.workload.name == "wordcount"}) == [
            "wordcount gpus=0",
            "wordcount gpus=1",
        ]

    @given(st.integers(0, 64), st.booleans())
    def test_are_read_back(self, gpus, result):
        """
        What is written of a node, or of its axes, is the same again.
        """
        for node in (NodeSpec(gpus=gpus), Node(gpus=(gpus,), gpus_found=result)):
            assert type(node).model_validate_json(node.model_dump_json()) == node
