"""``harness runs``, ``show`` and ``gc``: the runs that there are, one of them, and what can go."""

from __future__ import annotations

import re
import shutil
import textwrap

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.documents.wording import count
from harness.base.errors import HarnessError
from harness.base.text import first_line
from harness.base.units import format_bytes
from harness.cli.console.command import command
from harness.cli.console.options import json_option, results_option, run_argument
from harness.cli.console.present import Note, Part, Rows, present, show

if TYPE_CHECKING:
    from harness.base.records.trial import Versions
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Run, Store
    from harness.core.store.ledger import Registered

_VERDICT_WIDTH = 39  # of 80 columns
_NAME_WIDTH = 21  # of an id
_MAKE_ONE = "harness run FILE makes one"
_NOTHING_KNOWN = {
    "when": "", "machine": "", "done": 0, "failed": 0, "planned": 0, "models": 0, "verdict": "",
    "brief": "", "is_analysis": False, "bytes": 0,
}  # fmt: skip


@command("runs")
@results_option
@click.option(
    "--registered", is_flag=True, help="Those that were sealed on this machine, wherever they lie."
)
@json_option
def runs(results_dir: Path, registered: bool, as_json: bool) -> None:
    """
    List runs, imported ones and bundles, the newest last; below each what was asked of it later.

    With --registered: each run that was sealed here, by this machine's ledger, and what became of
    it.  Those that were never published count against a claim about their experiment.

    \b
    Example:
        harness runs
        harness runs --results-dir elsewhere --json
        harness runs --registered
    """
    from harness.core.store import Store, ledger

    if registered:
        entries = ledger.registered()
        documents = [entry._asdict() for entry in entries]
        present({"registered": documents}, shown_registered(entries), as_json=as_json)
        return

    store = Store(results_dir)
    listed = [*described(store.all_runs(), "run"), *described(store.imports(), "import")]
    for place in store.bundles():
        listed += described_bundle(store, place)
    listed_folders = {facts["folder"] for facts in listed}
    elsewhere = [run for run in store.read_elsewhere() if run.path not in listed_folders]
    listed += described(elsewhere, "bundle")
    lost = [Note(f"{folder}: {why}") for folder, why in store.lost_readings()]
    present({"runs": listed}, [*shown_runs(listed, results_dir), *lost], as_json=as_json)


def shown_registered(entries: Sequence[Registered]) -> Iterator[Part]:
    """Each run that was sealed here, when, and whether it ended and was published."""
    rows = []
    for entry in entries:
        known_s = entry.first_s if entry.sealed_s is None else entry.sealed_s
        moment = datetime.fromtimestamp(known_s, UTC).strftime("%Y-%m-%d %H:%M")
        if entry.sealed_s is None:
            moment = f"by {moment}"
        fate = "published" if entry.published else "finished" if entry.finished else "not finished"
        rows.append((entry.experiment, entry.run, moment, entry.sealed[:16], fate))
    yield Rows(("experiment", "run", "sealed", "seal", "what became of it"), rows)
    left = sum(not entry.published for entry in entries)
    yield f"{count(len(entries), 'run')} sealed on this machine, {left} of them never published"


def described(runs: Iterable[Run], kind: str) -> Iterator[dict[str, Any]]:
    """What is said of *runs* of a *kind*, each with its analyses behind it."""
    for run in runs:
        yield {**describe(run), "kind": kind, "place": run.place}
        for analysis in run.analyses():
            yield {**describe(analysis), "kind": "analysis", "place": analysis.path}


def described_bundle(store: Store, place: Path) -> Iterator[dict[str, Any]]:
    """What is said of the runs of the bundle at *place*; of one that is unsound, why."""
    from harness.core.store.packed import opened

    try:
        opened(place)
    except HarnessError as error:
        verdict = f"cannot be read: {first_line(error.what, '')}"
        unread = {"experiment": "", "run": "", "folder": place, "verdict": verdict}
        yield {**_NOTHING_KNOWN, **unread, "kind": "bundle", "place": place}
        return
    yield from described(store.bundled_runs(place), "bundle")


def shown_runs(listed: Sequence[Mapping[str, Any]], results_dir: Path) -> Iterator[Part]:
    """The runs as a tree of 80 columns; where there is none of one's own, how to make one."""
    if listed:
        yield _tree_line("verdict", "run", "trials", "size")
    last_heading = ""
    for facts in listed:
        heading = _heading(facts)
        if heading not in ("", last_heading):
            yield heading
            last_heading = heading
        yield from _tree_lines(facts)
    if all(facts["kind"] not in ("run", "import") for facts in listed):
        yield Note(f"there is no run of yours in {results_dir.absolute()}: {_MAKE_ONE}")


def _heading(facts: Mapping[str, Any]) -> str:
    """Give what stands above a run: its experiment, or what it lies in; an analysis has none."""
    match facts["kind"]:
        case "analysis":
            return ""
        case "import":
            return "imported"
        case "bundle":
            parts = facts["place"].parts
            place = Path(*parts[:-2]) if "runs" in parts[-2:-1] else facts["place"]
            return f"bundle {place}"
        case _:
            return str(facts["experiment"])


def _tree_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """One run or analysis: its verdict, wrapped where it is long, beside its id and its trials."""
    is_analysis = facts["kind"] == "analysis"
    indent = "    " if is_analysis else "  "
    first, *further = textwrap.wrap(
        facts["brief"] or "-",
        _VERDICT_WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
    )
    trials = "" if is_analysis else f"{facts['done']}/{facts['planned']}"
    size = format_bytes(facts["bytes"])
    name = str(facts["run"])
    if len(name) > _NAME_WIDTH:
        further.append(f"{indent}  {name}")
        name = ""
    yield _tree_line(first, name, trials, size)
    yield from further


