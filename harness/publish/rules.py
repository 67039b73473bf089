"""
The rules of a comparison, version 1.0 (docs/rules.md), and what decides each in a bundle.

A bundle that meets all of them is of the closed division; any other is of the open one and says,
rule by rule, how it differs.  What cannot be decided is not met.
"""

from __future__ import annotations

import csv
import io

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness import __version__
from harness.errors import EvidenceError, HarnessError
from harness.evaluate.provenance import blind_refusals, model_code
from harness.experiment.model import Experiment
from harness.models import MODELS
from harness.publish.data import hardware
from harness.publish.evidence import ORIGINALS
from harness.publish.system import undisclosed
from harness.records.trial import Record, Trial, digest
from harness.reports.sections.method import flatten
from harness.scoring.comparisons import MOST_FRAME
from harness.store import Run, check_name
from harness.store.opener import Opener
from harness.store.run import FINISHED
from harness.store.seal import PLAN, SEAL
from harness.text import excerpt, read_json

VERSION, RULES_FILE = "1.0", "rules.json"
FEWEST_REPEATS, FEWEST_CELLS, MOST_DISTURBED, MOST_FLOOR = 5, 6, 0.2, 0.05
# Digests of the experiments of experiments/publish; a test holds them to the files.
READY = {"publish-cpu": "d64afc7b107053aa", "publish-gpu": "77f604f1a807f0cf"}
# Keys of `cluster` that say where an experiment is measured, and not what.
PLACE = ("provider", "hosts", "ssh", "exposed")
_FIX = "get the bundle again, or make it again: harness publish RUN -o DIR"
_UNREADABLE = (HarnessError, ValueError, LookupError, TypeError, AttributeError)

Row = dict[str, str]
Outcome = Literal["passed", "failed", "not decidable"]
Decision = tuple[bool | None, str]  # whether a rule is met (`None`: not decidable), by which value
# The worst first.
_OUTCOMES: dict[bool | None, Outcome] = {False: "failed", None: "not decidable", True: "passed"}


class Answer(Record):
    """How a *rule* was decided, by which *value* of which *file* of the bundle."""

    rule: str
    outcome: Outcome
    file: str
    value: str


class Check(Record):
    """
    What a bundle meets: an answer for each rule, and *labels* with what each stands for.

    *release* is the harness that decided: its version, and the hash of each model's code.
    *claimed* is the division that `rules.json` says (nothing: there is none), *differing* what it
    does not say as it follows from the other files for the release that it names.
    """

    version: str = VERSION
    release: dict[str, str]
    answers: tuple[Answer, ...]
    labels: dict[str, str]
    claimed: str = ""
    differing: tuple[str, ...] = ()

    @property
    def division(self) -> Literal["closed", "open"]:
        """The division whose rules are met."""
        return "closed" if all(each.outcome == "passed" for each in self.answers) else "open"

    @property
    def is_met(self) -> bool:
        """Whether the claimed division is met, and `rules.json` says what the files say."""
        return self.claimed in ("open", self.division) and not self.differing


class BundledRun(NamedTuple):
    """One *run* of a bundle, with the *tables* of all by their names; *release* decides."""

    bundle: Opener
    run: Run
    tables: Callable[[str], list[Row]]
    release: Mapping[str, str]

    def rows(self, table: str, **wanted: str) -> list[Row]:
        """Rows of this run in ``data/TABLE.csv``: those with the *wanted* values."""
        values = {"run": self.run.id, **wanted}
        rows, wanted_items = self.tables(table), values.items()
        return [row for row in rows if all(row[key] == each for key, each in wanted_items)]

    def by_cell(self, rows: Iterable[Row]) -> dict[str, list[Row]]:
        """Those of *rows* that are of a scored cell, by all scored cells."""
        by_cell = {row["cell"]: list[Row]() for row in self.rows("cells", use="score")}
        if not by_cell:
            raise ValueError("no cell is scored")
        for row in rows:
            by_cell.get(row["cell"], []).append(row)
        return by_cell


def experiment_digest(experiment: Experiment) -> str:
    """Digest of all that *experiment* fixes, but for where it is measured."""
    document = experiment.model_dump(mode="json")
    cluster = {key: value for key, value in document["cluster"].items() if key not in PLACE}
    return digest({**document, "cluster": cluster})


def _is_ready_made(run: BundledRun) -> Decision:
    experiment = run.run.experiment()
    measured = experiment_digest(experiment)
    is_ready = READY.get(experiment.name) == measured
    return is_ready, f"experiment {experiment.name}, digest {measured}"


