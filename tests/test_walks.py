"""
The walks of `docs/design.md`: six ways through the code, followed by `scripts/house`.
"""

import importlib.machinery
import importlib.util
import sys

from itertools import pairwise
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
NAMES = {
    "A finished trial", "Trials on a cluster", "One cell's prediction", "Past jobs", "Tuning",
    "A bundle",
}  # fmt: skip
MOST_CLIMBS = 3


@pytest.fixture(scope="module")
def house():
    """
    The script, which has no suffix, as a module.
    """
    loader = importlib.machinery.SourceFileLoader("house", str(PROJECT / "scripts" / "house"))
    spec = importlib.util.spec_from_loader("house", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module  # dataclasses look there
    is_silent = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # beside the script it would stay
    try:
        loader.exec_module(module)
        yield module
    finally:
        sys.dont_write_bytecode = is_silent
        del sys.modules["house"]


@pytest.fixture(scope="module")
def walks(house):
    """
    The walks of the page.
    """
    return house.read_walks(house.DESIGN.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def modules(house):
    """
    All modules of the package.
    """
    return house.read_modules()


def broken_steps(house, steps, modules):
    """
    Why steps are none, of those that are none.
    """
    reasons = (house.broken_step(before, after, modules) for before, after in pairwise(steps))
    return [reason for reason in reasons if reason]


def test_there_are_six(walks):
    """
    Each is long enough to lead somewhere, and short enough to be read.
    """
    assert walks.keys() == NAMES
    assert all(8 <= len(steps) <= 15 for steps in walks.values())


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_step_is_one(house, walks, modules, name):
    """
    It is called by the one before, or takes what that returned.
    """
    assert broken_steps(house, walks[name], modules) == []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_few_steps_climb(house, walks, name):
    """
    From a layer of the design to a higher one.
    """
    assert house.count_climbs(walks[name], house.read_layers()) <= MOST_CLIMBS


def test_a_step_that_is_none_is_found(house, walks, modules):
    """
    A function that nobody calls there, and one that is not there at all.
    """
    steps = walks["Past jobs"]
    elsewhere = house.Step("models/frame.py", "frame_s")
    gone = house.Step("models/frame.py", "frame_hours")

    (there, back) = broken_steps(house, [*steps[:3], elsewhere, *steps[3:]], modules)
    assert there.startswith(f"{elsewhere} is neither called by {steps[2]}")
    assert f"called by {elsewhere}" in back
    (missing, *_) = broken_steps(house, [steps[0], gone], modules)
    assert missing == f"{gone}: there is no frame_hours"


def test_a_climb_is_counted(house, walks):
    """
    Down and up again is one; beside it in the same layer is none.
    """
    layers = house.read_layers()
    steps = walks["Past jobs"]
    low = house.Step("base/units.py", "format_bytes")
    before = house.count_climbs(steps, layers)

    assert house.count_climbs([*steps[:2], low, *steps[1:]], layers) == before + 1
    assert house.count_climbs([*steps[:2], *steps[1:]], layers) == before
