"""
The rules: a bundle that meets all of them, and for each rule one that breaks it alone.
"""

import copy
import csv
import hashlib
import json
import re

from pathlib import Path
from typing import ClassVar

import pytest

from harness.base.errors import DataError
from harness.base.records.manifest import Manifest
from harness.base.records.prediction import Prediction
from harness.base.records.profile import Profile
from harness.base.records.question import Question
from harness.base.records.trial import (
    SCHEMA_VERSION,
    MachineLoad,
    TrialRecord,
    Versions,
    trial_id,
)
from harness.base.version import __version__
from harness.core.evaluate.laws import plan as laws_of_plan
from harness.core.evaluate.provenance import model_code
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.store.anchors import Anchor
from harness.core.store.evidence import Evidence, Line
from harness.observe.storage.files import json_bytes
from harness.publish.command import shown_check
from harness.publish.rules import (
    READY,
    VERSION,
    BundledRun,
    check,
    experiment_digest,
    is_question_sealed,
    rules_document,
)
from harness.publish.system import FIELDS

PROJECT = Path(__file__).resolve().parents[2]
FILES = sorted((PROJECT / "experiments" / "publish").glob("*.yaml"))
VERSIONS = Versions(hadoop="3.5.0", java="17.0.15")
QUIET = {"this machine": MachineLoad(busy=0.5, steal=0.0, others=0.0, swap_bytes_per_s=0.0)}
RUN, SEALED = "20261121T032309Z-4f26", "(the seal)"  # the latter is known once it is written


def experiment_of(path, *overrides):
    """
    The experiment of a file, as it is resolved.
    """
    return read_experiment(path.read_text(encoding="utf-8"), path.name, overrides)


# A part of the closed question, so that a bundle is quickly written.
SIZES = "[96 MiB, 544 MiB, 640 MiB, 704 MiB, 768 MiB, 896 MiB, 1024 MiB]"
WHOLE = experiment_of(FILES[0])
PART = experiment_of(FILES[0], f"workloads=[{{name: terasort, input: {SIZES}}}]", "sentinels=0")
PLAN = order(PART, expand(PART), VERSIONS)


@pytest.fixture(autouse=True)
def _the_part_is_ready_made(monkeypatch):
    monkeypatch.setitem(READY, PART.name, experiment_digest(PART))
    # What is written here is made by no file, and its overrides change nothing.
    monkeypatch.setattr(laws_of_plan, "written_experiment", lambda _: None)


def sha256(data):
    """
    SHA-256 of bytes, in hex.
    """
    return hashlib.sha256(data).hexdigest()


def answered(fields):
    """
    A disclosure, or a part of one, with an answer in each of the *fields*.
    """
    if isinstance(fields, dict):
        return {name.replace("*", "any"): answered(below) for name, below in fields.items()}
    return dict.fromkeys(fields.split(", "), "known") if fields else "known"


