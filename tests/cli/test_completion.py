"""
Completion, asked for as a shell asks: names that only the harness knows are among the answers.

What the guide promises: commands, files, clusters, keys of an experiment and properties of Hadoop;
and models, workloads and experiments.
"""

import os
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

from click.shell_completion import BashComplete

from harness.cli.entry import group

BASH = """
eval "$(_HARNESS_COMPLETE=bash_source harness)"
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_harness_completion "$1" "${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
SORT = "mapreduce.task.io.sort"
PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch):
    """
    Names of files are completed from the folder that a shell is in.
    """
    monkeypatch.chdir(PROJECT)


def offers(*words):
    """
    What the completion of *group* says of the last of some words: kinds and values.
    """
    *before, typed = words
    items = BashComplete(group, {}, "harness", "_HARNESS_COMPLETE").get_completions(before, typed)
    return [(item.type, item.value) for item in items]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["plan", "--set", "cluster.w"], ["cluster.workers="]),
        (["all", "--set", "repea"], ["repeat="]),
        (["calibrate", "--set", "cluster.node.m"], ["map_slots=", "memory="]),
        (["run", "--set", "workloads.0.i"], ["workloads.0.input="]),
        (["plan", "--set", "conf"], ["configuration."]),
        (["plan", "--set", f"configuration.{SORT}."], ["factor=", "mb="]),
        (
            ["nightly", "FILE", "--set", "cluster.site.dfs.blocksiz"],
            ["cluster.site.dfs.blocksize="],
        ),
        (["ask", "RUN", "--setting", f"{SORT}."], [f"{SORT}.factor=", f"{SORT}.mb="]),
        (["ask", "RUN", "--grid", "map_s"], ["map_slots="]),
        (["tune", "RUN", "--setting", "inpu"], ["input="]),
        (["predict", "RUN", "--model", "whatif-m"], ["whatif-mr2"]),
        (["predict", "RUN", "--model", "whatif,ern"], ["whatif,ernest"]),
        (["ask", "RUN", "--model", "pro"], ["prophet"]),
        (["backtest", "RUN", "--model", "scal"], ["scaling"]),
        (["tune", "RUN", "--judge", "ptc-w"], ["ptc-wave"]),
        (["tune", "RUN", "--workload", "tera"], ["terasort"]),
        (["hardware", "fit", "RUN", "--workload", "sort,df"], ["sort,dfsio"]),
        (["init", "--workload", "wordc"], ["wordcount"]),
        (["plan", "experiments/q"], ["experiments/quick.yaml"]),
        (["report", "experiments/q"], ["experiments/quick.yaml"]),
        (["compare", "RUN", "experiments/q"], ["experiments/quick.yaml"]),
        (["cluster", "up", "experiments/q"], ["experiments/quick.yaml"]),
        (["nightly", "experiments/nightl"], ["experiments/nightly.yaml"]),
        (["nightly", "jud"], ["judge"]),
        (["tune", "re"], ["regret"]),
        (["tune", "--jud"], ["--judge"]),
    ],
    ids=" ".join,
)
def test_offers_names_that_it_knows(words, offered):
    """
    Keys, properties, models, workloads and experiments; of what is long, its last part is compared.
    """
    found = offers(*words)

    assert {kind for kind, _ in found} == {"plain"}
    assert [value[-len(last) :] for (_, value), last in zip(found, offered, strict=True)] == offered


@pytest.mark.parametrize("words", [["plan", "elsew"], ["report", "elsew"], ["nightly", "elsew"]])
def test_leaves_files_to_the_shell(words):
    """
    Where no name begins so.
    """
    assert offers(*words) == [("file", "elsew")]


def test_offers_runs_and_trials_of_a_folder(tmp_path, monkeypatch):
    """
    Those below the folder of results that is named; nothing where that cannot be read.
    """
    (tmp_path / "results" / "quick" / "20261121T032309Z-4f26" / "trials").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    assert offers("show", "--results-dir", "nowhere", "2026") == [("file", "2026")]
    assert offers("show", "2026") == [("plain", "20261121T032309Z-4f26")]


@pytest.fixture
def complete(tmp_path):
    """
    What bash offers for the last of some words; one cluster is known, called ``morning``.
    """
    (tmp_path / "mapreduce-harness" / "clusters" / "morning").mkdir(parents=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(tmp_path)}

    def complete(*words):
        done = subprocess.run(
            ["bash", "-c", BASH, "bash", "harness", *words],
            capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is what it is about")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["pl"], ["plan", "plot"]),
        (["cluster", "u"], ["up"]),
        (["list", "m"], ["models", "metrics"]),
        (["plan", "--j"], ["--json"]),
        (["cluster", "up", "--provider", "lo"], ["local"]),
        (["cluster", "down", "--name", ""], ["morning"]),
        (["run", "--on-error", "s"], ["skip", "stop"]),
        (["cluster", "logs", "x"], []),
        (["plan", "--set", "cluster.w"], ["cluster.workers="]),
        (["ask", "RUN", "--setting", f"{SORT}.m"], [f"{SORT}.mb="]),
        (["predict", "RUN", "--model", "ern"], ["ernest"]),
        (["plan", "experiments/q"], ["experiments/quick.yaml"]),
    ],
    ids=" ".join,
)
def test_offers_what_could_come_next(complete, words, offered):
    """
    Commands, options, kinds, providers, clusters, policies, keys, properties, models, experiments.
    """
    assert complete(*words) == offered


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is what it is about")
def test_a_value_follows_its_key_at_once(complete, monkeypatch):
    """
    Bash puts no space behind a key.
    """
    monkeypatch.setattr(sys.modules[__name__], "BASH", BASH.replace("{ :; }", '{ echo "$@"; }'))

    assert complete("plan", "--set", "cluster.w") == ["-o", "nospace", "cluster.workers="]
    assert complete("plan", "--j") == ["--json"]
