"""
What is said about a run beside its files: ledger, anchors, stamps, verifiers, laws of its records.
"""

from __future__ import annotations

import base64
import json

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from harness.anchoring.command import _anchor_facts, _shown
from harness.anchoring.stamp import read_stamp, verify_stamp
from harness.base.errors import DataError, EvidenceError, HarnessError, SpecError
from harness.cli.commands.runs import shown_registered
from harness.core.evaluate.laws import broken_laws
from harness.core.run.anchors import Notary, ask
from harness.core.store import Run, ledger
from harness.core.store.anchors import (
    end_problem,
    measured_seal,
    name_of_answer,
    order_words,
    read_anchor,
    unanchored_why,
)
from harness.core.store.evidence import CHAIN
from harness.core.store.published import ORIGINALS, level_of, require_published, unpublished_code
from harness.core.store.seal import ANCHORS
from harness.core.store.stamps import read_refusal, stamp_in
from harness.observe.storage.opener import MANIFEST, Opener
from harness.publish import verifiers
from harness.publish.publication import PUBLICATION, read_publication
from tests.anchoring.authority import make_certificates, stamp
from tests.hostile import numbers
from tests.hostile.hunt import Target
from tests.hostile.mutate import Change, mutate
from tests.hostile.whole import hash_again

NAMES = (
    "ledger", "anchor.json", "originals.json", "stamp", "certificate", "anchor-answer",
    "anchor-command", "verifier-copy", "former-verifiers", "publication.json", "laws-trial.json",
    "laws-trials.jsonl", "laws-attempts.parquet",
)  # fmt: skip
_DIGEST = "ab" * 32
LAWS_EVERY = 10  # of so many records one that was read is held to the laws


def either(first: Change, second: Change) -> Change:
    """Now the one change, now the other."""
    return lambda data, other, random: random.choice((first, second))(data, other, random)


JSON = either(mutate, numbers.in_json)


def witness_targets(run: Run, bundle: Path, folder: Path) -> Iterator[Target]:
    """All of them: about a whole *run*, its *bundle*, and whatever lies in *folder*."""
    yield _ledger(run, folder)
    yield _anchor(run)
    yield _originals(bundle)
    yield from _of_stamps(folder)
    yield from _of_commands(folder)
    yield from _of_verifiers(bundle, folder)
    yield from _laws(run)


def replacing(path: Path, act: Callable[[], object]) -> Callable[[bytes], object]:
    """Give what reads with other bytes at *path*, and puts the right ones back."""
    whole = path.read_bytes()

    def read(data: bytes) -> object:
        path.write_bytes(data)
        try:
            return act()
        finally:
            path.write_bytes(whole)

    return read


def _ledger(run: Run, folder: Path) -> Target:
    path = folder / "runs.jsonl"
    entry = {
        "schema_version": 14, "run": run.id, "experiment": "recorded", "lines": 9, "published": "",
        "line": "ab" * 32, "finished": True, "noted_s": 1795224441.5, "sealed": "cd" * 32,
    }  # fmt: skip
    other = entry | {"run": "another", "finished": False, "sealed": "", "noted_s": 1.0}
    corpus = b"".join(json.dumps(each).encode() + b"\n" for each in (other, entry, entry))
    path.write_bytes(corpus)

    def read() -> object:
        with patch.object(ledger, "ledger_file", lambda: path):
            entries = [*ledger.entries()]
            registered = ledger.registered()
            _ = [*shown_registered(registered)]
            ledger.contradictions(run.id, {}, finished=False)
            ledger.note(ledger.Entry(**entry))
        return entries

    return Target("ledger", (corpus,), replacing(path, read), (HarnessError,), change=JSON)


def _anchor(run: Run) -> Target:
    path = run.path / ANCHORS / "seal.json"
    document = json.loads(path.read_bytes())
    stamped = json.dumps(document | {"answer": base64.b64encode(b"MIIB").decode()}).encode()

    def read() -> object:
        unanchored_why(run)
        order_words(run)
        end_problem(run)
        shown = {
            "order": order_words(run), "unanchored": "", "not_before": "",
            "anchors": [_anchor_facts(run, "seal", ())], "has_evidence": True, "end": "",
            "no_stamp": False,
        }  # fmt: skip
        return [*_shown(shown)] if read_anchor(run, "seal") else None

    corpus = (path.read_bytes(), stamped)
    return Target("anchor.json", corpus, replacing(path, read), (HarnessError,), change=JSON)


