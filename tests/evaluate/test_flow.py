"""
Tests for `harness.core.evaluate.flow`: a stored run, made of recorded histories, to its report.
"""

import io
import re
import shutil
import tarfile
import tempfile

from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from harness.base.errors import DataError, EvidenceError
from harness.base.records.score import ScoreBook
from harness.base.records.tasks import MapTimes, RecordLoop, Span, TaskSpans
from harness.base.records.trial import MachineLoad, Tracing, TrialRecord
from harness.base.stats.spread import shared_spread
from harness.clusters.monitor.machine import PROBE_LOG, THIS_MACHINE
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.observations import job_task_times, logged_times
from harness.core.evaluate.provenance import model_code
from harness.core.evaluate.reporting import REPORT_FILES, task_times
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.reports.data import JobTaskTimes
from harness.core.store import Run, Store
from harness.core.store.traces import remake_trace
from tests.run.fakes import DATA, VERSIONS

FACTOR = "mapreduce.task.io.sort.factor"
EXPERIMENT = """
schema: 1
name: recorded
question: Does the model know the recorded jobs?
cluster: {workers: 2, site: {dfs.blocksize: 2m}}
workloads:
  - {name: terasort, input: 6000000}
  - {name: wordcount, input: 6000000}
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.mb: 1
  mapreduce.job.reduce.slowstart.completedmaps: 1.0
  mapreduce.task.io.sort.factor: [3, 5, 10, 20]
repeat: 3
predict: {models: [whatif, whatif-mr2], profile_on: {mapreduce.task.io.sort.factor: [3, 10]}}
"""
# So many that no cell has one twice: else other orders of them would fit the times as well.
RATES = (900, 1100, 1000, 1050, 930, 1080, 1020, 960, 990, 1120, 1060, 910)


def at_rate(history, rate):
    """
    The history of the same job on a machine of another speed: it ends later where that is slower.
    """
    submit = int(re.search(rb'"submitTime":(\d+)', history)[1])
    ended = re.search(rb'\{"type":"JOB_FINISHED".*?"finishTime":(\d+)', history)
    finish = submit + round((int(ended[1]) - submit) * 1000 / rate)
    start, end = ended.span(1)
    return history[:start] + b"%d" % finish + history[end:], submit / 1e3


def commit(run, trial, state, rate):
    """
    A trial as its execution leaves it.
    """
    folder = run.start_trial(trial)
    if state == "done":
        history = (DATA / f"{trial.cell.workload.name}.jhist").read_bytes()
        history, submit_s = at_rate(history, rate)
        (folder.raw / "job-0-history.jhist").write_bytes(history)
        samples = (f"{int(1000 * submit_s) + 1000 * n} 0 {rate} 1000000000\n" for n in range(1, 9))
        (folder.raw / PROBE_LOG).write_text("".join(samples))
        container = re.search(rb"container_[0-9]+_[0-9]+_01_000002", history)[0].decode()
        log = folder.raw / f"containers/worker1/{container}/syslog"
        log.parent.mkdir(parents=True)
        log.write_bytes((DATA / f"{trial.cell.workload.name}-map.syslog").read_bytes())
    record = TrialRecord(
        trial=trial, state=state, started_s=1.0, finished_s=2.0, versions=VERSIONS,
        reason="" if state == "done" else "the client ended with status 1",
        loads={THIS_MACHINE: MachineLoad(busy=0.5, steal=0.01, others=None, swap_bytes_per_s=0)},
        job_ids=("job_1795224441974_0001",) if state == "done" else (),
    )  # fmt: skip
    folder.commit(record)
    remake_trace(run, record)


def fill(folder, text=""):
    """
    A run in which every profiling trial of wordcount failed.
    """
    text = text or EXPERIMENT
    experiment = read_experiment(text, "recorded.yaml", ())
    run = Store(folder).open_run(experiment, text)
    trials = order(experiment, expand(experiment), VERSIONS)
    run.write_plan(trials)
    rates = {}
    for trial in trials:
        lost = trial.profiling and trial.cell.workload.name == "wordcount"
        nth = rates.setdefault(trial.profiling, iter(RATES * 4))
        commit(run, trial, "failed" if lost else "done", next(nth))
    return run


