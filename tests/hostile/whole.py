"""
A whole run with evidence and its bundle, and how somebody makes all hashes anew who changed a file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from harness.base.hadoop.properties import SEAL as SEAL_PROPERTY
from harness.core.reports import REPORTS
from harness.core.store import Run
from harness.core.store.evidence import CHAIN, EVIDENCE, SCORES, hash_folder
from harness.core.store.run import FINISHED
from harness.core.store.seal import ANCHORS, PROFILES, SEAL
from harness.core.store.sums import SUMS
from harness.observe.storage.files import json_bytes
from harness.observe.storage.opener import MANIFEST
from harness.publish import paper
from harness.publish.bundle import publish
from harness.publish.evidence import make_trial_evidence
from tests.hostile.targets import made_run

ANCHOR = {
    "schema_version": 14, "about": "seal", "sha256": "", "command": "notary", "asked_s": 1.0,
    "answered_s": 2.5, "answer": "c2VlbiBhdCAzOjAw", "error": "",
}  # fmt: skip


def whole_run(folder: Path) -> Run:
    """A finished run with evidence, and an anchor of its seal."""
    run = made_run(folder)
    path = run.path / ANCHORS / "seal.json"
    path.parent.mkdir()
    path.write_bytes(json_bytes(ANCHOR | {"sha256": run.seal.sha256()}))
    plan = run.read_plan()
    for trial in plan:
        if not trial.profiling:
            _name_seal(run, trial.id)
    names = [MANIFEST]
    names += [f"trials/{trial.id}" for trial in plan if trial.profiling]
    names += [f"profiles/{file.name}" for file in sorted((run.path / PROFILES).iterdir())]
    names += [SEAL, f"{ANCHORS}/seal.json"]
    names += [f"trials/{trial.id}" for trial in plan if not trial.profiling]
    hashes = dict[str, str]()
    for trial in plan:
        hashes |= make_trial_evidence(run.opener, run.trial_dir(trial.id))
    documents = list[dict[str, object]]()
    for name in [*names, *(name for name in hashes if name.endswith("/trace")), SCORES]:
        moment = 10.0 + len(documents)
        sha256 = hashes.get(name, "")
        documents.append({"schema_version": 14, "name": name, "sha256": sha256, "stored_s": moment})
    (run.path / CHAIN).write_bytes(b"".join(map(line_of, documents)))
    hash_again(run)
    run.check_evidence()
    run.seal.check()
    return run


def _name_seal(run: Run, trial: str) -> None:
    """Give the job of a scored *trial* its configuration, in which Hadoop has the seal."""
    conf = f"<property><name>{SEAL_PROPERTY}</name><value>{run.seal.sha256()}</value></property>"
    path = run.trial_dir(trial) / "raw" / "job-0-conf.xml.gz"
    path.write_bytes(gzip.compress(f"<configuration>{conf}</configuration>".encode(), mtime=0))


def hash_again(run: Run, changed: str = "") -> None:
    """
    Make seal, evidence, chain and end of *run* anew, whose file *changed* is another one now.

    What of these cannot be read stays as it is.
    """
    with suppress(ValueError, TypeError, AttributeError, OSError):
        seal = json.loads((run.path / SEAL).read_bytes())
        names = [name for name in seal["sha256"] if (run.path / name).is_file()]
        seal["sha256"] = {name: _sha256(run.path / name) for name in names}
        text = json.dumps(seal, indent=2, sort_keys=True)
        (run.path / SEAL).write_text(f"{text}\n")
    trial = changed.split("/")[1] if changed.startswith("trials/") else ""
    hashes = {}
    if trial:
        (run.trial_dir(trial) / EVIDENCE).unlink()
        hashes = make_trial_evidence(run.opener, run.trial_dir(trial))
    previous = ""
    lines = []
    for line in (run.path / CHAIN).read_bytes().splitlines():
        document = json.loads(line)
        name = document["name"]
        if name == SCORES:
            document["sha256"] = hash_folder(run.path / SCORES, run.opener)
        elif name in hashes:
            document["sha256"] = hashes[name]
        elif not name.startswith("trials/"):
            document["sha256"] = _sha256(run.path / name)
        document["previous"] = previous
        lines.append(line_of(document))
        previous = hashlib.sha256(lines[-1]).hexdigest()
    (run.path / CHAIN).write_bytes(b"".join(lines))
    (run.path / FINISHED).write_text(previous)


def line_of(document: object) -> bytes:
    """A line of JSON, also with numbers that JSON does not have."""
    return json.dumps(document, sort_keys=True).encode() + b"\n"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def nothing_drawn() -> Iterator[None]:
    """A figure of a bundle is the word for its kind, its page for browsers one in Markdown."""
    with (
        patch.dict(REPORTS, {"html": REPORTS["markdown"]}),
        patch.object(paper, "_drawn", lambda _figure, kind: kind.encode()),
    ):
        known = sys.modules.get("typst")
        sys.modules["typst"] = None  # type: ignore[assignment]
        try:
            yield
        finally:
            del sys.modules["typst"]
            if known is not None:
                sys.modules["typst"] = known


def whole_bundle(run: Run, folder: Path) -> Path:
    """The bundle of *run* with its scores."""
    with nothing_drawn():
        publish([run], folder, level="scores")
    return folder


def sum_again(bundle: Path, name: str) -> None:
    """Write the sum of the one file that was changed in *bundle*."""
    lines = (bundle / SUMS).read_text().splitlines()
    changed = f"{_sha256(bundle / name)}  {name}"
    texts = [changed if line[66:] == name else line for line in lines]
    (bundle / SUMS).write_text("".join(f"{text}\n" for text in texts))
