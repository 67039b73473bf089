"""
What is made of stored trials: zones, inputs, rates, labels, refusals; times of other machines.
"""

import gzip
import math

from dataclasses import replace
from datetime import UTC, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

from harness.base.errors import DataError, EvidenceError, ModelError
from harness.base.hadoop.properties import SEAL
from harness.base.records.prediction import JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, ProfiledJob, Statistic
from harness.base.records.trace import BYTES_READ, JobTrace, TaskAttempt
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.observations import (
    collect_vets,
    compare_repeats,
    input_read,
    named_zone,
    task_times_of,
    zone_of_start,
)
from harness.core.evaluate.predict import (
    find_model,
    miss_of_jobs,
    predict_cell,
    predict_cells,
    profiled_misses,
    scaled,
    scaled_job,
)
from harness.core.evaluate.provenance import blind_refusals, model_code, named_seals
from harness.core.evaluate.reporting import typical_trials
from harness.core.evaluate.resolved import resolve_cell, resolve_cells
from harness.core.evaluate.steps import MOST_REFITS, fit_refits
from harness.core.evaluate.stored import StoredTrials, trial_rate
from harness.core.experiment.model import Experiment, WorkloadAxes
from harness.core.store import RawLogs, Run, Store, new_analysis
from harness.core.store.evidence import Chain
from harness.models import MODELS
from harness.models.frame import frame_s, inputs_of_profiled
from harness.observe.storage.opener import Opener
from tests.evaluate.test_flow import RATES, evaluation, stored  # noqa: F401 - a fixture
from tests.evaluate.test_predict import BODIES, MeanBody, Says, frame, profile_of
from tests.run.fakes import Rounds, terasort


class TestZones:
    @pytest.mark.parametrize(
        ("hours", "zone_hours"),
        [(0.0, 0), (9.0, 9), (-3.5, -3.5), (5.76, 5.75), (5.74, 5.75), (0.1, 0), (14.0, 14)],
    )
    def test_are_quarters_of_an_hour_apart(self, hours, zone_hours):
        """
        The nearest to the start of an attempt counts.
        """
        zone = zone_of_start(1000.0 + 3600 * hours, 1000.0)

        assert zone.utcoffset(None) == timedelta(hours=zone_hours)

    def test_lie_in_this_world(self):
        """
        Fourteen hours at most; without a moment it is that of Greenwich.
        """
        assert zone_of_start(14.2 * 3600, 0.0) is UTC
        assert zone_of_start(-14.2 * 3600, 0.0) is UTC
        assert zone_of_start(None, 0.0).utcoffset(None) == timedelta(0)

    @pytest.mark.parametrize(
        ("name", "minutes"),
        [("GMT+05:30", 330), ("GMT-03:30", -210), ("GMT+00:00", 0), ("GMT-11:00", -660)],
    )
    def test_may_have_no_name(self, name, minutes):
        """
        As Java calls them then.
        """
        assert named_zone(name, "h", "s").utcoffset(None) == timedelta(minutes=minutes)

    @pytest.mark.parametrize("name", ["GMT+24:00", "GMT+05:60", "GMT+5:30", "Nowhere/Land", "../x"])
    def test_that_are_not_known_are_named(self, name):
        """
        With the host, and what may help.
        """
        with pytest.raises(DataError) as caught:
            named_zone(name, "worker1", "a/syslog")
        assert caught.value.what == (
            f"worker1 is in the zone '{name}', which this machine does not know"
        )
        assert caught.value.where == "a/syslog"
        assert caught.value.fix == (
            "apt-get install tzdata here, or run Java there in a zone that is in it (TZ)"
        )


PLANNED = JobInput(input_bytes=1000, num_files=2, num_splits=4, split_bytes=250.0, replication=3)


