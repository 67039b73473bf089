"""
Completion, asked for as a shell asks: names that only the harness knows are among the answers.
"""

import os
import shutil
import subprocess
import sys

from pathlib import Path

import pytest

pytestmark = pytest.mark.process

BASH = """
eval "$(_HARNESS_COMPLETE=bash_source harness)"
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_harness_completion "$1" "${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


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
    ],
    ids=" ".join,
)
def test_offers_what_could_come_next(complete, words, offered):
    """
    Commands, options, kinds, providers, clusters and policies.
    """
    assert complete(*words) == offered
