"""
The rules of a comparison, version 3.0 (docs/rules.md), and what decides each in a bundle.

A bundle that meets all of them is of the closed division; any other is of the open one and says,
rule by rule, how it differs.  What cannot be decided is not met.
"""

from __future__ import annotations

import hashlib

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from harness.base.documents.wording import listing
from harness.base.errors import EvidenceError, HarnessError
from harness.base.records.question import Question
from harness.base.records.trial import Record, digest
from harness.base.text import excerpt, read_json
from harness.base.version import __version__
from harness.core.evaluate.laws import broken_laws
from harness.core.evaluate.provenance import blind_refusals, model_code
from harness.core.experiment.model import Experiment
from harness.core.reports.answer import foreign_sentence
from harness.core.reports.sections.method import flatten
from harness.core.store import Run, check_name
from harness.core.store.anchors import order_words, unanchored_why
from harness.core.store.evidence import differences
from harness.core.store.published import ORIGINALS
from harness.core.store.run import FINISHED
from harness.core.store.seal import SEAL
from harness.models import MODELS
from harness.observe.storage.files import json_bytes
from harness.observe.storage.opener import Opener
from harness.publish.data import FIX, hardware, question_columns, read_table, table_field
from harness.publish.system import undisclosed

VERSION = "3.0"
RULES_FILE = "rules.json"
FEWEST_REPEATS = 5
FEWEST_CELLS = 6
MOST_DISTURBED = 0.2
MOST_FLOOR = 0.05
# Digests of the experiments of experiments/publish; a test holds them to the files.
READY = {"publish-cpu": "3af75e2f1471a4a6", "publish-gpu": "a710644d6f8b6db3"}
# Keys of `cluster` that say where an experiment is measured, and not what.
PLACE = ("provider", "hosts", "ssh", "exposed")
_NOT_STORED = {"claimed", "claimed_by", "differing", "named_release"}  # of `Check`, in RULES_FILE
_UNREADABLE = (HarnessError, ValueError, LookupError, TypeError, AttributeError)

Outcome = Literal["failed", "not decidable", "passed"]
Decision = tuple[bool | None, str]  # whether a rule is met (`None`: not decidable), by which value
_OUTCOMES: dict[bool | None, Outcome] = {False: "failed", None: "not decidable", True: "passed"}


class Answer(Record):
    """How a *rule*, called *title*, was decided, by which *value* of which *file* of the bundle."""

    rule: str
    title: str
    outcome: Outcome
    file: str
    value: str


class Check(Record):
    """
    What a bundle meets: an answer for each rule, and *labels* with what each stands for.

    *release* is the version, and the hash of each model's code, of the harness that decided.
    *claimed* is the division in `rules.json`, if there is one, by the rules of the version
    *claimed_by*; *differing* is what does not follow, for the release named there, from the other
    files.  *named_release* has the outcome by that
    release of each rule that it decides otherwise: it had other models.
    """

    version: str = VERSION
    release: dict[str, str]
    answers: tuple[Answer, ...]
    labels: dict[str, str]
    claimed: str = ""
    claimed_by: str = ""
    differing: tuple[str, ...] = ()
    named_release: dict[str, Outcome] = Field(default_factory=dict)

    @property
    def unmet(self) -> dict[str, str]:
        """Rules of the closed division that are not met, with outcome and reason."""
        return {
            answer.rule: f"{answer.rule} {answer.outcome}: {answer.value}"
            for answer in self.answers
            if answer.outcome != "passed"
        }

    @property
    def division(self) -> Literal["closed", "open"]:
        """The division whose rules are met."""
        return "open" if self.unmet else "closed"

    @property
    def is_met(self) -> bool:
        """Whether the claimed division is met, and `rules.json` says what the files say."""
        return self.claimed in ("open", self.division) and not self.differing


