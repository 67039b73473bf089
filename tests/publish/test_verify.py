"""
`verify.py` of a bundle: it bears out what was published, and finds whatever was changed.
"""

import ast
import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

from collections import defaultdict
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.hadoop.properties import SEAL as SEAL_PROPERTY
from harness.base.records.prediction import Prediction
from harness.base.records.question import Question
from harness.base.records.score import Measurement
from harness.base.records.trial import TrialRecord
from harness.base.stats.resampling import mean_interval
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.store import Store
from harness.core.store.anchors import Anchor
from harness.core.store.published import ORIGINALS
from harness.core.store.run import MANIFEST
from harness.core.store.seal import SEAL
from harness.core.store.sums import write_sums
from harness.observe.storage.files import json_bytes
from harness.publish import verify
from harness.publish.data import CLAIM, make_claim, write_tables
from harness.publish.system import system_document
from harness.scoring import score
from tests.run.fakes import VERSIONS

SOURCE = Path(verify.__file__)
MODELS = ("whatif", "prophet", "ernest")
EXPERIMENT = """
schema: 1
name: {name}
question: Which model is nearest?
cluster: {{workers: 2, site: {{dfs.blocksize: 2m}}}}
workloads: [{{name: terasort, input: {inputs}}}]
configuration:
  mapreduce.job.reduces: 2
  mapreduce.task.io.sort.factor: [5, 10]
repeat: {repeat}
predict: {{models: [{models}], profile_on: {{input: 2 MiB}}, profile_repeat: {profile_repeat}}}
"""
# What a change alters: so many digits of a number count, the others are within 1e-9 of it.
DIGITS = 6


def times_of(cell, random, extra=()):
    """
    Seconds of one trial: half a second per MiB, and a frame that is in one cell too much of it.
    """
    mib = cell.workload.input_bytes / 2**20
    job_s = 0.5 * mib * random.gauss(1, 0.02) + 4
    frame_s = job_s * (0.4 if mib > 60 else 0.2)
    times = {"job_s": job_s, "frame_s": frame_s, "body_s": job_s - frame_s}
    return times | {"map_main_s": job_s / 3, "equation 3": job_s / 9} | dict.fromkeys(extra, job_s)


def predictions_of(model, cells, random, *, refits, extra=()):
    """
    What a model says of each cell, more or less off; one does not answer in the first cell.
    """
    off = 1 + 0.15 * MODELS.index(model) if model in MODELS else random.uniform(0.7, 1.3)
    for place, cell in enumerate(cells):
        mib = cell.workload.input_bytes / 2**20
        if model == "ernest" and not place:
            yield Prediction(model=model, cell=cell.id, not_applicable=("memory", "disk"))
            continue
        body_s, frame_s = (0.4 * mib + 3) * off * random.gauss(1, 0.04), 2 + 0.05 * mib
        anew = tuple(body_s * one + frame_s for one in (1.01, 0.99, 1.02, 0.98))
        again = tuple(body_s * random.gauss(1, 0.03) for _ in range(refits))
        yield Prediction(
            model=model, cell=cell.id, body_s=body_s, frame_s=frame_s, job_s=body_s + frame_s,
            published_s=1.1 * body_s, measurable={"map_main_s": 0.4 * body_s},
            parts={"equation 3": 0.1 * body_s} | dict.fromkeys(extra, body_s),
            estimates={"separate_s": 1.05 * body_s}, code="", profile="p",
            intervals={"body_s": {"80": (0.8 * body_s, 1.1 * body_s), "90": None}},
            refits={"body_s": again, "job_s": tuple(time_s + frame_s for time_s in again)},
            repeats_s=anew,
        )  # fmt: skip


