"""
Tests for `harness.core.experiment.sentinels`.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.records.trial import Trial
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, is_profiling, order
from harness.core.experiment.sentinels import ADDED, sentinel_places, with_sentinels
from tests.run.fakes import VERSIONS

TEXT = """\
schema: 1
name: n
question: q
workloads: [{name: terasort, input: [16 MiB, 32 MiB, 48 MiB, 64 MiB, 80 MiB]}]
configuration: {mapreduce.job.reduces: [1, 2]}
repeat: 3
sentinels: 6
predict: {models: [whatif], profile_on: {input: [16 MiB, 80 MiB]}}
"""


def planned(text=TEXT, **replaced):
    """
    The plan of an experiment file, in which some words are replaced.
    """
    for old, new in replaced.items():
        text = text.replace(old.replace("_", " "), new)
    experiment = read_experiment(text, "f.yaml")
    return order(experiment, expand(experiment), VERSIONS)


def uses(trials):
    """
    What the trials are for, in their order, by letters.
    """
    return "".join(trial.use[1] for trial in trials)  # r(o)file, (e) sentinel, (c) score


class TestPlan:
    def test_one_trial_in_six_behind_the_seal_repeats_a_profiling_cell(self):
        """
        18 scored trials and 4 sentinels, at equal distances; none among the profiling trials.
        """
        letters = uses(planned())

        assert letters == 12 * "r" + "cce" + "cccc" + "e" + "ccccc" + "e" + "cccc" + "e" + "ccc"

    def test_sentinels_are_new_repetitions_of_all_profiling_cells_in_turn(self):
        """
        Each of the four once, before one is repeated; no trial is there twice.
        """
        trials = planned()
        profiled = {trial.cell.id for trial in trials if trial.use == "profile"}
        sentinels = [trial for trial in trials if trial.use == "sentinel"]

        assert {trial.cell.id for trial in sentinels} == profiled
        assert {trial.repetition for trial in sentinels} == {3}
        assert len({trial.id for trial in trials}) == len(trials)

    def test_which_one_is_drawn_by_the_seed(self):
        """
        The same seed gives the same plan.
        """
        cells = [
            [trial.cell.id for trial in planned(TEXT + f"seed: {seed}\n") if trial.sentinel]
            for seed in (1, 1, 2)
        ]
        assert cells[0] == cells[1] != cells[2]

    def test_each_start_of_a_cluster_has_one(self):
        """
        However few trials it runs; where no profiling cell runs on it there is none.
        """
        by_cluster = planned(
            TEXT.replace("repeat: 3", "repeat: 1") + "cluster: {workers: [1, 2]}\n"
        )
        sentinels = [trial.cell.cluster.workers for trial in by_cluster if trial.sentinel]
        profiled = TEXT.replace("80 MiB]}}", "80 MiB], workers: 1}}")
        without = planned(profiled + "cluster: {workers: [1, 2]}\n")

        assert sorted(sentinels) == [1, 2]
        assert {trial.cell.cluster.workers for trial in without if trial.sentinel} == {1}

    def test_where_the_profiles_are_another_runs_they_control_the_hour(self):
        """
        Its profiling cells are measured here as sentinels alone, behind the repetitions there.
        """
        trials = planned(TEXT.replace("80 MiB]}}", "80 MiB]}, from: 20260101T000000Z-0000}"))
        sentinels = [trial for trial in trials if trial.sentinel]

        assert uses(trials) == "cce" + "cccc" + "e" + "ccccc" + "e" + "cccc" + "e" + "ccc"
        assert {trial.cell.workload.input_bytes >> 20 for trial in sentinels} == {16, 80}
        assert {trial.repetition for trial in sentinels} == {3}

    def test_trials_that_are_added_have_sentinels_of_their_own(self):
        """
        New repetitions of the profiling cells, which say of which look they are.
        """
        plan = planned()
        experiment = read_experiment(TEXT, "f.yaml")
        feeding = [cell for cell in expand(experiment) if is_profiling(cell, experiment.predict)]
        scored = [trial.cell for trial in plan if trial.use == "score"]
        more = [Trial.of(cell, 3, VERSIONS, look=1, reason="close") for cell in scored[:6]]

        trials = [*with_sentinels(more, feeding, experiment, VERSIONS, plan)]
        sentinels = [trial for trial in trials if trial.sentinel]

        assert [trial for trial in trials if not trial.sentinel] == more
        assert [(trial.look, trial.reason) for trial in sentinels] == [(1, ADDED)]
        assert len({trial.id for trial in (*plan, *trials)}) == len(plan) + len(trials)

    def test_without_the_key_there_is_none(self):
        """
        As in all files of before.
        """
        assert "e" not in uses(planned(TEXT.replace("sentinels: 6\n", "")))

    @pytest.mark.parametrize(
        ("old", "new", "what"),
        [("sentinels: 6", "sentinels: 1", "leaves no trial to be scored"),
         ("profile_on: {input: [16 MiB, 80 MiB]}", "from: 20260101T000000Z-0000",
          "profile_on names none of the other run's"),
         ("80 MiB]}}", "80 MiB]}, from: 2026, hardware: [a, b]}", "another machine's"),
         ("80 MiB]}}", "80 MiB]}, order: mixed}", "which are not measured before the others here")],
    )  # fmt: skip
    def test_sentinels_that_tell_nothing_are_refused(self, old, new, what):
        """
        With what to write.
        """
        with pytest.raises(SpecError) as caught:
            planned(TEXT.replace(old, new))
        assert what in caught.value.what
        assert caught.value.fix == "write sentinels: 6, or leave it out"


@pytest.mark.parametrize("scored", [1, 2, 5, 12, 100])
@pytest.mark.parametrize("one_in", [2, 6, 20])
def test_places_are_within_the_start(scored, one_in):
    """
    One at least, and as many as asked, within one.
    """
    places = sentinel_places(scored, one_in)

    assert min(places) >= 0
    assert max(places) < scored
    wanted = scored / (one_in - 1)
    assert abs(places.total() - max(1.0, wanted)) <= 0.5
