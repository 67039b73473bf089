"""
Who chooses settings: rules of thumb, MRTuner's factors, a search over any model.
"""

import itertools
import math

from dataclasses import replace

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.base.hadoop.properties import SPLIT_LEAST, SPLIT_MOST, split_counts
from harness.base.hadoop.slots import refusals
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.trial import ClusterSpec
from harness.base.units import MIB
from harness.core.evaluate.contract import example_profile
from harness.models import MODELS, has_equations
from harness.models.fixed import with_fixed
from harness.models.frame import frame_s
from harness.tuning.dataflow import reasons_of
from harness.tuning.objective import Objective
from harness.tuning.optimizers import OPTIMIZERS, choose, derived, sort_buffer_mb
from harness.tuning.settings import COPIERS, SPLIT, SWITCH, Job, properties_of

PROFILE = example_profile()
MODELS_THAT_SEARCH = ("whatif", "whatif-printed", "whatif-mr2", "prophet", "ptc-wave", "scaling")


def job(*, files=(128,) * 10, reduces=4, heap="-Xmx600m", compress=True, **config):
    """
    A job of files of so many MiB on four slots of each kind.
    """
    sizes = tuple(size * MIB for size in files)
    slots = {"map_slots_per_node": 2, "reduce_slots_per_node": 2}
    return Job(
        JobConfig(num_reduces=reduces, **config),
        Cluster(num_nodes=2, map_slots=4, reduce_slots=4, **slots),
        JobInput(
            input_bytes=sum(sizes), num_files=len(sizes), num_splits=len(sizes),
            split_bytes=sum(sizes) / len(sizes),
        ),
        sizes,
        {"mapreduce.map.java.opts": heap, "mapreduce.map.memory.mb": "1024"},
        can_compress=compress,
    )  # fmt: skip


def answer_s(model, of, values):
    """
    Body with its fixed seconds, and frame, of one row of settings, by the model itself.
    """
    fields = {name: value for name, value in values.items() if name != SPLIT}
    whole = {name: round(value) for name, value in fields.items()
             if isinstance(getattr(JobConfig(), name), int)}  # fmt: skip
    switch = {SWITCH: bool(fields[SWITCH])} if SWITCH in fields else {}
    config = JobConfig.model_validate(of.configuration.model_dump() | fields | whole | switch)
    maps = int(of.num_maps(np.array([values.get(SPLIT, of.largest_split)]))[0])
    size = of.job_input.input_bytes
    cell = (
        config,
        of.cluster,
        of.job_input.model_copy(update={"num_splits": maps, "split_bytes": size / maps}),
    )
    answer = MODELS[model].predict(PROFILE, *cell)
    if has_equations(MODELS[model]):
        answer = with_fixed(answer, PROFILE, cell)
    return answer.body_s + frame_s(PROFILE.frame, *cell)[0]


@pytest.mark.parametrize("model", MODELS_THAT_SEARCH)
def test_the_objective_is_the_models_own_answer_with_the_frame(model):
    """
    Of 20 random settings, all at once.
    """
    of, random = job(), np.random.default_rng(1)
    values = {each.name: each.at(random.random(20)) for each in of.space()}

    seconds = Objective(model, PROFILE, of).seconds(values)

    rows = [{name: each[row] for name, each in values.items()} for row in range(20)]
    assert seconds == pytest.approx([answer_s(model, of, row) for row in rows], rel=1e-9)


@given(
    st.lists(st.integers(1, 300 * MIB), min_size=1, max_size=8),
    st.integers(1 * MIB, 300 * MIB),
)
def test_splits_are_counted_as_hadoop_counts_them(files, split):
    """
    By the property, and by the formula of many settings at once.
    """
    of = replace(job(), files=tuple(files))
    counted = split_counts(files, 300 * MIB, {SPLIT_MOST: str(split)})

    assert of.num_maps(np.array([float(split)]))[0] == sum(counted)
    for size, count in zip(files, counted, strict=True):
        remaining, splits = size, 0
        while remaining / split > 1.1:  # FileInputFormat.getSplits
            remaining, splits = remaining - split, splits + 1
        assert count == splits + (remaining > 0)


