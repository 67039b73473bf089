"""``harness init``: an experiment file to begin with, as large as this machine bears."""

from __future__ import annotations

import errno
import math
import os

from itertools import product
from pathlib import Path

import click

from harness.base.hadoop.slots import effective
from harness.base.installed import by_form
from harness.base.records.trial import ClusterSpec, NodeSpec, WorkloadSpec
from harness.cli.console.command import command
from harness.cli.console.options import json_option
from harness.cli.console.present import Note, present
from harness.clusters import PROVIDERS
from harness.clusters.monitor.machine import machine_facts
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import GPU
from harness.core import experiment
from harness.core.experiment.model import NAME
from harness.core.run.preflight import memory_needed

_MOST_AT_ONCE = 8
_MEMORY_SHARE = 0.8
_HOSTS = {  # where the cluster is not made on this machine
    "ansible": "\n  hosts: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4]   # yours, the master first",
    "existing": "   # as many as are there; HADOOP_CONF_DIR says where",
}
_TEXT = """\
# yaml-language-server: $schema={schema}
# {keys}A list of values is an axis of the grid.
schema: 1
name: {name}
# A text asks how far the best model is off. Of two models six cells may decide which one is
# nearer, of all pairs hardly: {{title: Is Prophet nearer?, nearer: [prophet, scaling]}}
question: How far off are models that learnt from {workload.name} jobs of two sizes, on six others?
cluster:
  provider: {provider}   # harness list providers
  workers: {workers}{hosts}
  # Tasks of each kind at once on a worker, and the memory of each.
  node: {{map_slots: {slots}, reduce_slots: {slots}, task_memory: 512 MiB}}
  site: {{dfs.blocksize: {block:g} MiB}}   # what one map reads at most
workloads:
  # {workload.description}.
  # Half a block, and one and a half waves of maps, feed the profile: they distinguish what a
  # task costs from what a byte costs. Six other sizes are predicted: fewer give no interval.
  - name: {workload.name}
    input: [{inputs}]
{arguments}configuration:   # Hadoop's properties of each job
  mapreduce.job.reduces: {at_once}
{limits}  mapreduce.job.reduce.slowstart.completedmaps: 1.0   # reduces start when all maps are done
repeat: 2   # of each cell, for the noise
seed: 7
trial_limit: 10 min
trace: {trace}
predict:
  models: [{models}, ernest, scaling]   # harness list models
  profile_on: {{input: [{profiled}]}}
"""

_LIMITS_HERE = """\
  # No more tasks at once than cores ({cores} here): else contention is what you measure. A job
  # keeps to this however many workers and slots there are, also where you ask what more of them
  # would bring: lift it then (harness ask RUN --setting mapreduce.job.running.map.limit=0).
  mapreduce.job.running.map.limit: {at_once}
  mapreduce.job.running.reduce.limit: {at_once}
"""
_LIMITS_ELSEWHERE = """\
  # Your own machines have their cores: slots decide how many tasks run at once. Where nodes have
  # more slots than cores, hold the job back, else contention is what you measure:
  # mapreduce.job.running.map.limit: {at_once}
  # mapreduce.job.running.reduce.limit: {at_once}
"""


@command("init")
@click.option(
    "--workload",
    type=click.Choice(list(WORKLOADS)),
    default="terasort",
    help="What the jobs do (harness list workloads).",
)
@click.option(
    "--provider",
    type=click.Choice(list(PROVIDERS)),
    default="local",
    help="What makes the cluster (harness list providers).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    default="-",
    help="A new file.",
)
@json_option
def init(workload: str, provider: str, output: Path, as_json: bool) -> None:
    """
    Write a commented experiment, sized for this machine's cores and memory; overwrite nothing.

    \b
    Example:
        harness init -o experiments/mine.yaml
        harness init --workload wordcount --provider docker
    """
    text = experiment_text(workload, provider, output)
    is_file = output.name != "-"
    if is_file:
        write_new(output, text)
    elif not as_json:
        click.echo(text, nl=False)
    next_step = f"its trials, and how long they take: harness plan {output}"
    answer = {"file": output if is_file else None, "text": text}
    present(answer, [Note(next_step)] if is_file else (), as_json=as_json)


def write_new(path: Path, text: str) -> None:
    """Write *text* to a file that is not there yet; nothing is left where that fails."""
    from harness.observe.storage.files import os_error_as_machine_error, replace_file

    try:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with os_error_as_machine_error(path, is_long=True):
            replace_file(path, lambda file: file.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror) from error


def experiment_text(workload_name: str, provider_name: str, output: Path) -> str:
    """Text of an experiment for the file *output*."""
    workload = WORKLOADS[workload_name]
    facts = machine_facts()
    cores = facts["cores_usable"]
    at_once, workers = _most_at_once(cores, facts.get("memory_bytes") or math.inf)
    block = _block_mib(workload_name)
    # Shares of a block, and of what all maps that run at once read.
    parts = (0.5, *(at_once * quarters / 4 for quarters in (3, 4, 5, 6, 7, 8, 9)))
    inputs = [f"{block * part:g} MiB" for part in parts]
    schema = Path(experiment.__file__).with_name("experiment.schema.json")
    arguments = (
        f"    # {name}: {parameter.default}   # the default: {parameter.meaning}\n"
        for name, parameter in workload.parameters.items()
    )
    limits = _LIMITS_ELSEWHERE if provider_name in _HOSTS else _LIMITS_HERE
    return _TEXT.format(
        schema=os.path.relpath(schema, output.parent),
        keys=by_form("All keys: docs/experiment.md. ", ""),
        name=output.stem if NAME.fullmatch(output.stem) else "mine",
        workload=workload,
        provider=provider_name,
        workers=workers,
        hosts=_HOSTS.get(provider_name, ""),
        slots=math.ceil(at_once / workers),
        block=block,
        inputs=", ".join(inputs),
        profiled=f"{inputs[0]}, {inputs[4]}",
        arguments="".join(arguments),
        at_once=at_once,
        limits=limits.format(cores=cores, at_once=at_once),
        trace="spans" if "spans" in PROVIDERS[provider_name].traces else "logs",
        models="spn-gc" if workload.jar == GPU else "whatif, whatif-mr2, prophet, ptc-wave",
    )


def _most_at_once(cores: int, memory_bytes: float) -> tuple[int, int]:
    """How many tasks of a kind run at once, and on how many workers, for the memory to suffice."""
    for at_once, workers in product(range(min(cores, _MOST_AT_ONCE), 0, -1), (3, 2, 1)):
        slots = math.ceil(at_once / workers)
        spec = ClusterSpec(workers=workers, node=NodeSpec(map_slots=slots, reduce_slots=slots))
        if memory_needed(spec, effective(spec, {})) <= _MEMORY_SHARE * memory_bytes:
            break
    return at_once, workers  # the least there is, where nothing suffices


def _block_mib(workload_name: str) -> int:
    """MiB of a block with which a map takes some seconds."""
    if workload_name == "sleep":  # a millisecond for each record of 96 bytes
        return 1
    spec = WorkloadSpec(name=workload_name, input_bytes=1)
    is_iterative = WORKLOADS[workload_name].jobs(spec) != 1
    return 8 if is_iterative else 32