def experiment_digest(experiment: Experiment) -> str:
    """Digest of all that *experiment* fixes, but for where it is measured."""
    document = experiment.model_dump(mode="json", exclude={"cluster": {*PLACE}})
    # Bundles of earlier versions, which have no such key, keep their digest.
    for key, usual in {"fastest": 0, "sentinels": 0, "starts": 1}.items():
        if document[key] == usual:
            del document[key]
    return digest(document)


def is_question_sealed(row: Mapping[str, str], sealed: Question | None) -> bool:
    """Whether the question in a *row* of the runs is the *sealed* one, if it says that it was."""
    asked = row.get("asked", "afterwards")  # bundles of earlier versions say nothing of it
    if sealed is None:
        return asked == "afterwards"
    if asked == "afterwards":
        return row["blind"] != "true"
    if asked != ("explored" if sealed.anyway else "sealed"):
        return False
    columns = dict(question_columns(sealed))
    if sealed.kind == "moved_since" and row["asks"].split(" ")[0] == "moved_since":
        del columns["asks"]  # the earlier run may be called otherwise in a bundle
    return all(row[name] == table_field(value, str) for name, value in columns.items())


def is_as_sealed(seal: Mapping[str, Any], originals: Mapping[str, str]) -> bool:
    """
    Whether *seal*, read from a bundle, is the one that was measured, but for hashes of its files.

    Files in which names were changed have others in a bundle: with those of *originals*, the hashes
    of what was measured, the seal has to be the measured one, byte for byte.
    """
    hashes = {name: originals.get(name, "") for name in seal["sha256"]}
    measured = {**seal, "sha256": hashes}
    forms = [measured]
    if measured.get("question", "") is None:  # which seals of earlier versions do not have
        forms.append({key: value for key, value in measured.items() if key != "question"})
    return originals.get(SEAL) in [hashlib.sha256(json_bytes(form)).hexdigest() for form in forms]


def _some(names: list[str]) -> str:
    return listing(names or ["none"], most=1)


