"""
Numbers that nobody measures, followed into every later step: commands, as a user calls them.

A file of a whole run is changed, all hashes are made anew, and the run is scored, reported, drawn,
exported, tuned, published, verified and so on.  Every end of a command is an answer but status 70.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from harness.base.errors import HarnessError
from harness.base.records.profile import Profile
from harness.cli.entry import _invoke
from harness.core.evaluate.laws import broken_laws
from harness.core.store import Run
from harness.core.store.evidence import CHAIN
from harness.core.store.seal import PLAN, SEAL
from harness.observe.storage.opener import MANIFEST
from harness.publish import verify
from harness.publish.bundle import publish
from harness.publish.publication import read_publication
from harness.publish.remade import remade_pages
from harness.publish.rules import check
from tests.hostile import numbers
from tests.hostile.hunt import Target
from tests.hostile.mutate import Change
from tests.hostile.whole import hash_again, nothing_drawn

_LIMIT_S = 40.0
_LINES = (numbers.in_json, lambda run, _: [*run.read_plan(), *run.read_predictions()])
_TRACE = (numbers.in_table, lambda run, trial: run.read_trace(trial))
_RECORDED = (numbers.in_table, lambda run, trial: [*run.read_recordings(trial)])
Read = Callable[[Run, str], object]
# Each file of a run that has numbers, by its name (of the first scored trial), with who reads it.
FILES: dict[str, tuple[Change, Read]] = {
    "trial.json": (numbers.in_json, lambda run, _: run.trials()),
    "raw/job-0-history.jhist.gz": (numbers.in_packed, lambda run, trial: run.raw(trial).names()),
    "raw/speed-worker1.gz": (numbers.in_packed, lambda run, trial: run.raw(trial).names()),
    "trace/job.json": (numbers.in_json, lambda run, trial: run.read_trace(trial)),
    "trace/attempts.parquet": _TRACE,
    "trace/counters.parquet": _TRACE,
    "trace/tasks.parquet": _RECORDED,
    "trace/spans.parquet": _RECORDED,
    "trace/segments.parquet": _RECORDED,
    "trace/units.parquet": (numbers.in_table, lambda run, trial: [*run.read_units(trial)]),
    MANIFEST: (numbers.in_json, lambda run, _: (run.read_manifest(), run.experiment())),
    PLAN: _LINES,
    "predictions/whatif.jsonl": _LINES,
    "profiles/terasort.json": (numbers.in_json, lambda run, _: _profile(run)),
    SEAL: (numbers.in_json, lambda run, _: run.seal.read()),
    "scores/scores.json": (numbers.in_json, lambda run, _: run.read_scores()),
    CHAIN: (numbers.in_json, lambda run, _: [*run.opener.read(run.path / CHAIN, "").splitlines()]),
    "anchors/seal.json": (numbers.in_json, lambda run, _: run.opener.read(run.path / PLAN, "")),
}


def _profile(run: Run) -> Profile:
    """Its one profile, whose hash the seal does not have before all hashes are made anew."""
    return run.opener.read_record(Profile, run.path / "profiles/terasort.json", "")


NAMES = tuple(f"then-{Path(name).name.removesuffix('.gz')}" for name in FILES)


def steps_of(run: Run, trial: str, scratch: Path) -> dict[str, Callable[[], object]]:
    """What can be done with a run, by name; cheap steps stand twice."""
    where = str(run.path)
    results = str(run.path.parent.parent)
    bundle = scratch / "bundle"

    def commands(*lines: list[str]) -> Callable[[], object]:
        return lambda: [said(line) for line in lines]

    def bundled() -> None:
        with nothing_drawn():
            publish([run], bundle, level="scores")
            published = Run(next((bundle / "runs").iterdir()))
            with contextlib.suppress(ValueError, LookupError, TypeError, ArithmeticError):
                verify.check(bundle)  # which makes one line of these
            broken_laws(published)
            check(bundle)

    def remade() -> None:
        with nothing_drawn():
            publish([run], bundle, level="traces")
            publication = read_publication(run.opener.__class__(bundle))
            assert publication is not None
            _ = [*remade_pages(run.opener.__class__(bundle), scratch, publication)]

    return {
        "score": commands(["score", where], ["score", where, "--strict"]),
        "report": commands(["score", where], ["report", where]),
        "plot": commands(
            *(
                ["plot", where, name, "-o", f"{scratch}/{name}.svg"]
                for name in ("errors", "timeline0", "parts0")
            )
        ),
        "trace show": commands(["trace", "show", trial, "--results-dir", results]),
        "trace show --json": commands(["trace", "show", trial, "--results-dir", results, "--json"]),
        "vet": commands(["vet", where], ["vet", trial, "--results-dir", results]),
        "tune": commands(["tune", where]),
        "export": commands(["export", where, "-o", f"{scratch}/tables"]),
        "publish": bundled,
        "reproduce": remade,
        "predict": commands(["predict", where]),
        "profile": commands(["profile", where], ["ask", where], ["show", where]),
        "runs": commands(["runs", "--results-dir", results], ["gc", "--results-dir", results]),
        "anchor": commands(["anchor", "check", where], ["show", where]),
        "collect": commands(["collect", where], ["score", where]),
    }


def said(line: list[str]) -> object:
    """What a command line says; a refusal is an answer, too."""
    answer = io.StringIO()
    try:
        with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(answer):
            return _invoke(line)
    except (HarnessError, click.ClickException, BrokenPipeError):
        return answer.getvalue()


def later_targets(run: Run, folder: Path, names: frozenset[str]) -> Iterator[Target]:
    """All of them that *names* has, about a whole *run*."""
    trial = next(trial.id for trial in run.read_plan() if not trial.profiling)
    for name, (change, read) in FILES.items():
        shown = f"then-{Path(name).name.removesuffix('.gz')}"
        if shown not in names:
            continue
        of_trial = name.startswith(("trial.json", "raw/", "trace/"))
        within = f"trials/{trial}/{name}" if of_trial else name
        if name.startswith("raw/speed"):
            within = next(
                path.relative_to(run.path).as_posix()
                for path in (run.trial_dir(trial) / "raw").glob("speed*")
            )
        yield _target(shown, run, folder, trial=trial, within=within, change=change, read=read)


def _target(
    shown: str, run: Run, folder: Path, *, trial: str, within: str, change: Change, read: Read
) -> Target:
    path = run.path / within
    whole = path.read_bytes()
    turn = iter(range(10**9))

    def read_it(data: bytes) -> object:
        path.write_bytes(data)
        try:
            read(run, trial)
        finally:
            path.write_bytes(whole)
        return data

    def go_on(data: Any) -> None:
        scratch = folder / "later"
        shutil.rmtree(scratch, ignore_errors=True)
        target = scratch / "results" / "recorded" / run.id
        copy = Run(shutil.copytree(run.path, target))
        (copy.path / within).write_bytes(data)
        hash_again(copy, within)
        steps = steps_of(copy, trial, scratch)
        names = [*steps]
        step = names[next(turn) % len(names)]
        state = scratch / "state"
        state.mkdir()
        here = Path.cwd()
        try:
            os.chdir(scratch)
            with (
                patch.dict(os.environ, {"XDG_STATE_HOME": str(state)}),
                patch("harness.core.evaluate.predict.in_sample_miss", lambda *_: None),
            ):
                steps[step]()
        finally:
            os.chdir(here)

    return Target(
        shown, (whole,), read_it, (HarnessError,), go_on, (HarnessError,), every=EVERY,
        change=change, limit_s=_LIMIT_S,
    )  # fmt: skip


EVERY = 100  # of so many inputs one that was read is followed