class TestInputs:
    def read(self, read_bytes, maps):
        """
        The input of a job that read so much with so many maps.
        """
        trace = JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, maps, 0, ())
        return input_read(replace(trace, counters={BYTES_READ: read_bytes}), PLANNED)

    @pytest.mark.parametrize(("read_bytes", "maps"), [(1000, 4), (1010, 4), (990, 4), (0, 9)])
    def test_are_as_they_were_planned(self, read_bytes, maps):
        """
        As long as about as much was read by as many maps, or nothing is known.
        """
        assert self.read(read_bytes, maps) == PLANNED

    @pytest.mark.parametrize(("read_bytes", "maps"), [(2000, 4), (500, 4), (1000, 5)])
    def test_are_what_an_earlier_job_wrote(self, read_bytes, maps):
        """
        A file for each map.
        """
        assert self.read(read_bytes, maps) == PLANNED.model_copy(
            update={
                "input_bytes": read_bytes,
                "num_files": maps,
                "num_splits": maps,
                "split_bytes": read_bytes / maps,
            }
        )


def raw_logs(folder, **logs):
    """
    The raw logs of a trial with this content, by name.
    """
    for name, text in logs.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    return RawLogs(Opener(folder), folder)


def samples(*rates):
    """
    A log of the speed probe with a sample each second.
    """
    return "".join(f"{1000 * second} 0 {rate} 1000000000\n" for second, rate in enumerate(rates, 1))


class TestRates:
    def test_of_all_machines_are_one(self, tmp_path):
        """
        That of equal work on each in turn.
        """
        logs = {"speed.txt": samples(300, 300), "speed-worker1.txt": samples(600, 600)}
        raw = raw_logs(tmp_path, **logs, other=samples(1))

        assert trial_rate(raw, 0.0, 3.0) == pytest.approx(400.0)

    def test_of_a_machine_without_a_sample_are_none(self, tmp_path):
        """
        Whatever the others say.
        """
        logs = {"speed.txt": samples(300, 300), "speed-worker1.txt": ""}

        assert trial_rate(raw_logs(tmp_path, **logs), 0.0, 3.0) is None

    def test_are_those_of_the_time_between(self, tmp_path):
        """
        From one moment to the other.
        """
        raw = raw_logs(tmp_path, **{"speed.txt": samples(*[100] * 4, *[300] * 6, *[900] * 4)})

        assert trial_rate(raw, 6.0, 8.0) == pytest.approx(300.0)

    def test_of_nothing_are_none(self, tmp_path):
        """
        Nobody sampled.
        """
        assert trial_rate(raw_logs(tmp_path, other="x"), 0.0, 3.0) is None


class TestSeals:
    def test_are_named_by_the_configuration_of_each_job(self, tmp_path):
        """
        Of a job that names none it is empty; other files are not looked at.
        """
        seal = "0123456789abcdef" * 4
        conf = f"<property><name>{SEAL}</name><value>{seal}</value></property>"
        raw = raw_logs(
            tmp_path,
            **{"job-0-conf.xml": conf, "job-12-conf.xml": "<x/>", "other.xml": conf, "job-0": conf},
        )

        assert named_seals(raw) == {"job-0-conf.xml": seal, "job-12-conf.xml": ""}

    def test_a_run_that_was_predicted_late_is_not_blind(self, stored):  # noqa: F811
        """
        Each scored trial that came before its seal is named, and each job that does not name it.
        """
        made = evaluation(stored)
        scored = [record.trial.id for record in made.done.values() if not record.trial.profiling]

        assert blind_refusals(stored, made.done.values()) == [
            f"trial {trial_id} was measured before the predictions were sealed"
            for trial_id in scored
        ]

    def test_an_analysis_is_never_blind(self, stored):  # noqa: F811
        """
        Nor is a run without a chain, or without a seal in it.
        """
        with new_analysis(stored, stored.experiment(), stored.read_plan(), "1") as analysis:
            assert blind_refusals(analysis, []) == [
                "it is an analysis: its predictions were sealed after the measurement"
            ]

    def test_a_run_without_a_seal_is_not_blind(self, tmp_path):
        """
        Whatever else was noted of it.
        """
        run = Store(tmp_path).open_run(evaluation_experiment(), "")
        assert blind_refusals(run, []) == ["no seal was noted while it was measured"]

        Chain(run.opener).append("profiles/a.json", "0", starts=True)
        assert blind_refusals(run, []) == ["no seal was noted while it was measured"]

    def test_strict_scores_refuse_it_with_the_first_reason(self, stored):  # noqa: F811
        """
        And with both ways out.
        """
        with pytest.raises(EvidenceError) as caught:
            evaluation(stored).score(strict=True)
        assert caught.value.what.startswith("the run is not blind: trial ")
        assert caught.value.where == str(stored.path)
        assert caught.value.fix == (
            "measure it with predict: {order: blind}, or score it without --strict"
        )


