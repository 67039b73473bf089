"""
Jobs of which each reads what the one before wrote: what models are asked about PageRank.
"""

import math

import pytest

from harness.base.records.prediction import JobConfig, Prediction
from harness.base.records.profile import Profile, ProfiledJob
from harness.core.evaluate.later_jobs import asked_jobs, later_size_ratio
from harness.core.evaluate.predict import miss_of_jobs, predict_cell
from harness.core.evaluate.resolved import resolve_cell
from tests.evaluate.test_predict import frame, terasort

MIB = 2**20
# Two iterations of two trials, as they are stored of a measured run: a graph of 160 MiB in one
# split, of which the first iteration made two files.
STORED = [
    ("0611b2c3b7bba33a", 0, 1, 81.59606290920803, 72.12646009326261),
    ("0611b2c3b7bba33a", 1, 2, 50.427817664733595, 40.50702163141463),
    ("20ba94c7b6aba678", 0, 1, 81.50148422911782, 72.07517099544367),
    ("20ba94c7b6aba678", 1, 2, 49.01339508401187, 39.51326724369673),
]
SIZE = 167_772_155


def profile_of(later_bytes=SIZE, stored=STORED):
    """
    The profile that such jobs leave, *later_bytes* read by all but the first.
    """
    jobs = [
        ProfiledJob(
            trial=trial, cell="d6cddda1743c5fbe", number=number, num_splits=splits,
            input_bytes=later_bytes if number else SIZE, num_nodes=3, map_slots=2, reduce_slots=2,
            configuration=JobConfig(num_reduces=2), job_s=job_s, body_s=body_s,
        )
        for trial, number, splits, job_s, body_s in stored
    ]  # fmt: skip
    return Profile(workload="pagerank", frame=frame(), jobs=tuple(jobs))


def pagerank(iterations=3, reduces=2, block="160m"):
    """
    A cell of a graph of 160 MiB in blocks of that size.
    """
    cell = terasort(workers=2, mapreduce_job_reduces=str(reduces)).cell
    spec = cell.workload.model_copy(
        update={
            "name": "pagerank",
            "input_bytes": 160 * MIB,
            "parameters": {"iterations": iterations},
        }
    )
    site = cell.cluster.site | {"dfs.blocksize": block}
    cluster = cell.cluster.model_copy(update={"site": site})
    settings = cell.configuration | {"mapreduce.job.reduces": str(reduces)}
    changes = {"workload": spec, "cluster": cluster, "configuration": settings}
    return resolve_cell(cell.model_copy(update=changes))


class PerSplit:
    """
    A model that says 100 s of one split, and less of more; it keeps what it was asked.
    """

    name = "per-split"
    description = "100 s less with each split"
    required = frozenset()
    evaluators = ()

    def __init__(self):
        self.asked = []

    def predict(self, profile, configuration, cluster, job_input):
        self.asked.append(job_input)
        splits = job_input.num_splits
        return Prediction(
            model=self.name,
            body_s=100.0 / splits,
            published_s=110.0 / splits,
            map_task_s=90.0 / splits,
            reduce_task_s=4.0 * splits,
            map_waves=1.0,
            phases={"map_read_s": 80.0 / splits, "sort_s": splits},
            measurable={"map_main_s": 85.0 / splits, "shuffle_s": 2.0 * splits},
            estimates={"other_s": 50.0 / splits},
            warnings=("said once",),
        )