class Bundle:
    """
    A bundle that meets every rule; its parts can be changed before it is written.
    """

    def __init__(self, run=RUN, experiment=PART):
        self.run, self.plan = run, [*order(experiment, expand(experiment), VERSIONS)]
        self.by_id = {trial.id: trial for trial in self.plan}
        self.manifest = {
            "run": run, "created_s": 1.0, "experiment_id": "0" * 16, "harness": __version__,
            "commit": "94fa85c0e3e0", "experiment": experiment.model_dump(mode="json"),
        }  # fmt: skip
        cells = {trial.cell.id: trial for trial in self.plan if not trial.sentinel}
        self.cells = [
            {"run": run, "cell": key, "workload": trial.cell.workload.name,
             "use": "profile" if trial.profiling else "score"}
            for key, trial in cells.items()
        ]  # fmt: skip
        self.scored = [row["cell"] for row in self.cells if row["use"] == "score"]
        self.trials = [self.row(trial) for trial in self.plan]
        self.runs = [{"run": run, "id": run, "blind": "true", "sealed": SEALED}]
        self.profiles = {
            name: Profile(workload=name).model_dump_json().encode()
            for name in ("terasort", "wordcount")
        }
        self.predictions = {
            model: [
                Prediction(model=model, cell=cell, job_s=60.0, code=model_code(model),
                           profile=sha256(self.profiles[cells[cell].cell.workload.name]))
                for cell in self.scored
            ]
            for model in experiment.predict.models
        }  # fmt: skip
        self.scores = [
            {"run": run, "cell": cell, "speed": speed, "quantity": quantity, "floor": "0.03"}
            for cell in self.scored
            for speed in ("raw", "reference")
            for quantity in ("job_s", "body_s")
        ]
        sections, nodes = answered(FIELDS), ("master", "worker1")
        sections["nodes"] = {name: answered(FIELDS["nodes"]["*"]) for name in nodes}
        governor = "not known: a virtual machine has none"
        sections["nodes"]["master"]["processor"]["governor"] = governor
        self.system = {"version": 1, "experiments": {experiment.name: sections}}
        self.device, self.hidden = "", []
        self.anchored, self.job_ids = SEALED, ()

    def row(self, trial, state="done"):
        """
        The row of a trial in the table of trials.
        """
        seal = "" if trial.profiling else SEALED
        return {"run": self.run, "trial": trial.id, "cell": trial.cell.id, "use": trial.use,
                "state": state, "disturbed": "", "start": "1795224441", "seal": seal}  # fmt: skip

    def again(self, cell):
        """
        A sixth repetition of *cell*.
        """
        trial = next(each for each in self.plan if each.cell.id == cell)
        number = trial_id(trial.cell, 5, VERSIONS)
        return trial.model_copy(update={"id": number, "repetition": 5})

    def change(self, table, number=0, **values):
        """
        Change one row of a table.
        """
        getattr(self, table)[number].update(values)

    def change_experiment(self, path, value):
        """
        Change the experiment of the manifest, at a dotted path.
        """
        *keys, last = path.split(".")
        place = self.manifest["experiment"]
        for key in keys:
            place = place[key]
        place[last] = value

    def change_prediction(self, **values):
        """
        Change one prediction of one model.
        """
        made = self.predictions["prophet"]
        made[4] = made[4].model_copy(update=values)

    def lose_trial(self):
        """
        Neither plan nor a new trial for one of the five repeats of a cell.
        """
        (*_, last) = (trial for trial in self.plan if trial.cell.id == self.scored[3])
        self.plan.remove(last)
        self.trials = [row for row in self.trials if row["trial"] != last.id]

    def lose_cell(self):
        """
        One cell was never planned.
        """
        cell = self.scored.pop()
        self.plan = [trial for trial in self.plan if trial.cell.id != cell]
        for name in ("cells", "trials", "scores"):
            setattr(self, name, [row for row in getattr(self, name) if row["cell"] != cell])
        for model, made in self.predictions.items():
            self.predictions[model] = [each for each in made if each.cell != cell]

    def add_model(self):
        """
        A model of the user's own.
        """
        made = self.predictions["prophet"]
        self.predictions["mine"] = [each.model_copy(update={"model": "mine"}) for each in made]

    def plan_again(self, state=""):
        """
        A sixth repetition of a cell, which ended so, or never began.
        """
        trial = self.again(self.scored[0])
        self.plan.append(trial)
        self.by_id[trial.id] = trial
        self.trials += [self.row(trial, state)] if state else []

    def disturb(self, count):
        """
        Mark so many scored trials.
        """
        for row in [row for row in self.trials if row["use"] == "score"][:count]:
            row["disturbed"] = "others: 4 %"

    def set_floor(self, floor, quantity="job_s", speed="reference"):
        """
        Change the noise of one cell.
        """
        where = {"cell": self.scored[5], "speed": speed, "quantity": quantity}
        for row in self.scores:
            row["floor"] = floor if row.items() >= where.items() else row["floor"]

    def lose_floor(self):
        """
        No job time of one cell was scored at reference speed.
        """
        where = {"cell": self.scored[5], "speed": "reference", "quantity": "job_s"}
        self.scores = [row for row in self.scores if not row.items() >= where.items()]

    def tell(self, part, field, value):
        """
        Change what a node tells; nothing: leave it out.
        """
        facts = self.system["experiments"][PART.name]["nodes"]["worker1"][part]
        facts[field] = value
        if value is None:
            del facts[field]

    def tell_of_another(self):
        """
        An entry for a run that the bundle does not have.
        """
        self.system["experiments"]["another"] = self.system["experiments"][PART.name]

    def hide(self):
        """
        A trial whose files are there, and which neither plan nor tables name.
        """
        trial = self.again(self.scored[0])
        self.by_id[trial.id] = trial
        self.hidden.append(self.row(trial))

    def name_seal(self, seal):
        """
        Let the tables name another seal.
        """
        for row in (*self.runs, *self.trials):
            for name in row.keys() & {"sealed", "seal"}:
                row[name] = seal if row[name] else ""

    def lines(self, records):
        version = {"schema_version": SCHEMA_VERSION}
        return b"".join(
            json_bytes(version | each.model_dump(mode="json"), indent=None) for each in records
        )

    def write(self, folder, *, sealed=lambda hashes: hashes, chain=lambda names: names):
        """
        Write it; *sealed* may change what the seal says, *chain* what the chain says.
        """
        place, files, noted = (
            folder / "runs" / self.run,
            {},
            {"profile": {}, "score": {}, "sentinel": {}},
        )
        for row in (*self.trials, *self.hidden):
            name = f"trials/{row['trial']}"
            trial = self.by_id[row["trial"]]
            record = TrialRecord(trial=trial, state=row["state"], started_s=1.0, finished_s=2.0,
                                 versions=VERSIONS, device=self.device, job_ids=self.job_ids,
                                 input_bytes=trial.cell.workload.input_bytes, loads=QUIET,
                                 harness_s={"client_s": 1.0})  # fmt: skip
            data = json_bytes(record.model_dump(mode="json"))
            evidence = Evidence(measured={"trial.json": sha256(data)})
            files[f"{name}/trial.json"] = data
            files[f"{name}/evidence.json"] = json_bytes(evidence.model_dump(mode="json"))
            noted[row["use"]] |= evidence.hashes(name)
        profiles = {f"profiles/{name}.json": data for name, data in self.profiles.items()}
        sealable = {f"predictions/{n}.jsonl": self.lines(p) for n, p in self.predictions.items()}
        sealable |= {**profiles, "plan.jsonl": self.lines(self.plan)}
        seal = {"sealed_s": 1.5, "sha256": sealed({n: sha256(d) for n, d in sealable.items()})}
        seal_bytes = json_bytes({"schema_version": SCHEMA_VERSION, **seal})
        files |= {**sealable, "predictions/sealed.json": seal_bytes, "experiment.yaml": b""}
        files["manifest.json"] = json_bytes(Manifest(**self.manifest).document())
        before, after = [*profiles, "predictions/sealed.json"], ("manifest.json", "plan.jsonl")
        if self.anchored:
            told = sha256(seal_bytes) if self.anchored == SEALED else self.anchored
            anchor = Anchor(about="seal", sha256=told, command="notary", asked_s=1.0,
                            answered_s=1.0, answer="c2Vlbg==")  # fmt: skip
            files["anchors/seal.json"] = json_bytes(anchor.model_dump(mode="json"))
            before.append("anchors/seal.json")
        hashes = {name: sha256(files[name]) for name in (*before, *after)}
        measured = {name: hashes.get(name, sha256(data)) for name, data in files.items()}
        names = {
            **noted["profile"], **{name: hashes[name] for name in before},
            **noted["score"], **noted["sentinel"], **{name: hashes[name] for name in after},
        }  # fmt: skip
        previous, lines = "", []
        for name, sha in chain(names).items():
            line = Line(name=name, sha256=sha, stored_s=1.0, previous=previous)
            lines.append(json_bytes(line.model_dump(mode="json"), indent=None))
            previous = sha256(lines[-1])
        files |= {"trials.jsonl": b"".join(lines), "finished": previous.encode()}
        files["originals.json"] = json_bytes({"schema_version": SCHEMA_VERSION, "files": measured})
        for name, data in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
        (folder / "data").mkdir(exist_ok=True)
        for name in ("runs", "cells", "trials", "scores"):
            table = folder / "data" / f"{name}.csv"
            self.write_table(table, getattr(self, name), sha256(seal_bytes))
        system = folder / "system.json"
        if system.exists():  # of another run
            earlier = json.loads(system.read_text(encoding="utf-8"))["experiments"]
            self.system["experiments"] |= {f"{name} again": each for name, each in earlier.items()}
        system.write_text(json.dumps(self.system), encoding="utf-8")
        return folder

    def write_table(self, path, rows, seal):
        """
        Write a table, or add to one that is there.
        """
        is_new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            columns = rows[0] if rows else ()
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([columns] if is_new else [])
            writer.writerows([[seal if v == SEALED else v for v in row.values()] for row in rows])


