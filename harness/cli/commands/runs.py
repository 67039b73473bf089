"""``harness runs``, ``show`` and ``gc``: the runs that there are, one of them, and what can go."""

from __future__ import annotations

import shutil

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.documents.wording import count
from harness.base.errors import HarnessError, MachineError
from harness.base.text import first_line
from harness.base.units import format_bytes
from harness.cli.console.command import command
from harness.cli.console.options import json_option, results_option, run_argument
from harness.cli.console.present import Note, Part, Rows, present, show

if TYPE_CHECKING:
    from harness.base.records.trial import Versions
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Run


@command("runs")
@results_option
@json_option
def runs(results_dir: Path, as_json: bool) -> None:
    """
    List all runs and their analyses, the newest last.

    \b
    Example:
        harness runs
        harness runs --results-dir elsewhere --json
    """
    from harness.core.store import Store

    listed = list[dict[str, Any]]()
    for run in Store(results_dir).all_runs():
        listed += map(describe, (run, *run.analyses()))
    present({"runs": listed}, shown_runs(listed, results_dir), as_json=as_json)


def shown_runs(listed: Sequence[Mapping[str, Any]], results_dir: Path) -> Iterator[Part]:
    """The runs as a table; where there is none, how to make one."""
    if not listed:
        yield Note(f"there is no run in {results_dir.absolute()}: harness run FILE makes one")
        return
    columns = ("experiment", "run", "when", "machine", "done", "failed", "planned", "verdict")
    get_texts = itemgetter(*columns)
    rows = [(*get_texts(facts), format_bytes(facts["bytes"])) for facts in listed]
    yield Rows((*columns, "size"), rows)


@command("show")
@run_argument
@json_option
def show_run(evaluation: Evaluation, as_json: bool) -> None:
    """
    Show what RUN measured, on what, and what was asked of it.

    \b
    Example:
        harness show experiments/quick.yaml
        harness show 20261121T0323 --json
    """
    from harness.core.experiment.grid import meaning, readable, varying

    run = evaluation.run
    experiment = evaluation.experiment
    manifest = run.read_manifest()
    facts = describe(run)
    missing = facts["planned"] - facts["done"] - facts["failed"]
    facts |= {
        "question": experiment.question,
        "state": ("finished" if run.finished else "not finished")
        + f", {count(missing, 'trial')} missing",
        "axes": varying(evaluation.cells.values()),
        "models": experiment.predict.models,
        "profile_on": {
            axis: [readable(axis, meaning(value)) for value in values]
            for axis, values in experiment.predict.profile_on.items()
        },
        "versions": manifest.nodes or known_versions(manifest.versions),
        "harness": manifest.harness,
        "command": manifest.command,
        "reused": manifest.reused,
        "limitations": manifest.limitations,
        "analyses": {analysis.id: _verdict(analysis) for analysis in run.analyses()},
    }
    texts = {name: _text(value) for name, value in facts.items()}
    lines = (f"{name:<12} {text}" for name, text in texts.items() if text)
    present(facts, lines, as_json=as_json)


@command("gc")
@results_option
@click.option("--remove", is_flag=True, help="Remove them; without it they are only named.")
@json_option
def gc(results_dir: Path, remove: bool, as_json: bool) -> None:
    """
    Name runs without a trial, and leftovers of interrupted work; with --remove, remove them.

    A run that another harness works on is left alone, and so is each that has a trial.

    \b
    Example:
        harness gc
        harness gc --remove
    """
    from harness.core.store import Store

    rows = list[dict[str, Any]]()
    for run in Store(results_dir).all_runs():
        for leftover, reason in removable(run).items():
            try:
                with leftover.lock():
                    size_bytes = _size_bytes(leftover.path)
                    if remove:
                        shutil.rmtree(leftover.path)
            except MachineError as error:  # another harness works on it
                show(Note(f"left alone: {error.what}"))
                continue
            rows.append({"path": leftover.path, "reason": reason, "bytes": size_bytes})
    present({"removed": remove, "paths": rows}, shown_leftovers(rows, remove), as_json=as_json)


def removable(run: Run) -> dict[Run, str]:
    """Interrupted analyses of *run*, and the run itself where it has no trial; why they can go."""
    from harness.core.store import Run

    unfinished = map(Run, run.path.glob("analyses/.*"))
    reasons = dict.fromkeys(unfinished, "an analysis that was interrupted")
    if not run.trial_ids():
        reasons[run] = "no trial has ended"
    return reasons


def shown_leftovers(rows: Sequence[Mapping[str, Any]], is_removed: bool) -> Iterator[Part]:
    """What can go, or is gone."""
    if not rows:
        yield Note("nothing to remove: every run has a trial")
        return
    texts = [(row["path"], row["reason"], format_bytes(row["bytes"])) for row in rows]
    yield Rows(("what", "why", "size"), texts)
    yield Note("removed" if is_removed else "harness gc --remove removes them")


def describe(run: Run) -> dict[str, Any]:
    """What `harness runs` says of *run*, or of an analysis; of a damaged one, what is wrong."""
    facts: dict[str, Any] = {
        "experiment": run.measured.path.parent.name,
        "run": run.id,
        "folder": run.path,
        "when": "",
        "machine": "",
        "done": 0,
        "failed": 0,
        "planned": 0,
        "verdict": "",
        "is_analysis": run.measured is not run,
        "bytes": _size_bytes(run.path),
    }
    try:
        manifest = run.read_manifest()
        records = run.trials().values()
        machine = manifest.machine
        created = datetime.fromtimestamp(manifest.created_s, UTC)
        done = sum(record.state == "done" for record in records)
        planned = len(run.read_plan()) if (run.path / "plan.jsonl").exists() else 0
        cpu = f"{machine.get('cores', '?')} x {machine.get('cpu', 'unknown')}"
        facts |= {
            "experiment": manifest.experiment.get("name", facts["experiment"]),
            "when": f"{created:%Y-%m-%d %H:%M}Z",
            "machine": cpu if machine else "",
            "done": done,
            "failed": len(records) - done,
            "planned": planned,
            "verdict": _verdict(run),
        }
    except HarnessError as error:
        facts["verdict"] = f"cannot be read: {first_line(error.what, '')}"
    return facts


def known_versions(versions: Versions | None) -> dict[str, Any]:
    """What is known of *versions*: of an imported run it may be nothing."""
    if versions is None:
        return {}
    facts = versions.model_dump(exclude={"jars"})
    known = {name: value for name, value in facts.items() if value != "unknown"}
    if versions.jars:
        known["jars"] = [f"{name} {sha256}" for name, sha256 in versions.jars.items()]
    return known


def _text(value: Any) -> str:
    """A fact in one line."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_text(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _verdict(run: Run) -> str:
    """Which model is nearest, as the scores say; else how far the run has come."""
    if not (run.path / "scores").is_dir():
        return "not scored" if run.seal.exists() else "not predicted"
    ranking = run.read_scores().ranking("raw")
    if ranking is None or not ranking.models:
        return "no ranking"
    if len(ranking.nearest) == 1:
        return f"nearest: {ranking.nearest[0]}"
    return f"undecided: {', '.join(ranking.nearest)}"


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
