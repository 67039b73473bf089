"""`harness compare` on stored runs, made of recorded histories."""

import csv
import json

from xml.etree import ElementTree as ET

import pytest

from harness.cli import main
from harness.cli.commands.compare import shown_bundles
from harness.cli.console.present import show
from harness.core.evaluate.flow import Evaluation
from harness.core.experiment.file import read_experiment
from harness.core.experiment.grid import expand, order
from harness.core.store import Store
from harness.core.store.sums import SUMS
from harness.publish.compare import Row as SideRow
from harness.publish.compare import SideBySide
from tests.evaluate.test_flow import EXPERIMENT, RATES, commit
from tests.run.fakes import VERSIONS

SMALL = EXPERIMENT.replace("  - {name: wordcount, input: 6000000}\n", "").replace(
    "repeat: 3", "repeat: 2"
)
BUDGETS = """\
schema: 1
budgets:
  - {workload: terasort, quantity: job_s, slower: 5 %}
  - {model: whatif, quantity: body_s, error: 9000 %}
"""


def measured(folder, *, disk="unlimited", slower=1.0, scored=True):
    """
    A run whose jobs took *slower* times as long; with 0 there are none yet.
    """
    text = SMALL.replace("{workers: 2", f"{{workers: 2, node: {{disk: {disk}}}")
    experiment = read_experiment(text, "recorded.yaml", ())
    run = Store(folder).open_run(experiment, text, new=True)
    trials = order(experiment, expand(experiment), VERSIONS)
    run.write_plan(trials)
    if not slower:
        return run
    for place, trial in enumerate(trials):
        commit(run, trial, "done", round(RATES[place % len(RATES)] / slower))
    if scored:
        evaluation = Evaluation.of(run)
        evaluation.profile()
        evaluation.predict()
        evaluation.score()
    run.finish()
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """
    A run, one with a limited disk, one like the first, and an unfinished one; not to be changed.
    """
    folder = tmp_path_factory.mktemp("results")
    return [
        measured(folder),
        measured(folder, disk="20 MiB/s", slower=1.6),
        measured(folder, scored=False),
        measured(folder, slower=0),
    ]


def compared(runs, *options):
    """
    Exit status of the comparison of *runs*.
    """
    return main(["compare", *(str(run.path) for run in runs), *map(str, options)])


def test_what_moved_is_the_first_line(runs, capsys):
    """
    With its factor, its interval and what differs.
    """
    assert compared(runs[:2]) == 0

    out, err = capsys.readouterr()
    first = out.splitlines()[0]
    assert first.startswith("terasort is 1.6")
    assert first.endswith(f" in run {runs[1].id}: disk 20 MiB/s there, unlimited here")
    assert "what differs" in out
    assert "-o FILE.csv has what did not move" in err


def test_budgets_are_judged(runs, tmp_path, capsys):
    """
    One that is broken gives status 1, and a failure in JUnit; programs get all of it.
    """
    budgets, junit, table = (tmp_path / name for name in ("b.yaml", "j.xml", "c.csv"))
    budgets.write_text(BUDGETS)
    options = ("--budgets", budgets, "-o", junit, "-o", table)

    assert compared(runs[:2], *options) == 1
    out = capsys.readouterr().out
    assert "terasort job_s slower 5 %" in out
    cases = ET.fromstring(junit.read_text())
    assert [[each.tag for each in case] for case in cases[0]] == [["failure"], ["skipped"]]
    assert compared(runs[:2], *options, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == len(document["changes"]) > 50
    assert rows[0].keys() == document["changes"][0].keys()
    assert [each["verdict"] for each in document["budgets"]] == ["broken", "undecided"]
    assert [*document["differences"]] == [runs[1].id]
    (shown,) = document["would_show"][runs[1].id]
    assert (shown["workload"], shown["jobs"] >= shown["repeats"]) == ("terasort", True)


def test_of_equal_runs_nothing_moved(runs, tmp_path, capsys):
    """
    A budget of their times is kept; what cannot be decided breaks one with --strict alone.
    """
    budgets = tmp_path / "b.yaml"
    budgets.write_text(BUDGETS.replace(" 5 %", " 30 %"))

    assert compared([runs[0], runs[2]], "--budgets", budgets) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"cannot tell what moved in run {runs[2].id}: less than a factor of 1.")
    assert "would not show; " in out.splitlines()[0]
    assert f"not compared: {runs[2].id} has no profiles: harness profile makes them" in err
    assert f"not compared: {runs[2].id} has no scores: harness score makes them" in err
    assert "kept" in out
    assert compared([runs[0], runs[2]], "--budgets", budgets, "--strict") == 1


