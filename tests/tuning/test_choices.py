"""
Ranges that are searched, and what follows from a plan: each threshold, each text.
"""

import math

from dataclasses import replace

import numpy as np
import pytest

from harness.base.errors import DataError, HarnessError
from harness.base.hadoop.properties import JOB_PROPERTIES, SPLIT_LEAST, SPLIT_MOST
from harness.base.records.prediction import JobConfig
from harness.base.units import MIB
from harness.models import MODELS
from harness.tuning.dataflow import combined_bytes, map_output, reasons_of
from harness.tuning.learned import Learned, points
from harness.tuning.objective import Objective
from harness.tuning.optimizers import (
    OPTIMIZERS,
    choose,
    derived,
    sort_buffer_mb,
)
from harness.tuning.settings import (
    COPIERS,
    SETTINGS,
    SPLIT,
    SWITCH,
    Setting,
    columns,
    properties_of,
)
from tests.tuning.test_optimizers import PROFILE, job


def profile_with(**values):
    """
    The example's profile with other *values* of statistics; without those that are `None`.
    """
    unit = PROFILE.statistics["input_record_bytes"]
    statistics = dict(PROFILE.statistics)
    for name, value in values.items():
        statistics.pop(name, None)
        if value is not None:
            statistics[name] = unit.model_copy(update={"value": value})
    return PROFILE.model_copy(update={"statistics": statistics})


class TestRanges:
    def test_are_those_that_a_search_takes(self):
        """
        Of a job with files of 128 MiB, four slots for reduces, and a heap of 600 MiB.
        """
        space = {setting.name: (setting.low, setting.high) for setting in job().space()}

        assert space == {
            SPLIT: (16 * MIB, 128 * MIB),
            "sort_buffer_mb": (16, 367),
            "sort_spill_percent": (0.5, 0.95),
            "merge_factor": (5, 100),
            "num_reduces": (1, 16),
            "parallel_copies": (1, 20),
            "shuffle_buffer_percent": (0.3, 0.9),
            "shuffle_merge_percent": (0.35, 0.95),
            "shuffle_segment_limit_percent": (0.05, 0.3),
            "inmem_merge_segments": (10, 3000),
            "reduce_buffer_percent": (0.0, 0.8),
            "reduce_slowstart": (0.0, 1.0),
            SWITCH: (0, 1),
        }

    def test_are_of_counts_but_for_shares_and_a_switch(self):
        """
        Shares lie between 0 and 1.
        """
        kinds = {setting.name: setting.kind for setting in job().space()}
        highest = {setting.name: setting.high for setting in job().space()}

        assert kinds.pop(SWITCH) == "switch"
        assert {name for name, kind in kinds.items() if kind == "share"} == {
            name for name in kinds if highest[name] <= 1
        }
        assert set(kinds.values()) == {"share", "count"}

    def test_of_one_value_are_none(self):
        """
        A split of a small file, a buffer in a small heap, a codec that nobody has seen.
        """
        small = job(files=(16, 3), heap="-Xmx49m", compress=False)

        assert {SPLIT, "sort_buffer_mb", SWITCH} & {setting.name for setting in small.space()} == (
            set()
        )
        assert SPLIT in {setting.name for setting in job(files=(17,)).space()}

    def test_of_a_job_without_reduces_end_at_the_map(self):
        """
        Without a slot for reduces there may be up to four.
        """
        names = {setting.name for setting in job(reduces=0).space()}
        assert names == {SPLIT, "sort_buffer_mb", "sort_spill_percent", "merge_factor", SWITCH}

        bare = replace(job(), cluster=job().cluster.model_copy(update={"reduce_slots": 0}))
        (reduces,) = [setting for setting in bare.space() if setting.name == "num_reduces"]
        assert (reduces.low, reduces.high) == (1, 4)

    def test_counts_are_apart_by_ratios_and_shares_by_differences(self):
        """
        Counts and switches are whole, shares have three digits.
        """
        places = np.array([0.0, 0.25, 0.5, 1.0])

        assert Setting("a", 1, 10_000, "count").at(places).tolist() == [1, 10, 100, 10_000]
        assert Setting("a", 2, 5, "count").at(np.array([0.5])).tolist() == [3]
        assert Setting("a", 0.1, 0.9).at(places).tolist() == [0.1, 0.3, 0.5, 0.9]
        assert Setting("a", 0.0, 1.0).at(np.array([1 / 3])).tolist() == [0.333]
        assert Setting("a", 0, 1, "switch").at(np.array([0.4, 0.6])).tolist() == [0, 1]

    def test_the_largest_sort_buffer_is_what_a_heap_has_room_for(self):
        """
        Two thirds of it, less 33 MiB; at least one, and no more than Hadoop takes.
        """
        assert job(heap="-Xmx300m").largest_sort_mb == 167
        assert job(heap="-Xmx301m").largest_sort_mb == 168
        assert job(heap="-Xmx20m").largest_sort_mb == 1
        assert job(heap="-Xmx90g").largest_sort_mb == 2047

    def test_splits_are_bounded_by_files_and_by_the_job(self):
        """
        The largest file, and what the job lets Hadoop make.
        """
        of = job(files=(32, 64, 48))
        assert (of.largest_split, of.smallest_split) == (64 * MIB, 1)

        bound = replace(of, properties={**of.properties, SPLIT_LEAST: str(40 * MIB)})
        assert bound.smallest_split == 40 * MIB
        assert bound.num_maps(np.array([1.0, 40 * MIB])).tolist() == [5, 5]


