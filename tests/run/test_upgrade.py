"""
Before and after an upgrade, from histories alone: what docs/upgrade.md says, as it says it.
"""

import json
import random
import re
import shlex

from pathlib import Path

import pytest

from harness.cli import main
from tests.run.test_imports import MOMENT, put

PAGE = (Path(__file__).parents[2] / "docs/upgrade.md").read_text()
COMMANDS = re.search("```sh\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()


def lasting(factor):
    """
    A change to a history, whose job takes *factor* times as long.
    """

    def change(text):
        start = min(map(int, MOMENT.findall(text)))
        return MOMENT.sub(
            lambda found: b"%d" % (start + round((int(found[0]) - start) * factor)), text
        )

    return change


def month(folder, first, *, slower=1.0, jobs=12, spread=0.04, inputs=1.0):
    """
    A done tree of *jobs* of three sizes; numbers begin at *first*.
    """
    draw = random.Random(first)
    for number in range(jobs):
        factor = slower * draw.lognormvariate(0, spread)
        size = (1 + number % 3) * inputs
        put(folder, first + number, size=size, change=lasting(factor))


def typed(capsys):
    """
    What each command of the page prints, which ends well.
    """
    printed = []
    for command in COMMANDS:
        program, *words = shlex.split(command)
        assert (program, main(words)) == ("harness", 0)
        printed.append(capsys.readouterr().out)
    return printed


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """
    The shell's folder.
    """
    monkeypatch.chdir(tmp_path)


def test_a_slower_version_is_found(tmp_path, capsys):
    """
    By the commands of the page, although no input is of the same size again.
    """
    month(tmp_path / "done-before", 0)
    month(tmp_path / "done-after", 60, slower=1.3, inputs=1.004)
    *_, shown, document = typed(capsys)

    first = shown.splitlines()[0]
    assert re.match(
        r"terasort is 1\.[23]\d* times slower \(1\.\d+ to 1\.\d+\) in run after: ", first
    )
    assert first.endswith("nothing that the runs say of themselves differs")
    assert json.loads(document)["verdict"] == first
    assert (tmp_path / "changes.csv").is_file()


def test_where_nothing_changed_the_page_says_what_would_have_shown(tmp_path, capsys):
    """
    A change by less than a tenth.
    """
    month(tmp_path / "done-before", 0)
    month(tmp_path / "done-after", 60)
    *_, shown, document = typed(capsys)

    assert re.match(
        r"nothing moved beyond the noise in run after: a change by \d\.\d % would have shown", shown
    )
    (sensitivity,) = json.loads(document)["would_show"]["after"]
    assert 1.0 < sensitivity["factor"] < 1.1


def test_too_few_jobs_cannot_tell(tmp_path, capsys):
    """
    Where the noise is wide, or jobs do not repeat.
    """
    month(tmp_path / "done-before", 0, jobs=6, spread=0.5)
    month(tmp_path / "done-after", 60, jobs=6, spread=0.5)
    *_, shown, _ = typed(capsys)

    assert re.match(
        r"cannot tell what moved in run after: less than a factor of \d\S* would not show;"
        r" \d+ more jobs in each run, \d+ repeats of each cell, would show a change by \d+ %",
        shown,
    )
