"""
Everything that a stored run holds, and archives of runs, as targets of generated inputs.
"""

from __future__ import annotations

import json
import shutil
import warnings

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from random import Random
from typing import Any

from pyarrow import ArrowException, BufferOutputStream, Table, array, parquet

from harness.base.errors import DataError, HarnessError
from harness.base.records.manifest import Manifest
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import ScoreBook
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import SCHEMA_VERSION, Trial, TrialRecord
from harness.core.experiment.model import Experiment
from harness.core.store import Run, Store
from harness.core.store.evidence import Chain, Evidence, Line
from harness.core.store.seal import Seal
from harness.core.store.unpack import unpack
from harness.observe.storage import tables
from tests.hostile import generate
from tests.hostile.hunt import Target
from tests.hostile.mutate import NUMBERS, TEXTS
from tests.store.conftest import Make
from tests.store.test_damage import Recorded, read_segments

RECORDS = {
    "manifest.json": (Manifest, False, lambda run: (run.read_manifest(), run.experiment())),
    "trial.json": (TrialRecord, False, lambda run: run.trials()),
    "plan.jsonl": (Trial, True, lambda run: run.read_plan()),
    "profile.json": (Profile, False, lambda run: run.read_profiles()),
    "predictions.jsonl": (Prediction, True, lambda run: run.read_predictions()),
    "sealed.json": (Seal, False, lambda run: run.seal.check()),
    "scores.json": (ScoreBook, False, lambda run: run.read_scores()),
    "evidence.json": (Evidence, False, lambda run: run.check_evidence()),
    "trials.jsonl": (Line, True, lambda run: Chain(run.opener).lines()),
}  # fmt: skip
TABLES = {
    "attempts": (tables._ATTEMPT, lambda run, trial: run.read_trace(trial)),
    "counters": (tables._COUNTERS, lambda run, trial: run.read_trace(trial)),
    "tasks": (tables._TASK, lambda run, trial: list(run.read_recordings(trial))),
    "spans": (tables._SPAN, lambda run, trial: list(run.read_recordings(trial))),
    "segments": (tables._SEGMENT, lambda run, trial: read_segments(run.opener, trial)),
    "units": (tables._UNITS, lambda run, trial: list(run.read_units(trial))),
}  # fmt: skip
NAMES = (*RECORDS, "job.json", *(f"{name}.parquet" for name in TABLES), "raw.gz", "archive")


def stored_targets(folder: Path, names: Collection[str]) -> Iterator[Target]:
    """Targets of these *names*, in a small whole run, whose files they replace."""
    run = small_run(folder / "results")
    (trial,) = run.trial_ids()
    at_trial = run.trial_dir(trial)
    places = {
        "trial.json": at_trial / "trial.json", "evidence.json": at_trial / "evidence.json",
        "profile.json": min(run.path.glob("profiles/*.json")),
        "predictions.jsonl": min(run.path.glob("predictions/*.jsonl")),
        "sealed.json": run.path / "predictions/sealed.json",
        "scores.json": run.path / "scores/scores.json",
    }  # fmt: skip
    for name, (record, is_lines, read) in RECORDS.items():
        if name in names:
            schema = dict(record.model_json_schema())
            if record is Manifest:
                inner = Experiment.model_json_schema(by_alias=False)
                schema["$defs"] = {**schema.get("$defs", {}), **inner.pop("$defs", {})}
                schema["properties"] = {**schema["properties"], "experiment": inner}
            path = places.get(name, run.path / name)
            lines = path.read_text().splitlines() if is_lines else [path.read_text()]
            like = generate.infer([json.loads(line) for line in lines])
            either = {"anyOf": [like, schema], "$defs": schema.get("$defs", {})}
            one = generate.of_schema(either, version=SCHEMA_VERSION, indent=None if is_lines else 2)
            yield _replaced(name, path, run, read, generate.lines_of(one) if is_lines else one)
    if "job.json" in names:
        path = at_trial / "trace" / "job.json"
        schema = generate.infer([json.loads(path.read_text())] * 2)
        make = generate.of_schema(schema, version=SCHEMA_VERSION)
        yield _replaced("job.json", path, run, lambda run: run.read_trace(trial), make)
    for name, (columns, read_table) in TABLES.items():
        if f"{name}.parquet" in names:
            path = at_trial / "trace" / f"{name}.parquet"

            def read_it(run: Run, read_table: Callable[..., Any] = read_table) -> object:
                return read_table(run, trial)

            yield _replaced(f"{name}.parquet", path, run, read_it, _table(columns))
    if "raw.gz" in names:
        (log,) = at_trial.glob("raw/containers/c_1/syslog.gz")

        def read_log(run: Run) -> None:
            with run.raw(trial).open("containers/c_1/syslog") as lines:
                for _ in lines:
                    pass

        yield _replaced("raw.gz", log, run, read_log, generate.packed)
    if "archive" in names:
        yield _archive(run, folder)


