"""
What reads text from outside, each with its corpus of real files and with what comes after it.

Stored files are written by the store itself, into a small run made of recorded histories.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from harness.base.errors import DataError, HarnessError, ParseError, SpecError
from harness.base.hadoop.properties import job_config
from harness.base.hadoop.site import read_properties
from harness.base.hadoop.slots import refusals
from harness.base.records.tasks import TaskLog, TaskSpans, UnitTimes
from harness.base.records.trace import JobTrace, TaskAttempt, TaskKind
from harness.base.text import printable
from harness.cli.commands import models as cli_models
from harness.clusters.monitor.machine import find_disturbance, machine_load, mean_rate
from harness.clusters.workloads import WORKLOADS
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.observations import job_task_times
from harness.core.evaluate.resolved import resolve_cell
from harness.core.experiment import model as experiment_model
from harness.core.experiment.file import KnownNames, places, read_experiment
from harness.core.experiment.grid import expand, label, order, varying
from harness.core.reports import REPORTS
from harness.core.reports.data import JobTaskTimes, ReportData
from harness.core.reports.sections import make_document
from harness.core.reports.sections.task_times import bars, parts_table
from harness.core.run.estimate import Estimator
from harness.core.run.plan import make_plan, refuse_cells
from harness.core.store import Run, Store
from harness.core.store.traces import write_trace
from harness.models import MODELS
from harness.models import vectors as v
from harness.observe.parsing.aggregated import read_ifile, read_text, read_tfile
from harness.observe.parsing.history import read_history
from harness.observe.parsing.lines import read_machine, read_speed
from harness.observe.parsing.ltrace import read_ltrace, read_units
from harness.observe.parsing.task_log import read_shuffle_log, read_task_log
from harness.observe.pieces import thinned
from harness.observe.profiling.measured import measured
from harness.observe.profiling.task_times import (
    logged_map_times,
    logged_reduce_times,
    recorded_segments,
)
from harness.observe.storage.opener import Opener
from harness.observe.storage.tables import (
    _SEGMENT,
    read_recordings,
    read_table,
    read_traces,
    write_recordings,
    write_traces,
)
from harness.observe.waterfall import chrome_events, render_task, render_tasks
from tests.evaluate.test_flow import VERSIONS, commit
from tests.hostile import avro, generate, recorded, stored
from tests.hostile.hunt import Target
from tests.hostile.mutate import Change, mutate
from tests.parsing.histories import binary
from tests.reports.test_html import Page

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/parsing/data"
RECORDED = ("map", "killed", "reduce")
KNOWN = KnownNames(tuple(WORKLOADS), tuple(MODELS), ("local",))
# All that a terminal or a reader's eye could be steered by, but line feeds.
STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
EXPERIMENT = """\
schema: 1
name: recorded
question: Does the model know the recorded job?
cluster: {workers: 2, site: {dfs.blocksize: 2m}}
workloads: [{name: terasort, input: 6000000}]
configuration: {mapreduce.job.reduces: 2, mapreduce.task.io.sort.factor: [3, 10, 5]}
repeat: 2
predict: {models: [whatif, whatif-mr2], profile_on: {mapreduce.task.io.sort.factor: [3, 10]}}
"""


def files(*patterns: str, folder: Path = DATA) -> tuple[bytes, ...]:
    """Contents of the files under *folder* that fit *patterns*."""
    result = [p.read_bytes() for pattern in patterns for p in sorted(folder.glob(pattern))]
    assert result, patterns
    return tuple(result)


def spoken(*texts: str) -> None:
    """Check that *texts* could stand on a terminal."""
    for text in texts:
        steering = STEERING.search(text)
        assert steering is None, f"{steering[0]!a} in a report" if steering else ""


# Logs, as Hadoop and we write them.


def _parser(name: str, read: Callable[..., Any], corpus: tuple[bytes, ...], **more: Any) -> Target:
    def of_lines(data: bytes) -> object:
        answer = read(io.BytesIO(data), "a.log")
        return list(answer) if isinstance(answer, Iterator) else answer

    return Target(name, corpus, of_lines, (ParseError,), **more)


def _history(folder: Path, name: str, corpus: tuple[bytes, ...], change: Change) -> Target:
    def go_on(trace: Any) -> None:
        measured([trace], {})
        spoken(printable(f"{trace.name} {trace.user} {trace.diagnostics}").replace("\t", " "))
        write_traces(folder, [trace])
        assert read_traces(Opener(folder), folder) == (trace,)

    return _parser(
        name, read_history, corpus, go_on=go_on, refusals=(HarnessError,), every=10, change=change
    )


def _histories(folder: Path) -> Iterator[Target]:
    json_form = files("*.jhist")
    yield _history(folder, "history", json_form, mutate)
    yield _history(folder, "history-binary", tuple(map(binary, json_form)), avro.change)


def _jobconf() -> Target:
    text = (DATA / "terasort_conf.xml").read_bytes()
    few = b"<configuration>" + b"".join(
        re.findall(rb"<property>.*?</property>", text, re.DOTALL)[:8]
    )
    return Target(
        name="jobconf",
        corpus=(text, few + b"</configuration>"),
        read=lambda data: read_properties(data, "job.xml"),
        errors=(ParseError,),
        go_on=job_config,  # type: ignore[arg-type]
        refusals=(HarnessError,),
    )


def _logs() -> Iterator[Target]:
    sample = {"at_s": 1.5, "busy": 0.5, "steal": 0.01, "iowait": 0.0, "runnable": 3,
              "available_bytes": 10**10, "memory_pressure": None, "own": 0.4,
              "swapped_bytes": 0}  # fmt: skip
    machine = b"".join(json.dumps({**sample, "at_s": n / 2}).encode() + b"\n" for n in range(20))
    speed = b"# epoch_ms thread units cpu_ns\n" + b"".join(
        b"%d %d 40 1500000\n" % (1_768_471_200_000 + 1000 * n, n % 2) for n in range(20)
    )

    def of_machine(samples: Any) -> None:
        if samples:
            spoken(find_disturbance({"a": machine_load(samples)}))

    yield _parser("machine", read_machine, (machine,), go_on=of_machine)
    yield _parser("speed_probe", read_speed, (speed,), go_on=lambda s: mean_rate(s, 0.0, 2e9))


def packed(*patterns: str) -> tuple[bytes, ...]:
    """Contents of gzipped real logs."""
    return tuple(map(gzip.decompress, files(*patterns, folder=DATA / "containers")))


def _task_logs() -> Iterator[Target]:
    attempt = TaskAttempt("attempt_1_0001_m_000000_0", "t", "map", "succeeded", 1.79e9, 1.8e9, "h")
    reduce = replace(attempt, kind="reduce")

    def of_map(log: Any) -> None:
        shown(job_task_times(a_job(attempt), [logged_map_times(log, attempt)], []), a_job(attempt))

    def of_reduce(log: Any) -> None:
        reported = logged_reduce_times(TaskLog(), log, reduce)
        shown(job_task_times(a_job(reduce), [reported], []), a_job(reduce))

    task_logs = (*files("*.syslog"), *packed("*/*.syslog.gz"))
    yield _parser("task_log", read_task_log, task_logs, go_on=of_map, every=5)
    shuffles = packed("*/*.shuffle.gz")
    yield _parser("shuffle_log", read_shuffle_log, shuffles, go_on=of_reduce, every=5)


def _aggregated() -> Iterator[Target]:
    folder = ROOT / "tests/run/data/logs"

    def target(name: str, pattern: str, read: Callable[..., Any]) -> Target:
        def of_file(data: bytes) -> object:
            for piece in read(io.BytesIO(data), "a.log"):
                assert re.fullmatch(r"container_[0-9e_]+", piece.container)
                assert piece.name.startswith("syslog")
                assert "/" not in piece.name
            return data

        return Target(name, files(pattern, folder=folder), of_file, (ParseError,))

    yield target("yarn-logs", "yarn-logs.txt", read_text)
    yield target("tfile", "tfile/*", read_tfile)
    yield target("ifile", "ifile/*", read_ifile)


# What the tracer recorded.


def a_job(*attempts: TaskAttempt) -> JobTrace:
    """A job of these attempts."""
    start = min(a.start_s for a in attempts)
    end = max(a.finish_s for a in attempts)
    return JobTrace("job_1_0001", "j", "u", "SUCCEEDED", start, start, end, 1, 1, attempts)


def shown(times: JobTaskTimes, job: JobTrace) -> None:
    """Tables and pieces of what is known of the tasks of *job*: what the report draws."""
    table = parts_table("job", bars(times.parts))
    spoken(*(value.text for row in table.rows for value in row))
    for pieces in times.pieces.values():
        for thread in pieces:
            thinned(thread, 0.01)


def _ltrace(folder: Path) -> Target:
    corpus = tuple(recorded.recording(f"{name}.ltrace.spans") for name in RECORDED)

    def read(data: bytes) -> TaskSpans:
        return read_ltrace([data[:5000], data[5000:]], "ltrace.spans")

    def go_on(task: Any) -> None:
        attempt = _attempt_of(task)
        job = a_job(attempt)
        shown(job_task_times(job, [], [task]), job)
        killed = a_job(replace(attempt, state="killed"))
        shown(job_task_times(killed, [], [task]), killed)
        spoken(render_task(task, attempt), render_tasks(job, [task]))
        json.dumps(list(chrome_events(job, [task])), allow_nan=False)
        write_recordings(folder, _Kept(task))
        assert list(read_recordings(Opener(folder), folder)) == [task]
        copies = read_table(Opener(folder), folder / "segments.parquet", _SEGMENT)
        owner = {"attempt_id": task.attempt_id}
        assert list(copies) == [owner | asdict(s) for s in recorded_segments(task)]

    return Target(
        "ltrace", corpus, read, (ParseError,), go_on, (DataError,), every=5, change=recorded.change
    )


class _Kept(NamedTuple):
    """One recording, to be stored."""

    task: TaskSpans

    def tasks(self) -> Iterator[TaskSpans]:
        """Give it."""
        yield self.task

    def units(self) -> Iterator[UnitTimes]:
        """Give none."""
        yield from ()


def _attempt_of(task: TaskSpans) -> TaskAttempt:
    """An attempt whose times go with the recording."""
    kind: TaskKind = "map" if "_m_" in task.attempt_id else "reduce"
    end = max((s.finish_s for s in task.spans), default=task.opened_s)
    return TaskAttempt(
        task.attempt_id, "t", kind, "succeeded", max(task.opened_s - 1, 0.0), end + 1, "worker1"
    )


def _units() -> Target:
    corpus = tuple(recorded.recording(f"{name}.ltrace.units") for name in ("map", "killed"))

    def go_on(reported: Any) -> None:
        records, seconds = reported
        assert records > 0
        assert ((seconds > 0) & (seconds < 69)).all()

    return Target("units", corpus, lambda data: read_units(data, "u"), (ParseError,), go_on)


# What people write.


def _planned(experiment: Any) -> None:
    """What `harness plan` and `harness all` do with an experiment before anything is started."""
    cells = expand(experiment)
    refuse_cells(map(resolve_cell, cells), refusals, "e.yaml")
    trials = order(experiment, cells, VERSIONS)
    for cell in cells[:2]:
        _ = resolve_cell(cell).model_inputs
    spoken(*(printable(label(cell, varying(cells))) for cell in cells[:50]))
    json.dumps(make_plan(experiment, trials[:50], {}, Estimator([])), allow_nan=False)
    reported(ReportData(experiment))


def _experiment() -> Target:
    corpus = (*files("*.yaml", folder=ROOT / "experiments"), EXPERIMENT.encode())

    def read(data: bytes) -> object:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:  # what `check_readable` says of such a file
            raise SpecError("no UTF-8 text") from error
        places(text, "e.yaml")
        return read_experiment(text, "e.yaml", known=KNOWN)

    return Target("experiment", corpus, read, (SpecError,), _planned, (SpecError,), limit_s=6.0)


def _override() -> Target:
    corpus = (b"workloads.terasort.input=[1 MiB, 32 MiB]", b"cluster.site.dfs.blocksize=16 MiB",
              b"configuration={mapreduce.job.reduces: [1, 2]}", b"name=x", b"repeat=3",
              b"predict.profile_on={input: 6000000}", b"design={sobol: 8}",
              b"predict.profile_on=auto", b"question={how_far: best, extrapolate: out}",
              b"question=who: are you")  # fmt: skip

    def read(data: bytes) -> object:
        return read_experiment(
            EXPERIMENT, "e.yaml", [data.decode("utf-8", "surrogateescape")], known=KNOWN
        )

    # A design is the first to import scipy.
    return Target("override", corpus, read, (SpecError,), _planned, (SpecError,), limit_s=6.0)


def _vectors() -> Target:
    corpus = files("scheduler.json", "whatif_merge_*.json", "prophet_accuracy_indicator.json",
                   folder=ROOT / "tests/validation/vectors")  # fmt: skip
    jobs = json.loads(files("whatif_jobs.json", folder=ROOT / "tests/validation/vectors")[0])
    few = json.dumps({**jobs, "cases": jobs["cases"][:3]}, indent=1).encode()

    def read(data: bytes) -> object:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:  # what `harness vectors` says of such a file
            raise DataError("no UTF-8 text") from error
        return v.read_vectors(text, "v.json")

    def go_on(document: Any) -> None:
        for case in document.cases:
            try:
                answer = v.compute(document.model, case.input, cli_models.EVALUATORS)
            except v.NoImplementationError:
                continue
            json.dumps(answer)
            misses = v.compare(answer, case.expected, document)
            texts = (printable(f"{m.field} {m.answer} {m.expected}") for m in misses)
            spoken(*(text.replace("\t", " ") for text in texts))

    return Target("vectors", (*corpus, few), read, (DataError,), go_on, (HarnessError,))


# What the store keeps.


def made_run(folder: Path) -> Run:
    """A run of six trials with everything that a finished run holds."""
    experiment = read_experiment(EXPERIMENT, "recorded.yaml", known=KNOWN)
    run = Store(folder).open_run(experiment, EXPERIMENT)
    machine = {"cores": 4, "memory_bytes": 2**33, "cpu": "a"}
    run.update_manifest(harness="0", command="harness all", seed=7, machine=machine)
    trials = order(experiment, expand(experiment), VERSIONS)
    run.write_plan(trials)
    for n, trial in enumerate(trials):
        commit(run, trial, "failed" if n == 5 else "done", 900 + 50 * n)
        if n != 5:
            _record(run, trial.id)
    # Whoever hands over a changed file can hash it: what is tested is what then reads it.
    for path in [run.path / "trials.jsonl", *run.path.glob("trials/*/evidence.json")]:
        path.unlink()
    e = evaluation(run)
    e.profile()
    e.predict()
    e.score()
    run.finish()
    return run


def _record(run: Run, trial: str) -> None:
    """Put recordings of a map and of a reduce beside the logs of a trial, and into its tables."""
    (job,) = run.read_trace(trial)
    for kind in ("map", "reduce"):
        a = job.succeeded(kind)[0]
        folder = run.trial_dir(trial) / f"raw/containers/worker1/{a.container_id}"
        folder.mkdir(parents=True, exist_ok=True)
        spans = recorded.moved(
            recorded.recording(f"{kind}.ltrace.spans"), a.attempt_id, a.start_s + 0.5
        )
        (folder / "ltrace.spans.gz").write_bytes(gzip.compress(spans))
        if kind == "map":
            units = recorded.recording("map.ltrace.units")[:400]
            (folder / "ltrace.units.gz").write_bytes(gzip.compress(units))
    message = write_trace(run, run.trials()[trial], [job])
    assert not any("cannot be read" in complaint for complaint in message)


def evaluation(run: Run) -> Evaluation:
    """What the steps of the command line work on."""
    return Evaluation(run, run.experiment(), run.read_plan())


def reported(data: ReportData, *, html: bool = False) -> None:
    """Check that every report of *data* shows its text, and obeys none of it."""
    document = make_document(data)
    for name in ("terminal", "markdown", "json", *(("html",) if html else ())):
        text = REPORTS[name].render(document)
        spoken(text)
        text.encode()
        if name == "markdown":
            assert not re.search(r"(?<!\\)<", text), "markup in the report"
        if name == "html":
            page = Page(text)
            assert "script" not in page.tags
            assert "img" not in page.tags


def report(run: Run, data: bytes, *, predict: bool = False) -> None:
    """What follows on a stored file that was read: perhaps predictions, then the report."""
    e = evaluation(run)
    if predict:
        e.predict()
        e.score()
    # Whoever hands over a changed file can seal it again.
    run.seal.add()
    reported(e.report_data(), html=zlib.crc32(data) % 10 == 0)


def _packed(run: Run) -> Target:
    """A log of a task, which may write what it likes, compressed among the results."""
    trial_id = next(trial.id for trial in run.read_plan() if not trial.profiling)
    folder = run.trial_dir(trial_id) / "raw"
    (log,) = folder.glob("containers/*/*/syslog.gz")
    name = log.relative_to(folder).as_posix().removesuffix(".gz")

    def read(data: bytes) -> None:
        log.write_bytes(data)
        with run.raw(trial_id).open(name) as lines:
            try:
                read_task_log(lines, name)
            except ParseError:
                return

    return Target("raw.gz", (log.read_bytes(),), read, (DataError,), every=10**9)


NAMES = (
    "history", "history-binary", "jobconf", "machine", "speed_probe",
    "task_log", "shuffle_log", "yarn-logs", "tfile", "ifile",
    "ltrace", "units", "experiment", "override",
    "vectors",
)  # fmt: skip
STORED = ("raw.gz",)
GENERATED = tuple(f"made-{name}" for name in (*NAMES, *stored.NAMES))


def _generated(plain: Sequence[Target]) -> Iterator[Target]:
    """The same readers, given what their grammar makes."""
    known = {target.name: target for target in plain}
    json_form = files("*.jhist")
    experiments = [yaml.safe_load(text) for text in files("*.yaml", folder=ROOT / "experiments")]
    of_examples = generate.infer([*experiments, yaml.safe_load(EXPERIMENT)])
    of_records = experiment_model.Experiment.model_json_schema()
    alone = [generate.infer([each]) for each in experiments]
    experiment = {"anyOf": [*alone, of_examples, of_records], "$defs": of_records["$defs"]}
    vectors = [json.loads(text) for text in known["vectors"].corpus]
    samples = [json.loads(line) for line in known["machine"].corpus[0].splitlines()]
    words = [text.partition(b"=")[::2] for text in known["override"].corpus]
    override = {"anyOf": [{"examples": [value.decode() for _, value in words]}, of_examples]}

    def override_text(random: Random) -> bytes:
        name = random.choice(words)[0] if random.random() < 0.8 else generate.soup(random)[:99]
        return name + b"=" + generate.of_schema(override, indent=None)(random).strip(b'"\n')

    makes = {
        "history": generate.history(json_form),
        "history-binary": generate.history(json_form, binary),
        "jobconf": generate.jobconf,
        "machine": generate.lines_of(generate.of_schema(generate.infer(samples), indent=None), 30),
        "speed_probe": generate.speed,
        "ltrace": generate.recording,
        "units": generate.units,
        "experiment": generate.of_schema(experiment),
        "override": override_text,
        "vectors": generate.of_schema(generate.infer(vectors)),
    }
    for name in NAMES:
        make = makes.get(name) or generate.like_lines(known[name].corpus)
        yield generate.made_target(known[name], generate.mixed(make))


def _of_whole_runs(folder: Path, names: frozenset[str]) -> Iterator[Target]:
    """What reads a whole run, its bundle, what is said about it, and answers of others."""
    # These modules take the run that is made here, and this one is imported first.
    from tests.hostile import bundles, later, services, whole, witnesses

    if names & {*witnesses.NAMES, *bundles.NAMES, *later.NAMES}:
        run = whole.whole_run(folder / "evident")
        if names & {*witnesses.NAMES, *bundles.NAMES}:
            bundle = whole.whole_bundle(run, folder / "bundle")
            yield from witnesses.witness_targets(run, bundle, folder)
            yield from bundles.bundle_targets(bundle, folder)
        yield from later.later_targets(run, folder, names)
    if names & {*services.NAMES}:
        yield from services.service_targets(folder)


@contextmanager
def targets(names: Collection[str]) -> Iterator[list[Target]]:
    """Targets of these *names*, in a folder that goes with them."""
    # In memory where there is such a place: the store syncs whatever it writes.
    memory = Path("/dev/shm")
    with TemporaryDirectory(prefix="hostile-", dir=memory if memory.is_dir() else None) as place:
        folder = Path(place)
        (folder / "trace").mkdir()
        made = [
            *_histories(folder / "trace"),
            _jobconf(),
            *_logs(),
            *_task_logs(),
            *_aggregated(),
            _ltrace(folder / "trace"),
            _units(),
            _experiment(),
            _override(),
            _vectors(),
        ]
        if set(names) & set(STORED):
            made.append(_packed(made_run(folder / "whole")))
        if any(name.startswith("made-") for name in names):
            made += _generated(made)
        made += _of_whole_runs(folder, frozenset(names))
        stored_names = [name.removeprefix("made-") for name in names]
        if any(name in stored.NAMES for name in stored_names):
            made += stored.stored_targets(folder / "small", stored_names)
        known = {target.name: target for target in made}
        yield [known[name] for name in names]
