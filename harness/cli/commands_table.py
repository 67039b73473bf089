"""
The commands by heading: each with what imports it, and its line in ``harness --help``.

Listing the commands imports none of them.  A command is a line of `GROUPS`; the first one of a
module brings the function that imports the module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import ModuleType

    import click


def _cluster() -> ModuleType:
    from harness.cli.commands import cluster

    return cluster


def _compare() -> ModuleType:
    from harness.cli.commands import compare

    return compare


def _doctor() -> ModuleType:
    from harness.doctor import command

    return command


def _export() -> ModuleType:
    from harness.cli.commands import export

    return export


def _init() -> ModuleType:
    from harness.cli.commands import init

    return init


def _list() -> ModuleType:
    from harness.cli.commands import list as listing

    return listing


def _models() -> ModuleType:
    from harness.cli.commands import models

    return models


def _predict() -> ModuleType:
    from harness.cli.commands import predict

    return predict


def _reading() -> ModuleType:
    from harness.cli.commands import reading

    return reading


def _runs() -> ModuleType:
    from harness.cli.commands import runs

    return runs


def _steps() -> ModuleType:
    from harness.cli.commands import steps

    return steps


def _hardware() -> ModuleType:
    from harness.hardware import command

    return command


def _nightly() -> ModuleType:
    from harness.nightly import command

    return command


def _past() -> ModuleType:
    from harness.past import command

    return command


def _catalog() -> ModuleType:
    from harness.past import catalog_command

    return catalog_command


def _publish() -> ModuleType:
    from harness.publish import command

    return command


def _tracer() -> ModuleType:
    from harness.tracer import command

    return command


def _anchoring() -> ModuleType:
    from harness.anchoring import command

    return command


def _ask() -> ModuleType:
    from harness.tuning import ask_command

    return ask_command


def _tuning() -> ModuleType:
    from harness.tuning import command

    return command


class Row(NamedTuple):
    """A command: *load* imports and gives it, *summary* is its line."""

    load: Callable[[], click.Command]
    summary: str


# Heading -> the commands below it, by name.
GROUPS = {
    "First": {
        "init": Row(lambda: _init().init, "Write an experiment file to begin with."),
        "plan": Row(
            lambda: _steps().plan, "Show the trials of an experiment, and how long they take."
        ),
        "all": Row(lambda: _steps().run_all, "Run an experiment from its file to its report."),
        "runs": Row(lambda: _runs().runs, "List the runs that there are."),
        "report": Row(lambda: _reading().report, "Write the report of a run."),
        "compare": Row(lambda: _compare().compare, "Say what changed between runs."),
    },
    "Step by step": {
        "run": Row(lambda: _steps().run, "Measure the trials that are not done yet."),
        "collect": Row(lambda: _reading().collect, "Make traces from the raw logs of trials."),
        "profile": Row(lambda: _reading().profile, "Fit statistics and costs to profiling trials."),
        "predict": Row(
            lambda: _predict().predict, "Predict every scored cell, and seal the results."
        ),
        "score": Row(lambda: _reading().score, "Compare sealed predictions with measurements."),
    },
    "Settings that nobody measured": {
        "ask": Row(lambda: _ask().ask_models, "Predict any setting, without a job."),
        "tune": Row(lambda: _tuning().tune, "Choose a job's settings by a model."),
    },
    "Inside a run": {
        "show": Row(
            lambda: _runs().show_run, "Show what a run measured, and what was asked of it."
        ),
        "trace": Row(lambda: _tracer().trace, "Show what happened inside the tasks of a trial."),
        "vet": Row(lambda: _tracer().vet, "Measure the overhead of finished tasks."),
    },
    "Results, kept and given away": {
        "plot": Row(lambda: _export().plot, "Write a figure of a report as SVG, PDF or PNG."),
        "export": Row(lambda: _export().export, "Write a run as CSV, Parquet, LaTeX and JUnit."),
        "publish": Row(lambda: _publish().publish, "Make a bundle that a stranger can check."),
        "verify": Row(lambda: _publish().verify, "Check a bundle that somebody published."),
        "reproduce": Row(lambda: _reading().reproduce, "Make the results of a run again."),
        "unpack": Row(lambda: _steps().unpack, "Take in a run that somebody packed, and check it."),
        "anchor": Row(
            lambda: _anchoring().anchor_group, "Have somebody outside see what a run has sealed."
        ),
        "gc": Row(lambda: _runs().gc, "Name and remove empty and abandoned runs."),
    },
    "Jobs that have run before": {
        "import": Row(lambda: _past().import_histories, "Make a run of jobs that have run before."),
        "backtest": Row(lambda: _past().backtest, "Try the models on an imported run."),
        "catalog": Row(lambda: _catalog().catalog_group, "Keep past jobs, and find similar ones."),
    },
    "Machines and clusters": {
        "doctor": Row(
            lambda: _doctor().doctor, "Show what this machine can do, and what it lacks."
        ),
        "cluster": Row(lambda: _cluster().cluster, "Start, look at and stop a cluster by hand."),
        "trust": Row(lambda: _cluster().trust, "Pin the SSH key of a host by its fingerprint."),
        "calibrate": Row(
            lambda: _hardware().calibrate, "Measure what a machine costs, in minutes."
        ),
        "hardware": Row(lambda: _hardware().hardware_group, "Show and compare what machines cost."),
    },
    "Night by night": {
        "nightly": Row(
            lambda: _nightly().nightly, "Measure a night, and say what moved since when."
        ),
    },
    "Models and workloads": {
        "list": Row(
            lambda: _list().list_names, "List workloads, models, providers, metrics, reports."
        ),
        "check": Row(lambda: _models().check_own, "Check a model or a workload of your own."),
        "vectors": Row(lambda: _models().vectors, "Check the models against their test vectors."),
        "net": Row(
            lambda: _models().net, "Print SPN-GC's Petri net, as a chart or for other tools."
        ),
    },
}

COMMANDS = dict[str, Row]()
for rows in GROUPS.values():
    COMMANDS |= rows