@dataclass(frozen=True)
class BundledRun:
    """
    The run *id* of a bundle, and how it meets each rule.

    Each *table* is of all runs, and has *number* for this one.
    """

    bundle: Opener
    number: str
    id: str
    table: Callable[[str], list[dict[str, str]]]
    release: Mapping[str, str]

    @property
    def run(self) -> Run:
        """Its files; `DataError` where it has a name that leads elsewhere."""
        return Run(self.bundle.root / "runs" / check_name(self.id, "a run"))

    def rows(self, table: str, **wanted: str) -> list[dict[str, str]]:
        """Rows of this run in ``data/TABLE.csv``: those with the *wanted* values."""
        wanted["run"] = self.number
        return [row for row in self.table(table) if wanted.items() <= row.items()]

    def is_ready_made(self) -> Decision:
        """Whether it is one of experiments/publish, unchanged."""
        experiment = self.run.experiment()
        measured = experiment_digest(experiment)
        is_ready = READY.get(experiment.name) == measured
        return is_ready, f"experiment {experiment.name}, digest {measured}"

    def is_not_overridden(self) -> Decision:
        """Whether nothing was overridden but where it was measured."""
        overrides = self.run.read_manifest().overrides
        places = [f"cluster.{key}" for key in PLACE]
        changes = [override for override in overrides if not override.startswith(tuple(places))]
        return not changes, f"overrides: {_some(changes)}"

    def is_blind(self) -> Decision:
        """Whether all scored trials name the seal of predictions that were made before them."""
        (row,) = self.rows("runs")
        trials = self.rows("trials", use="score", state="done")
        unsealed = [trial["trial"] for trial in trials if trial["seal"] != row["sealed"]]
        against = [f"trial {trial} does not name the seal" for trial in unsealed]
        against += blind_refusals(self.run, self.run.trials().values())
        is_blind = row["blind"] == "true" and row["sealed"] != "" and not against
        return is_blind, f"blind: {row['blind']}, against it: {_some(against)}"

    def has_repeats(self) -> Decision:
        """Whether each scored cell has enough trials that are done."""
        counts = Counter({row["cell"]: 0 for row in self.rows("cells", use="score")})
        counts.update(row["cell"] for row in self.rows("trials", use="score", state="done"))
        cell, fewest = counts.most_common()[-1]
        return fewest >= FEWEST_REPEATS, f"{fewest} done, fewest: cell {cell}"

    def has_cells(self) -> Decision:
        """Whether each workload has enough scored cells."""
        counts = Counter(row["workload"] for row in self.rows("cells", use="score"))
        workload, fewest = counts.most_common()[-1]
        return fewest >= FEWEST_CELLS, f"{fewest} scored, fewest: {workload}"

    def is_of_release(self) -> Decision:
        """Whether the models are those of the deciding release, and were committed."""
        manifest = self.run.read_manifest()
        by_model = self.run.read_predictions()
        named = f"harness {manifest.harness}, commit {manifest.commit or 'not known'}"
        if manifest.harness != self.release["harness"] or not manifest.commit:
            return None, f"code: of {named}, and {self.release['harness']} decides"
        changed = list[str]()
        for model, predictions in by_model.items():
            if {prediction.code for prediction in predictions} != {self.release.get(model)}:
                changed.append(model)
        if manifest.commit.endswith("-dirty"):
            changed.append("what was not committed")
        return bool(by_model) and not changed, f"code: of {named}, but for: {_some(changed)}"

    def has_one_profile(self) -> Decision:
        """Whether all predictions for a workload come from its one profile."""
        workloads = {row["cell"]: row["workload"] for row in self.rows("cells", use="score")}
        profiles = self.run.profile_hashes()
        differing = list[str]()
        for model, predictions in self.run.read_predictions().items():
            for prediction in predictions:
                if prediction.profile != profiles[workloads[prediction.cell]]:
                    differing.append(f"of {model} in cell {prediction.cell}")
        return not differing, f"another profile: {_some(differing)}"

    def has_no_failure(self) -> Decision:
        """Whether all trials of scored cells are done."""
        trials = self.rows("trials", use="score")
        failed = [row["trial"] for row in trials if row["state"] != "done"]
        return not failed, f"not done: {_some(failed)}"

    def is_undisturbed(self) -> Decision:
        """Whether few enough scored trials were disturbed."""
        trials = self.rows("trials", use="score", state="done")
        disturbed = sum(bool(row["disturbed"]) for row in trials)
        return disturbed <= MOST_DISTURBED * len(trials), f"disturbed: {disturbed} of {len(trials)}"

    def is_quiet(self) -> Decision:
        """Whether the noise floor of each scored cell is low enough."""
        scores = self.rows("scores", speed="reference", quantity="job_s")
        floors = {row["cell"]: float(row["floor"]) for row in scores if row["floor"]}
        scored = [row["cell"] for row in self.rows("cells", use="score")]
        if unknown := [cell for cell in scored if cell not in floors]:
            return None, f"floor of job_s: not known of cell {_some(unknown)}"
        cell = max(floors, key=floors.__getitem__)
        # Of all, and not of the largest: a floor that is no number is not low.
        is_low = all(floor <= MOST_FLOOR for floor in floors.values())
        return is_low, f"floor of job_s: {floors[cell]:.2%}, largest: cell {cell}"

    def is_complete(self) -> Decision:
        """Whether every trial of the plan is there."""
        planned = {trial.id for trial in self.run.read_plan()}
        missing = sorted(planned - {row["trial"] for row in self.rows("trials")})
        return bool(planned) and not missing, f"missing of {len(planned)}: {_some(missing)}"

    def is_disclosed(self) -> Decision:
        """Whether `system.json` tells all that it has to, of each run."""
        system = read_json(self.bundle.read(self.bundle.root / "system.json", FIX))
        count = len(system["experiments"])
        lacking = undisclosed(system)
        lacking += ["a run"] if count != len(self.table("runs")) else []
        return not lacking, f"of {count} experiments, not known or missing: {_some(lacking)}"

    def is_sealed(self) -> Decision:
        """Whether the predictions are those that were sealed when it was measured."""
        (row,) = self.rows("runs")
        run = self.run
        run.seal.check()
        originals = read_json(run.opener.read(run.path / ORIGINALS, FIX))["files"]
        measured = originals[SEAL]
        if not is_as_sealed(read_json(run.opener.read(run.seal.path, FIX)), originals):
            return False, f"the seal is not the one that was measured: {measured[:16]}"
        if not is_question_sealed(row, run.seal.question()):
            return False, f"question: {row.get('asked', 'none')}, which is not that of the seal"
        return measured == row["sealed"], f"sealed as measured: {measured[:16]}"

    def is_whole(self) -> Decision:
        """Whether the evidence holds, and each trial has both its row and its files."""
        run = self.run
        ended = {row["trial"] for row in self.rows("trials")}
        unpaired = sorted(ended ^ {*run.trial_ids()})
        has_end = run.opener.read(run.path / FINISHED, FIX).strip() != b""
        is_whole = run.check_evidence() and has_end and not unpaired
        return is_whole, f"of {len(ended)} trials, with a row or files alone: {_some(unpaired)}"

    def keeps_laws(self) -> Decision:
        """Whether its records agree with each other."""
        broken = [str(breach) for breach in broken_laws(self.run)]
        return not broken, f"laws that are broken: {_some(broken)}"

    def is_anchored(self) -> Decision:
        """Whether somebody outside was told of the seal before a scored trial was measured."""
        why = unanchored_why(self.run)
        return not why, why or order_words(self.run)

    # By its id: what a rule asks for, by which file of the bundle it is decided, and how.
    RULES: ClassVar[dict[str, tuple[str, str, Callable[[BundledRun], Decision]]]] = {
        "R01": ("a ready-made experiment", "{run}/manifest.json", is_ready_made),
        "R02": ("no overrides", "{run}/manifest.json", is_not_overridden),
        "R03": ("blind order", "data/runs.csv", is_blind),
        "R04": ("five repeats or more", "data/trials.csv", has_repeats),
        "R05": ("six scored cells or more per workload", "data/cells.csv", has_cells),
        "R06": ("models of a release, unchanged", "{run}/predictions", is_of_release),
        "R07": ("one profile for all models", "{run}/predictions", has_one_profile),
        "R08": ("no failed trial in a scored cell", "data/trials.csv", has_no_failure),
        "R09": ("one disturbed trial in five at most", "data/trials.csv", is_undisturbed),
        "R10": ("a noise floor of 5 % at most", "data/scores.csv", is_quiet),
        "R12": ("every planned trial", "data/trials.csv", is_complete),
        "R13": ("full disclosure", "system.json", is_disclosed),
        "R14": ("predictions as sealed", "{run}/predictions/sealed.json", is_sealed),
        "R15": ("evidence whole", "{run}/trials.jsonl", is_whole),
        "R16": ("records that agree", "{run}", keeps_laws),
        "R17": ("anchored before measuring", "{run}/anchors/seal.json", is_anchored),
    }

    def labels(self) -> dict[str, str]:
        """What no division takes away, each label with what it stands for."""
        plan = self.run.read_plan()
        records = self.run.trials().values()
        labels = dict[str, str]()
        limited = {hardware(trial.cell) for trial in plan if trial.cell.cluster.limited}
        if limited:
            labels["hardware made on purpose"] = "; ".join(sorted(limited))
        on_cpu = [record.trial.id for record in records if "cpu" in record.device.split(", ")]
        if on_cpu:
            labels["device=cpu"] = f"a processor in the place of a GPU: {_some(on_cpu)}"
        local = [row["trial"] for row in self.rows("trials") if row["start"].startswith("local")]
        if local:
            labels["runner=local"] = f"Hadoop's local runner, no cluster: {_some(local)}"
        if others := foreign_sentence(records).strip():
            labels["others used the machine"] = others
        is_blind, reason = self.is_blind()
        if not is_blind:
            labels["not blind"] = reason
        if limitations := "; ".join(self.run.read_manifest().limitations):
            labels["limitations"] = limitations
        return labels


