"""
The light form: what `pip install` brings without extras, in an environment with nothing else.

Its packages are those of this environment that the wheel itself asks for, linked into an empty
one: no registry is asked.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile

from collections import defaultdict
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.run.test_imports import put
from tests.test_installed import OF_A_CLONE

pytestmark = pytest.mark.process

PROJECT = Path(__file__).resolve().parent.parent
WHEEL_SOURCES = ("README.md", "LICENSE", "pyproject.toml", "requirements/sbom.cdx.json")
OF_EXTRAS = (
    "ansible", "ansible_runner", "docker", "paramiko", "requests", "sklearn", "threadpoolctl",
    "typst", "urllib3",
)  # fmt: skip
# The command as its wheel describes it.
COMMAND = """
import sys
from importlib.metadata import entry_points
(harness,) = entry_points(group="console_scripts", name="harness")
sys.exit(harness.load()(sys.argv[1:]))
"""


def build_wheel(folder):
    """
    The wheel, built by the project's own back end from a copy of the tree.
    """
    copied_tree = folder / "tree"
    shutil.copytree(
        PROJECT / "harness", copied_tree / "harness", ignore=shutil.ignore_patterns("__pycache__")
    )
    for source in WHEEL_SOURCES:
        (copied_tree / source).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / source, copied_tree / source)
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(argv, cwd=copied_tree, check=True, capture_output=True)
    shutil.rmtree(copied_tree)
    (wheel,) = folder.glob("*.whl")
    return wheel


def required_names(wheel):
    """
    Names of all packages that a wheel needs without its extras, and that those need in turn.
    """
    names = set()
    waiting = [*wheel.requires]
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        is_wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_wanted and name not in names:
            names.add(name)
            waiting += distribution(name).requires or ()
    return names


def link_packages(names, site_packages):
    """
    Link what the packages of these names installed; a folder that several share is made.
    """
    owners = defaultdict(set)
    for name in names:
        for file in distribution(name).files:
            owners[file.parts[0]].add(name)
    for name in names:
        for file in distribution(name).files:
            top = file.parts[0]
            if top in ("..", "__pycache__"):
                continue
            part = Path(top) if len(owners[top]) == 1 else Path(*file.parts)
            link = site_packages / part
            if not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(distribution(name).locate_file(part))


@pytest.fixture(scope="module")
def light_python(tmp_path_factory):
    """
    The Python of an environment that has the wheel and what it requires, and nothing else.
    """
    folder = tmp_path_factory.mktemp("light")
    wheel = build_wheel(folder)
    venv.create(folder / "environment", symlinks=True)
    (site_packages,) = (folder / "environment" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site_packages)
    (information,) = site_packages.glob("mapreduce_harness-*.dist-info")
    link_packages(required_names(Distribution.at(information)), site_packages)
    return folder / "environment" / "bin" / "python"


@pytest.fixture
def run_light(light_python, tmp_path):
    """
    A function that runs Python there, away from the tree, and gives status, output and errors.
    """
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "LC_ALL": "C.UTF-8"}

    def run(program, *arguments):
        # Isolated: neither the current folder nor a variable leads to other packages.
        argv = [str(light_python), "-I", "-c", program, *arguments]
        return subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_has_no_library_of_an_extra(run_light):
    """
    Neither those of clusters nor that of PDF; and it is the wheel that is imported.
    """
    program = (
        "import json, sys, harness; from importlib.util import find_spec;"
        "print(json.dumps([harness.__file__, [n for n in sys.argv[1:] if find_spec(n)]]))"
    )
    completed = run_light(program, *OF_EXTRAS)

    imported_file, found = json.loads(completed.stdout)
    assert found == []
    assert not Path(imported_file).is_relative_to(PROJECT)


def test_imports_predicts_scores_and_reports(run_light, tmp_path):
    """
    Past jobs become a run, models predict the later ones and are scored, and a report is written.
    """
    for number, (size, factor) in enumerate([(1, 3), (2, 3), (1, 10), (2, 10)] * 2):
        put(tmp_path / "done", number, size=size, factor=factor)

    imported = run_light(COMMAND, "import", "done", "-o", "results/past", "--json")
    backtest = run_light(COMMAND, "backtest", "results/past")

    run_folder = tmp_path / "results" / "past"
    scores = json.loads((run_folder / "scores" / "scores.json").read_text())
    assert [imported.returncode, backtest.returncode] == [0, 0], backtest.stderr
    assert "whatif" in {row["model"] for row in scores["scores"]}
    assert (run_folder / "predictions" / "whatif.jsonl").stat().st_size > 0
    assert "whatif" in (run_folder / "report.html").read_text()


def test_providers_are_listed_and_examined(run_light):
    """
    All of them; the doctor says what those lack that do not start nodes here.
    """
    listed = run_light(COMMAND, "list", "providers", "--json")
    examined = run_light(COMMAND, "doctor")

    assert [entry["name"] for entry in json.loads(listed.stdout)] == [
        "local", "docker", "ansible", "existing",
    ]  # fmt: skip
    for library in ("docker", "ansible"):
        problem = f"Python's package {library} is not installed: it comes with the extra 'clusters'"
        assert problem in examined.stdout


@pytest.mark.parametrize(
    ("words", "library"),
    [
        ("cluster up --provider docker", "docker"),
        ("cluster up --provider ansible", "ansible"),
        ("cluster up --provider existing", "requests"),
        (f"trust 127.0.0.1 --fingerprint SHA256:{'A' * 43}", "paramiko"),
    ],
)
def test_a_command_says_which_extra_it_lacks(run_light, words, library):
    """
    And how to get it, before anything is started; the status is that of a lack of the machine.
    """
    completed = run_light(COMMAND, *words.split())

    assert completed.returncode == 3
    assert completed.stderr.splitlines() == [
        f"error: Python's package {library} is not installed: it comes with the extra 'clusters'",
        "  at:  Python packages",
        "  fix: pip install 'mapreduce-harness[clusters]'",
    ]


EXPERIMENT = """
schema: 1
name: light
question: How long?
cluster: {workers: 2}
workloads: [{name: terasort, input: [64 MiB, 128 MiB]}]
configuration: {mapreduce.job.reduces: 2}
repeat: 2
predict: {models: [ernest], profile_on: {input: [64 MiB]}}
"""


def test_a_plan_needs_neither_java_nor_hadoop(run_light, tmp_path):
    """
    It says what this machine lacks, with fixes that name what is there.
    """
    (tmp_path / "e.yaml").write_text(EXPERIMENT)

    planned = run_light(f"import os; os.environ['PATH'] = '/nowhere'\n{COMMAND}", "plan", "e.yaml")

    assert planned.returncode == 0, planned.stderr
    assert "4 trials" in planned.stdout
    assert "no java on this machine" in planned.stderr
    assert not OF_A_CLONE.search(planned.stderr)


@pytest.mark.parametrize(
    "words",
    [
        "plan none.yaml", "run none.yaml", "report none", "doctor", "cluster up", "trace selftest",
        "check none.py:Model", "nightly none.yaml", "calibrate --dry-run", "hardware show none",
        "publish none -o bundle", "unpack none.tar.gz", "init -o made.yaml",
        "vectors check none.json", "catalog show none", "tune none",
    ],
)  # fmt: skip
def test_no_error_names_what_only_a_clone_has(run_light, words):
    """
    Neither a page, nor an experiment, nor a Makefile.
    """
    completed = run_light(COMMAND, *words.split())

    assert not OF_A_CLONE.search(completed.stdout + completed.stderr)
    assert "Traceback" not in completed.stderr
