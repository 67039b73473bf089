"""
A night: the experiment in another order, what moved measured again, a line in its history.

And what is asked of its alarms afterwards: to accept one, to tell of it, to find its commit.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness.base.errors import DataError, HarnessError, MachineError, SpecError
from harness.base.records.trial import Cell, Trial
from harness.core.evaluate.flow import Evaluation
from harness.core.run import Console
from harness.core.run.reproduce import reproduce
from harness.core.run.session import Session, Transfer
from harness.core.store import Run, Store
from harness.nightly.alarms import Judge, current, judged, tables
from harness.nightly.history import FOLDER, History
from harness.nightly.nights import levels, night, points
from harness.nightly.records import Acceptance, Alarm, Entry, Night
from harness.observe.storage.files import exclusive_lock, json_bytes

_COMMAND_S = 60.0
_GIT_S = 3600.0
SAME_NIGHT_S = 12 * 3600.0  # within which an interrupted night is gone on with
# What the stages of `reproduce` are made by; predictions by their models.
_MADE_BY = {"trace": "parser", "profiles": "profile fit", "scores": "scoring"}
# What `git bisect run` runs in each commit: 0 where the results are the stored ones, 1 where the
# stage or the model NAME makes others, 125 where the commit says nothing.
_TRY = """
import json, os, subprocess, sys
run, name = sys.argv[1:]
command = [sys.executable, "-c", "import sys; from harness.cli.entry import main; sys.exit(main())"]
done = subprocess.run([*command, "reproduce", run, "--json"], env={**os.environ, "PYTHONPATH": "."},
                      capture_output=True, text=True)
if done.returncode not in (0, 1):
    sys.exit(125)
