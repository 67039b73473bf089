"""The table of statistics and costs: whole, used, and the only place that makes their names."""

import ast
import re
import runpy

from pathlib import Path
from typing import get_args

import pytest

from harness.base.records.profile import FRAME, Profile
from harness.base.records.statistics import (
    COMPUTED_IN,
    IN_PROFILES,
    JOB_COSTS,
    KINDS,
    MACHINE_COSTS,
    STATISTICS,
    TASK_PARTS,
    TASK_TIMES,
    UNITS,
    Move,
    Resource,
    Side,
)
from harness.core.evaluate.contract import example_profile
from harness.models import MODELS
from harness.models.whatif.inputs import COSTS
from harness.models.whatif.model import MAP_PARTS, REDUCE_PARTS
from harness.observe.profiling import fit_profile
from harness.observe.profiling.platform import COMPUTING, PARTS
from harness.observe.profiling.task_statistics import MAP, REDUCE
from tests.contracts.profiles import NAMES
from tests.profiling.recordings import recorded_grid

PROJECT = Path(__file__).parents[2]
HARNESS = sorted((PROJECT / "harness").rglob("*.py"))
IDS = [f"{row.kind}: {row.name}" for row in STATISTICS]
# A name that ends so says what it is a cost of one of.
ENDINGS = {
    "_s_per_byte": "s/B", "_s_per_early_byte": "s/B", "_s_per_record": "s/record",
    "_s_per_file": "s", "_s_per_segment": "s", "_s_per_task": "s", "_bps": "B/s",
}  # fmt: skip


def test_page_is_what_the_table_says():
    """
    After a change of the table: ``.venv/bin/python scripts/statistics > docs/statistics.md``.
    """
    page = runpy.run_path(str(PROJECT / "scripts" / "statistics"))["page"]

    assert (PROJECT / "docs" / "statistics.md").read_text() == page()


@pytest.mark.parametrize("row", STATISTICS, ids=IDS)
def test_a_row_is_of_known_words(row):
    """
    Its unit, its parts and all else that is not a sentence.
    """
    assert row.kind in KINDS
    assert row.unit in UNITS
    assert row.side in get_args(Side)
    assert row.resource in get_args(Resource)
    assert row.moves in get_args(Move)
    assert {*row.parts} <= TASK_PARTS.keys()
    assert row.text
    assert row.unit == next((unit for end, unit in ENDINGS.items() if row.name.endswith(end)),
                            row.unit)  # fmt: skip


@pytest.mark.parametrize("row", STATISTICS, ids=IDS)
def test_a_row_that_moves_with_its_parts_has_some(row):
    """
    And what has a statistic of its own for jobs that compress says whose compression that is.
    """
    assert row.parts or row.moves not in ("with its parts", "as a rate")
    assert bool(row.codec) == bool(row.compressed_name)
    assert bool(row.map_name) == bool(row.reduce_name) == (row.kind == "job cost")


def test_a_name_is_that_of_one_row():
    """
    But a job's costs and a machine's share names where they are of the same work, and units then.
    """
    names = [(row.kind, name) for row in STATISTICS for name in row.names]
    held = [name for row in STATISTICS if row.name in IN_PROFILES for name in row.names]

    assert len({*names}) == len(names)
    assert {*held} >= IN_PROFILES.keys()
    in_profiles = [name for kind, name in names if kind not in ("machine cost", "processor time")]
    assert len(in_profiles) == len(IN_PROFILES)
    shared = JOB_COSTS.keys() & MACHINE_COSTS.keys()
    assert {JOB_COSTS[name].unit == MACHINE_COSTS[name].unit for name in shared} == {True}


def test_every_statistic_that_a_model_requires_has_a_row():
    """
    What else a model requires is a field of the profile: its jobs.
    """
    required = frozenset().union(*(model.required for model in MODELS.values()))

    assert {name for name in required if name not in IN_PROFILES} <= Profile.model_fields.keys()


def test_everything_that_a_profile_can_hold_has_a_row():
    """
    The made-up profile has every statistic that there is; one that was fitted has those of tasks.
    """
    fitted = fit_profile("w", recorded_grid())
    example = example_profile()

    held = {*fitted.statistics, *fitted.costs, *fitted.frame}
    held |= {*example.statistics, *example.costs, *example.frame}
    assert {*NAMES, *held} - IN_PROFILES.keys() == {"jobs"}


def test_every_row_is_used():
    """
    Where its kind is computed there is its term, by its name.
    """
    without = [
        f"{row.kind}: {row.name}"
        for row in STATISTICS
        if not any(
            re.search(rf"\b{row.name}\b", (PROJECT / module).read_text())
            for module in COMPUTED_IN[row.kind]
        )
    ]

    assert without == []
    assert {*JOB_COSTS} == {*COSTS}
    assert {*TASK_TIMES} == {*MAP, *REDUCE, "network_bps"}
    assert {*MACHINE_COSTS} == {name for names in PARTS.values() for name in names} | {COMPUTING}
    assert {row.name for row in STATISTICS if row.kind == "frame"} == {*FRAME}


def test_parts_are_those_of_the_model_that_gives_their_equations():
    """
    But start and end of a task, which are the frame's; and what logs and transfers know.
    """
    ours = {"map_s", "spill_s", "map_cpu_s", "network alone"}
    around = {name for name in (*MAP_PARTS, *REDUCE_PARTS) if "setup" in name or "cleanup" in name}

    assert TASK_PARTS.keys() - ours == {*MAP_PARTS, *REDUCE_PARTS} - around


# What a node prints of its rates has no ending; their names stand a few lines above.
COMPOSED = {("harness/clusters/monitor/rates.py", "{}_bps")}


def composed_texts(path):
    """
    Yield the texts that a module puts together, with {} for what is put in.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(getattr(piece, "value", "") if isinstance(piece, ast.Constant) else "{}"
                          for piece in node.values)  # fmt: skip
        ending = getattr(getattr(node, "right", None), "value", None)
        if isinstance(node, ast.BinOp) and isinstance(ending, str):
            yield "{}" + ending


@pytest.mark.process
def test_no_name_is_composed():
    """
    A name stands as it is in its row, and wherever else it is used: a search finds all of it.

    An ending such as `_s` alone is in too many words to say anything.
    """
    names = {name for row in STATISTICS for name in row.names}
    composed = set()
    for path in HARNESS:
        for text in composed_texts(path):
            is_of_words = re.fullmatch(r"[a-z_]{4,}", text.replace("{}", ""))
            pattern = re.compile(re.escape(text).replace(r"\{\}", "[a-z_]+"))
            if "{}_" in text and is_of_words and any(map(pattern.fullmatch, names)):
                composed.add((str(path.relative_to(PROJECT)), text))

    assert composed == COMPOSED
