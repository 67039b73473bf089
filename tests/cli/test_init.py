"""
Tests for `harness init`.
"""

import errno
import json
import os

from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.commands import init
from harness.cli.commands.init import experiment_text
from harness.clusters import PROVIDERS
from harness.clusters.workloads import WORKLOADS
from harness.core.experiment.grid import expand, is_profiling
from harness.core.run.session import Session
from tests.run.fakes import RecordingConsole


def read(text, folder):
    """
    The experiment as every command reads it, and what is said of it.
    """
    console = RecordingConsole()
    return Session(text, "mine.yaml", folder, (), console).experiment, console.lines


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_is_written_is_good(workload, provider, tmp_path):
    """
    Of every workload on every provider: two cells feed the profile, six are scored.
    """
    experiment, messages = read(experiment_text(workload, provider, Path("-")), tmp_path)

    uses = [is_profiling(cell, experiment.predict) for cell in expand(experiment)]
    assert (sum(uses), len(uses), messages) == (2, 8, [])
    assert (experiment.name, experiment.cluster.provider) == ("mine", provider)


@pytest.mark.parametrize(
    ("here", "workers", "at_once"),
    [
        ((2, 16), 3, 2), ((1, 16), 3, 1), ((6, 16), 3, 6), ((96, 500), 3, 8), ((2, 5), 2, 2),
        ((16, 2), 1, 1),
    ],
)  # fmt: skip
def test_it_is_as_large_as_the_machine(monkeypatch, tmp_path, here, workers, at_once):
    """
    No more tasks at once than cores, no more processes than GiB of memory.
    """
    facts = {"cores_usable": here[0], "memory_bytes": here[1] * 2**30}
    monkeypatch.setattr(init, "machine_facts", lambda: facts)

    experiment, _ = read(experiment_text("terasort", "local", Path("-")), tmp_path)

    limit = experiment.configuration["mapreduce.job.running.map.limit"]
    assert (experiment.cluster.workers, limit) == ((workers,), (str(at_once),))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_limit_is_of_this_machine_alone_and_says_what_it_does(provider, tmp_path):
    """
    On machines elsewhere slots decide; what the lines would be stands there as a comment.
    """
    name = "mapreduce.job.running.map.limit"
    text = experiment_text("terasort", provider, Path("-"))
    experiment, _ = read(text, tmp_path)
    is_elsewhere = provider in ("ansible", "existing")

    assert (name not in experiment.configuration) == is_elsewhere
    assert (f"# {name}: " in text) == is_elsewhere
    assert (f"--setting {name}=0" in text) == (not is_elsewhere)


def test_a_file_is_named_and_never_overwritten(capsys, tmp_path):
    """
    The experiment has the name of its file; what is there stays.
    """
    file = tmp_path / "sorts.yaml"

    assert main(["init", "-o", str(file)]) == 0
    assert f"harness plan {file}" in capsys.readouterr().err
    assert "\nname: sorts\n" in file.read_text()
    assert main(["init", "-o", str(file), "--workload", "sort"]) == 2
    assert f"'{file}': File exists" in capsys.readouterr().err
    assert "\n  - name: terasort\n" in file.read_text()


@pytest.mark.parametrize(
    ("option", "name", "fix"),
    [
        ("--workload", "tersort", "fix: did you mean terasort?"),
        ("--provider", "x", "one of 'local'"),
    ],
)
def test_unknown_names_are_refused(capsys, option, name, fix):
    """
    With the names that there are.
    """
    assert main(["init", option, name]) == 2
    assert fix in capsys.readouterr().err


def test_a_full_disk_leaves_nothing(capsys, tmp_path, monkeypatch):
    """
    The same command works once there is room; what is wrong is said of the file.
    """
    file = tmp_path / "mine.yaml"
    written = Path.write_text

    def fill_disk(path, text, **_):
        written(path, text[:9])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fill_disk)
        assert main(["init", "-o", str(file)]) == 3
    out, err = capsys.readouterr()
    assert (out, [*tmp_path.iterdir()]) == ("", [])
    assert err.startswith("error: no space left on device")
    assert f"  at:  {file}\n" in err
    assert "harness plan" not in err
    assert main(["init", "-o", str(file)]) == 0


def test_json_names_the_file_or_is_the_text(tmp_path, capsys):
    """
    A program is told where the experiment is, or gets it.
    """
    file = tmp_path / "mine.yaml"
    answers = []
    for words in (["-o", str(file)], []):
        assert main(["init", *words, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))

    written, shown = answers
    assert (written["file"], written["text"]) == (str(file), file.read_text())
    assert (shown["file"], "name: mine" in shown["text"]) == (None, True)