stages = json.loads(done.stdout)["stages"]
differs = [(stage["stage"], each["model"]) for stage in stages for each in stage["differs"]]
sys.exit(any(name in names for names in differs))
"""


class Measured(NamedTuple):
    """A night's line, in its history; how many trials failed; the user's command for alarms."""

    night: Night
    history: History
    failed: int
    on_alarm: str


def measure_night(
    text: str,
    source: str,
    results_dir: Path,
    overrides: tuple[str, ...],
    console: Console,
    *,
    transfer: Transfer | None = None,
) -> Measured:
    """
    Measure a night of an experiment file, or go on with it, and append it to its history.

    *transfer* takes profiles to another machine, where the file asks for that.

    `MachineError`: another harness does so; `SpecError`: its cells depend on the night's seed.
    """
    session = Session(text, source, results_dir, overrides, console)
    design = session.experiment.design.kind
    if design != "full":
        what = f"nights repeat the same cells, and design: {design} takes others with each seed"
        fix = "take the whole grid of fewer values: design: full"
        raise SpecError(what, where=source, fix=fix)
    seed = session.experiment.seed
    on_alarm = session.experiment.nightly.on_alarm
    history = History(results_dir / session.experiment.name / FOLDER)
    store = Store(results_dir)
    with exclusive_lock(history.folder / "lock", f"the history {history.path}"):
        entries = history.entries(repairs=True)
        while True:
            nights = {line.run for line in nights_of(entries)}
            # Each night has another seed, and so another order of its trials.
            tonight = (*overrides, f"seed={(seed + len(nights)) % 2**31}")
            session = Session(text, source, results_dir, tonight, console, transfer=transfer)
            fitting = [run for run in store.fitting(session.experiment) if run.id not in nights]
            begun = [run for run in fitting if run.trial_ids()]
            ended = next((run for run in begun if run.finished), None)
            if ended is None:
                break
            console.say(f"run {ended.path} has come to its end, and is not in the history yet")
            line = _append(ended, session, history, entries)
            if time.time() - line.time_s < SAME_NIGHT_S:
                return Measured(line, history, 0, on_alarm)
            entries = history.entries()
        lacks = list[str]()
        if begun and time.time() - begun[-1].read_manifest().created_s > SAME_NIGHT_S:
            console.say(f"run {begun[-1].path} is of an earlier night: it stays as it is")
            lacks.append(f"the night before was left unfinished: {begun[-1].id}")
        run, failed = session.measure(
            new=bool(lacks), more=lambda run: _trials_again(session, run, entries)
        )
        line = _append(run, session, history, entries, *lacks)
        return Measured(line, history, failed, on_alarm)


def _append(
    run: Run, session: Session, history: History, entries: Sequence[Entry], *further: str
) -> Night:
    """Score *run*, and add its line to the *history* with what its code and the detector say."""
    evaluation = Evaluation.of(run)
    with run.lock():
        if run.seal.exists():
            evaluation.score()
        evaluation.report()
    line = night(evaluation)
    nights = nights_of(entries)
    earlier = [night for night in nights if night.series == line.series]
    lacks = [*line.lacks, *further]
    if earlier and line.time_s < earlier[-1].time_s:
        lacks.append(f"the clock is before that of the last night, run {earlier[-1].run}")
    baseline = baseline_of(entries, line)
    if baseline != line.run:
        session.console.say(f"what the code makes of the night {baseline}")
        try:
            code, offsets = replay(Store(session.results_dir).find(baseline))
            line = line.model_copy(update={"code": code, "offsets": offsets})
        except HarnessError as error:
            lacks.append(f"the code is not checked: {error.what}")
    line = line.model_copy(update={"baseline": baseline, "lacks": tuple(lacks)})
    alarms, _ = judged([*entries, line])
    # What another detector would have raised before is not raised now.
    raised = tuple(alarm for alarm in alarms if alarm.raised == len(nights) + 1)
    line = line.model_copy(update={"alarms": raised})
    history.append(line)
    return line


def baseline_of(entries: Sequence[Entry], line: Night) -> str:
    """Run of the night whose results the code is tried on: the first, or one accepted since."""
    nights = nights_of(entries)
    whole = [entry for entry in nights if entry.whole and entry.series == line.series]
    baseline = whole[0].run if whole else line.run
    for alarm in accepted_alarms(entries):
        since = nights[alarm.since - 1]
        is_exact = alarm.cause.startswith(("code", "input"))
        if is_exact and since.series == line.series:
            baseline = since.run
    return baseline


def nights_of(entries: Sequence[Entry]) -> list[Night]:
    """The nights among the lines of a history; an alarm counts them from 1."""
    return [entry for entry in entries if isinstance(entry, Night)]


def accepted_alarms(entries: Sequence[Entry]) -> list[Alarm]:
    """Alarms that were accepted, in the order in which they were raised."""
    accepted = {entry.alarm for entry in entries if isinstance(entry, Acceptance)}
    raised = chain.from_iterable(line.alarms for line in nights_of(entries))
    return [alarm for alarm in raised if alarm.id in accepted]


def replay(run: Run) -> tuple[tuple[str, ...], dict[str, float]]:
    """
    Make the results of *run* with the present code: what makes other ones, and by how much.

    Each stage is given what is stored of the stage before, so that every difference is its own.
    Returns the names, and logarithms of new over stored points of all of it together.
    """
    names = dict[str, None]()
    given = "raw"
    while given:
        given, models = first_difference(run, given)
        if given in _MADE_BY:
            models = [_MADE_BY[given]]
        names |= dict.fromkeys(models)
        if given == "scores":  # the last stage
            break
    if not names:
        return (), {}
    before = levels(points(Evaluation.of(run)), {})
    with TemporaryDirectory(prefix="harness-nightly-") as folder:
        for _ in reproduce(run, Path(folder), "raw"):
            pass
        remade = Run(Path(folder) / run.path.name, base=run.path.resolve())
        after = levels(points(Evaluation(remade, run.experiment(), run.read_plan())), {})
    offsets = {name: after[name] - level for name, level in before.items() if name in after}
    return tuple(names), {name: size for name, size in offsets.items() if abs(size) > 1e-9}


def first_difference(run: Run, given: str) -> tuple[str, list[str]]:
    """
    Name of the first stage after *given* that makes other results, and the models of which it does.

    The name is empty where all stages make what is stored.
    """
    with TemporaryDirectory(prefix="harness-nightly-") as folder:
        for stage, differences in reproduce(run, Path(folder), given):
            if differences:
                return stage, sorted({d.model for d in differences if d.model})
    return "", []


def _trials_again(session: Session, run: Run, entries: Sequence[Entry]) -> list[Trial]:
    """Trials of the cells that tonight seem to have moved, in turn with others; none at the end."""
    evaluation = Evaluation.of(run)
    confirm = session.experiment.nightly.confirm
    suspected = suspected_cells(evaluation, entries) if confirm else []
    chosen, remaining = cells_again(evaluation, suspected)
    if not chosen:
        return []
    session.console.say(
        f"{', '.join(suspected)} seem to have moved: measured {confirm} times again"
    )
    numbers = Counter(trial.cell.id for trial in evaluation.plan)
    trials = list[Trial]()
    for turn in range(confirm):
        in_turn = remaining[turn % max(len(remaining), 1) :][:1]
        for cell in (*chosen, *in_turn):
            reason = f"it seems to have moved: {evaluation.labels[cell.id]}"
            number = numbers[cell.id]
            trials.append(Trial.of(cell, number, session.versions, look=1, reason=reason))
            numbers[cell.id] += 1
    return sorted(trials, key=lambda trial: trial.cell.cluster.id)


def cells_again(evaluation: Evaluation, suspected: Sequence[str]) -> tuple[list[Cell], list[Cell]]:
    """Cells with a name among *suspected* that were not measured again yet, and all other ones."""
    cells = {trial.cell.id: trial.cell for trial in evaluation.plan if trial.is_scored}
    repeated = {trial.cell.id for trial in evaluation.plan if trial.look}
    labels = evaluation.labels
    chosen = [cells[key] for key in cells if labels[key] in suspected and key not in repeated]
    return chosen, [cell for cell in cells.values() if cell not in chosen]


def suspected_cells(evaluation: Evaluation, entries: Sequence[Entry]) -> list[str]:
    """Names of the cells that a run makes suspect, beside the nights of its series before."""
    line = night(evaluation)
    if not line.whole:
        return []
    nights = nights_of([*entries, line])
    (table,) = tables([entry for entry in nights if entry.series == line.series])
    return Judge(table).suspected()


def accept(history: History, prefix: str, reason: str) -> None:
    """Note that the change of the alarm of this *prefix* is as it should be."""
    alarm = _alarm(history, history.entries(), prefix)
    if alarm.state == "accepted":
        raise DataError(f"{alarm.id} is accepted already", where=str(history.path))
    history.append(Acceptance(time_s=round(time.time(), 3), alarm=alarm.id, reason=reason))


def _alarm(history: History, entries: Sequence[Entry], prefix: str, cause: str = "") -> Alarm:
    """The one alarm whose id and cause begin so."""
    alarms = [alarm for alarm in current(entries)[0] if alarm.cause.startswith(cause)]
    matching = [alarm for alarm in alarms if prefix and alarm.id.startswith(prefix)]
    if len(matching) != 1:
        texts = [f"{alarm.id} ({alarm.cause}, {alarm.state})" for alarm in alarms]
        what = f"'{prefix}' is not one alarm{f' whose cause is {cause[:-2]}' if cause else ''}"
        fix = f"name one of these: {', '.join(texts) or 'none'}"
        raise DataError(what, where=str(history.path), fix=fix)
    return matching[0]


def tell(command: str, alarms: Sequence[Alarm]) -> None:
    """Run the user's *command* on new *alarms*, which it reads as JSON; it has a minute."""
    if not command or not alarms:
        return
    document = json_bytes({"alarms": [alarm.model_dump(mode="json") for alarm in alarms]})
    try:
        argv = shlex.split(command)
        subprocess.run(argv, input=document, timeout=_COMMAND_S, check=True)
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        what = f"nightly.on_alarm did not end well: {error}"
        fix = "try the command by itself, with {} on its input; the night is in the history"
        raise MachineError(what, where=command, fix=fix) from error