@pytest.mark.parametrize("files", [(32,) * 3, (128, 64)])
def test_mrtuners_plan_is_the_best_of_all_that_there_are(files):
    """
    Every combination of its factors, each by the model that has them: all of a small grid.
    """
    of = job(files=files)
    choice = choose("mrtuner", PROFILE, of, "ptc-wave")
    total = sum(of.files)
    splits = {max(16 * MIB, min(of.largest_split, math.ceil(total / (4 * waves) / MIB) * MIB))
              for waves in range(1, 4)} | {of.largest_split}  # fmt: skip
    best_s = math.inf
    for split, count, copies, switch in itertools.product(
        splits, (1, 2, 3, 4, 8, 12), COPIERS, (0, 1)
    ):
        buffer_mb = max(1, sort_buffer_mb(PROFILE, of, split, 0.8))
        plan = {SPLIT: split, "num_reduces": count, "sort_buffer_mb": buffer_mb}
        if buffer_mb <= of.largest_sort_mb:
            plan |= derived(PROFILE, of, plan)
            plan |= {"parallel_copies": copies, SWITCH: switch}
            best_s = min(best_s, answer_s("ptc-wave", of, plan))

    assert choice.job_s == pytest.approx(best_s)
    assert answer_s("ptc-wave", of, choice.values) == pytest.approx(choice.job_s)
    assert choice.values.keys() == choice.reasons.keys()


def test_a_combiner_of_few_keys_leaves_little_of_a_large_spill():
    """
    What reduces copy follows from the records that a map's combiner sees, not from a share.
    """
    of = job(use_combiner=True)
    plan = {SPLIT: 128 * MIB, "num_reduces": 1, "shuffle_buffer_percent": 0.7}
    known = PROFILE.statistics
    unit = known["combine_bytes_selectivity"]
    law = {
        "records_per_combine": 1e4,
        "combine_bytes_exponent": 0.0,
        "combine_records_exponent": 0.0,
        "combine_bytes_selectivity": 0.9,
    }
    law = {name: unit.model_copy(update={"value": value}) for name, value in law.items()}
    few_keys = PROFILE.model_copy(update={"statistics": known | law})

    share = PROFILE.model_copy(
        update={
            "statistics": known | {"combine_bytes_selectivity": law["combine_bytes_selectivity"]}
        }
    )
    copied = "shuffle_buffer_percent"
    assert "a reduce copies 1.15 GiB" in reasons_of(share, of, plan)[copied]
    assert "a reduce copies 8.75 MiB" in reasons_of(few_keys, of, plan)[copied]


def test_a_fuller_buffer_makes_one_spill_where_the_heap_binds():
    """
    What a map writes has room at 0.95 of the buffer and not at the job's own 0.8.
    """
    of = job(files=(16,) * 4)
    least_mb, own_mb = (sort_buffer_mb(PROFILE, of, 16 * MIB, share) for share in (0.95, 0.8))
    bound = job(files=(16,) * 4, heap=f"-Xmx{math.ceil((least_mb + 33) * 1.5)}m")
    chosen = choose("mrtuner", PROFILE, bound, "ptc-wave").values

    assert least_mb <= bound.largest_sort_mb < own_mb
    assert (chosen["sort_spill_percent"], chosen["sort_buffer_mb"]) == (0.95, least_mb)
    assert choose("mrtuner", PROFILE, of, "ptc-wave").values["sort_spill_percent"] == 0.8


def test_mrtuners_grid_does_not_grow_with_a_large_input():
    """
    Of a terabyte some numbers of waves and reduces are tried, the fewest and the most among them.
    """
    choice = choose("mrtuner", PROFILE, job(files=(2048,) * 512), "ptc-wave")

    assert choice.evaluations <= 21 * 20 * len(COPIERS) * 2
    assert choice.values["num_reduces"] >= 1


@pytest.mark.process
@pytest.mark.parametrize("model", MODELS_THAT_SEARCH)
def test_a_search_is_never_worse_than_the_rules_by_its_own_model(model):
    """
    Nor than Hadoop's defaults; the best so far only falls, and a seed gives the same again.
    """
    of = job()
    chosen = choose("search", PROFILE, of, model, evaluations=400, seed=3)
    again = choose("search", PROFILE, of, model, evaluations=400, seed=3)
    others = [choose(name, PROFILE, of, model).job_s for name in ("hadoop", "rules")]

    assert chosen.job_s <= min(others) * 1.02
    assert again.values == chosen.values
    falls = [seconds for _, seconds in chosen.curve]
    assert falls == sorted(falls, reverse=True)
    assert chosen.evaluations <= 400


def test_a_search_changes_nothing_that_its_model_does_not_care_about():
    """
    Each setting that is left has what the job would take without it; the choice is as good.
    """
    of = job()
    chosen = choose("search", PROFILE, of, "whatif-mr2", seed=5)
    objective = Objective("whatif-mr2", PROFILE, of)

    assert len(chosen.values) < len(of.space())
    assert answer_s("whatif-mr2", of, chosen.values) == pytest.approx(chosen.job_s, rel=0.02)
    for name, reason in chosen.reasons.items():
        rest = {key: np.array([value]) for key, value in chosen.values.items() if key != name}
        assert objective.seconds(rest)[0] > chosen.job_s
        assert "without it +" in reason


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_is_chosen_is_what_hadoop_would_run(optimizer):
    """
    In a heap that has room for little, where the sort buffer is as large as it may be.
    """
    of = job(heap="-Xmx150m", sort_buffer_mb=50)
    choice = choose(optimizer, PROFILE, of, "whatif-mr2")
    properties = properties_of(choice.values)

    assert choice.values.get("sort_buffer_mb", 1) < 100
    own = dict.fromkeys(("mapreduce.map.memory.mb", "mapreduce.reduce.memory.mb"), "1024")
    own["mapreduce.task.io.sort.mb"] = "50"
    assert refusals(ClusterSpec(), of.properties | own | properties, sets_site=False) == []
    if optimizer == "rules":
        assert [text for text in choice.bounds if text.startswith("sort buffer: ")]