def _tree_line(verdict: str, name: str, trials: str, size: str) -> str:
    return f"{verdict:<{_VERDICT_WIDTH}}  {name:<{_NAME_WIDTH}} {trials:>7} {size:>9}".rstrip()


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
    from harness.core.experiment.grid import varying

    run = evaluation.run
    experiment = evaluation.experiment
    manifest = run.read_manifest()
    facts = describe(run)
    facts.pop("brief")
    missing = facts["planned"] - facts["done"] - facts["failed"]
    facts |= {
        "question": _answered_question(run) or experiment.title,
        "answer": _verdict(run),
        "order": order_of(evaluation),
        "state": ("finished" if run.finished else "not finished")
        + f", {count(missing, 'trial')} missing",
        "axes": varying(evaluation.cells.values()),
        "models": experiment.predict.models,
        "profile_on": profiled_cells(evaluation),
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


def order_of(evaluation: Evaluation) -> str:
    """By whose word the order of the run is known, or why it is not blind; nothing: not sealed."""
    from harness.core.evaluate.provenance import blind_refusals
    from harness.core.store.anchors import order_words

    if not evaluation.run.seal.exists():
        return ""
    refusals = blind_refusals(evaluation.run, evaluation.done.values())
    return f"not blind: {refusals[0]}" if refusals else order_words(evaluation.run)


def profiled_cells(evaluation: Evaluation) -> dict[str, Any]:
    """What selects the profiling cells: values of axes; or that they were chosen, and which."""
    from harness.core.experiment.grid import meaning, readable

    predict = evaluation.experiment.predict
    if predict.cells is not None:
        labels = evaluation.labels
        return {"auto": [labels[cell_id] for cell_id in predict.cells if cell_id in labels]}
    return {
        axis: [readable(axis, meaning(value)) for value in values]
        for axis, values in predict.profile_on.items()
    }


@command("gc")
@results_option
@click.option("--remove", is_flag=True, help="Remove them; without it they are only named.")
@json_option
def gc(results_dir: Path, remove: bool, as_json: bool) -> None:
    """
    Name runs without a trial, and leftovers of interrupted work; with --remove, remove them.

    A run that another harness works on is left alone, and so is each that has a trial, or a file
    that the harness has not made.

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
                size_bytes = _size_bytes(leftover.path)
                leftover.require_made_here()
                if remove:
                    with leftover.lock():
                        shutil.rmtree(leftover.path)
            except HarnessError as error:  # another harness works on it, or it has more in it
                show(Note(f"left alone: {error.what}"))
                continue
            rows.append({"path": leftover.path, "reason": reason, "bytes": size_bytes})
    present({"removed": remove, "paths": rows}, shown_leftovers(rows, remove), as_json=as_json)


def removable(run: Run) -> dict[Run, str]:
    """Interrupted analyses of *run*, and the run itself where it has no trial; why they can go."""
    from harness.core.store import Run

    if run.is_foreign or run.is_published:
        return {}
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
        **_NOTHING_KNOWN,
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
        models = len(manifest.experiment.get("predict", {}).get("models", ()))
        failed = len(records) - done
        verdict, brief = _verdicts(run, models)
        brief += f"; {failed} failed" * bool(failed)
        facts |= {
            "experiment": manifest.experiment.get("name", facts["experiment"]),
            "when": f"{created:%Y-%m-%d %H:%M}Z",
            "machine": cpu if machine else "",
            "done": done,
            "failed": failed,
            "planned": planned,
            "models": models,
            "verdict": verdict,
            "brief": brief,
        }
    except HarnessError as error:
        facts["verdict"] = f"cannot be read: {first_line(error.what, '')}"
        facts["brief"] = facts["verdict"]
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
    """The answer, as the scores have it; else how far the run has come."""
    return _verdicts(run, 0)[0]


def _answered_question(run: Run) -> str:
    """The question in words that the scores of *run* answer; nothing where they answer none."""
    if not run.is_scored:
        return ""
    found = run.read_scores().answer
    return "" if found is None else found.question.title


def _verdicts(run: Run, model_count: int) -> tuple[str, str]:
    """
    The answer, and its first clauses; else how far the run has come.

    Older scores have no answer, but which of so many models are nearest: with all names, in brief.
    """
    from harness.core.reports.answer import answer_sentence, foreign_sentence

    if not run.is_scored:
        state = "not scored" if run.seal.exists() else "not predicted"
        return state, f"{state}, of {count(model_count, 'model')}"
    score_book = run.read_scores()
    if score_book.answer is not None:
        sentence = foreign_sentence(run.trials().values()) + answer_sentence(score_book.answer)
        # A perfect model, and what others lose, stand in `harness show`.
        return sentence, re.split("; a perfect model|; others lose", sentence)[0].rstrip(".")
    ranking = score_book.ranking()
    if ranking is None or not ranking.models:
        return "no ranking", f"no ranking of {count(model_count, 'model')}"
    if len(ranking.nearest) == 1:
        nearest = f"nearest: {ranking.nearest[0]}"
        return nearest, f"{nearest}, of {count(model_count, 'model')}"
    tied = f"undecided among {len(ranking.nearest)} of {count(model_count, 'model')}"
    return f"undecided: {', '.join(ranking.nearest)}", tied


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