def find_commit(history: History, prefix: str) -> tuple[str, str]:
    """Commit and subject of what the alarm of this *prefix* is about."""
    entries = history.entries()
    alarm = _alarm(history, entries, prefix, "code: ")
    nights = nights_of(entries)
    first = nights[alarm.since - 1]
    last_before = [night for night in nights[: alarm.since - 1] if night.series == first.series][-1]
    good, bad = commits_between(history, last_before, first)
    run = history.folder.absolute().parent / first.baseline
    if not run.is_dir():
        what = f"the baseline night's run is not here: {first.baseline}"
        raise DataError(what, where=str(run), fix="restore its folder from a copy")
    name = alarm.cause.removeprefix("code: ")
    stages = {made_by: stage for stage, made_by in _MADE_BY.items()}
    source = Path(__file__).resolve().parents[2]
    with TemporaryDirectory(prefix="harness-bisect-") as folder:
        tree = f"{folder}/tree"
        _git(source, "worktree", "add", "--quiet", "--detach", tree, bad)
        try:
            _git(Path(tree), "bisect", "start", bad, good)
            argv = (sys.executable, "-c", _TRY, str(run), stages.get(name, name))
            _git(Path(tree), "bisect", "run", *argv)
            log = _git(Path(tree), "show", "--no-patch", "--format=%H %s", "refs/bisect/bad")
        finally:
            _git(source, "worktree", "remove", "--force", tree)
    commit, _, subject = log.strip().partition(" ")
    return commit, subject


def commits_between(history: History, last_before: Night, first: Night) -> tuple[str, str]:
    """Commits of two nights as git knows them; `DataError`: nothing was committed in between."""
    good = last_before.facts.get("commit", "")
    bad = first.facts.get("commit", "")
    if not good or not bad or good == bad or "dirty" in good or "dirty" in bad:
        what = f"no commits lie between the nights: '{good}' and '{bad}'"
        fix = "bisect needs nights on committed code; compare the files that were changed by hand"
        raise DataError(what, where=str(history.path), fix=fix)
    return good.rpartition("-g")[2], bad.rpartition("-g")[2]


def _git(folder: Path, *words: str) -> str:
    argv = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_GIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        what = f"git {words[0]} failed: {getattr(error, 'stderr', '') or error}"
        fix = "run the harness from a clone of its repository that has the commits"
        raise MachineError(what, where=str(folder), fix=fix) from error
    return done.stdout