def measure(folder, name, *, models=MODELS, inputs="[2 MiB, 8 MiB, 16 MiB, 32 MiB, 48 MiB, 64 MiB]",
            repeat=2, profile_repeat=0, refits=5, extra=(), seed=1, question=None, asked="sealed",
            misses=None):  # fmt: skip
    """
    A blind run with times of our own: nothing of it was measured, all is stored as if it were.

    The *question* is that of how far the best is off, unless there is one.  *misses* are in-sample
    misses by model.
    """
    random, stamps = Random(seed), count(1000.0, 10.0)
    text = EXPERIMENT.format(name=name, models=", ".join(models), inputs=inputs, repeat=repeat,
                             profile_repeat=profile_repeat)  # fmt: skip
    experiment = read_experiment(text, f"{name}.yaml", ())
    run = Store(folder).open_run(experiment, text)
    trials = order(experiment, expand(experiment), VERSIONS)
    run.write_plan(trials)
    cells = {trial.cell.id: trial.cell for trial in trials if not trial.profiling}
    predictions, measurements, profiling = [], [], []
    for place, trial in enumerate(trials):
        if not trial.profiling and not run.seal.exists():
            for model in models:
                given = predictions_of(model, cells.values(), random, refits=refits, extra=extra)
                miss = {"in_sample_miss": (misses or {}).get(model)}
                of_model = [prediction.model_copy(update=miss) for prediction in given]
                predictions += of_model
                run.write_predictions(model, of_model)
            run.seal.add(question if asked == "sealed" else None)
        trial_folder, started_s = run.start_trial(trial), next(stamps)
        if not trial.profiling:
            conf = f"<property><name>{SEAL_PROPERTY}</name><value>{run.seal.sha256()}</value>"
            (trial_folder.raw / "job-0-conf.xml").write_text(conf)
        trial_folder.commit(
            TrialRecord(
                trial=trial, state="failed" if not place else "done", versions=VERSIONS,
                reason="=killed" if not place else "", started_s=started_s,
                finished_s=started_s + 9, job_ids=("job_1795224441974_0001",),
                loads={}, disturbed="others" if place % 7 == 1 else "",
            )
        )  # fmt: skip
        if place and (not trial.profiling or repeat == 1):
            raw_s, speed = times_of(trial.cell, random, extra), random.gauss(1, 0.01)
            (profiling if trial.profiling else measurements).append(
                Measurement(
                    cell=trial.cell.id, workload="terasort", trial=trial.id,
                    input=f"terasort {trial.cell.workload.input_bytes}", raw_s=raw_s,
                    reference_s={name: speed * time_s for name, time_s in raw_s.items()},
                    disturbed="others" if place % 7 == 1 else "",
                )
            )  # fmt: skip
    if question is None:
        run.write_scores(score(predictions, measurements, profiling=profiling))
    else:
        run.write_scores(
            score(predictions, measurements, question=question, asked=asked, profiling=profiling)
        )
    run.finish()
    return run


def publish(folder, *runs):
    """
    What `verify.py` reads of a bundle, made by what makes bundles.
    """
    evaluations = [*map(Evaluation.of, runs)]
    folder.mkdir()
    write_tables(evaluations, folder / "data", str)
    claim = make_claim(evaluations, 0.0)
    lines = ["# A title", "", CLAIM.format("\n".join(claim.lines)), "", "And more."]
    (folder / "README.md").write_text("\n".join(lines))
    (folder / "verify.py").write_bytes(SOURCE.read_bytes())
    (folder / "system.json").write_bytes(json_bytes(system_document(runs)))
    (folder / "publication.json").write_text(json.dumps({"level": "scores"}))
    for run in runs:
        copy = folder / f"runs/{run.id}"
        (copy / SEAL).parent.mkdir(parents=True)
        (copy / SEAL).write_bytes(run.seal.path.read_bytes())
        (copy / MANIFEST).write_bytes((run.path / MANIFEST).read_bytes())
        write_originals(copy, run)
    write_sums(folder)
    return folder