class TestProperties:
    def test_are_written_as_hadoop_reads_them(self):
        """
        Whole numbers without a point, a switch as a word, a split as its own property.
        """
        values = {SPLIT: 134217728.0, SWITCH: 1.0, "num_reduces": 4.0, "reduce_slowstart": 0.05}

        assert properties_of(values) == {
            SPLIT_MOST: "134217728",
            "mapreduce.map.output.compress": "true",
            "mapreduce.job.reduces": "4",
            "mapreduce.job.reduce.slowstart.completedmaps": "0.05",
        }
        assert properties_of({SWITCH: 0.0}) == {"mapreduce.map.output.compress": "false"}

    def test_every_setting_has_one_and_a_meaning(self):
        """
        All that can be searched.
        """
        for setting in job().space():
            assert setting.name == SPLIT or setting.name in JOB_PROPERTIES
            assert SETTINGS[setting.name].meaning

    def test_rows_become_columns(self):
        """
        By the names of the first.
        """
        made = columns([{"a": 1, "b": True}, {"b": False, "a": 2.5}])

        assert {name: column.tolist() for name, column in made.items()} == {
            "a": [1.0, 2.5],
            "b": [1.0, 0.0],
        }


class TestMapOutput:
    def test_follows_from_what_is_read(self):
        """
        Records by their size, both by their shares; a share that is not known is 1.
        """
        known = profile_with(
            input_record_bytes=50.0, map_bytes_selectivity=2.0, map_records_selectivity=3.0
        )
        bare = profile_with(
            input_record_bytes=50.0, map_bytes_selectivity=None, map_records_selectivity=None
        )

        assert map_output(known, 1000.0) == (2000.0, 60.0)
        assert map_output(bare, 1000.0) == (1000.0, 20.0)

    def test_needs_the_size_of_a_record(self):
        """
        Without it nothing can be planned.
        """
        with pytest.raises(HarnessError, match="input_record_bytes"):
            map_output(profile_with(input_record_bytes=None), 1.0)

    def test_fills_a_buffer_with_its_metadata(self):
        """
        Sixteen bytes for each record, in the share of the buffer that is used; no split is larger
        than the largest file.
        """
        known = profile_with(
            input_record_bytes=64.0, map_bytes_selectivity=1.0, map_records_selectivity=1.0
        )

        assert sort_buffer_mb(known, job(), 64 * MIB, 0.8) == 100
        assert sort_buffer_mb(known, job(), 64 * MIB, 1.0) == 80
        assert sort_buffer_mb(known, job(), 128 * MIB, 1.0) == 160
        assert sort_buffer_mb(known, job(), 999 * MIB, 1.0) == 160

    def test_is_less_after_a_combiner(self):
        """
        By its share at so many records; without a combiner, or one that was seen, all is left.
        """
        of = job(use_combiner=True)
        half = profile_with(combine_bytes_selectivity=0.5, records_per_combine=None)
        grown = profile_with(
            combine_bytes_selectivity=0.5, records_per_combine=100.0, combine_bytes_exponent=0.5
        )
        never = profile_with(
            combine_bytes_selectivity=0.5, records_per_combine=0.0, combine_bytes_exponent=0.5
        )

        assert combined_bytes(half, of, 1000.0, 50.0) == 500.0
        assert combined_bytes(never, of, 1000.0, 50.0) == 500.0
        assert combined_bytes(half, job(), 1000.0, 50.0) == 1000.0
        unseen = profile_with(combine_bytes_selectivity=None)
        assert combined_bytes(unseen, of, 1000.0, 50.0) == 1000.0
        assert combined_bytes(grown, of, 1000.0, 100.0) == pytest.approx(500.0)
        assert combined_bytes(grown, of, 1000.0, 400.0) == pytest.approx(250.0)


