"""
Commands on a run: what they print for people, and for programs.
"""

import json

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.records.profile import CostGroup, Profile, Statistic
from harness.cli import main
from harness.cli.commands.steps import shown_profiling
from harness.core.run import experiment_file
from harness.core.run import session as run_session


def json_of(capsys):
    """
    The one document on stdout.
    """
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def opened(monkeypatch):
    """
    A session of two trials, one of which failed; every command opens it.
    """
    group = ("map_cpu_s_per_record", "sort_cpu_s_per_record")
    costs = {
        name: Statistic(value=1e-6, spread=0, count=2, source="x", assumed=True, group=(other,))
        for name, other in (group, group[::-1])
    }
    fitted = Profile(
        workload="wordcount",
        costs=costs,
        groups=(CostGroup(names=group, sum_s=1.0, spread_s=0.1, note="together"),),
    )
    seal = SimpleNamespace(exists=lambda: False)
    run = SimpleNamespace(
        path="results/small/1", place="results/small/1", output=Path("results/small/1"),
        lock=nullcontext, output_lock=nullcontext, seal=seal, read_plan=lambda: ("a", "b"),
    )  # fmt: skip
    run.measured = run
    evaluation = SimpleNamespace(
        run=run,
        report=lambda _: (("r/report.html", "r/report.json"), None),
        profile=lambda: {"wordcount": fitted},
    )
    session = SimpleNamespace(
        evaluation=lambda **_: evaluation,
        measure=lambda **_: (run, 1),
    )
    monkeypatch.setattr(experiment_file, "read_experiment_file", str)
    monkeypatch.setattr(run_session, "Session", lambda *_, **__: session)
    return session


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        (["report", "e.yaml"], {"files": ["r/report.html", "r/report.json"]}),
        (["run", "e.yaml"], {"run": "results/small/1", "done": 1, "failed": 1}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_step_has_a_document_for_programs(opened, capsys, arguments, document):
    """
    It is all that stands on stdout, with the version of its schema.
    """
    main([*arguments, "--json"])

    assert json_of(capsys) == {"schema_version": 1, **document}


def test_costs_of_a_group_are_named_once(opened, capsys):
    """
    A row says that it is a share, and of what.
    """
    assert main(["profile", "e.yaml"]) == 0

    out = capsys.readouterr().out
    assert out.count("sort_cpu_s_per_record") == 2
    assert "a share of one sum with sort_cpu_s_per_record" in out


def test_a_plan_says_what_profiling_cells_cover():
    """
    And of how many scored cells something is not.
    """
    row = {
        "workload": "terasort", "cells": ["terasort 80 MiB", "terasort 1 GiB"],
        "covers": ["one wave of maps", "one spill"], "scored": 3,
        "extrapolated": {"terasort 2 GiB": ["several spills"]}, "lacks": "several spills (1 cell)",
    }  # fmt: skip
    whole = {**row, "workload": "sort", "extrapolated": {}, "lacks": ""}

    assert [*shown_profiling({"share": 0.314, "workloads": [row, whole]})] == [
        "Profiling takes 31 % of the time:",
        "- terasort: terasort 80 MiB; terasort 1 GiB",
        "  covers: one wave of maps, one spill",
        "  extrapolated: 1 of 3 scored cells, for want of several spills (1 cell)",
        "- sort: terasort 80 MiB; terasort 1 GiB",
        "  covers: one wave of maps, one spill",
    ]