def outcomes(checked):
    """
    The rules that are not passed, each with its outcome.
    """
    return {each.rule: each.outcome for each in checked.answers if each.outcome != "passed"}


def test_a_good_bundle_is_closed(tmp_path, monkeypatch):
    """
    It meets every rule, and has no label: one of the whole question.
    """
    monkeypatch.undo()
    monkeypatch.setattr(laws_of_plan, "written_experiment", lambda _: None)
    checked = check(Bundle(experiment=WHOLE).write(tmp_path))

    assert (outcomes(checked), checked.division, checked.labels) == ({}, "closed", {})


def without(name):
    """
    A change of what is sealed or noted: one entry is missing.
    """
    return lambda hashes: {each: sha for each, sha in hashes.items() if each != name}


def other(name):
    """
    A change of what is sealed or noted: another hash.
    """
    return lambda hashes: {each: "0" * 64 if each == name else sha for each, sha in hashes.items()}


def seal_late(hashes):
    """
    A change of what is noted: the predictions were sealed after all trials.
    """
    name = "predictions/sealed.json"
    return {**without(name)(hashes), name: hashes[name]}


def anchor_late(hashes):
    """
    A change of what is noted: somebody was told when all had been measured.
    """
    name = "anchors/seal.json"
    return {**without(name)(hashes), name: hashes[name]}