def evaluation_experiment():
    """
    A small experiment.
    """
    return Experiment(
        name="small", question="q", workloads=(WorkloadAxes(name="sort", input_bytes=(2**20,)),)
    )


def test_code_of_a_model_is_known_by_its_name():
    """
    Of nobody's model there is none; two names of one module have one.
    """
    assert model_code("mine") == ""
    assert model_code("whatif") == model_code("whatif-mr2")
    assert len(model_code("whatif")) == 64
    assert model_code("whatif") != model_code("prophet")


class TestStored:
    def test_a_done_trial_has_a_job(self, stored, monkeypatch):  # noqa: F811
        """
        One whose trace is empty is refused.
        """
        made = evaluation(stored)
        record = next(iter(made.done.values()))
        monkeypatch.setattr(Run, "read_trace", lambda *_, **__: ())

        with pytest.raises(DataError) as caught:
            made.jobs(record)
        assert caught.value.what == f"trial {record.trial.id} is done, and its trace has no job"
        assert caught.value.where == str(stored.trial_dir(record.trial.id))
        assert caught.value.fix == ("reproduce the trace from the raw logs: harness collect FILE")
        assert made.rate(record) is None

    def test_a_rate_is_read_once(self, stored, monkeypatch):  # noqa: F811
        """
        However often it is asked for.
        """
        made = evaluation(stored)
        record = next(iter(made.done.values()))
        rate = made.rate(record)
        monkeypatch.setattr(Run, "read_trace", None)

        assert rate in RATES
        assert made.rate(record) == rate

    def test_done_trials_are_those_of_the_plan(self, stored):  # noqa: F811
        """
        In its order, without those that failed.
        """
        made = StoredTrials.of(stored)
        records = stored.trials()

        assert [*made.done] == [
            trial.id for trial in stored.read_plan() if records[trial.id].state == "done"
        ]
        assert {record.state for record in records.values()} == {"done", "failed"}

    def test_cells_are_named_by_what_varies(self, stored):  # noqa: F811
        """
        Over the plan; of imported jobs the input as well, within each family.
        """
        made = evaluation(stored)
        labels = set(made.labels.values())
        assert labels == {
            f"{name} sort.factor={factor}"
            for name in ("terasort", "wordcount")
            for factor in (3, 5, 10, 20)
        }

        past = made.experiment.model_copy(
            update={"cluster": made.experiment.cluster.model_copy(update={"provider": "history"})}
        )
        imported = replace(made, experiment=past)
        if imported.experiment.was_imported:
            assert {text.split()[0] for text in imported.labels.values()} == {
                "terasort",
                "wordcount",
            }
            assert all("input=" in text or "MB" in text or "MiB" in text or "6000000" in text
                       for text in imported.labels.values())  # fmt: skip

    def test_the_typical_trial_is_the_median_of_the_largest_cell(self, stored):  # noqa: F811
        """
        Of each workload that was scored.
        """
        made = evaluation(stored)
        typical = typical_trials(made)

        assert [record.trial.cell.workload.name for record in typical] == [
            *dict.fromkeys(cell.workload.name for cell in made.cells.values())
        ]
        for record in typical:
            assert not record.trial.profiling
            peers = [
                sum(job.job_s for job in made.jobs(other))
                for other in made.done.values()
                if other.trial.cell.id == record.trial.cell.id
            ]
            time_s = sum(job.job_s for job in made.jobs(record))
            assert sorted(peers)[(len(peers) - 1) // 2] == time_s
            ids = [
                other.trial.cell.id
                for other in made.done.values()
                if other.trial.cell.workload.name == record.trial.cell.workload.name
                and not other.trial.profiling
            ]
            assert record.trial.cell.id == max(ids)


class TestTaskTimes:
    def test_are_not_looked_for_where_nothing_was_traced(self):
        """
        No file is opened.
        """
        cell = SimpleNamespace(tracing=SimpleNamespace(mode="off"))
        record = SimpleNamespace(trial=SimpleNamespace(cell=cell))

        assert task_times_of(None, record, [], is_compressed=False) == []

    def test_of_scored_trials_come_from_recordings_alone(self):
        """
        Where there are some; profiling trials have those of logs, too.
        """
        attempt = TaskAttempt("a", "t", "map", "succeeded", 1.0, 2.0, "w")
        job = JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, (attempt,))
        asked = []

        class Nothing:
            def read_recordings(self, trial_id):
                asked.append(("recordings", trial_id))
                return []

            def raw(self, trial_id):
                asked.append(("raw", trial_id))
                return SimpleNamespace(names=lambda: ())

        cell = SimpleNamespace(tracing=SimpleNamespace(mode="spans"))
        for profiling in (True, False):
            trial = SimpleNamespace(cell=cell, id="t", profiling=profiling)
            record = SimpleNamespace(trial=trial)
            assert task_times_of(Nothing(), record, [job], is_compressed=False) == []
        assert asked == [("recordings", "t"), ("raw", "t")] * 2