def test_what_later_jobs_read_is_what_profiled_ones_read():
    """
    Over the bytes of the first job of their trial; where no trial has several it is not known.
    """
    assert later_size_ratio(profile_of()) == 1.0
    assert later_size_ratio(profile_of(later_bytes=SIZE // 5)) == pytest.approx(0.2)
    assert later_size_ratio(profile_of(stored=STORED[::2])) is None


def test_each_reduce_leaves_a_file():
    """
    As the stored jobs had it: one split first, then two; larger files have several blocks.
    """
    (first, later), warnings = asked_jobs(pagerank(), profile_of())
    (_, of_blocks), _ = asked_jobs(pagerank(block="16m"), profile_of())
    (_, of_five), _ = asked_jobs(pagerank(reduces=5), profile_of(later_bytes=2 * SIZE))

    assert warnings == ()
    assert (first.share, later.share) == pytest.approx((1 / 3, 2 / 3))
    assert [asked.inputs[2].num_splits for asked in (first, later)] == [1, 2]
    assert later.inputs[:2] == first.inputs[:2]
    assert later.inputs[2].input_bytes == pytest.approx(first.inputs[2].input_bytes, abs=2)
    assert (of_blocks.inputs[2].num_files, of_blocks.inputs[2].num_splits) == (2, 10)
    assert (of_five.inputs[2].num_files, of_five.inputs[2].num_splits) == (5, 5)
    assert of_five.inputs[2].input_bytes == pytest.approx(2 * first.inputs[2].input_bytes, rel=1e-6)


def test_a_trial_is_the_first_and_the_later_ones():
    """
    Its time is their sum; what is of one job is the mean, of tasks that over all tasks.
    """
    model = PerSplit()
    answer = predict_cell(model, pagerank(), {"pagerank": profile_of()})

    assert [job_input.num_splits for job_input in model.asked] == [1, 2]
    assert answer.jobs == 3
    assert answer.body_s == pytest.approx((100 + 50 + 50) / 3)
    assert answer.published_s == pytest.approx((110 + 55 + 55) / 3)
    assert answer.job_s == pytest.approx(3 * (answer.body_s + answer.frame_s))
    assert answer.map_task_s == pytest.approx((90 + 4 * 45) / 5)
    assert answer.reduce_task_s == pytest.approx((4 + 8 + 8) / 3)
    assert answer.phases == pytest.approx({"map_read_s": (80 + 4 * 40) / 5, "sort_s": 5 / 3})
    assert answer.measurable == pytest.approx({"map_main_s": 255 / 5, "shuffle_s": 10 / 3})
    assert answer.estimates == pytest.approx({"other_s": 100 / 3})
    assert answer.warnings.count("said once") == 1


def test_the_frame_is_the_mean_of_theirs():
    """
    With two slots, a later job of three splits has one more wave of maps than the first, of one:
    2 s more, of which the reduces' start is spared, and their gap.
    """
    profiles = {"pagerank": profile_of()}
    answer = predict_cell(PerSplit(), pagerank(reduces=3), profiles)
    alone = predict_cell(PerSplit(), pagerank(1, reduces=3), profiles)

    assert answer.frame_s - alone.frame_s == pytest.approx(2 / 3 * (2.0 - 1.0 - 0.5))


def test_without_a_profiled_one_they_are_asked_as_the_first():
    """
    And it is said.
    """
    model = PerSplit()
    answer = predict_cell(model, pagerank(), {"pagerank": profile_of(stored=STORED[::2])})

    assert len(model.asked) == 1
    assert (answer.body_s, answer.jobs) == (100.0, 3)
    assert any("no profiling trial shows what its later jobs read" in w for w in answer.warnings)


def test_what_one_has_no_answer_for_the_trial_lacks():
    """
    A mean over some of the jobs would be none.
    """

    class OfOneSplit(PerSplit):
        def predict(self, *given):
            said = super().predict(*given)
            return said if len(self.asked) == 1 else said.model_copy(update={"published_s": None})

    answer = predict_cell(OfOneSplit(), pagerank(), {"pagerank": profile_of()})
    assert (answer.published_s, answer.body_s) == (None, pytest.approx(200 / 3))


def test_of_another_runs_cell_each_job_is_asked_as_it_was():
    """
    What is missed of its trials is the mean over both kinds of jobs.
    """
    model = PerSplit()
    profile = profile_of()
    missed = miss_of_jobs(model, profile, profile.jobs)

    assert sorted(job_input.num_splits for job_input in model.asked) == [1, 2]
    measured_s = sum(body_s for *_, body_s in STORED) / 4
    assert missed[0] == pytest.approx(math.log(measured_s / 75))