BROKEN = [
    ("R01", lambda b: b.change_experiment("seed", 8), {}),
    ("R01", lambda b: b.change_experiment("cluster.node.cores", [0.5]), {}),
    ("R01", lambda b: b.change_experiment("name", "mine"), {}),
    ("R02", lambda b: b.manifest.update(overrides=["repeat=5"]), {}),
    ("R02", lambda b: b.manifest.update(overrides=["cluster.ssh.user=u", "cluster={}"]), {}),
    ("R03", lambda b: b.change("runs", blind="false"), {}),
    ("R03", lambda b: b.change("trials", -1, seal=""), {}),
    ("R03", lambda b: b.change("trials", -1, seal="0" * 64), {}),
    ("R03", lambda b: None, {"chain": seal_late}),
    ("R04", lambda b: b.lose_trial(), {}),
    ("R05", lambda b: b.lose_cell(), {}),
    ("R06", lambda b: b.change_prediction(code="0" * 64), {}),
    ("R06", lambda b: b.manifest.update(commit="94fa85c0e3e0-dirty"), {}),
    ("R06", lambda b: b.add_model(), {}),
    ("R06", lambda b: b.predictions.clear(), {}),
    ("R07", lambda b: b.change_prediction(profile="0" * 64), {}),
    ("R08", lambda b: b.plan_again("failed"), {}),
    ("R08", lambda b: b.plan_again("timed_out"), {}),
    ("R09", lambda b: b.disturb(7), {}),
    ("R10", lambda b: b.set_floor("0.0501"), {}),
    ("R10", lambda b: b.set_floor("nan"), {}),
    ("R10", lambda b: b.set_floor("inf"), {}),
    ("R12", lambda b: b.plan_again(), {}),
    ("R12", lambda b: b.plan.clear(), {}),
    ("R13", lambda b: b.tell("processor", "model", "not known: nobody says"), {}),
    ("R13", lambda b: b.tell("memory", "swappiness", None), {}),
    ("R13", lambda b: b.tell("processor", "governor", None), {}),
    ("R13", lambda b: b.system["experiments"][PART.name].pop("hadoop"), {}),
    ("R13", lambda b: b.system["experiments"][PART.name]["hadoop"].pop("jars"), {}),
    ("R13", lambda b: b.system["experiments"].clear(), {}),
    ("R13", lambda b: b.tell_of_another(), {}),
    ("R14", lambda b: None, {"sealed": without("predictions/ernest.jsonl")}),
    ("R14", lambda b: None, {"sealed": other("profiles/terasort.json")}),
    ("R14", lambda b: b.name_seal("0" * 64), {}),
    ("R15", lambda b: b.hide(), {}),
    ("R15", lambda b: None, {"chain": without("profiles/terasort.json")}),
    ("R15", lambda b: None, {"chain": without(f"trials/{PLAN[0].id}")}),
    ("R15", lambda b: None, {"chain": other("profiles/wordcount.json")}),
    ("R15", lambda b: None, {"chain": other(f"trials/{PLAN[7].id}")}),
    ("R16", lambda b: vars(b).update(job_ids=("job_1_0001",)), {}),
    ("R17", lambda b: vars(b).update(anchored=""), {}),
    ("R17", lambda b: vars(b).update(anchored="0" * 64), {}),
    ("R17", lambda b: None, {"chain": anchor_late}),
]
# What changes the plan contradicts the grid, too.
OF_PLAN = ("R01", "R04", "R05", "R08", "R12", "R15")


