"""
Who reads changes nothing: bundles, packed or not, and finished runs are the same afterwards.
"""

import gzip
import hashlib
import json
import shutil
import sys

from pathlib import Path

import pytest

from harness.base.records.trial import SCHEMA_VERSION
from harness.cli import main
from harness.cli.commands_table import COMMANDS
from harness.core.reports import REPORTS
from harness.core.store import Store
from harness.core.store.packed import ARCHIVE
from harness.core.store.readings import SOURCE, read_source
from harness.core.store.sums import check_sums
from harness.publish import paper
from harness.publish.bundle import publish
from harness.publish.pack import pack
from tests.evaluate.test_flow import scored
from tests.run.test_writers import plain_rights

pytestmark = pytest.mark.process

# What is typed to read RUN, and with which status it ends; the run has neither recordings nor times
# of records, and was measured.
READING = {
    "show RUN": 0,
    "report RUN": 0,
    "report RUN -o out/report": 0,
    "score RUN": 0,
    "predict RUN --models whatif": 0,
    "predict RUN --profile-on mapreduce.task.io.sort.factor=5,10": 0,
    "profile RUN": 0,
    "plot RUN": 0,
    "plot RUN no-such-figure -o out/none.svg": 7,
    "export RUN -o out/export": 0,
    "ask RUN --workload terasort --setting mapreduce.job.reduces=3": 0,
    "tune RUN --workload terasort --optimizer rules": 0,
    "tune regret RUN": 0,
    "reproduce RUN --given predictions": 0,
    "compare RUN RUN": 2,
    "trace RUN/trials/TRIAL": 7,
    "vet RUN": 7,
    "backtest RUN": 2,
    "catalog add RUN --catalog out/catalog": 0,
    "import RUN -o out/imported": 7,  # its histories have no configurations beside them
    "runs --results-dir AROUND": 0,
    "anchor check RUN": 1,
    "gc --results-dir AROUND --remove": 0,
}
OF_A_BUNDLE = {
    "publish --check BUNDLE": 0,
    "reproduce BUNDLE --given predictions": 0,
    "compare BUNDLE BUNDLE": 0,
    "collect RUN": 7,
}
# These read no run: they measure, compute from other files, or list what there is.
NOT_READING = {
    "init", "plan", "all", "run", "collect", "unpack", "publish", "doctor", "cluster", "trust",
    "calibrate", "hardware", "nightly", "list", "check", "vectors", "net", "verify",
}  # fmt: skip
# What a command is for may appear in a run of one's own.
OWN = {
    "report": ("report.", "hibench.report"),
    "score": ("scores", "trials.jsonl"),
    "predict": ("analyses",),
    "collect": (),
}


@pytest.fixture(scope="module", autouse=True)
def nothing_is_drawn():
    """
    What takes long, and touches no run, is left out: figures, the report for a browser, the PDF.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(REPORTS, "html", REPORTS["markdown"])
        patch.setattr(paper, "_drawn", lambda _figure, kind: kind.encode())
        patch.setitem(sys.modules, "typst", None)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """
    A scored run that has come to its end; not to be changed.
    """
    run = scored(tmp_path_factory.mktemp("results"))
    run.finish()
    (run.path / "lock").touch()
    return run


@pytest.fixture(scope="module")
def bundles(finished, tmp_path_factory):
    """
    Folders with the same bundle, unpacked and packed, by the level of its evidence.
    """
    folders = {}
    for level in ("scores", "raw"):
        folder = tmp_path_factory.mktemp(level)
        publish([finished], folder / "bundle", level=level)
        pack(folder / "bundle", folder / "packed")
        folders[level] = folder
    return folders


@pytest.fixture
def here(tmp_path, monkeypatch):
    """
    The folder in which commands are typed, with a cache of its own.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here" / "out").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def tree(folder):
    """
    Everything below *folder* by its name there: mode, time of change, and what a file holds.
    """
    known = {}
    for path in [folder, *folder.rglob("*")]:
        facts = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        name = path.relative_to(folder).as_posix()
        known[name] = (facts.st_mode, facts.st_mtime_ns, content)
    return known