class TestDerived:
    def values(self, *, heap_mb=1000, copied_mb, maps=4, **config):
        """
        What follows from so many maps of a job of one reduce that copies *copied_mb*, by name.
        """
        known = profile_with(map_bytes_selectivity=1.0)
        of = job(
            files=(copied_mb // maps,) * maps,
            reduces=1,
            reduce_heap_bytes=heap_mb * MIB,
            **config,
        )
        return derived(known, of, {SPLIT: float(of.largest_split), "num_reduces": 1.0})

    def test_a_small_input_stays_in_memory(self):
        """
        Up to a half of the heap.
        """
        assert self.values(copied_mb=500)["reduce_buffer_percent"] == 0.7
        assert self.values(copied_mb=504)["reduce_buffer_percent"] == 0.0

    def test_a_large_input_has_more_of_the_heap(self):
        """
        0.7 of it where that is enough, else 0.9.
        """
        assert self.values(copied_mb=700)["shuffle_buffer_percent"] == 0.7
        assert self.values(copied_mb=704)["shuffle_buffer_percent"] == 0.9

    def test_merges_begin_late_where_all_fits(self):
        """
        In nine tenths of what keeps it.
        """
        assert self.values(copied_mb=628)["shuffle_merge_percent"] == 0.9
        assert self.values(copied_mb=632)["shuffle_merge_percent"] == 0.66
        assert self.values(copied_mb=808)["shuffle_merge_percent"] == 0.9
        assert self.values(copied_mb=812)["shuffle_merge_percent"] == 0.66

    def test_an_output_fits_in_memory(self):
        """
        With a tenth to spare; from a quarter to a half of what keeps it.
        """
        assert self.values(copied_mb=400)["shuffle_segment_limit_percent"] == 0.25
        assert self.values(copied_mb=700, maps=2)["shuffle_segment_limit_percent"] == 0.5
        assert self.values(copied_mb=600, maps=2)["shuffle_segment_limit_percent"] == 0.48

    def test_as_many_outputs_are_merged_as_there_are_maps(self):
        """
        From ten to a hundred; of more than a thousand maps their number starts no merge.
        """
        for maps, factor in ((4, 10), (50, 50), (150, 100)):
            follows = self.values(copied_mb=16 * maps, maps=maps)
            assert follows["merge_factor"] == factor
        assert self.values(copied_mb=1000, maps=1000)["inmem_merge_segments"] == 1000
        assert self.values(copied_mb=1001, maps=1001)["inmem_merge_segments"] == 0

    def test_reduces_start_behind_the_first_wave_of_maps(self):
        """
        Where there is a second one, and the job lets them start early at all.
        """
        one = self.values(copied_mb=64, maps=4)["reduce_slowstart"]
        two = self.values(copied_mb=80, maps=5)["reduce_slowstart"]
        three = self.values(copied_mb=144, maps=9)["reduce_slowstart"]
        last = self.values(copied_mb=80, maps=5, reduce_slowstart=1.0)["reduce_slowstart"]

        assert one == last == 1.0
        assert two == 0.5
        assert three == 0.33

    def test_more_reduces_copy_less_each(self):
        """
        By their number.
        """
        known = profile_with(map_bytes_selectivity=1.0)
        of = job(files=(400,) * 4, reduce_heap_bytes=1000 * MIB)
        few = derived(known, of, {SPLIT: 400.0 * MIB, "num_reduces": 1.0})
        many = derived(known, of, {SPLIT: 400.0 * MIB, "num_reduces": 4.0})

        assert few["reduce_buffer_percent"] == 0.0 < many["reduce_buffer_percent"]


class TestChoices:
    def test_hadoops_defaults_are_its_own(self):
        """
        Of a job with other settings, too; a buffer has to fit, and a map is a block.
        """
        choice = choose("hadoop", PROFILE, job(sort_buffer_mb=50), "whatif-mr2")
        config = JobConfig()

        assert choice.optimizer == "hadoop"
        assert choice.model == "whatif-mr2"
        assert {name: value for name, value in choice.values.items() if name != SPLIT} == {
            name: getattr(config, name) for name in choice.values if name != SPLIT
        }
        assert choice.values[SPLIT] == 128 * MIB
        texts = dict.fromkeys(choice.values, "Hadoop's default")
        assert choice.reasons == texts | {SPLIT: "Hadoop's default: a map for each block"}
        tight = choose("hadoop", PROFILE, job(heap="-Xmx100m"), "whatif-mr2")
        assert tight.values["sort_buffer_mb"] == 34

    @pytest.mark.parametrize(
        ("optimizer", "share", "reduces", "waves"),
        [
            ("rules", "0.95", 4, "all reduces in one wave"),
            ("rules-1.75", "1.75", 7, "faster nodes take a second wave"),
        ],
    )
    def test_rules_of_thumb_say_their_share(self, optimizer, share, reduces, waves):
        """
        All else but the buffer is Hadoop's.
        """
        known = profile_with(
            input_record_bytes=64.0, map_bytes_selectivity=1.0, map_records_selectivity=1.0
        )
        choice = choose(optimizer, known, job(), "whatif-mr2")
        default = choose("hadoop", known, job(), "whatif-mr2")

        changed = {"num_reduces": reduces, "sort_buffer_mb": 200}
        assert choice.optimizer == optimizer
        assert choice.values == default.values | changed
        assert choice.reasons["num_reduces"] == f"{share} of the slots: {waves}"
        assert choice.reasons["sort_buffer_mb"] == (
            "a map writes 128 MiB and 2097152 records: one spill, full to 0.8"
        )
        assert choice.bounds == []

    def test_a_job_without_reduces_keeps_none(self):
        """
        By the rules as well.
        """
        assert "num_reduces" not in choose("rules", PROFILE, job(reduces=0), "whatif-mr2").values

    def test_a_buffer_that_has_no_room_is_as_large_as_it_may_be(self):
        """
        And the choice says what it wanted.
        """
        known = profile_with(
            input_record_bytes=64.0, map_bytes_selectivity=1.0, map_records_selectivity=1.0
        )
        choice = choose("rules", known, job(heap="-Xmx200m"), "whatif-mr2")

        assert choice.values["sort_buffer_mb"] == 101
        assert choice.bounds == [
            "sort buffer: 200 MiB are wanted, the heap of a map has room for 101"
        ]

    def test_mrtuner_says_what_it_chose_by(self):
        """
        The waves on the slots that there are.
        """
        choice = choose("mrtuner", PROFILE, job(), "whatif")
        assert (choice.optimizer, choice.model) == ("mrtuner", "ptc-wave")
        assert choice.reasons == reasons_of(PROFILE, job(), choice.values)
        assert choice.values["parallel_copies"] in COPIERS
        assert choice.evaluations % (2 * len(COPIERS)) == 0
        assert choice.bounds == []

    def test_mrtuner_keeps_the_codec_of_a_job_that_nobody_saw_with_another(self):
        """
        Its plans are half as many.
        """
        both = choose("mrtuner", PROFILE, job(), "ptc-wave")
        one = choose("mrtuner", PROFILE, job(compress=False), "ptc-wave")

        assert one.evaluations * 2 == both.evaluations
        assert SWITCH not in one.reasons

    def test_mrtuner_asks_the_model_of_its_kind(self):
        """
        Another than What-If's may be named.
        """
        for model in (name for name in MODELS if name.startswith("ptc")):
            assert choose("mrtuner", PROFILE, job(files=(32,) * 3), model).model == model

    def test_mrtuner_refuses_with_a_way_out(self):
        """
        Jobs without reduces, and heaps without room.
        """
        with pytest.raises(DataError) as caught:
            choose("mrtuner", PROFILE, job(reduces=0), "ptc-wave")
        assert caught.value.what == "MRTuner's factors are of jobs that have reduces"
        assert (caught.value.where, caught.value.fix) == ("tune", "use --optimizer search")
        with pytest.raises(DataError) as caught:
            choose("mrtuner", PROFILE, job(heap="-Xmx8m"), "ptc-wave")
        assert caught.value.where == "tune"
        assert caught.value.fix == (
            "give maps more memory, or let a split be smaller: cluster.node.task_memory"
        )

    def test_of_equal_plans_fewer_tasks_and_copiers_count(self, monkeypatch):
        """
        Maps first, then reduces, then copiers.
        """
        monkeypatch.setattr(
            Objective, "seconds", lambda _, values: np.ones(len(values["num_reduces"]))
        )
        choice = choose("mrtuner", PROFILE, job(), "ptc-wave")

        assert (choice.values["num_reduces"], choice.values["parallel_copies"]) == (1, 1)
        assert choice.values[SPLIT] == 128 * MIB

    def test_a_search_counts_what_it_looked_at(self):
        """
        No more than it may; each point of its curve is better than the one before.
        """
        choice = choose("search", PROFILE, job(), "whatif-mr2", evaluations=700, seed=2)
        other = choose("search", PROFILE, job(), "whatif-mr2", evaluations=700, seed=4)

        assert (choice.optimizer, choice.model) == ("search", "whatif-mr2")
        assert choice.evaluations == 700
        counts = [count for count, _ in choice.curve]
        assert counts == sorted(set(counts))
        assert counts[0] == 352  # 44 samples hit the best tenth, eight times as many at once
        assert choice.curve[-1][1] == choice.job_s
        assert other.curve != choice.curve

    def test_a_slow_model_is_asked_less(self, monkeypatch):
        """
        Six hundred times, where thousands cost nothing elsewhere.
        """

        def quick(objective, values):
            count = len(next(iter(values.values())))
            objective.evaluations += count
            return np.linspace(2, 1, count)

        monkeypatch.setattr(Objective, "seconds", quick)
        assert choose("search", PROFILE, job(), "prophet").evaluations == 600
        assert choose("search", PROFILE, job(), "whatif-mr2").evaluations == 20_000
        assert choose("search", PROFILE, job(), "prophet").curve[0][0] == 44

    def test_a_search_without_any_answer_is_refused(self, monkeypatch):
        """
        The model is named.
        """

        def nothing(objective, values):
            count = len(next(iter(values.values())))
            objective.evaluations += count
            return np.full(count, math.nan)

        monkeypatch.setattr(Objective, "seconds", nothing)
        with pytest.raises(DataError) as caught:
            choose("search", PROFILE, job(), "prophet", evaluations=50)
        assert caught.value.what == "prophet has no answer for any setting of this job"
        assert (caught.value.where, caught.value.fix) == ("tune", "choose another --model")

    def test_a_search_says_what_bound_it(self, monkeypatch):
        """
        The heap of a map, and the size of the files.
        """

        def larger_is_better(objective, values):
            count = len(next(iter(values.values())))
            objective.evaluations += count
            names = (SPLIT, "sort_buffer_mb")
            return 1000 - sum(np.log(values[name]) for name in names if name in values)

        monkeypatch.setattr(Objective, "seconds", larger_is_better)
        choice = choose("search", PROFILE, job(), "whatif-mr2", evaluations=20_000)

        assert choice.bounds == [
            "sort buffer: the heap of a map has room for 367",
            "split: no file of the input is known to be larger",
        ]
        reasons = reasons_of(PROFILE, job(), choice.values)
        assert choice.reasons["sort_buffer_mb"] == (
            f"{reasons['sort_buffer_mb']}; without it +5.9 s"
        )

    @pytest.mark.parametrize("optimizer", OPTIMIZERS)
    def test_each_choice_is_priced_by_its_model(self, optimizer):
        """
        Its own seconds are kept, and those that it took to choose.
        """
        choice = choose(optimizer, PROFILE, job(), "ptc-wave", evaluations=200)
        priced_s = Objective("ptc-wave", PROFILE, job()).seconds(columns([choice.values]))[0]

        assert choice.job_s == pytest.approx(priced_s, rel=0.02)
        assert 0 < choice.seconds < 600


class RefusesTwo:
    """
    A model that has no answer for two reduces.
    """

    def predict(self, profile, configuration, *cell):
        """
        The answer of Prophet.
        """
        if configuration.num_reduces == 2:
            raise DataError("no")
        return MODELS["prophet"].predict(profile, configuration, *cell)


def test_a_model_is_taken_to_be_off_by_a_twentieth_at_the_least():
    """
    However alike the few settings were that were measured: noise as large takes half of it.
    """
    places = np.array([[0.0] * 4, [90.0] + [0.0] * 3])
    learned = Learned(places, np.array([0.0, 0.02]), 0.05)

    assert np.log(learned.factor(places)) == pytest.approx([0.005, 0.015])


class TestObjective:
    def test_what_was_learned_multiplies_the_answer(self):
        """
        At the place of each setting; of another model nothing is taken.
        """
        values = {"num_reduces": np.array([1.0, 4.0]), "sort_buffer_mb": np.array([100.0, 200.0])}
        learned = Learned(
            np.array([[0.0, 0.0, 0.0, 0.0], [3.0, 2.0, 7.0, 0.0]]), np.array([0.7, -0.3]), 0.01
        )
        plain = Objective("whatif-mr2", PROFILE, job()).seconds(values)
        told = Objective(
            "whatif-mr2", PROFILE, replace(job(), learned={"whatif-mr2": learned})
        ).seconds(values)
        other = Objective("whatif-mr2", PROFILE, replace(job(), learned={"ptc-wave": learned}))

        places = points(np.array([10, 10]), values["num_reduces"], values["sort_buffer_mb"], [0, 0])
        assert told == pytest.approx(plain * learned.factor(places))
        assert other.seconds(values) == pytest.approx(plain)

    def test_every_setting_that_was_looked_at_counts(self):
        """
        Over all questions.
        """
        objective = Objective("whatif-mr2", PROFILE, job())
        for count in (3, 5):
            objective.seconds({"num_reduces": np.ones(count)})

        assert objective.evaluations == 8

    def test_what_a_model_cannot_answer_is_no_number(self, monkeypatch):
        """
        Of one that answers one at a time the others are still answered.
        """
        monkeypatch.setitem(MODELS, "refuses", RefusesTwo())
        reduces = {"num_reduces": np.array([1.0, 2.0])}

        answers = Objective("refuses", PROFILE, job()).seconds(reduces)
        known = Objective("prophet", PROFILE, job()).seconds(reduces)
        assert answers[0] == pytest.approx(known[0])
        assert math.isnan(answers[1])