def vet_of(repetition, *vets, kind="map", cell="c"):
    """
    A job whose tasks have these vets.
    """
    job = SimpleNamespace(vet_tasks=vets)
    kinds = (SimpleNamespace(kind=kind, job=job),)
    return SimpleNamespace(cell=cell, repetition=repetition, kinds=kinds)


class TestRepeats:
    def test_are_compared_pair_by_pair(self):
        """
        Of one kind of task, those with two tasks at least.
        """
        repeats = [
            vet_of(0, 1.0, 2.0),
            vet_of(1, 1.0, 3.0),
            vet_of(2, 1.0, None),
            vet_of(3, 4.0, 5.0),
        ]

        tests = compare_repeats("c", "map", repeats)
        assert [test.repetitions for test in tests] == [(0, 1), (0, 3), (1, 3)]
        assert {(test.cell, test.kind) for test in tests} == {("c", "map")}
        assert compare_repeats("c", "reduce", repeats) == []

    def test_are_those_of_one_cell_in_their_order(self):
        """
        Whatever the order in which jobs come.
        """
        jobs = [vet_of(1, 1.0, 2.0), vet_of(0, 1.0, 2.0), vet_of(0, 1.0, 2.0, cell="d")]
        book = collect_vets(jobs)

        assert book.jobs == tuple(jobs)
        assert [(test.cell, test.repetitions) for test in book.repeats] == [("c", (0, 1))]


def statistic(value, spread=0.0, **nodes):
    """
    As a profile has it.
    """
    return Statistic(value=value, spread=spread, count=4, source="x", nodes=nodes)