def evaluation(run):
    """
    What the steps of the command line work on.
    """
    return Evaluation(run, run.experiment(), run.read_plan())


@cache
def packed():
    """
    Results with the one scored run, as an archive: it is made once, and unpacked for each test.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results")
        made = evaluation(fill(results))
        made.profile()
        made.predict()
        made.score()
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as files:
            files.add(results, ".")
    return archive.getvalue()


def scored(folder):
    """
    The run in *folder*, with profiles, sealed predictions and scores.
    """
    with tarfile.open(fileobj=io.BytesIO(packed())) as files:
        # Debian 12's Python knows no extractall(filter=...), and later ones want a choice.
        files.extraction_filter = lambda member, _: member
        files.extractall(folder)
    (run,) = Store(folder).runs("recorded")
    return run


def scored_once(folder):
    """
    A run whose scored cells were measured once, and its profiling cells three times.
    """
    text = EXPERIMENT.replace("repeat: 3", "repeat: 1").replace(
        "[3, 10]}}", "[3, 10]}, profile_repeat: 3}"
    )
    run = fill(folder, text)
    made = evaluation(run)
    made.profile()
    made.predict()
    made.score()
    return run


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """
    The run with profiles, sealed predictions and scores; not to be changed.
    """
    return scored(tmp_path_factory.mktemp("results"))


@pytest.fixture
def copy(stored, tmp_path):
    """
    The same run, to be changed.
    """
    return Run(shutil.copytree(stored.path, tmp_path / stored.path.name))


class TestNoise:
    def test_of_cells_measured_once_is_that_of_the_profiling_trials(self, tmp_path):
        """
        Of six trials of two cells, by quantity and speed; they are stored beside the scored ones.
        """
        run = scored_once(tmp_path)
        book = run.read_scores()
        profiled = {t.id for t in run.read_plan() if t.profiling}
        cells = {t.cell.id: t.cell for t in run.read_plan()}
        jobs_s = defaultdict(list)
        for measurement in book.profiling:
            jobs_s[measurement.cell].append(measurement.raw_s["job_s"])

        assert {measurement.trial for measurement in book.profiling} < profiled
        assert [*map(len, jobs_s.values())] == [3, 3]
        floors = {
            s.floor for s in book.scores if (s.quantity, s.speed) == ("job_s", "raw")
            if cells[s.cell].workload.name == "terasort"
        }  # fmt: skip
        (floor,) = floors
        assert floor == pytest.approx(shared_spread([*jobs_s.values()]))

    def test_of_repeated_cells_is_their_own(self, stored):
        """
        Nothing is kept of the profiling trials then.
        """
        assert stored.read_scores().profiling == ()


class TestProfile:
    def test_is_made_of_profiling_trials_alone(self, stored):
        """
        Its four trials fed the profile of TeraSort; WordCount, whose trials failed, has none.
        """
        profiles = stored.read_profiles()

        profiling = {
            t.id for t in stored.read_plan() if t.profiling and t.cell.workload.name == "terasort"
        }
        assert list(profiles) == ["terasort"]
        assert set(profiles["terasort"].trials) == profiling
        assert profiles["terasort"].ranges[FACTOR] == (3, 10)

    def test_finds_how_speed_enters(self, stored):
        """
        The recorded jobs were stretched in proportion to the probe: the coefficient is one.
        """
        rates = [
            evaluation(stored).rate(r)
            for r in stored.trials().values()
            if r.trial.profiling and r.state == "done"
        ]
        speed = stored.read_profiles()["terasort"].speed

        assert speed.reference_rate == pytest.approx(median(rates))
        assert speed.coefficient == pytest.approx(1.0, abs=0.01)

    def test_workloads_share_one_speed(self, tmp_path):
        """
        They ran on one machine: its reference speed is that of all profiling trials of the run.
        """
        text = EXPERIMENT.replace("repeat: 3", "repeat: 1")
        experiment = read_experiment(text, "recorded.yaml", ())
        run = Store(tmp_path).open_run(experiment, text)
        trials = order(experiment, expand(experiment), VERSIONS)
        run.write_plan(trials)
        profiling = [trial for trial in trials if trial.profiling]
        for trial, rate in zip(profiling, RATES, strict=False):
            commit(run, trial, "done", rate)

        speeds = {name: profile.speed for name, profile in evaluation(run).profile().items()}
        assert speeds.keys() == {"terasort", "wordcount"}
        assert {speed.reference_rate for speed in speeds.values()} == {median(RATES[:4])}

    @pytest.mark.process
    def test_is_fitted_again_without_each_cell(self, tmp_path):
        """
        Of four cells each refit lacks one, and every prediction has an interval at 80 %; the two
        cells of the other tests say nothing of a third.
        """
        text = EXPERIMENT.replace("repeat: 3", "repeat: 1").replace("[3, 10]", "[3, 5, 10, 20]")
        text = text.replace("factor: [3, 5, 10, 20]\nrepeat", "factor: [3, 5, 10, 20, 40]\nrepeat")
        experiment = read_experiment(text, "recorded.yaml", ())
        run = Store(tmp_path).open_run(experiment, text)
        trials = order(experiment, expand(experiment), VERSIONS)
        run.write_plan(trials)
        for trial, rate in zip((t for t in trials if t.profiling), RATES, strict=False):
            commit(run, trial, "done", rate)

        e = evaluation(run)
        profile = e.profile()["terasort"]
        answers = [p for p in e.predict() if p.body_s is not None]

        cells = {job.cell for job in profile.jobs}
        assert len(cells) == len(profile.refits) == 4
        assert [len(cells - {job.cell for job in each.jobs}) for each in profile.refits] == [1] * 4
        assert {p.model for p in answers} == {"whatif", "whatif-mr2"}
        for answer in answers:
            low, high = answer.intervals["job_s"]["80"]
            assert low <= answer.job_s <= high
            assert answer.intervals["job_s"]["90"] is None

    def test_two_cells_have_no_refits(self, stored):
        """
        They would bound nothing; intervals are there, and unbounded.
        """
        answers = [p for chosen in stored.read_predictions().values() for p in chosen]

        assert stored.read_profiles()["terasort"].refits == ()
        assert {p.intervals["body_s"]["80"] for p in answers if p.job_s is not None} == {None}

    def test_reads_spills_of_the_right_attempt(self, stored):
        """
        A container's log belongs to the attempt that ran in it.
        """
        e = evaluation(stored)
        record = next(r for r in e.done.values() if r.trial.cell.workload.name == "terasort")
        (seen,) = e.observe(record)

        (spilled,) = [times for times in seen.task_times if isinstance(times, MapTimes)]
        (container,) = {
            attempt.container_id
            for attempt in seen.trace.attempts
            if attempt.attempt_id == spilled.attempt_id
        }
        assert container.endswith("_01_000002")
        assert len(spilled.spills) == 3

    def test_needs_a_trial(self, tmp_path):
        """
        A run without any says so, and what to do.
        """
        experiment = read_experiment(EXPERIMENT, "recorded.yaml", ())
        run = Store(tmp_path).open_run(experiment, EXPERIMENT)
        run.write_plan(order(experiment, expand(experiment), VERSIONS))

        with pytest.raises(DataError, match="no profiling trial has succeeded"):
            evaluation(run).profile()
        with pytest.raises(DataError, match="there is no profile"):
            evaluation(run).predict()


class TestPredict:
    def test_all_models_have_one_frame(self, stored):
        """
        README of the specifications, section 3: start-up is added to all of them or to none.
        """
        answers = [p for chosen in stored.read_predictions().values() for p in chosen]
        answers = [p for p in answers if p.job_s is not None]
        frames = {}
        for p in answers:
            frames.setdefault(p.cell, set()).add(p.frame_s)
            assert p.job_s == pytest.approx(p.body_s + p.frame_s)

        assert {p.model for p in answers} == {"whatif", "whatif-mr2"}
        assert {len(of_cell) for of_cell in frames.values()} == {1}

    def test_answers_for_every_scored_cell(self, stored):
        """
        Each model for each cell that feeds no profile, and for no other.
        """
        scored = sorted({t.cell.id for t in stored.read_plan() if not t.profiling})

        assert {
            m: sorted(p.cell for p in chosen) for m, chosen in stored.read_predictions().items()
        } == {
            "whatif": scored,
            "whatif-mr2": scored,
        }

    def test_a_workload_without_profile_is_not_applicable(self, stored):
        """
        It is said by name; no other workload's numbers stand in.
        """
        cells = evaluation(stored).cells
        answers = [p for chosen in stored.read_predictions().values() for p in chosen]

        lacking = {cells[p.cell].workload.name for p in answers if p.job_s is None}
        reasons = {p.not_applicable for p in answers if p.job_s is None}
        assert (lacking, reasons) == ({"wordcount"}, {("profile of wordcount",)})
        assert all(p.job_s > 0 for p in answers if p.job_s is not None)

    def test_does_not_see_the_scored_trials(self, copy):
        """
        Without one measurement to be scored, the predictions are the same.
        """
        before = copy.read_predictions()
        for trial in copy.read_plan():
            if not trial.profiling:
                shutil.rmtree(copy.trial_dir(trial.id))

        e = evaluation(copy)
        e.profile()
        e.predict()

        assert copy.read_predictions() == before

    def test_names_its_code_and_its_profile(self, stored):
        """
        Two models of one module have one code; no profile, no hash of one.
        """
        answers = [p for chosen in stored.read_predictions().values() for p in chosen]
        hashes = {p.profile for p in answers if p.job_s is not None}

        assert len({p.code for p in answers}) == 1
        assert hashes == {*stored.profile_hashes().values()}
        assert {p.profile for p in answers if p.job_s is None} == {""}
        assert len({model_code(name) for name in ("whatif", "prophet", "ernest", "scaling")}) == 4


class TestMeasurements:
    def test_are_at_reference_speed_too(self, stored):
        """
        Raw times spread with the machine; brought to reference speed they are one.
        """
        chosen = [m for m in evaluation(stored).measurements() if m.workload == "terasort"]
        raw, reference = (
            [times["job_s"] for times in each]
            for each in ([m.raw_s for m in chosen], [m.reference_s for m in chosen])
        )

        assert len(chosen) == 6
        assert {m.start for m in chosen} == {"1795224441974"}
        assert max(raw) / min(raw) > 1.1
        assert max(reference) / min(reference) == pytest.approx(1.0, abs=0.005)

    def test_stand_as_measured_without_a_profile(self, stored):
        """
        No profile, no reference speed: both are the raw times, outside of any range.
        """
        chosen = [m for m in evaluation(stored).measurements() if m.workload == "wordcount"]

        assert len(chosen) == 6
        assert all(m.raw_s == m.reference_s and m.range == "outside" for m in chosen)

    def test_that_were_scored_are_not_read_again(self, stored, monkeypatch):
        """
        A report shows what the scores were made from, however many trials there are.
        """
        monkeypatch.setattr("harness.core.evaluate.measurements.observe", None)
        known = stored.read_scores().measurements

        measurements = evaluation(stored).measurements(known)

        assert sorted(measurements, key=lambda m: m.trial) == list(known)
        with pytest.raises(TypeError):
            evaluation(stored).measurements(known[1:])

    def test_without_a_probe(self, copy):
        """
        A trial whose probe left nothing has no rate, and stands as measured.
        """
        record = next(r for r in evaluation(copy).done.values() if not r.trial.profiling)
        (copy.trial_dir(record.trial.id) / "raw" / f"{PROBE_LOG}.gz").unlink()
        e = evaluation(copy)

        (chosen,) = [m for m in e.measurements() if m.trial == record.trial.id]
        assert e.rate(record) is None
        assert chosen.raw_s == chosen.reference_s


class TestScore:
    def test_has_every_answer(self, stored):
        """
        Cells with an answer are scored both ways, the others counted.
        """
        rows = [s for s in stored.read_scores().scores if s.quantity == "job_s"]
        cells = evaluation(stored).cells

        assert {(s.model, s.speed, cells[s.cell].configuration[FACTOR]) for s in rows} == {
            (model, speed, factor)
            for model in ("whatif", "whatif-mr2")
            for speed in ("raw", "reference")
            for factor in ("5", "20")
        }
        assert {s.range for s in rows if cells[s.cell].configuration[FACTOR] == "5"} == {"inside"}
        assert {s.range for s in rows if cells[s.cell].configuration[FACTOR] == "20"} == {"outside"}

    @pytest.mark.parametrize(
        "name", ["predictions/whatif.jsonl", "profiles/terasort.json", "plan.jsonl"]
    )
    def test_refuses_what_changed_under_the_seal(self, copy, name):
        """
        Nothing may be bettered after the fact.
        """
        path = copy.path / name
        path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))

        with pytest.raises(DataError, match=f"the seal does not hold: {name} was changed"):
            evaluation(copy).score()

    def test_refuses_a_prediction_beside_the_seal(self, copy):
        """
        A model that answers after the measurement is no prediction.
        """
        copy.write_predictions("late", copy.read_predictions()["whatif"])

        with pytest.raises(DataError, match=r"predictions/late\.jsonl was added"):
            evaluation(copy).score()

    def test_refuses_what_changed_since_it_was_measured(self, copy):
        """
        A time in a table that was bettered by hand.
        """
        record = next(r for r in evaluation(copy).done.values() if not r.trial.profiling)
        path = copy.trial_dir(record.trial.id) / "trace" / "job.json"
        path.write_text(path.read_text().replace('"finish_s": 1', '"finish_s": 2'))

        for step in (evaluation(copy).score, evaluation(copy).report):
            with pytest.raises(EvidenceError, match=r"trace/job\.json was changed") as caught:
                step()
            assert caught.value.exit_status == 7

    def test_makes_scores_again_that_no_report_shows(self, copy):
        """
        Scores that were edited are no evidence of anything.
        """
        path = copy.path / "scores" / "scores.json"
        path.write_text(path.read_text().replace("{", "{ ", 1))

        with pytest.raises(EvidenceError, match="scores were changed"):
            evaluation(copy).report()
        evaluation(copy).score()
        assert copy.check_evidence()

    def test_refuses_a_profile_that_was_edited_and_predicted_anew(self, copy):
        """
        The seal fits then, and the profile is not the one that was fitted.
        """
        path = copy.path / "profiles/terasort.json"
        path.write_text(path.read_text().replace('"count": 4', '"count": 5'))
        copy.seal.path.unlink()
        e = evaluation(copy)
        e.predict()
        copy.seal.check()

        with pytest.raises(EvidenceError, match=r"profiles/terasort\.json was changed"):
            e.score()

    def test_knows_a_run_without_evidence(self, copy):
        """
        An earlier version measured it: it is scored as ever, and never strictly.
        """
        for path in [copy.path / "trials.jsonl", *copy.path.glob("trials/*/evidence.json")]:
            path.unlink()
        e = evaluation(copy)

        assert e.score() == copy.read_scores()
        with pytest.raises(EvidenceError, match="the run is not blind"):
            e.score(strict=True)

    def test_comes_out_the_same(self, copy):
        """
        Every step may be repeated.
        """
        scores_before = copy.read_scores()
        e = evaluation(copy)
        e.profile()
        e.predict()

        assert e.score() == scores_before


class TestReport:
    @pytest.mark.process
    def test_is_written_in_every_format(self, copy):
        """
        The first is the one to open; each holds the question and shows the failed trials, but
        HiBench's lines, which know neither.
        """
        paths, _ = evaluation(copy).report()

        assert [p.name for p in paths] == list(REPORT_FILES.values())
        for path in paths[:-1]:
            text = path.read_text()
            assert "Does the model know the recorded jobs?" in text
            assert "the client ended with status 1" in text

    def test_shows_a_typical_job_of_each_workload(self, stored):
        """
        One timeline each, of a cell that was scored.
        """
        data = evaluation(stored).report_data()

        names = [(r.trial.cell.workload.name, r.trial.profiling) for r, _ in data.timelines]
        assert sorted(names) == [("terasort", False), ("wordcount", False)]
        assert data.rates[data.timelines[0][0].trial.id] in RATES

    def test_a_run_that_is_not_finished_has_one(self, copy):
        """
        Of what there is so far, before anything was predicted or scored.
        """
        for name in ("scores", "predictions"):
            shutil.rmtree(copy.path / name)
        (copy.path / "finished").unlink(missing_ok=True)
        data = evaluation(copy).report_data()

        assert (data.score_book, data.seal) == (ScoreBook(), {})
        assert data.planned == len(copy.read_plan())


def recorded(attempt):
    """
    A recording of an attempt that did nothing but live.
    """
    loop = RecordLoop(7, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0, 0.0, 0, ())
    span = Span("main", "main", attempt.start_s + 1, attempt.duration_s - 1, None, -1)
    return TaskSpans(attempt.attempt_id, "closed", span.start_s, attempt.start_s + 0.5, 0.0, 0, 5,
                     loop, (span,))  # fmt: skip


class TestInside:
    def test_tells_what_logs_told(self, stored):
        """
        One map of the recorded job has a log, and that one has parts and is drawn.
        """
        data = evaluation(stored).report_data()
        (record, job), *_ = data.timelines
        task_times = data.task_times[record.trial.id]

        (parts,), (attempt_id,) = task_times.parts, task_times.pieces
        (attempt,) = (a for a in job.attempts if a.attempt_id == attempt_id)
        assert parts.total_s == pytest.approx(attempt.duration_s)
        assert (parts.source, parts.kind) == ("logs", attempt.kind)

    def test_recordings_go_before_logs(self, stored):
        """
        A task that both tell of is compared, has its parts from spans, and is drawn from them.
        """
        e = evaluation(stored)
        ((record, job), *_) = e.report_data().timelines
        (logged,) = logged_times(e.run.raw(record.trial.id), job, is_compressed=False)
        (attempt,) = (a for a in job.attempts if a.attempt_id == logged.attempt_id)
        foreign = replace(recorded(attempt), attempt_id="attempt_1_0001_m_000009_0")
        task_times = job_task_times(job, [logged], [recorded(attempt), foreign])

        assert [p.source for p in task_times.parts] == ["spans"]
        assert task_times.pieces[attempt.attempt_id].main[0].part == "launch"
        assert all(d.count == 1 for d in task_times.differences)

    def test_attempts_that_were_lost_are_drawn_and_count_in_no_mean(self, stored):
        """
        A killed attempt's recording is kept to be shown; means are of those that succeeded.
        """
        e = evaluation(stored)
        _, job = e.report_data().timelines[0]
        first, *rest = job.attempts
        job = replace(job, attempts=(replace(first, state="killed"), *rest))
        task_times = job_task_times(job, [], [recorded(first)])

        assert set(task_times.pieces) == {first.attempt_id}
        assert (task_times.parts, list(task_times.differences)) == ((), [])

    def test_is_nothing_where_nothing_was_traced(self, stored):
        """
        ``trace: off`` asks for no look inside, so no log is read.
        """
        e = evaluation(stored)
        record, job = e.report_data().timelines[0]
        cell = record.trial.cell.model_copy(update={"tracing": Tracing(mode="off")})
        off = record.model_copy(update={"trial": record.trial.model_copy(update={"cell": cell})})

        assert task_times(e, off, job) == JobTaskTimes()