def _is_not_overridden(run: BundledRun) -> Decision:
    overrides, places = run.run.read_manifest().overrides, {("cluster", key) for key in PLACE}
    keys = [override.partition("=")[0].strip() for override in overrides]
    others = [key for key in keys if tuple(key.split(".")[:2]) not in places]
    return not others, f"overrides: {_some(others)}"


def _is_blind(run: BundledRun) -> Decision:
    (row,), trials = run.rows("runs"), run.rows("trials", use="score", state="done")
    others = [each["trial"] for each in trials if each["seal"] != row["sealed"]]
    why = [f"trial {trial} does not name the seal" for trial in others]
    why += blind_refusals(run.run, run.run.trials().values())
    is_blind = row["blind"] == "true" and row["sealed"] != "" and not why
    return is_blind, f"blind: {row['blind']}, against it: {_some(why)}"


def _has_repeats(run: BundledRun) -> Decision:
    trials = run.by_cell(run.rows("trials", use="score", state="done"))
    cell = min(trials, key=lambda each: len(trials[each]))
    return len(trials[cell]) >= FEWEST_REPEATS, f"{len(trials[cell])} done, fewest: cell {cell}"


def _has_cells(run: BundledRun) -> Decision:
    cells = run.by_cell(run.rows("cells"))
    counts = Counter(row["workload"] for (row,) in cells.values())
    workload = min(counts, key=lambda each: counts[each])
    return counts[workload] >= FEWEST_CELLS, f"{counts[workload]} scored, fewest: {workload}"


def _is_of_release(run: BundledRun) -> Decision:
    manifest, by_model = run.run.read_manifest(), run.run.read_predictions()
    named = f"harness {manifest.harness}, commit {manifest.commit or 'not known'}"
    if manifest.harness != run.release["harness"]:
        return None, f"code: of {named}, and {run.release['harness']} decides"
    codes = {model: {each.code for each in made} for model, made in by_model.items()}
    changed = [model for model, code in codes.items() if code != {run.release.get(model)}]
    if changed or not codes:
        return False, f"code: not that of {named}: {_some(changed)}"
    return not manifest.commit.endswith("-dirty") if manifest.commit else None, f"code: {named}"


def _has_one_profile(run: BundledRun) -> Decision:
    workloads = {row["cell"]: row["workload"] for row in run.rows("cells", use="score")}
    others, profiles = list[str](), run.run.profile_hashes()
    for model, made in run.run.read_predictions().items():
        cells = [each.cell for each in made if each.profile != profiles[workloads[each.cell]]]
        others += [f"another for {model} in cell {cell}" for cell in cells]
    return not others, f"profile: {_some(others, 'the same')}"


def _has_no_failure(run: BundledRun) -> Decision:
    failed = [row["trial"] for row in run.rows("trials", use="score") if row["state"] != "done"]
    return not failed, f"not done: {_some(failed)}"


def _is_undisturbed(run: BundledRun) -> Decision:
    trials = run.rows("trials", use="score", state="done")
    disturbed = sum(bool(row["disturbed"]) for row in trials)
    return disturbed <= MOST_DISTURBED * len(trials), f"disturbed: {disturbed} of {len(trials)}"


def _is_quiet(run: BundledRun) -> Decision:
    cells = {row["quantity"]: int(row["cells"]) for row in run.rows("comparisons", speed="raw")}
    jobs, bodies = (cells.get(quantity, 0) for quantity in ("job_s", "body_s"))
    if not jobs + bodies:
        return None, "no two models are compared"
    quantity = "body_s" if bodies > 2 * jobs else "job_s"  # by what the models are ranked
    scores = run.by_cell(run.rows("scores", speed="reference", quantity=quantity))
    unknown = [cell for cell, rows in scores.items() if not rows or not rows[0]["floor"]]
    if unknown:
        return None, f"floor of {quantity}: not known of cell {_some(unknown)}"
    floors = {cell: float(rows[0]["floor"]) for cell, rows in scores.items()}
    cell = max(floors, key=lambda each: floors[each])
    is_low = all(floor <= MOST_FLOOR for floor in floors.values())
    return is_low, f"floor of {quantity}: {floors[cell]:.2%}, largest: cell {cell}"


