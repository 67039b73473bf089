"""
The shape of all that is stored, with its version: one does not change without the other.

    .venv/bin/python -m tests.store.test_shapes

writes `shapes.json` anew, once `SCHEMA_VERSION` (harness/base/records/trial.py) was raised.
"""

import hashlib
import json
import re
import typing

from dataclasses import is_dataclass
from pathlib import Path

from pydantic import BaseModel

from harness.base.records.draw import Draw
from harness.base.records.manifest import Manifest
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.score import ScoreBook
from harness.base.records.trace import JobTrace
from harness.base.records.trial import SCHEMA_VERSION, Trial, TrialRecord
from harness.core.experiment.model import Experiment
from harness.core.store.evidence import Evidence, Line
from harness.core.store.seal import Seal
from harness.nightly.records import Acceptance, Night
from harness.observe.storage import tables

SHAPES = Path(__file__).with_name("shapes.json")
RECORDS = (
    Manifest, Experiment, Trial, TrialRecord, Profile, Prediction, ScoreBook, Evidence, Line, Seal,
    JobTrace, Night, Acceptance, Draw,
)  # fmt: skip
TABLES = {
    "attempts": tables._ATTEMPT, "counters": tables._COUNTERS, "tasks": tables._TASK,
    "spans": tables._SPAN, "segments": tables._SEGMENT, "units": tables._UNITS,
}  # fmt: skip


def shapes():
    """
    Fields and types of every record, and of all within them, and columns of every table, by name.
    """
    known = {}
    left = list(RECORDS)
    while left:
        record_type = left.pop()
        if record_type.__name__ in known:
            continue
        own = typing.get_type_hints(record_type)
        if issubclass(record_type, BaseModel):
            own = {name: own[name] for name in record_type.model_fields}
        own.pop("schema_version", None)
        known[record_type.__name__] = {name: text_of(hint) for name, hint in own.items()}
        left += [each for hint in own.values() for each in parts(hint) if is_record(each)]
    for name, columns in TABLES.items():
        known[f"{name}.parquet"] = {column: text_of(hint) for column, hint in columns.items()}
    return known


def is_record(hint):
    """
    Whether a part of a hint has fields of its own.
    """
    is_class = isinstance(hint, type) and typing.get_origin(hint) is None
    if not is_class:
        return False
    return issubclass(hint, BaseModel) or is_dataclass(hint) or hasattr(hint, "_fields")


def parts(hint):
    """
    All types within a hint.
    """
    yield hint
    for argument in typing.get_args(hint):
        yield from parts(argument)


def text_of(hint):
    """
    A type as it is written; the module that a class lies in is no part of a shape.
    """
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__name__
    return re.sub(r"\bharness(\.\w+)+\.", "", str(hint))


def digest(known):
    """
    One hash of all shapes.
    """
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def test_a_shape_changes_with_its_version():
    """
    What was written before is told from what is written now by its number; the message says what to
    do.
    """
    stored = json.loads(SHAPES.read_text())
    known = shapes()
    changed = [
        f"{name}.{field}"
        for name in sorted({*known, *stored["shapes"]})
        for field in sorted({*known.get(name, {}), *stored["shapes"].get(name, {})})
        if known.get(name, {}).get(field) != stored["shapes"].get(name, {}).get(field)
    ]
    assert changed == [], (
        "raise SCHEMA_VERSION in harness/base/records/trial.py, see that older files are still"
        " read, and run: .venv/bin/python -m tests.store.test_shapes"
    )
    assert stored["versions"].get(str(SCHEMA_VERSION)) == digest(known)
    assert max(map(int, stored["versions"])) == SCHEMA_VERSION


def main():
    """
    Write the present shapes; a version that is there already keeps its own.
    """
    stored = json.loads(SHAPES.read_text()) if SHAPES.exists() else {"versions": {}}
    known = shapes()
    version = str(SCHEMA_VERSION)
    if stored["versions"].setdefault(version, digest(known)) != digest(known):
        raise SystemExit(f"version {version} has another shape: raise SCHEMA_VERSION")
    SHAPES.write_text(json.dumps({**stored, "shapes": known}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