def small_run(folder: Path) -> Run:
    """A run of one trial that has a file of each kind."""
    make = Make()
    run = Store(folder).open_run(make.experiment(), "text")
    trial, *_ = plan = make.trials()
    attempt = TaskAttempt("a_1", "t_1", "map", "succeeded", 1.0, 2.0, "w", counters={"T.A": 1})
    job = JobTrace("j", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, 1, 0, (attempt,), counters={"X": 2})
    run.write_plan(plan)
    make.commit(run, trial)
    run.write_trace(trial.id, [job], Recorded())
    run.write_profile(make.profile())
    run.write_predictions("whatif", [make.prediction()])
    run.seal.add()
    run.write_scores(ScoreBook())
    run.finish()
    return run


def _replaced(
    name: str, path: Path, run: Run, read: Callable[[Run], object], make: generate.Make
) -> Target:
    whole = path.read_bytes()

    def read_bytes(data: bytes) -> object:
        path.write_bytes(data)
        try:
            return read(run)
        finally:
            path.write_bytes(whole)

    target = Target(name, (whole,), read_bytes, (DataError,))
    return generate.made_target(target, generate.mixed(make))


def _table(columns: dict[str, Any]) -> generate.Make:
    """Tables with the *columns* of a record, of the right types or others, in any encoding."""
    texts = [text for text in TEXTS if text.isprintable() or text.isascii()]
    plain = {str: ("a", "b", "job_1", *texts), int: (0, 1, 2, 2**40, -1), bool: (True, False),
             float: (0.0, 1.5, 1e300, -1.0, float("nan"), float("inf"))}  # fmt: skip

    def value(arrow_type: Any, random: Random, wild: float) -> Any:
        text = str(arrow_type)
        if random.random() < wild:
            return None
        if text.startswith("list"):
            return [value(arrow_type.value_type, random, wild) for _ in range(random.randrange(5))]
        kind = {"string": str, "int64": int, "bool": bool}.get(text, float)
        usual = {str: ("a_1", "a_1", "j", "b"), int: (0, 1, 2, 7), bool: (True, False),
                 float: (0.5, 1.0, 2.25)}  # fmt: skip
        return random.choice((plain if random.random() < wild else usual)[kind])

    def make(random: Random) -> bytes:
        wild = random.choice((0.0, 0.0, 0.01, 0.1, 0.4))
        rows = random.choice((0, 1, 3, 50))
        made: dict[str, Any] = {}
        for column, hint in columns.items():
            arrow_type = tables._arrow_type(hint)
            values = [value(arrow_type, random, wild) for _ in range(rows)]
            if random.random() < wild / 5:
                made[column] = array([str(random.choice(NUMBERS)) for _ in range(rows)])
                continue
            made[column] = array(values, arrow_type)
        if random.random() < wild / 3:
            made.pop(random.choice([*made]))
        if random.random() < wild / 3:
            made[random.choice(TEXTS)] = array([0] * rows)
        stream = BufferOutputStream()
        try:
            parquet.write_table(
                Table.from_pydict(made), stream, row_group_size=random.choice((1, 7, 1000)),
                compression=random.choice(("zstd", "snappy", "gzip", "none")),
                use_dictionary=random.random() < 0.5,
                data_page_version=random.choice(("1.0", "2.0")),
                write_page_checksum=random.random() < 0.7,
            )  # fmt: skip
        except (ArrowException, ValueError):
            return b"PAR1"
        data = bytearray(stream.getvalue().to_pybytes())
        for _ in range(random.choice((0, 0, 0, 1, 3)) if wild else 0):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        return bytes(data)

    return make


def _archive(run: Run, folder: Path) -> Target:
    """Archives of a run, or of whatever else, taken in where there was none."""
    files = (path for path in run.path.rglob("*") if path.is_file() and path.name != "lock")
    sound = {f"{run.id}/{path.relative_to(run.path)}": path.read_bytes() for path in files}
    archive = folder / "given"
    into = folder / "into"
    outside = {path.name for path in folder.iterdir()} | {"given", "into"}

    def read(data: bytes) -> object:
        archive.write_bytes(data)
        try:
            return unpack(archive, into)
        finally:
            left = {path.name for path in into.iterdir()} if into.exists() else set()
            shutil.rmtree(into, ignore_errors=True)
            assert left <= {".unpack.lock", "small", "recorded"}, left
            assert {path.name for path in folder.iterdir()} <= outside

    warnings.simplefilter("ignore")  # of zip files with a name twice, which are refused
    target = Target("archive", (b"",), read, (HarnessError,))
    return generate.made_target(target, generate.mixed(generate.tar_or_zip(sound), 0.02))