def typed(text, run, **words):
    """
    Words of a command line, for the run at the path *run*.
    """
    named = {"RUN": str(run), "TRIAL": "", **words}
    for name, word in named.items():
        text = text.replace(name, word)
    return text.split()


def read_all(lines, run, folder, **words):
    """
    Type all *lines* about a *run* in a *folder*: what ended otherwise, and what changed it.
    """
    wrong = []
    before = tree(folder)
    for line, status in lines.items():
        ended = main(typed(line, run, **words))
        if ended != status:
            wrong.append(f"{line}: status {ended}, not {status}")
        after = tree(folder)
        changed = {name for name in before.keys() | after if before.get(name) != after.get(name)}
        if changed:
            wrong.append(f"{line}: changed {sorted(changed)}")
        before = after
    return wrong


def test_every_command_is_known_to_read_or_not_to():
    """
    Who adds one says here whether it reads runs.
    """
    reading = {line.split()[0] for line in READING}
    assert reading.isdisjoint(NOT_READING)
    assert reading | NOT_READING == set(COMMANDS)


@pytest.mark.parametrize("is_read_only", [False, True])
@pytest.mark.parametrize("form", ["bundle", "packed"])
def test_nobody_changes_a_bundle(bundles, here, finished, form, is_read_only):
    """
    With all its evidence, in both forms, where it may be written and where not; it is still as it
    was published.  What was made of it lies among the results, and names the bundle.
    """
    place = shutil.copytree(bundles["raw"], here.parent / "published")
    bundle = place / form
    run = bundle / "runs" / finished.id
    trial = next(record.trial.id for record in finished.trials().values() if record.state == "done")
    words = {"TRIAL": trial, "BUNDLE": str(bundle), "AROUND": str(place)}
    if is_read_only:
        for path in [place, *place.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        with plain_rights():
            wrong = read_all(READING | OF_A_BUNDLE, run, place, **words)
    else:
        wrong = read_all(READING | OF_A_BUNDLE, run, place, **words)

    assert wrong == []
    check_sums(place / "bundle")
    (source,) = Path("results/readings").rglob(SOURCE)
    made = read_source(source.parent)
    assert (made.run, made.is_in_bundle) == (finished.id, True)
    assert made.sha256 == hashlib.sha256((place / "bundle/SHA256SUMS").read_bytes()).hexdigest()
    assert (source.parent / "report.html").is_file()
    analyses = Store(Path("results")).find(str(run)).analyses()
    assert len(analyses) == 2
    assert all(made.sha256 in analysis.read_manifest().analysis_of for analysis in analyses)
    assert [main(["reproduce", str(analysis.path)]) for analysis in analyses] == [0, 0]


def test_a_bundle_of_scores_is_read_by_most(bundles, here, finished):
    """
    What needs traces says so; the rest answers from scores and profiles.
    """
    place = shutil.copytree(bundles["scores"], here.parent / "published")
    lacking = ("trace", "catalog", "import", "predict RUN --profile-on")
    lines = {line: 7 if line.startswith(lacking) else status for line, status in READING.items()}
    lines["compare RUN RUN"] = 0  # its name is that of the bundle, too, and bundles are compared
    trial = next(iter(finished.trials()))
    words = {"TRIAL": trial, "BUNDLE": str(place / "packed"), "AROUND": str(place)}

    wrong = read_all(lines | OF_A_BUNDLE, place / "packed", place, **words)

    assert wrong == []
    (analysis,) = Path("results/readings").glob("*/*/analyses/*")
    assert main(["reproduce", str(analysis)]) == 0
    assert not (here / "out/export/attempts.csv").exists()
    assert (here / "out/export/trials.csv").read_text().count("\n") == len(finished.trials()) + 1


def test_a_run_of_ones_own_gets_what_a_command_is_for(here, finished):
    """
    Its report, its scores, its analyses, and nothing else.
    """
    run = shutil.copytree(finished.path, here / "results/recorded" / finished.id)
    trial = next(iter(finished.trials()))
    wrong = []
    for line, status in READING.items():
        before = tree(run)
        assert main(typed(line, run, TRIAL=trial, AROUND="results")) == status, line
        after = tree(run)
        changed = {name for name in before.keys() | after if before.get(name) != after.get(name)}
        allowed = OWN.get(line.split()[0], ()) if "-o" not in line.split() else ()
        if allowed:
            allowed = (*allowed, "lock", "incoming", ".")
        wrong += [f"{line}: {name}" for name in changed if not name.startswith(allowed)]
    assert wrong == []
    assert not Path("results/readings").exists()


def test_what_was_made_of_a_bundle_is_read_on(bundles, here, finished, capsys):
    """
    An analysis is opened by its path and by its id; where the bundle has gone, that is said, and
    so it is where another one lies in its place.
    """
    place = shutil.copytree(bundles["raw"], here / "results/published")
    assert main(["predict", str(place / "packed"), "--model", "whatif"]) == 0
    (analysis,) = Store(Path("results")).find(str(place / "packed")).analyses()

    assert main(["show", str(analysis.path)]) == 0
    assert main(["report", analysis.id]) == 0
    assert main(["runs", "--json"]) == 0
    assert analysis.id in capsys.readouterr().out
    shutil.rmtree(place / "bundle")
    (place / "packed" / ARCHIVE).rename(place / "elsewhere.tar.gz")
    assert main(["show", str(analysis.path)]) == 7
    shown = capsys.readouterr().err
    assert "is no longer there" in shown
    assert str(place / "packed") in shown


def test_a_bundle_that_was_moved_is_read_with_what_was_made_of_it(bundles, here, finished, capsys):
    """
    It is the same by its hash; until it is named again what was made of it is listed as lost.
    """
    place = shutil.copytree(bundles["scores"] / "bundle", here / "one")
    assert main(["predict", str(place), "--model", "whatif"]) == 0
    place.rename(here / "other")

    assert main(["runs"]) == 0
    assert "which this was made of, is no longer there" in capsys.readouterr().err
    assert main(["show", "other", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["analyses"]) == 1


@pytest.mark.parametrize("name", ["profiles/terasort.json", "scores/scores.json"])
def test_what_was_changed_in_a_bundle_answers_nothing(bundles, here, finished, capsys, name):
    """
    Whatever rests on it; and the fix is no other command.
    """
    run = shutil.copytree(bundles["scores"] / "bundle", here / "one") / "runs" / finished.id
    (path,) = run.glob(f"{name}*")
    text = gzip.decompress(path.read_bytes()).decode()
    at = text.index('"job_s": ' if "scores" in name else '"value": ') + 9
    path.write_bytes(gzip.compress((text[:at] + "9" + text[at + 1 :]).encode()))
    asked = ["score", "report"]
    if "profiles" in name:
        asked += ["profile", "ask", "tune"]
    ask = ["--workload", "terasort", "--setting", "mapreduce.job.reduces=3"]
    options = {"ask": ask, "tune": ["--workload", "terasort", "--optimizer", "rules"]}

    for command in asked:
        assert main([command, "one", *options.get(command, [])]) == 7
        assert "fix: get the bundle again" in capsys.readouterr().err


def test_a_bundle_is_found_by_its_name(bundles, here):
    """
    Where it lies among the results, as `harness runs` shows it.
    """
    shutil.copytree(bundles["scores"] / "packed", here / "results/published/quick")
    assert main(["show", "quick"]) == 0


def test_the_source_of_a_reading_has_a_version(bundles, here):
    """
    As all that is stored.
    """
    assert main(["report", str(bundles["scores"] / "packed")]) == 0
    (path,) = Path("results/readings").rglob(SOURCE)
    assert read_source(path.parent).schema_version == SCHEMA_VERSION
    assert not Path(read_source(path.parent).place).is_absolute()