@pytest.mark.parametrize(("rule", "change", "written"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_rule_is_named_alone(rule, change, written, tmp_path):
    """
    A bundle that breaks one rule fails that one, and no other but that of laws.
    """
    bundle = Bundle()
    change(bundle)
    found = outcomes(check(bundle.write(tmp_path, **written)))

    if rule in OF_PLAN:
        found.pop("R16", None)
    assert found == {rule: "failed"}


def test_a_limit_itself_is_met(tmp_path):
    """
    One in five is disturbed, a floor is 5 %; another place. Noise of bodies, and noise at the speed
    that was measured, decide nothing.
    """
    bundle = Bundle()
    bundle.disturb(6)
    bundle.manifest["overrides"] = ["cluster.provider=docker", "cluster.ssh.user=u"]
    bundle.set_floor("0.06", "body_s")
    bundle.set_floor("0.06", speed="raw")
    bundle.set_floor("0.05")

    assert outcomes(check(bundle.write(tmp_path))) == {}


def test_the_noisiest_cell_is_named(tmp_path):
    """
    With its noise floor, which is of the job's time; of one that is not known the cell alone.
    """
    values = []
    for number, floor in enumerate(("0.0501", "")):
        bundle = Bundle()
        bundle.set_floor(floor)
        answers = check(bundle.write(tmp_path / str(number))).answers
        values += [answer.value for answer in answers if answer.rule == "R10"]
    cell = bundle.scored[5]

    assert values == [
        f"floor of job_s: 5.01%, largest: cell {cell}",
        f"floor of job_s: not known of cell {cell}",
    ]


def test_a_trial_that_failed_is_no_repeat(tmp_path):
    """
    Four are left of five.
    """
    bundle = Bundle()
    bundle.change("trials", -1, state="failed")

    assert outcomes(check(bundle.write(tmp_path))) == {"R04": "failed", "R08": "failed"}


def test_each_rule_is_broken_by_a_bundle():
    """
    None is without one.
    """
    assert {rule for rule, _, _ in BROKEN} == BundledRun.RULES.keys()


UNDECIDED = [
    ("R06", lambda b: b.manifest.update(commit="")),
    ("R06", lambda b: b.manifest.update(harness="9.9")),
    ("R10", lambda b: b.scores.clear()),
    ("R10", lambda b: b.lose_floor()),
    ("R10", lambda b: b.set_floor("")),
    ("R10", lambda b: b.set_floor("low")),
]


@pytest.mark.parametrize(("rule", "change"), UNDECIDED, ids=range(len(UNDECIDED)))
def test_what_cannot_be_decided_is_not_met(rule, change, tmp_path):
    """
    The rule is not decidable, and the bundle open.
    """
    bundle = Bundle()
    change(bundle)
    checked = check(bundle.write(tmp_path))

    assert (outcomes(checked), checked.division) == ({rule: "not decidable"}, "open")


def test_the_worst_of_several_runs_counts(tmp_path):
    """
    The answer names the run that breaks the rule, whichever it is.
    """
    other = "20261122T000000Z-0000"
    for run in (RUN, other):
        bundle = Bundle(run)
        if run == other:
            bundle.disturb(7)
        bundle.write(tmp_path)
    checked = check(tmp_path)
    answer = next(each for each in checked.answers if each.rule == "R09")

    assert (outcomes(checked), answer.value) == (
        {"R09": "failed"},
        f"{other}: disturbed: 7 of 30",
    )


LIMITATION = "all nodes share one machine"


@pytest.mark.parametrize(
    ("label", "change"),
    [
        ("device=cpu", lambda b: setattr(b, "device", "cuda, cpu")),
        ("runner=local", lambda b: b.change("trials", start="local1234")),
        ("not blind", lambda b: b.change("runs", blind="false")),
        ("limitations", lambda b: b.manifest.update(limitations=[LIMITATION])),
    ],
)
def test_labels_say_what_no_division_takes_away(label, change, tmp_path):
    """
    Each stands there for its reason alone.
    """
    bundle = Bundle()
    change(bundle)

    assert check(bundle.write(tmp_path)).labels.keys() == {label}


def test_limited_nodes_are_a_label(tmp_path):
    """
    It says which hardware was made.
    """
    bundle = Bundle()
    node = bundle.plan[0].cell.cluster.node.model_copy(update={"disk_bytes_per_s": 10 * 2**20})
    for number, trial in enumerate(bundle.plan):
        cluster = trial.cell.cluster.model_copy(update={"node": node})
        cell = trial.cell.model_copy(update={"cluster": cluster})
        bundle.plan[number] = trial.model_copy(update={"cell": cell})
    label = "hardware made on purpose"

    assert check(bundle.write(tmp_path)).labels == {label: "local, 3 workers, disk 10 MiB/s"}


def claim(folder, division=""):
    """
    Write what the rules say of a bundle into it; give that.
    """
    checked = check(folder)
    document = rules_document(checked, division or checked.division)
    (folder / "rules.json").write_text(json.dumps(document), encoding="utf-8")
    return document


def test_an_open_bundle_says_how_it_differs(tmp_path):
    """
    Each rule stands there with its outcome, file and value; it is met so.
    """
    bundle = Bundle()
    bundle.disturb(7)
    document = claim(bundle.write(tmp_path))
    checked = check(tmp_path)
    answers = [each for each in document["answers"].values() if each["outcome"] != "passed"]
    differing = {
        "rule": "R09",
        "title": "one disturbed trial in five at most",
        "outcome": "failed",
        "file": "data/trials.csv",
        "value": "disturbed: 7 of 30",
    }

    assert (answers, checked.claimed, checked.is_met) == ([differing], "open", True)


def test_a_closed_claim_that_is_not_met(tmp_path):
    """
    A bundle that claims more than it meets is not met, though it says so itself.
    """
    bundle = Bundle()
    bundle.disturb(7)
    claim(bundle.write(tmp_path), "closed")
    checked = check(tmp_path)

    assert (checked.claimed, checked.is_met, checked.differing) == ("closed", False, ())


def test_a_good_bundle_may_claim_either_division(tmp_path):
    """
    Closed is met, and so is the lesser claim.
    """
    Bundle().write(tmp_path)
    met = []
    for division in ("closed", "open", "gold"):
        claim(tmp_path, division)
        met.append(check(tmp_path).is_met)

    assert met == [True, True, False]


@pytest.mark.process
def test_each_change_of_the_answers_is_named(tmp_path):
    """
    Whatever is changed, left out or added in `rules.json`: the place is named.
    """
    bundle = Bundle()
    bundle.disturb(7)
    bundle.manifest.update(limitations=[LIMITATION])
    document = claim(bundle.write(tmp_path))
    changes = {("version",): "1.0", ("labels", "limitations"): None, ("labels", "device=cpu"): "",
               ("answers", "R16"): {"outcome": "passed"}, ("answers", "R09", "file"): None,
               ("release", "prophet"): "0" * 64}  # fmt: skip
    for number, rule in enumerate(BundledRun.RULES):
        key, value = [("value", "ours"), ("file", "README.md"), ("title", "")][number % 3]
        changes[("answers", rule, "outcome")] = "passed" if rule == "R09" else "failed"
        changes[("answers", rule, key)] = value
    unnamed = []
    for path, value in changes.items():
        changed = copy.deepcopy(document)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        if value is None:
            del place[path[-1]]
        (tmp_path / "rules.json").write_text(json.dumps(changed), encoding="utf-8")
        checked = check(tmp_path)
        name = "answers.R06" if path[0] == "release" else ".".join(path)
        if checked.is_met or not any(name in each for each in checked.differing):
            unnamed.append((path, checked.differing))

    assert unnamed == []


def test_another_release_decides_only_what_it_knows(tmp_path, monkeypatch):
    """
    Answers are those of the release that they name; the claim is as this one decides.
    """
    Bundle().write(tmp_path)
    met = {}
    for division in ("closed", "open"):
        claim(tmp_path, division)
        with monkeypatch.context() as patched:
            patched.setattr("harness.publish.rules.model_code", lambda name: name * 8)
            checked = check(tmp_path)
        met[division] = (outcomes(checked), checked.differing, checked.is_met)
        assert checked.named_release == {"R06": "passed"}
        (shown, *_) = shown_check(checked, tmp_path)
        (value,) = [value for rule, *_, value in shown.rows if rule == "R06"]
        assert value.endswith("; by the release of rules.json, which has other models: passed")
    failed = {"R06": "failed"}

    assert met == {"closed": (failed, (), False), "open": (failed, (), True)}


def test_a_release_that_decides_alike_is_not_told(tmp_path):
    """
    The rows are the answers alone.
    """
    claim(Bundle().write(tmp_path))
    checked = check(tmp_path)
    (shown, *_) = shown_check(checked, tmp_path)

    assert checked.named_release == {}
    assert [row[-1] for row in shown.rows] == [answer.value for answer in checked.answers]


BAD_RULES = ["", "[]", "{}", '{"division": 1}', '{"division": "open", "release": {}}', "[" * 10**5]


@pytest.mark.parametrize("text", BAD_RULES, ids=range(len(BAD_RULES)))
def test_a_damaged_claim_is_not_met(text, tmp_path):
    """
    It is named, and nothing else happens.
    """
    (Bundle().write(tmp_path) / "rules.json").write_text(text, encoding="utf-8")
    checked = check(tmp_path)

    assert (checked.is_met, all("rules.json" in each for each in checked.differing)) == (
        False,
        True,
    )


@pytest.mark.process
def test_whatever_is_damaged_fails_closed(tmp_path):
    """
    A file that is missing, empty, cut or of another kind: the bundle is open, and nothing raises.
    """
    whole = Bundle().write(tmp_path / "whole")
    names = [path.relative_to(whole) for path in whole.rglob("*") if path.is_file()]
    names = [name for name in names if "trials" not in name.parts or name.parts[-2] == PLAN[0].id]
    closed = []
    for name in sorted({*names} - {Path("runs", RUN, "experiment.yaml")}):
        content = (whole / name).read_bytes()
        for changed in (None, b"", content[: len(content) // 2]):
            (whole / name).unlink()
            if changed is not None:
                (whole / name).write_bytes(changed)
            checked = check(whole)
            closed += [(name, changed)] if checked.division == "closed" else []
            (whole / name).write_bytes(content)

    assert closed == []


def test_a_link_is_refused(tmp_path):
    """
    A bundle comes from anywhere: what is no plain file is named before anything is read.
    """
    folder = Bundle().write(tmp_path / "bundle")
    (tmp_path / "elsewhere").write_text("{}", encoding="utf-8")
    (folder / "rules.json").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(DataError, match="not a plain file"):
        check(folder)


def test_a_name_that_climbs_is_no_run(tmp_path):
    """
    A run of the tables that lies elsewhere is not read: what needs its files is not decided.
    """
    bundle = Bundle()
    bundle.runs[0]["id"] = "../elsewhere"
    checked = check(bundle.write(tmp_path))

    of_files = ("R01", "R02", "R03", "R06", "R07", "R12", "R14", "R15", "R16", "R17")
    assert outcomes(checked) == dict.fromkeys(of_files, "not decidable")


def test_the_closed_experiments_are_those_of_the_files(monkeypatch):
    """
    The harness knows each file of `experiments/publish` by its digest, and nothing else.
    """
    monkeypatch.undo()
    experiments = map(experiment_of, FILES)

    assert {each.name: experiment_digest(each) for each in experiments} == READY


def test_where_it_is_measured_is_no_part_of_the_question():
    """
    Provider, hosts and access leave the digest as it is; the number of workers does not.
    """
    overrides = (
        ["cluster.provider=ansible", "cluster.hosts=[a, b, c, d]", "cluster.ssh={user: hadoop}"],
        ["cluster.workers=4"],
    )
    same = [
        experiment_digest(experiment_of(FILES[0], *each)) == experiment_digest(WHOLE)
        for each in overrides
    ]

    assert same == [True, False]


def test_the_page_has_each_rule_and_label():
    """
    `docs/rules.md` has a row for each, in this version.
    """
    page = (PROJECT / "docs" / "rules.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (R\d\d) \|", page, re.MULTILINE)

    assert (rows, f"\nVersion {VERSION}." in page) == ([*BundledRun.RULES], True)


class TestQuestion:
    ROW: ClassVar = {
        "asks": "nearer a b", "scope": "jobs", "extrapolate": "false", "asked": "sealed",
        "blind": "true",
    }  # fmt: skip
    SEALED = Question(nearer=("a", "b"))

    @pytest.mark.parametrize(
        ("changes", "sealed", "is_right"),
        [({}, SEALED, True), ({}, None, False), ({"asked": "afterwards"}, None, True),
         ({"asked": "afterwards"}, SEALED, False),
         ({"asked": "afterwards", "blind": "false"}, SEALED, True),
         ({"asks": "nearer b a"}, SEALED, False), ({"scope": "inputs"}, SEALED, False),
         ({"extrapolate": "true"}, SEALED, False), ({"asked": "explored"}, SEALED, False),
         ({"asked": "explored"}, Question(nearer=("a", "b"), anyway=True), True),
         ({"asks": "moved_since y"}, Question(moved_since="x"), True),
         ({"asks": "how_far best"}, Question(moved_since="x"), False),
         ({"asks": "moved_since y", "scope": "inputs"}, Question(moved_since="x"), False)],
    )  # fmt: skip
    def test_is_that_of_the_seal(self, changes, sealed, is_right):
        """
        What was asked afterwards cannot be passed off as sealed.
        """
        assert is_question_sealed({**self.ROW, **changes}, sealed) is is_right