class TestScaled:
    def test_costs_are_as_many_times_as_large(self):
        """
        With their spread and those of their nodes; what is not named stays.
        """
        profile = Profile(
            workload="w",
            statistics={"a": statistic(2.0, 0.5, w1=3.0), "b": statistic(1.0)},
            costs={"c": statistic(4.0)},
            frame={"d_s": statistic(5.0)},
        )

        made = scaled(profile, {"a": 2.0, "c": 3.0, "d_s": 4.0, "none": 9.0})

        assert made == profile.model_copy(
            update={
                "statistics": {"a": statistic(4.0, 1.0, w1=6.0), "b": statistic(1.0)},
                "costs": {"c": statistic(12.0)},
                "frame": {"d_s": statistic(20.0)},
            }
        )

    def test_times_of_jobs_stand_behind_a_word(self):
        """
        What a job lacks it goes on to lack.
        """
        profile = profile_of({"c0": 8.0})
        (job,) = profile.jobs

        made = scaled(profile, {"jobs.job_s": 2.0, "jobs.body_s": 3.0, "job_s": 100.0})
        assert (made.jobs[0].job_s, made.jobs[0].body_s) == (34.0, 24.0)
        bare = job.model_copy(update={"body_s": None})
        assert scaled_job(bare, {"body_s": 3.0}) == bare


class TestProfiledJobs:
    def test_are_asked_about_as_they_ran(self):
        """
        Slots of a node are rounded up; each split is a file.
        """
        job = ProfiledJob(
            trial="t", cell="c", input_bytes=1000, num_splits=4, num_nodes=3, map_slots=7,
            reduce_slots=2, configuration=JobConfig(num_reduces=5), job_s=1.0, body_s=1.0,
        )  # fmt: skip
        configuration, cluster, job_input = inputs_of_profiled(job)

        assert configuration == JobConfig(num_reduces=5)
        assert (cluster.num_nodes, cluster.map_slots, cluster.reduce_slots) == (3, 7, 2)
        assert (cluster.map_slots_per_node, cluster.reduce_slots_per_node) == (3, 1)
        assert job_input == JobInput(input_bytes=1000, num_files=4, num_splits=4, split_bytes=250.0)

    def test_are_missed_by_a_factor(self):
        """
        Of the mean of the jobs of a cell: with the frame, and without.
        """
        (job,) = profile_of({"c0": 20.0}).jobs
        other = job.model_copy(update={"body_s": 30.0, "job_s": 49.0})
        refit = Profile(workload="rounds", frame=frame())

        missed = miss_of_jobs(Says(10.0), refit, [job, other])
        around_s, _ = frame_s(refit.frame, *inputs_of_profiled(job))
        assert missed[0] == pytest.approx(math.log(25 / 10))
        assert missed[1] == pytest.approx(math.log((29 + 49) / 2 / (10 + around_s)))

    def test_without_an_answer_are_missed_by_any(self):
        """
        A model that refuses, or lacks something; a job without a body.
        """

        class Refuses:
            def predict(self, *_):
                raise ModelError("no")

        (job,) = profile_of({"c0": 20.0}).jobs
        refit = Profile(workload="rounds", frame=frame())
        assert np.isnan(miss_of_jobs(Refuses(), refit, [job])).all()
        assert np.isnan(miss_of_jobs(Says(None), refit, [job])).all()
        bare = job.model_copy(update={"body_s": None})
        assert np.isnan(miss_of_jobs(Says(), refit, [bare])[0])

    def test_of_another_run_are_known_by_themselves(self, monkeypatch):
        """
        Those of this one by their cells, with all jobs of a trial.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        monkeypatch.setitem(MODELS, "whatif", MeanBody())
        cell = resolve_cell(terasort(name="rounds").cell)
        profile = profile_of(BODIES, BODIES)
        own = [*profiled_misses("whatif", profile, dict.fromkeys(BODIES, cell))]
        others = [*profiled_misses("whatif", profile, {})]

        assert [miss.refit for miss in own] == [miss.refit for miss in others] == [0, 1, 2, 3]
        for miss, other in zip(own, others, strict=True):
            assert miss.logarithms[0] == pytest.approx(other.logarithms[0])
        assert own[0].logarithms[0] == pytest.approx(math.log(8 / (32 / 3)))
        assert own[0].logarithms[1] == pytest.approx(math.log(17 / (32 / 3 + 9)))

    def test_of_several_trials_are_means(self, monkeypatch):
        """
        Of a trial with two jobs it is their sum.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(2))
        monkeypatch.setitem(MODELS, "whatif", Says(10.0))
        cell = resolve_cell(terasort(name="rounds").cell)
        (job,) = profile_of({"c0": 20.0}).jobs
        jobs = tuple(
            job.model_copy(update={"trial": trial, "body_s": body_s})
            for trial, body_s in (("a", 10.0), ("a", 20.0), ("b", 30.0), ("b", 20.0))
        )
        refit = Profile(workload="rounds", frame=frame())
        profile = refit.model_copy(update={"jobs": jobs, "refits": (refit,)})

        (miss,) = profiled_misses("whatif", profile, {"c0": cell})
        assert miss.logarithms[0] == pytest.approx(math.log(40 / 20))