def _is_mostly_body(run: BundledRun) -> Decision:
    shares = dict[str, float]()
    for cell, rows in run.by_cell(run.rows("measurements", speed="raw")).items():
        times_s = defaultdict[str, list[float]](list)
        for row in rows:
            times_s[row["quantity"]].append(float(row["value"]))
        frame_s, job_s = times_s["frame_s"], times_s["job_s"]
        if not frame_s or sum(job_s) <= 0:
            return None, f"frame_s: not known of cell {cell}"
        job_mean_s = sum(job_s) / len({row["trial"] for row in rows})
        shares[cell] = sum(frame_s) / len(frame_s) / job_mean_s
    cell = max(shares, key=lambda each: shares[each])
    is_small = all(share < MOST_FRAME for share in shares.values())
    return is_small, f"frame_s: {shares[cell]:.1%} of job_s, largest: cell {cell}"


def _is_complete(run: BundledRun) -> Decision:
    planned = {trial.id for trial in _plan(run.run)}
    missing = sorted(planned - {row["trial"] for row in run.rows("trials")})
    return bool(planned) and not missing, f"missing of {len(planned)}: {_some(missing)}"


def _is_disclosed(run: BundledRun) -> Decision:
    system = read_json(run.bundle.read(run.bundle.root / "system.json", _FIX))
    count, lacking = len(system["experiments"]), undisclosed(system)
    lacking += ["a run"] if count != len(run.tables("runs")) else []
    return not lacking, f"of {count} experiments, not known or missing: {_some(lacking)}"


def _is_sealed(run: BundledRun) -> Decision:
    (row,), originals = run.rows("runs"), run.run.opener.read(run.run.path / ORIGINALS, _FIX)
    run.run.seal.check()
    measured = read_json(originals)["files"][SEAL]
    return measured == row["sealed"], f"sealed as measured: {measured[:16]}, and in data/runs.csv"


def _is_whole(run: BundledRun) -> Decision:
    ended = {row["trial"] for row in run.rows("trials")}
    others = sorted(ended ^ {*run.run.trial_ids()})
    end = run.run.opener.read(run.run.path / FINISHED, _FIX)
    is_whole = run.run.check_evidence() and end.strip() != b"" and not others
    return is_whole, f"of {len(ended)} trials, with a row or files alone: {_some(others)}"


def _plan(run: Run) -> Iterator[Trial]:
    return run.opener.read_lines(Trial, run.path / PLAN, _FIX)