def check(bundle: Path) -> Check:
    """Decide all rules for *bundle* by its files alone; of several runs the worst answer counts."""
    opener = Opener(bundle)
    claimed = ""
    claimed_by = ""
    by_named = dict[str, Outcome]()
    opener.require_plain()
    release = {"harness": __version__} | {name: model_code(name) for name in MODELS}
    checked = _decide(opener, release)
    if not (bundle / RULES_FILE).exists():
        return checked
    try:
        stored = read_json(opener.read(bundle / RULES_FILE, FIX))
        claimed = str(stored["division"])
        claimed_by = str(stored["version"])
        named = {**stored["release"]}
        # What that release decided is decided once more: this one may have other models.
        decided = checked if named == release else _decide(opener, named)
        outcomes = {answer.rule: answer.outcome for answer in checked.answers}
        for answer in decided.answers:
            if answer.outcome != outcomes[answer.rule]:
                by_named[answer.rule] = answer.outcome
        follows = rules_document(decided, claimed)
        differing = differences(dict(flatten(follows)), dict(flatten(stored)))
    except _UNREADABLE as error:
        differing = [_reason(error)]
    texts = tuple(f"{RULES_FILE}: {excerpt(difference)}" for difference in differing)
    found = {
        "claimed": claimed,
        "claimed_by": claimed_by,
        "differing": texts,
        "named_release": by_named,
    }
    return checked.model_copy(update=found)