class TestDraws:
    def test_of_another_machine_bound_what_is_predicted(self, monkeypatch):
        """
        Each draw with a miss as it is, and the next one with the other sign.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))

        class Cost:
            name = "whatif"

            def predict(self, profile, *_):
                return Prediction(model="whatif", body_s=profile.costs["c"].value)

        monkeypatch.setitem(MODELS, "whatif", Cost())
        cell = resolve_cell(terasort(name="rounds").cell)
        draws = tuple({"c": factor} for factor in (1.0, 1.0, 4.0, 4.0))
        profile = Profile(
            workload="rounds", frame=frame(), costs={"c": statistic(10.0)}, draws=draws
        )

        (answer,) = predict_cells("whatif", [cell], {"rounds": profile}, {})
        assert answer.body_s == 10.0
        low, high = np.exp(np.quantile(np.log([10.0, 10.0, 40.0, 40.0]), [0.1, 0.9]))
        assert answer.intervals["body_s"]["80"] == pytest.approx((low, high))
        low, high = np.exp(np.quantile(np.log([19.0, 19.0, 49.0, 49.0]), [0.05, 0.95]))
        assert answer.intervals["job_s"]["90"] == pytest.approx((low, high))

    def test_have_the_misses_of_the_profile(self, monkeypatch):
        """
        In turn, each with both signs.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        monkeypatch.setitem(MODELS, "whatif", MeanBody())
        cell = resolve_cell(terasort(name="rounds").cell)
        profile = profile_of(BODIES, BODIES)
        twice = profile.model_copy(update={"draws": ({}, {})})

        (answer,) = predict_cells("whatif", [cell], {"rounds": twice}, dict.fromkeys(BODIES, cell))
        miss = 8 / (32 / 3)
        ends = np.exp(np.quantile(np.log([10 / miss, 10 * miss]), [0.1, 0.9]))
        assert answer.intervals["body_s"]["80"] == pytest.approx(tuple(ends))


class TestReport:
    def test_says_why_the_run_is_not_blind(self, stored):  # noqa: F811
        """
        The first reason is enough; the seal itself holds.
        """
        made = evaluation(stored)
        reasons = blind_refusals(stored, made.done.values())

        assert len(reasons) > 1
        data = made.report_data(with_tasks=False)
        assert data.seal == {"not_blind": reasons[:1], "order": ""}
        assert (data.timelines, data.jobs, data.task_times) == ([], {}, {})

    def test_has_all_that_there_is(self, stored):  # noqa: F811
        """
        Cells with their names, trials in the order of the plan, and where their logs lie.
        """
        made = evaluation(stored)
        data = made.report_data(with_tasks=False)
        plan = stored.read_plan()

        assert data.cells == {key: (cell, made.labels[key]) for key, cell in made.cells.items()}
        assert [record.trial.id for record in data.trials] == [trial.id for trial in plan]
        assert data.planned == len(plan)
        assert data.evidence == {trial.id: f"trials/{trial.id}/raw" for trial in plan}
        assert data.predictions == made.predictions
        assert data.profiles == stored.read_profiles()
        assert data.score_book == stored.read_scores()
        assert data.manifest == stored.read_manifest().document()
        assert data.rates.keys() == made.done.keys()
        assert data.experiment == made.experiment

    def test_is_a_document_with_the_question(self, stored):  # noqa: F811
        """
        Which every format renders.
        """
        document = evaluation(stored).document()

        assert "Does the model know the recorded jobs?" in str(document)