def write_originals(copy, run):
    """
    The hashes of what was measured: of the seal, and of what it names.
    """
    hashes = {name: run.opener.sha256(run.path / name) for name in (SEAL, *run.seal.read())}
    (copy / ORIGINALS).write_text(json.dumps({"files": hashes, "level": "scores"}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """
    Two runs, the second of which scores three inputs: as few as may be left out one by one.
    """
    folder, inputs = tmp_path_factory.mktemp("runs"), "[2 MiB, 8 MiB, 16 MiB, 24 MiB]"
    return [measure(folder, "small", seed=0), measure(folder, "other", seed=1, inputs=inputs)]


@pytest.fixture(scope="module")
def files(runs, tmp_path_factory):
    """
    Content of each file of a bundle of one run, by its name.
    """
    return contents(publish(tmp_path_factory.mktemp("published") / "bundle", runs[0]))


def contents(folder):
    """
    Content of each file, by its name.
    """
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def bundle(files, tmp_path):
    """
    A bundle of its own for each test.
    """
    return write(tmp_path / "bundle", files)


def write(folder, files):
    """
    These files in that folder.
    """
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def complaint(folder):
    """
    What is wrong with a bundle; nothing: all of it holds.
    """
    try:
        verify.check(folder)
    except (LookupError, OSError, TypeError, ValueError) as error:
        return str(error)
    return ""


def rows_of(content):
    """
    Rows of a table, the first of them its columns.
    """
    return [*csv.reader(io.StringIO(content.decode(), newline=""))]


def table(rows):
    """
    Content of a table with these rows.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def run_alone(folder, *arguments, python=sys.executable):
    """
    The bundle's own `verify.py`, as its README says.
    """
    command = [python, "-I", "-S", str(folder / "verify.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)


@pytest.mark.parametrize(
    ("misses", "sentence"),
    [
        ({"prophet": -0.2}, "Of 2 models that reproduce the jobs they learnt from "),
        ({"prophet": -0.2, "ernest": 0.3}, "Only whatif reproduces the jobs it learnt from: off "),
        (dict.fromkeys(MODELS, 0.2), "no model reproduces the jobs it learnt from."),
    ],
)
def test_who_does_not_reproduce_what_it_learnt_is_named_and_not_ranked(
    tmp_path, monkeypatch, misses, sentence
):
    """
    The claim follows from the tables: such models have no part in it.
    """
    folder = publish(tmp_path / "bundle", measure(tmp_path, "unlearnt", misses=misses))

    assert complaint(folder) == ""
    assert sentence in (folder / "README.md").read_text()


def test_noise_of_cells_measured_once_is_that_of_the_profiling_trials(tmp_path):
    """
    Of which none may be left out, and none be there where scored cells were repeated.
    """
    run = measure(tmp_path, "once", repeat=1, profile_repeat=3)
    folder = publish(tmp_path / "bundle", run)
    path = folder / "data/measurements.csv"
    header, *rows = rows_of(path.read_bytes())
    trial = header.index("trial")
    profiling = sorted(measurement.trial for measurement in run.read_scores().profiling)

    assert complaint(folder) == ""
    assert len(profiling) == 5  # of six, the first of which failed
    assert {score.floor is None for score in run.read_scores().scores} == {False}
    path.write_bytes(table([header, *(row for row in rows if row[trial] != profiling[0])]))
    write_sums(folder)
    assert complaint(folder).endswith("stored is no row of it, and it is a done trial that counts")


# Changes: each is given a generator of random numbers and the tables, and says what must be named.


def digit(random, text):
    """
    The number with one of its first digits changed.
    """
    places = [n for n, char in enumerate(text.partition("e")[0]) if char.isdigit()]
    first = next((n for n, place in enumerate(places) if text[place] != "0"), 0)
    place = random.choice(places[first : first + DIGITS])
    other = random.choice(sorted({*"0123456789"} - {text[place]}))
    return text[:place] + other + text[place + 1 :]


def fields(tables, name, columns):
    """
    Each field of these columns that has something and counts: its row, its place, the row by names.

    A prediction counts wherever it is measured; by refits of a profile nothing is decided.
    """
    header, *rows = tables[name]
    named = [dict(zip(header, row, strict=True)) for row in rows]
    for row, by_name in zip(rows, named, strict=True):
        if not by_name.get("refit"):
            yield from ((row, header.index(c), by_name) for c in columns if by_name[c])


def number_of(name, *columns):
    """
    A change of one digit of a number in these columns of a table.
    """

    def change(random, tables):
        row, place, _ = random.choice([*fields(tables, name, columns)])
        row[place] = digit(random, row[place])

    return change


def swap_of(name, column):
    """
    A change of places: the values of two cells, of one quantity and speed.
    """

    def change(random, tables):
        known = [*fields(tables, name, [column])]
        row, place, named = random.choice(known)
        same = {"quantity", "speed", "model", "refit"} & {*named}
        row_2, _, _ = random.choice(
            [
                other
                for other in known
                if other[2]["cell"] != named["cell"]
                and other[2][column] != named[column]
                and all(other[2][key] == named[key] for key in same)
            ]
        )
        row[place], row_2[place] = row_2[place], row[place]

    return change


def leave_out_a_trial(random, tables):
    """
    All that was measured in one trial.
    """
    header, *rows = tables["measurements"]
    trial = random.choice(rows)[header.index("trial")]
    tables["measurements"][1:] = [row for row in rows if trial not in row]


def leave_out_a_row(random, tables):
    """
    A row of a table of numbers.
    """
    rows = tables[random.choice(("scores", "comparisons", "measurements"))]
    del rows[random.randrange(1, len(rows))]


def add_a_row(random, tables):
    """
    A score, or a pair, of a model that predicted nothing.
    """
    name, column = random.choice((("scores", "model"), ("comparisons", "worse")))
    header, *rows = tables[name]
    row, place = random.choice(rows), header.index(column)
    tables[name].append([*row[:place], "other", *row[place + 1 :]])


def change_a_verdict(random, tables):
    """
    Another verdict of a pair.
    """
    header, *rows = tables["comparisons"]
    place = header.index("verdict")
    row = random.choice(rows)
    row[place] = random.choice(sorted({"nearer", "equal", "undecided"} - {row[place]}))


def change_whether_covered(random, tables):
    """
    A measured time that is, or is not, in its predicted interval.
    """
    header, *rows = tables["scores"]
    place = header.index("covered_80")
    row = random.choice([row for row in rows if row[place]])
    row[place] = "false" if row[place] == "true" else "true"


def ask_something_else(random, tables):
    """
    Another question, or one that was asked at another time: the claim is not its answer.
    """
    header, row = tables["runs"]
    column, values = random.choice(
        (
            ("asks", ("how_far prophet", "nearer whatif prophet", "choice 1", "claims prophet")),
            ("asked", ("sealed", "explored")),
            ("scope", ("inputs",)),
            ("extrapolate", ("true",)),
        )
    )
    row[header.index(column)] = random.choice(values)


def change_the_claim(random, tables):
    """
    A word, a number or a sentence of README.md.
    """
    lines = tables["README.md"]
    first, last = map(lines.index, CLAIM.split("\n{}\n"))
    place = random.randrange(first + 1, last)
    words = lines[place].split(" ")
    number = random.choice([n for n, word in enumerate(words) if word])
    kind = random.choice(("sentence", "word", "letter", "more"))
    if kind == "sentence":
        del lines[place]
    elif kind == "more":
        lines.insert(last, "  It holds for any cluster.")
    elif kind == "word":
        lines[place] = " ".join(words[:number] + words[number + 1 :])
    else:
        lines[place] = " ".join([*words[:number], f"{words[number]}1", *words[number + 1 :]])


CHANGES = {
    "a score": number_of("scores", *verify.SCORE),
    "a comparison": number_of("comparisons", *verify.PAIR),
    "a measurement": number_of("measurements", "value"),
    "a prediction": number_of("predictions", "predicted"),
    "a trial left out": leave_out_a_trial,
    "a row left out": leave_out_a_row,
    "a row too many": add_a_row,
    "two scores swapped": swap_of("scores", "relative_error"),
    "two measurements swapped": swap_of("measurements", "value"),
    "two predictions swapped": swap_of("predictions", "predicted"),
    "a verdict": change_a_verdict,
    "whether an interval covers": change_whether_covered,
    "what is asked": ask_something_else,
    "the claim": change_the_claim,
}


def changed(files, change, seed):
    """
    The files of a bundle after such a change, and those that differ.
    """
    tables = {Path(name).stem: rows_of(files[name]) for name in files if name.endswith(".csv")}
    tables["README.md"] = files["README.md"].decode().split("\n")
    change(Random(seed), tables)
    now = {
        name: table(tables[Path(name).stem]) if name.endswith(".csv") else content
        for name, content in files.items()
    } | {"README.md": "\n".join(tables["README.md"]).encode()}
    return {name: content for name, content in now.items() if content != files[name]}


@pytest.mark.process  # not for a process, but for its time
def test_each_of_200_changes_is_found(files, tmp_path, monkeypatch):
    """
    Whether the sums were made right again or not: with the file, and where numbers are concerned
    with the row, what is stored and what it should be.
    """
    monkeypatch.setattr(verify, "tail", cache(verify.tail))  # nearly all is the same each time
    bundle, missed = write(tmp_path / "bundle", files), []
    for seed, kind in zip(range(200), [*CHANGES] * 200, strict=False):
        altered = changed(files, CHANGES[kind], seed)
        write(bundle, altered)
        if seed // len(CHANGES) % 2:
            write_sums(bundle)
        shown = complaint(bundle)
        if not re.match(r"(data/\w+\.csv|README\.md)", shown) or not re.search("stored", shown):
            missed.append((seed, kind, shown))
        write(bundle, {name: files[name] for name in (*altered, "SHA256SUMS")})

    assert (missed, complaint(bundle)) == ([], "")


def common_errors(run):
    """
    Relative errors of the time of jobs by model, where all models of a run answer.
    """
    errors = defaultdict(dict)
    score_book = run.read_scores()
    for one in score_book.scores:
        if (one.quantity, one.speed) == ("job_s", score_book.speed):
            errors[one.model][one.cell] = one.relative_error
    cells = sorted(set.intersection(*map(set, errors.values())))
    return {model: [of_model[cell] for cell in cells] for model, of_model in errors.items()}


def test_the_claim_of_several_runs_holds(runs, tmp_path):
    """
    Each run has a table of its models, nearest first, with the interval of each mean.
    """
    shown = verify.check(publish(tmp_path / "bundle", *runs))

    expected = []
    for run in sorted(runs, key=lambda run: run.read_manifest().experiment["name"]):
        ranking, errors = run.read_scores().ranking(), common_errors(run)
        for model, error in zip(ranking.models, ranking.errors, strict=True):
            is_near = "nearest" if len(ranking.nearest) == 1 else "undecided"
            place = is_near if model in ranking.nearest else "farther"
            low, high = mean_interval(errors[model])
            ends = f"{max(0.0, low):.1%} to {high:.1%}"
            expected.append(f"{model} {error:.1%} {ends} {place}")
    rows = [" ".join(line.split()) for line in shown if line.startswith("  ")]
    assert rows == expected
    assert {row.split()[-1] for row in expected} == {"nearest", "farther", "undecided"}


@pytest.mark.parametrize("run_count", [2, 3])
def test_runs_of_one_experiment_are_claimed_together_too(tmp_path, run_count):
    """
    On how many runs it rests, and from three on within which ends such runs lie.
    """
    runs = [measure(tmp_path / "runs", "same", seed=seed) for seed in range(run_count)]
    folder = publish(tmp_path / "bundle", *runs)
    (line,) = [
        line for line in (folder / "README.md").read_text().split("\n") if "- same over" in line
    ]

    verify.check(folder)
    rankings = [run.read_scores().ranking() for run in runs]
    errors = {
        model: [ranking.errors[ranking.models.index(model)] for ranking in rankings]
        for model in MODELS
    }
    best = min(errors, key=lambda model: mean(errors[model]))
    said = f"of 3 models {best} errs least: off by {100 * mean(errors[best]):.1f} % on average"
    assert line.startswith(f"- same over {run_count} runs: {said}")
    assert ("such runs (95 %)" in line) == (run_count == 3)
    (folder / "README.md").write_text(
        (folder / "README.md").read_text().replace(line, line.replace(best, "x"))
    )
    write_sums(folder)
    assert complaint(folder).startswith("README.md: stored")


@pytest.mark.parametrize(
    ("asked", "before"),
    [("sealed", ""), ("afterwards", "Asked afterwards: "), ("explored", "Explored, not proved: ")],
)
def test_a_claim_says_when_its_question_was_asked(tmp_path, asked, before):
    """
    Of more cells than are flipped in all ways, with models that do not answer all of them.
    """
    question = Question(nearer=("whatif", "prophet"))
    inputs = f"[{', '.join(f'{2 + 6 * number} MiB' for number in range(9))}]"
    run = measure(tmp_path / "runs", "asked", inputs=inputs, question=question, asked=asked)
    folder = publish(tmp_path / "bundle", run)

    verify.check(folder)
    (first,) = [
        line for line in (folder / "README.md").read_text().split("\n") if "- asked" in line
    ]
    assert first.startswith(f"- asked ({run.id}): {before}Yes: whatif is off by ")
    rows = rows_of((folder / "data/comparisons.csv").read_bytes())
    place = rows[0].index("family")
    assert ("asked" in {row[place] for row in rows}) == (asked != "explored")
    assert {row[rows[0].index("cells")] for row in rows[1:]} >= {"15"}


def change_the_seal(folder, **changes):
    """
    The question of the one seal of a bundle, with *changes*; `None` leaves it out.
    """
    (path,) = folder.glob(f"runs/*/{SEAL}")
    stored_hash = hashlib.sha256(path.read_bytes()).hexdigest()
    seal = json.loads(path.read_text())
    question = seal["question"]
    seal["question"] = None if changes == {"no": "question"} else {**question, **changes}
    path.write_bytes(json_bytes(seal))
    originals = path.parent.parent / ORIGINALS
    hashes = json.loads(originals.read_text())["files"]
    hashes[SEAL] = hashlib.sha256(path.read_bytes()).hexdigest()
    originals.write_text(json.dumps({"files": hashes, "level": "scores"}))
    for name in ("runs", "trials"):
        table = folder / f"data/{name}.csv"
        table.write_text(table.read_text().replace(stored_hash, hashes[SEAL]))
    write_sums(folder)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"no": "question"}, "holds no such question"),
        ({"anyway": True}, "holds no such question"),
        ({"nearer": ["prophet", "whatif"]}, "asks ['nearer prophet whatif', 'jobs', 'false']"),
        ({"scope": "inputs"}, "asks ['nearer whatif prophet', 'inputs', 'false']"),
        ({"extrapolate": True}, "asks ['nearer whatif prophet', 'jobs', 'true']"),
        ({"nearer": [], "how_far": "best"}, "asks ['how_far best', 'jobs', 'false']"),
    ],
)
def test_a_question_that_was_not_sealed_is_not_said_to_be(tmp_path, changes, found):
    """
    Whether or not the sums were made right again: the seal says what was asked.
    """
    question = Question(nearer=("whatif", "prophet"))
    run = measure(tmp_path / "runs", "asked", question=question)
    folder = publish(tmp_path / "bundle", run)
    assert complaint(folder) == ""

    change_the_seal(folder, **changes)

    shown = complaint(folder)
    assert shown.startswith(f"data/runs.csv {run.id}: stored as sealed, and runs/{run.id}")
    assert found in shown


@pytest.mark.parametrize("name", [SEAL, ORIGINALS])
def test_a_seal_that_was_made_afterwards_is_named(tmp_path, name):
    """
    The question of another seal than the one that trials and tables name, or other hashes of it.
    """
    run = measure(tmp_path / "runs", "asked", question=Question(nearer=("whatif", "prophet")))
    folder = publish(tmp_path / "bundle", run)
    path = folder / f"runs/{run.id}" / name
    path.write_text(path.read_text().replace("whatif", "prophet").replace('"files"', '"files" '))
    if name == ORIGINALS:
        document = json.loads(path.read_text())
        document["files"][SEAL] = "0" * 64
        path.write_text(json.dumps(document))
    write_sums(folder)

    assert re.search(r"another seal than was measured: \w{16}$", complaint(folder))


def test_the_level_of_the_tests_is_that_of_the_experiment(tmp_path):
    """
    A test at 40 % decides what one at 5 % does not.
    """
    run = measure(tmp_path / "runs", "asked")
    folder = publish(tmp_path / "bundle", run)
    table = folder / "data/runs.csv"
    table.write_text(table.read_text().replace(",0.05,", ",0.4,"))
    write_sums(folder)

    found = "stored is the level 0.4, computed 0.05"
    assert complaint(folder) == f"data/runs.csv {run.id}: {found}"


def test_inputs_are_those_of_the_cells(tmp_path):
    """
    Cells of unknown inputs would be units of their own.
    """
    run = measure(tmp_path / "runs", "asked")
    folder = publish(tmp_path / "bundle", run)
    table = folder / "data/cells.csv"
    table.write_text(re.sub(r"terasort (\d+),\1", r",\1", table.read_text()))
    write_sums(folder)

    assert re.search(r"data/cells\.csv .*: stored , computed terasort \d+", complaint(folder))


def test_a_question_that_was_sealed_is_not_hidden(tmp_path):
    """
    Who did not like the answer to the sealed question may not say that none had been sealed.
    """
    run = measure(tmp_path / "runs", "asked", question=Question(nearer=("whatif", "prophet")))
    scores = run.read_scores()
    answer = scores.answer.model_copy(update={"asked": "afterwards"})
    run.write_scores(scores.model_copy(update={"answer": answer}))

    shown = complaint(publish(tmp_path / "bundle", run))

    assert "stored as afterwards, and" in shown
    assert shown.rstrip().endswith("sealed.json holds a question")


def test_a_text_that_begins_as_a_formula_is_read_without_its_apostrophe(bundle):
    """
    Spreadsheets need it, sentences have none.
    """
    for name, new in (("data/runs.csv", b"'=local"), ("README.md", b"=local")):
        path = bundle / name
        path.write_bytes(
            path.read_bytes().replace(b'"local', b'"' + new).replace(b" local", b" " + new)
        )
    write_sums(bundle)

    assert complaint(bundle) == ""


def test_what_was_measured_again_is_no_part_of_the_sums(bundle):
    """
    Anything may lie in `replications/`.
    """
    (bundle / "replications/elsewhere").mkdir(parents=True)
    (bundle / "replications/elsewhere/replication.json").write_text("{}")

    assert complaint(bundle) == ""


@pytest.mark.parametrize(
    ("name", "named"),
    [("report.html", "SHA256SUMS lacks it"), (".hidden/file", "SHA256SUMS lacks it")],
)
def test_an_added_file_is_named(bundle, name, named):
    """
    Hidden ones, too.
    """
    write(bundle, {name: b"more"})

    assert complaint(bundle) == f"{name}: {named}"


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "data/../README.md", "nothing"])
def test_sums_name_files_of_the_folder_alone(bundle, name):
    """
    No absolute name, none that climbs, none that is not there.
    """
    (bundle.parent / "outside").write_text("")
    with (bundle / "SHA256SUMS").open("a") as sums:
        sums.write(f"{'0' * 64}  {name}\n")

    assert complaint(bundle) == f"{name}: the folder lacks it"


@pytest.mark.parametrize("kind", ["file", "folder", "pipe"])
def test_links_and_pipes_are_refused(bundle, kind):
    """
    Whatever they lead to.
    """
    if kind == "pipe":
        os.mkfifo(bundle / "odd")
    else:
        (bundle / "odd").symlink_to("README.md" if kind == "file" else "data")

    assert complaint(bundle) == "odd: it is a link, no plain file, or too large"


def damaged(content, kind):
    """
    The content of a table, damaged.
    """
    header, *rows = rows_of(content)
    if kind == "not UTF-8":
        return content.replace(b"terasort", b"tera\xff\xfe")
    if kind == "empty":
        return b""
    if kind == "cut":
        return content[: len(content) // 2]
    if kind == "open quote":
        return content + b'"open'
    if kind == "column left out":
        return table([row[:-3] for row in (header, *rows)])
    if kind == "row twice":
        return table([header, rows[0], *rows])
    if kind == "short row":
        return table([header, rows[0][:-1], *rows[1:]])
    rows[0][header.index("value")] = kind
    return table([header, *rows])


KINDS = ("not UTF-8", "empty", "cut", "open quote", "column left out", "row twice", "short row",
         "text", "nan", "inf", "1e999", "", "-1e300", "0x10")  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_table_ends_with_one_line(bundle, kind):
    """
    Whose exit status is 1, and what to do; there is no traceback.
    """
    path = bundle / "data/measurements.csv"
    path.write_bytes(damaged(path.read_bytes(), kind))
    write_sums(bundle)

    ended = run_alone(bundle)
    shown = ended.stdout + ended.stderr
    assert (ended.returncode, shown.count("\n"), "Traceback" in shown) == (1, 2, False)
    assert shown.startswith("data/measurements.csv")
    assert shown.endswith(f"\n  fix: {verify.FIX}\n")
    assert "Error: " not in shown


def test_a_number_that_is_only_shown_is_finite(bundle):
    """
    Intervals are printed, and no claim follows from them.
    """
    path = bundle / "data/intervals.csv"
    header, *rows = rows_of(path.read_bytes())
    rows[0][header.index("low")] = "nan"
    path.write_bytes(table([header, *rows]))
    write_sums(bundle)

    assert complaint(bundle).startswith("data/intervals.csv: ")


def test_a_file_of_no_number_is_named(bundle):
    """
    Where all numbers follow, and some other file is not as it was.
    """
    with (bundle / "README.md").open("a") as file:
        file.write("And much more.\n")

    assert re.fullmatch(
        r"README\.md: stored has the SHA-256 \w{16}, SHA256SUMS \w{16}", complaint(bundle)
    )


def test_a_huge_table_is_not_read(bundle):
    """
    One that no bundle can have: 32 MiB.
    """
    os.truncate(bundle / "data/scores.csv", 2**25 + 1)

    assert complaint(bundle) == "data/scores.csv: it is a link, no plain file, or too large"


def test_rows_of_no_run_or_cell_are_refused(bundle):
    """
    Each row is of a run of `runs.csv` and a cell of `cells.csv`.
    """
    path = bundle / "data/predictions.csv"
    header, *rows = rows_of(path.read_bytes())
    for place in (0, 1):
        other = [*rows[0][:place], "other", *rows[0][place + 1 :]]
        path.write_bytes(table([header, *rows, other]))
        write_sums(bundle)
        assert complaint(bundle).startswith("data/predictions.csv: ")


@pytest.mark.parametrize("column", ["seal", "blind"])
def test_only_trials_that_name_the_seal_make_a_run_blind(bundle, column):
    """
    Whatever `blind` says; and whatever the seals are, where it says no.
    """
    path = bundle / ("data/trials.csv" if column == "seal" else "data/runs.csv")
    header, *rows = rows_of(path.read_bytes())
    place = header.index(column)
    for row in rows:
        row[place] = "0" * 64 if column == "seal" else "false"
    path.write_bytes(table([header, *rows]))
    write_sums(bundle)

    assert "were sealed after the measurement" in complaint(bundle)


TO_UNPACK = (
    "this is a packed bundle: unpack it with  tar xzf bundle.tar.gz  (and each archive of"
    " evidence/, where there is one, in the same place), then  python3 -I -S verify.py bundle"
)


@pytest.mark.parametrize("name", ["bundle.tar.gz", "b.tar", "b.tgz", "b.tar.zst", "b.zip", "."])
def test_a_packed_bundle_is_to_be_unpacked(tmp_path, name, capsys):
    """
    Its archive, or the folder in which that lies: one line has the command.
    """
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / (name if name != "." else "bundle.tar.gz")).write_bytes(b"x")

    assert verify.main(folder / name) == 1
    assert capsys.readouterr() == ("", f"{folder / name}: {TO_UNPACK}\n")


def test_a_folder_that_was_unpacked_is_checked_whatever_lies_beside(bundle, capsys):
    """
    It is not asked for again.
    """
    (bundle / "bundle.tar.gz").write_bytes(b"x")

    assert verify.main(bundle) == 1
    assert "bundle.tar.gz: SHA256SUMS lacks it" in capsys.readouterr().err


@pytest.mark.process
def test_the_command_that_unpacks_a_bundle_does(bundle, tmp_path):
    """
    As it is printed.
    """
    with tarfile.open(tmp_path / "bundle.tar.gz", "w:gz") as tar:
        tar.add(bundle, "bundle")
    shutil.copy(verify.__file__, tmp_path)
    told = run_alone(tmp_path)
    unpacking, checking = re.findall(r"with  (.+?)  \(.*then  (.+)\n", told.stderr)[0]
    done = [
        subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=False)
        for command in (unpacking, checking)
    ]

    assert (told.returncode, told.stdout) == (1, "")
    assert [each.returncode for each in done] == [0, 0]
    assert done[1].stdout.splitlines()[-1].startswith("verified: SHA256SUMS (")


@pytest.mark.process
def test_it_runs_alone_from_anywhere(bundle):
    """
    With nothing but Python: it prints the table, or the first number that differs; it leaves no
    file behind.
    """
    before = contents(bundle)
    well, given = run_alone(bundle), run_alone(bundle, str(bundle))
    path = bundle / "data/scores.csv"
    path.write_bytes(path.read_bytes().replace(b",2,", b",3,", 1))
    wrong = run_alone(bundle)

    assert (well.returncode, given.stdout, well.stderr) == (0, well.stdout, "")
    assert well.stdout.startswith("small (")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (1, "", 2)
    assert re.search(r"^data/scores.csv .* trials: stored 3.0, computed 2\n  fix: ", wrong.stderr)
    assert well.stdout.splitlines()[-1].startswith("verified: SHA256SUMS (")
    assert contents(bundle).keys() == before.keys()


def test_the_source_is_for_every_python_3():
    """
    Its grammar is that of 3.6, and its modules are in all of them.
    """
    source = SOURCE.read_text()
    imported = set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))

    ast.parse(source, feature_version=(3, 6))
    standard = (
        "base64 collections contextlib csv hashlib itertools json math pathlib re shlex statistics"
        " sys typing"
    )
    assert imported <= {*standard.split()}


COMMANDS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([
        "harness anchor tsa http://tsa.example:80/tsr", "/usr/bin/git -C 'a b' commit -m", "'x",
        "curl https://jo:pw@[::1]/x", "", "/",
    ]),
)  # fmt: skip


@given(COMMANDS, st.sampled_from(["", "City of Bonn"]))
def test_who_was_told_is_told_as_the_harness_does(command, name):
    """
    By name, or by what the command says.
    """
    anchor = Anchor.model_construct(command=command, name=name)
    assert verify.told_of({"command": command, "name": name}) == anchor.told


TOLD = "12" * 32
TSA = "harness anchor tsa http://tsa.example"
STAMPED = b"0" + verify.STAMP + hashlib.sha512(TOLD.encode()).digest()
OTHER = b"0" + verify.STAMP + hashlib.sha512(b"other").digest()


@pytest.mark.parametrize(
    ("printed", "command", "is_answered"),
    [
        (STAMPED, TSA, True),
        (base64.encodebytes(STAMPED), TSA, True),
        (json.dumps({"stamp": base64.b64encode(STAMPED).decode()}).encode(), TSA, True),
        (b"0" + verify.STAMP + bytes.fromhex(TOLD), TSA, True),
        (OTHER, TSA, False),
        (base64.b64encode(OTHER), "a notary", False),
        (b"stamped, believe me", TSA, False),
        (b"", TSA, False),
        (b"[" * 5000, TSA, False),
        (b"[main 1234567] seal", "git commit -m", True),
        (b"", "a notary", True),
    ],
)
def test_an_answer_that_should_be_a_stamp_is_one_of_this_seal(printed, command, is_answered):
    """
    Who was only told may answer anything.
    """
    answer = base64.b64encode(printed).decode()
    anchor = {"command": command, "answer": answer, "sha256": TOLD}
    assert verify.is_answered(anchor) is is_answered