def _some(names: list[str], default: str = "none") -> str:
    """The first of *names*, and how many more there are."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{excerpt(names[0])}{more}" if names else default


class Rule(NamedTuple):
    """What a rule asks for, by which *file* of the bundle it is decided, and how."""

    title: str
    file: str
    decide: Callable[[BundledRun], Decision]


RULES: dict[str, Rule] = {
    "R01": Rule("a ready-made experiment", "{run}/manifest.json", _is_ready_made),
    "R02": Rule("no overrides", "{run}/manifest.json", _is_not_overridden),
    "R03": Rule("blind order", "data/runs.csv", _is_blind),
    "R04": Rule("five repeats or more", "data/trials.csv", _has_repeats),
    "R05": Rule("six scored cells or more per workload", "data/cells.csv", _has_cells),
    "R06": Rule("models of a release, unchanged", "{run}/predictions", _is_of_release),
    "R07": Rule("one profile for all models", "{run}/predictions", _has_one_profile),
    "R08": Rule("no failed trial in a scored cell", "data/trials.csv", _has_no_failure),
    "R09": Rule("one disturbed trial in five at most", "data/trials.csv", _is_undisturbed),
    "R10": Rule("a noise floor of 5 % at most", "data/scores.csv", _is_quiet),
    "R11": Rule("start-up and gaps below 30 %", "data/measurements.csv", _is_mostly_body),
    "R12": Rule("every planned trial", "data/trials.csv", _is_complete),
    "R13": Rule("full disclosure", "system.json", _is_disclosed),
    "R14": Rule("predictions as sealed", "{run}/predictions/sealed.json", _is_sealed),
    "R15": Rule("evidence whole", "{run}/trials.jsonl", _is_whole),
}


def _labels(run: BundledRun) -> dict[str, str]:
    """Labels of a run, which no division takes away, with what each stands for."""
    limited = {hardware(trial.cell) for trial in _plan(run.run) if trial.cell.cluster.limited}
    records = run.run.trials().values()
    on_cpu = [record.trial.id for record in records if "cpu" in record.device.split(", ")]
    local = [row["trial"] for row in run.rows("trials") if row["start"].startswith("local")]
    is_blind, seal = _is_blind(run)
    labels = {
        "hardware made on purpose": "; ".join(sorted(limited)),
        "device=cpu": f"a processor in the place of a GPU: {_some(on_cpu)}" if on_cpu else "",
        "runner=local": f"Hadoop's local runner, not a cluster: {_some(local)}" if local else "",
        "not blind": "" if is_blind else seal,
        "limitations": "; ".join(run.run.read_manifest().limitations),
    }
    return {label: text for label, text in labels.items() if text}


def check(bundle: Path) -> Check:
    """
    Decide all rules for the bundle in that folder, from its files alone.

    Of several runs the worst answer counts.  `DataError`: it holds what is no plain file or folder.
    """
    opener, claimed = Opener(bundle), ""
    opener.require_plain()
    checked = _decide(
        opener, {"harness": __version__} | {name: model_code(name) for name in MODELS}
    )
    if not (bundle / RULES_FILE).exists():
        return checked
    try:
        stored = read_json(opener.read(bundle / RULES_FILE, _FIX))
        claimed, release = str(stored["division"]), {**stored["release"]}
        # What that release decided is decided once more: this one may have other models.
        then = checked if release == checked.release else _decide(opener, release)
        stated, follows = (dict(flatten(each)) for each in (stored, rules_document(then, claimed)))
        differing = [
            f"{name} is {excerpt(stated.get(name))}, not {excerpt(follows.get(name))}"
            for name in sorted({*stated, *follows})
            if stated.get(name) != follows.get(name)
        ]
    except _UNREADABLE as error:
        differing = [_reason(error)]
    named = tuple(f"{RULES_FILE}: {each}" for each in differing)
    return checked.model_copy(update={"claimed": claimed, "differing": named})


def _decide(bundle: Opener, release: Mapping[str, str]) -> Check:
    """All answers and labels for *bundle*, as *release* decides."""
    tables, runs, why = cache(partial(read_table, bundle)), list[BundledRun](), "there is no run"
    answers, labels = list[Answer](), defaultdict[str, list[str]](list)
    try:
        names = [check_name(row["run"], "a run") for row in tables("runs")]
        paths = [bundle.root / "runs" / name for name in names]
        runs = [BundledRun(bundle, Run(path), tables, release) for path in paths]
        for run in runs:
            for label, text in _labels(run).items():
                labels[label] += [text] if text not in labels[label] else []
    except _UNREADABLE as error:
        why = _reason(error)
        labels["not decidable"].append(why)
    for name, rule in RULES.items():
        checked: list[tuple[bool | None, str, str]] = [] if runs else [(None, "data/runs.csv", why)]
        for run in runs:
            try:
                is_met, value = rule.decide(run)
            except _UNREADABLE as error:
                is_met, value = False if isinstance(error, EvidenceError) else None, _reason(error)
            value = excerpt(f"{run.run.id}: {value}" if len(runs) > 1 else value, 300)
            checked.append((is_met, rule.file.format(run=f"runs/{run.run.id}"), value))
        is_met, file, value = min(checked, key=lambda each: [*_OUTCOMES].index(each[0]))
        answers.append(Answer(rule=name, outcome=_OUTCOMES[is_met], file=file, value=value))
    texts = {label: "; ".join(labels[label]) for label in labels}
    return Check(release={**release}, answers=tuple(answers), labels=texts)


def _reason(error: Exception) -> str:
    """Why a file decides nothing."""
    if isinstance(error, HarnessError):
        return error.what
    return f"there is no {error}" if isinstance(error, KeyError) else f"it cannot be read: {error}"


def rules_document(checked: Check, division: str) -> dict[str, Any]:
    """`rules.json`: the *division* that is claimed, and how the rules were decided."""
    answers = {each.rule: each for each in checked.answers}
    return {
        "version": VERSION,
        "division": division,
        "release": checked.release,
        "answers": {name: each.model_dump(mode="json") for name, each in answers.items()},
        "labels": checked.labels,
        # How an open bundle differs from the closed division, rule by rule.
        "differs": {
            name: f"{RULES[name].title}: {each.outcome}, {each.file}, {each.value}"
            for name, each in answers.items()
            if division == "open" and each.outcome != "passed"
        },
    }


def read_table(bundle: Opener, name: str) -> list[Row]:
    """Rows of ``data/NAME.csv`` of *bundle*; `ValueError` where it is no table."""
    content = bundle.read(bundle.root / "data" / f"{name}.csv", _FIX).decode()
    header, *lines = csv.reader(io.StringIO(content, newline=""), strict=True)
    return [dict(zip(header, line, strict=True)) for line in lines]