@pytest.mark.parametrize(("slots", "one_wave", "two_waves"), [(1, 1, 2), (2, 2, 4), (20, 19, 35)])
def test_the_rules_have_reduces_for_a_share_of_the_slots(slots, one_wave, two_waves):
    """
    0.95 or 1.75 of them, rounded: of two slots none is left empty.
    """
    of = replace(job(), cluster=job().cluster.model_copy(update={"reduce_slots": slots}))
    chosen = {name: choose(name, PROFILE, of, "whatif-mr2").values["num_reduces"]
              for name in ("rules", "rules-1.75")}  # fmt: skip

    assert chosen == {"rules": one_wave, "rules-1.75": two_waves}


def test_a_job_that_lets_no_split_be_small_has_none():
    """
    Whatever a search would like: Hadoop takes the larger of both limits.
    """
    of = job(files=(512,) * 4)
    least = {SPLIT_LEAST: str(256 * MIB)}
    bound = replace(of, properties={**of.properties, **least})

    assert [*bound.num_maps(np.array([16.0 * MIB, 256 * MIB, 512 * MIB]))] == [8, 8, 4]
    for size in (16 * MIB, 256 * MIB):
        counted = split_counts(of.files, 1024 * MIB, {SPLIT_MOST: str(size), **least})
        assert bound.num_maps(np.array([float(size)]))[0] == sum(counted)
    splits = next(each for each in bound.space() if each.name == SPLIT)
    assert (splits.low, splits.high) == (256 * MIB, 512 * MIB)


@pytest.mark.parametrize(
    ("options", "most_mb"),
    [("-Xmx600m", 367), ("-Xmx600m -XX:+UseSerialGC", 367), ("-Xmx600m -XX:+UseParallelGC", 367)],
)
def test_a_sort_buffer_leaves_room_in_whatever_heap_it_is(options, most_mb):
    """
    It is one array, and a collector's old generation has two thirds of the heap.
    """
    assert job(heap=options).largest_sort_mb == most_mb


def test_a_model_that_no_setting_matters_to_changes_nothing():
    """
    A search over one that knows of whole jobs alone.
    """
    of = job(files=(128,))
    choice = choose("search", PROFILE, of, "scaling", evaluations=60)

    assert set(choice.values) <= {SPLIT, "num_reduces", "reduce_slowstart"}


def test_a_heap_without_room_for_any_buffer_is_said():
    """
    Of MRTuner's plans none fits.
    """
    with pytest.raises(DataError, match="no plan fits the heap of its maps"):
        choose("mrtuner", PROFILE, job(heap="-Xmx8m"), "ptc-wave")


def test_a_job_without_reduces_has_none_of_mrtuners_factors():
    """
    A search has what is left: splits, and nothing of reduces.
    """
    of = job(reduces=0)

    with pytest.raises(DataError, match="jobs that have reduces"):
        choose("mrtuner", PROFILE, of, "ptc-wave")
    chosen = choose("search", PROFILE, of, "whatif-mr2", evaluations=200).values
    assert not {"num_reduces", "parallel_copies", "reduce_slowstart"} & chosen.keys()


def test_without_a_codec_that_anybody_has_seen_nothing_is_compressed():
    """
    And it is said.
    """
    choice = choose("mrtuner", PROFILE, job(compress=False), "ptc-wave")

    assert SWITCH not in choice.values
    assert choice.bounds == ["compression: no profiled job shows what a codec costs"]


def test_every_setting_of_mrtuner_has_its_reason():
    """
    About a dozen: the four factors, and what follows from them.
    """
    choice = choose("mrtuner", PROFILE, job(), "ptc-wave")

    assert choice.reasons.keys() == choice.values.keys()
    assert len(choice.values) >= 11


@pytest.mark.parametrize(("ratio", "most_mb"), [("0.8", 514), ("0.5", 309)])
def test_a_heap_that_no_option_sets_is_the_jobs_share_of_its_container(ratio, most_mb):
    """
    Of 1024 MiB, and of that the old generation's two thirds.
    """
    share = {"mapreduce.job.heap.memory-mb.ratio": ratio}
    of = job(heap="")

    assert replace(of, properties={**of.properties, **share}).largest_sort_mb == most_mb