@pytest.mark.parametrize(
    ("places", "options", "refusal"),
    [
        ((0,), (), (2, "1 named, 1 of them different")),
        ((0, 0), (), (2, "2 named, 1 of them different")),
        ((0, 3), (), (7, "is not finished: 0 of 8 trials have ended")),
        ((0, 1), ("-o", "j.xml"), (2, "give --budgets")),
        ((0, 1), ("--budgets", "none.yaml"), (2, "does not exist")),
        ((0, 1), ("-o", "none/c.csv"), (3, "no such file or directory")),
        ((0, 1), ("--facts",), (2, "--facts: for bundles only, and runs are compared")),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, capsys, places, options, refusal):
    """
    In words, before anything is printed on stdout.
    """
    status, message = refusal

    assert compared([runs[place] for place in places], *options) == status
    out, err = capsys.readouterr()
    assert (out, message in err) == ("", True), err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--strict"], "--strict"),
        (["-o", "x.csv"], "-o"),
        (["--budgets", "b.yaml", "--strict"], "--budgets, --strict"),
    ],
)
def test_options_for_runs_are_refused_of_bundles(tmp_path, monkeypatch, capsys, words, named):
    """
    None is silently left out: a check by budgets would always pass.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.yaml").write_text(BUDGETS)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / SUMS).touch()

    assert main(["compare", "one", "two", *words]) == 2
    what = capsys.readouterr().err.splitlines()[0]
    assert what == f"error: {named}: for runs only, and bundles are compared"
    assert not (tmp_path / "x.csv").exists()


HEAD = {
    "experiment": ["e87b", "21a2"],
    "system: client.memory_bytes": ["1", "2"],
    "system: nodes.worker2": ["", "the same as worker1"],
}
ROWS = [SideRow("transfer", "ernest", "job_s", "one", 0.099, 0.027, 0.179)]
QUOTES = {"one": (["ernest is nearest."], "A comparison; bundle 3c18.")}


@pytest.mark.parametrize("shows_facts", [False, True])
def test_of_bundles_the_answer_comes_first(capsys, shows_facts):
    """
    Then errors and quotations; facts of systems only where they are asked for.
    """
    why = "not ranked: they differ in experiment"
    comparison = SideBySide(["one", "two"], HEAD, why, {"one": ["R01 failed"]}, ROWS, QUOTES)
    show(*shown_bundles(comparison, shows_facts=shows_facts))

    out, err = capsys.readouterr()
    assert out.splitlines()[0] == why
    places = [out.index(text) for text in ("9.9 %", "is nearest.", "what differs", "e87b")]
    assert places == sorted(places)
    assert ("client.memory_bytes" in out) == shows_facts
    assert "one is open: R01 failed" in err
    assert ("the systems differ in 2 facts: --facts shows them" in err) != shows_facts


def test_ranked_bundles_say_so(capsys):
    """
    What differs is then nothing.
    """
    show(*shown_bundles(SideBySide(["one", "two"], {}, "", {}, ROWS, QUOTES), shows_facts=False))

    out = capsys.readouterr().out
    assert out.startswith("ranked: rules, experiment, division and system are the same\n")
    assert "what differs" not in out


def test_footnotes_of_bundles_are_numbered(capsys):
    """
    Each sentence of a bundle has the number of its footnote, which is that of no other bundle.
    """
    quotes = {
        "one": (["ernest is nearest.", "ptc is not."], "A comparison; bundle 3c18."),
        "two": (["ptc is nearest."], "Another; bundle 77aa."),
    }
    show(*shown_bundles(SideBySide(["one", "two"], {}, "", {}, ROWS, quotes), shows_facts=False))

    lines = capsys.readouterr().out.splitlines()
    place = lines.index("\u201cernest is nearest.\u201d [1]")
    assert lines[place : place + 5] == [
        "\u201cernest is nearest.\u201d [1]",
        "\u201cptc is not.\u201d [1]",
        "  [1] A comparison; bundle 3c18.",
        "\u201cptc is nearest.\u201d [2]",
        "  [2] Another; bundle 77aa.",
    ]