def _originals(bundle: Path) -> Target:
    (folder,) = (bundle / "runs").iterdir()
    path = folder / ORIGINALS
    run = Run(folder)

    def read() -> object:
        level_of(run.opener)
        unpublished_code(run.opener, {})
        measured_seal(run)
        unanchored_why(run)
        return require_published(run.opener, "scores")

    corpus = (path.read_bytes(),)
    return Target("originals.json", corpus, replacing(path, read), (HarnessError,), change=JSON)


def _of_stamps(folder: Path) -> Iterator[Target]:
    """Answers of an authority, and certificates by which they are verified."""
    from rfc3161_client import TimestampRequestBuilder

    authority = make_certificates(folder / "authority")
    query = TimestampRequestBuilder().data(_DIGEST.encode()).build().as_bytes()
    answer = stamp(authority, query)
    root = (authority / "root.pem").read_bytes()
    signer = (authority / "signer.pem").read_bytes()

    def read(data: bytes) -> object:
        name_of_answer("harness anchor tsa http://tsa.example/tsr", data, _DIGEST)
        stamp_in(base64.b64encode(data))
        read_refusal(data)
        read_stamp(data, "x")
        return data

    def go_on(data: Any) -> None:
        verify_stamp(data, _DIGEST, [root], "x")

    yield Target("stamp", (answer,), read, (EvidenceError,), go_on, (EvidenceError,))
    yield Target(
        "certificate",
        (root, root + signer),
        lambda data: verify_stamp(answer, _DIGEST, [data], "x"),
        (HarnessError,),
    )


def _of_commands(folder: Path) -> Iterator[Target]:
    """Commands of `--anchor`, and what they print."""
    printed = folder / "printed"

    def read(data: bytes) -> object:
        printed.write_bytes(data)
        return ask("seal", _DIGEST, Notary(f"cat {printed} /dev/null --"))

    def run_it(data: bytes) -> object:
        text = data.decode("utf-8", "surrogateescape").replace("\0", "")
        return ask("seal", _DIGEST, Notary(f"/nonexistent {text}"))

    yield Target("anchor-answer", (b"seen at 3:00\n", b"MIIB\n"), read, (HarnessError,))
    words = (b"--url 'http://tsa.example/tsr' \"a b\"", b"tsa http://127.0.0.1/ --x=$(id) \\'")
    yield Target("anchor-command", words, run_it, (SpecError,))


def _of_verifiers(bundle: Path, folder: Path) -> Iterator[Target]:
    copy = bundle / "verify.py"
    yield Target(
        "verifier-copy",
        (copy.read_bytes(),),
        replacing(copy, lambda: verifiers.verifier_of(bundle)),
        (DataError,),
    )
    listed = folder / "former_verifiers.txt"
    listed.write_bytes(verifiers.FORMER_LIST.read_bytes())

    def read_list() -> object:
        with patch.object(verifiers, "FORMER_LIST", listed):
            return verifiers.former_verifiers.__wrapped__()

    yield Target(
        "former-verifiers", (listed.read_bytes(),), replacing(listed, read_list), (DataError,)
    )
    publication = bundle / PUBLICATION
    yield Target(
        "publication.json",
        (publication.read_bytes(),),
        replacing(publication, lambda: read_publication(Opener(bundle))),
        (DataError,),
        change=JSON,
    )


def _laws(run: Run) -> Iterator[Target]:
    """Records with other numbers, held to the laws between all of them."""
    trial = next(trial.id for trial in run.read_plan() if not trial.profiling)
    at_trial = f"trials/{trial}"
    changes: dict[str, Change] = {
        f"{at_trial}/trial.json": JSON,
        CHAIN: numbers.in_json,
        f"{at_trial}/trace/attempts.parquet": numbers.in_table,
    }
    kept = {name: (run.path / name).read_bytes() for name in (CHAIN, "finished", MANIFEST)}

    def target(name: str, change: Change) -> Target:
        path = run.path / name
        whole = path.read_bytes()

        def read(data: bytes) -> object:
            path.write_bytes(data)
            try:
                if name == CHAIN:
                    hash_again(run)
                elif name.endswith(".json"):
                    run.trials()
                else:
                    run.read_trace(trial)
            finally:
                put_back()
            return data

        def go_on(data: Any) -> None:
            path.write_bytes(data)
            try:
                if name == CHAIN:
                    hash_again(run)
                broken_laws(run)
            finally:
                put_back()

        def put_back() -> None:
            path.write_bytes(whole)
            for other, kept_data in kept.items():
                (run.path / other).write_bytes(kept_data)

        return Target(
            f"laws-{Path(name).name}", (whole,), read, (HarnessError,), go_on, (HarnessError,),
            every=LAWS_EVERY, change=change,
        )  # fmt: skip

    for name, change in changes.items():
        yield target(name, change)