def _decide(bundle: Opener, release: Mapping[str, str]) -> Check:
    """All answers and labels for *bundle*, as *release* decides."""
    table = cache(partial(read_table, bundle))
    labels = defaultdict[str, list[str]](list)
    runs = [BundledRun(bundle, "", "", table, release)]  # of which nothing can be decided
    try:
        rows = table("runs")
        runs = [BundledRun(bundle, row["run"], row["id"], table, release) for row in rows] or runs
        for run in runs:
            for label, text in run.labels().items():
                labels[label].append(text)
    except _UNREADABLE as error:
        labels["not decidable"].append(_reason(error))
    answers = list[Answer]()
    worst_first = [*_OUTCOMES.values()]
    for rule in BundledRun.RULES:
        run_answers = [_answer(rule, run, is_alone=len(runs) == 1) for run in runs]
        answers.append(min(run_answers, key=lambda answer: worst_first.index(answer.outcome)))
    joined = {label: "; ".join(dict.fromkeys(texts)) for label, texts in labels.items()}
    return Check(release={**release}, answers=tuple(answers), labels=joined)


def _answer(rule: str, run: BundledRun, *, is_alone: bool) -> Answer:
    """How *run* meets a rule; it is named where it *is_alone* not."""
    title, file, decide = BundledRun.RULES[rule]
    is_met: bool | None
    try:
        is_met, value = decide(run)
    except _UNREADABLE as error:
        is_met = False if isinstance(error, EvidenceError) else None
        value = _reason(error)
    return Answer(
        rule=rule,
        title=title,
        outcome=_OUTCOMES[is_met],
        file=file.format(run=f"runs/{run.id}"),
        value=excerpt(value if is_alone else f"{run.id}: {value}", 300),
    )


def _reason(error: Exception) -> str:
    """Why a file decides nothing."""
    return str(getattr(error, "what", f"it cannot be read: {error!r}"))


def rules_document(checked: Check, division: str) -> dict[str, Any]:
    """`rules.json`: the *division* that is claimed, and how the rules were decided."""
    document = checked.model_dump(mode="json", exclude=_NOT_STORED)
    answers = {answer["rule"]: answer for answer in document["answers"]}
    return {**document, "division": division, "answers": answers}