class TestRefits:
    def observations(self, count):
        """
        One of each of so many cells.
        """
        return [
            SimpleNamespace(trial=SimpleNamespace(cell=SimpleNamespace(id=f"c{number:02}")))
            for number in range(count)
        ]

    def refits(self, count):
        """
        The cells of each refit of a profile of so many.
        """

        def fit(kept):
            return frozenset(observation.trial.cell.id for observation in kept)

        return fit_refits(self.observations(count), fit)

    def test_lack_one_cell_each(self):
        """
        In the order of their names; of fewer than four there is none.
        """
        names = {f"c{number:02}" for number in range(4)}

        assert self.refits(4) == tuple(names - {name} for name in sorted(names))
        assert self.refits(3) == ()

    def test_are_twenty_at_most(self):
        """
        Of more cells each lacks a few.
        """
        refits = self.refits(45)
        names = {f"c{number:02}" for number in range(45)}

        assert len(refits) == MOST_REFITS
        assert names - refits[0] == {"c00", "c20", "c40"}
        assert names - refits[19] == {"c19", "c39"}
        assert set().union(*(names - refit for refit in refits)) == names


class TestSteps:
    def test_say_what_they_lack(self, tmp_path):
        """
        With the command that makes it.
        """
        run = Store(tmp_path).open_run(evaluation_experiment(), "")
        run.write_plan([])
        made = Evaluation.of(run)

        with pytest.raises(DataError) as caught:
            made.profile()
        assert (caught.value.where, caught.value.fix) == (
            str(run.path),
            "run the experiment first (harness run); after it, read why its trials failed",
        )
        with pytest.raises(DataError) as caught:
            made.predict()
        assert (caught.value.where, caught.value.fix) == (str(run.path), "harness profile FILE")


class TestNames:
    def test_that_are_not_known_here_are_of_another_harness(self):
        """
        Of a model, and of a workload that somebody asks for.
        """
        with pytest.raises(DataError) as caught:
            find_model("mine")
        assert (caught.value.what, caught.value.where, caught.value.fix) == (
            "this harness has no model 'mine'",
            "the run's plan and manifest",
            "use the harness that measured this run, or a later one",
        )
        cell = Cell(cluster=ClusterSpec(), workload=WorkloadSpec(name="none", input_bytes=1))
        resolved = resolve_cell(cell)
        assert resolved.id == cell.id
        with pytest.raises(DataError, match="this harness has no workload 'none'"):
            _ = resolved.workload

    def test_of_cells_are_looked_up_once(self):
        """
        By their ids, in their order.
        """
        cells = [terasort(workers=workers).cell for workers in (2, 1, 2)]

        assert [*resolve_cells(cells)] == [cells[0].id, cells[1].id]

    def test_a_model_in_the_hand_needs_none(self, monkeypatch):
        """
        A user's own is asked itself.
        """
        monkeypatch.setitem(WORKLOADS, "rounds", Rounds(1))
        mine = Says(10.0)
        mine.name = "mine"
        cell = resolve_cell(terasort(name="rounds").cell)
        profile = Profile(workload="rounds", frame=frame())

        assert find_model(mine) is mine
        assert predict_cell(mine, cell, {"rounds": profile}).job_s == 19.0
        assert predict_cell(mine, cell, {}).model == "mine"
        given = Prediction(model="mine", body_s=1.0)
        assert predict_cell(mine, cell, {"rounds": profile}, given).job_s == 10.0
