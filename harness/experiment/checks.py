"""What is wrong with an experiment as a whole: its hosts, its workers, its grid, its profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import SpecError
from harness.experiment.grid import axis_values, expand, is_profiling, meaning, readable
from harness.experiment.model import ClusterAxes, Experiment
from harness.records.trial import Cell
from harness.text import did_you_mean, excerpt
from harness.units import MIB

if TYPE_CHECKING:
    from harness.experiment.document import Document
    from harness.experiment.file import KnownNames

MOST_HOSTS = 200
_PROFILE_ON = ("predict", "profile_on")


def check_cluster(cluster: ClusterAxes, document: Document, known: KnownNames | None) -> None:
    """Note hosts that are not those of the workers, and limits of workers that there are not."""
    path, count = ("cluster", "hosts"), len(cluster.hosts)
    if known:
        _check_fields(cluster.provider, document, known)
    if count and not 2 <= count <= MOST_HOSTS:
        what = f"{count} hosts are not 2 to {MOST_HOSTS}"
        document.problem(path, what, "name a master and at least one worker", key=True)
    elif count and cluster.workers != (count - 1,):
        written = ", ".join(map(str, cluster.workers))
        what = f"{count} hosts are a master and {count - 1} workers, not {written}"
        document.problem(("cluster", "workers"), what, f"write workers: {count - 1}", key=True)
    fewest = min(cluster.workers)
    workers = [f"worker{number}" for number in range(1, fewest + 1)]
    for name in cluster.nodes:
        if name not in workers:
            what = f"cluster.nodes: there is no '{name}' in a cluster of {fewest} workers"
            fix = did_you_mean(name, workers)
            document.problem(("cluster", "nodes", name), what, excerpt(fix), key=True)


def _check_fields(provider: str, document: Document, known: KnownNames) -> None:
    """Note keys of `cluster` that *provider* needs and the file lacks, or that it does not take."""
    given = document.mapping("cluster")
    for key in sorted(set(known.required_fields.get(provider, ())) - given.keys()):
        example = "[MASTER, WORKER, ...]" if key == "hosts" else "..."
        what = f"provider {provider} needs cluster.{key}"
        document.problem(("cluster",), what, f"add {key}: {example}")
    takers = [name for name, fields in known.extra_fields.items() if fields]
    extra = {key for fields in known.extra_fields.values() for key in fields}
    for key in sorted(given.keys() & extra - set(known.extra_fields.get(provider, ()))):
        what = f"provider {provider} does not take cluster.{key}"
        fix = f"write provider: {' or '.join(takers)}, or remove the line"
        document.problem(("cluster", key), what, fix, key=True)


def check_grid(experiment: Experiment, document: Document, *, narrowed: bool) -> None:
    """
    Note what is wrong with the grid, and what `profile_on` names and the grid does not have.

    Where overrides *narrowed* the grid, it is enough that one of an axis' values is left.
    """
    try:
        cells = expand(experiment)
    except SpecError as error:
        document.problem((), error.what, error.fix)
        return
    if not document.mapping("predict"):
        return
    axes = _axes(cells)
    all_exist = True
    for name, values in experiment.predict.profile_on.items():
        path = (*_PROFILE_ON, name)
        if name not in axes:
            what = f"predict.profile_on: the grid has no axis '{excerpt(name)}'"
            document.problem(path, what, did_you_mean(name, sorted(axes)), key=True)
            all_exist = False
            continue
        exist = {meaning(value) for value in axes[name]}
        lacking = [value for value in values if meaning(value) not in exist]
        if lacking and not (narrowed and len(lacking) < len(values)):
            missing = ", ".join(_readable(name, value) for value in lacking)
            what = f"predict.profile_on: no cell has {excerpt(name)} {missing}"
            document.problem(path, what, f"its values are {', '.join(axes[name])}")
            all_exist = False
    if not all_exist:
        return
    profiling = [is_profiling(cell, experiment.predict) for cell in cells]
    fed = {cell.workload.name for cell, feeds in zip(cells, profiling, strict=True) if feeds}
    choices = "; ".join(f"{name} has {', '.join(values)}" for name, values in axes.items()
                        if values[1:])  # fmt: skip
    fix = f"choose some values and leave some: {choices or 'no axis has two values yet'}"
    for name in sorted({cell.workload.name for cell in cells} - fed):
        what = f"predict.profile_on selects no cell of {name}"
        document.problem(_PROFILE_ON, what, fix, key=True)
    if all(profiling):
        what = "predict.profile_on selects every cell, and none is left to score"
        document.problem(_PROFILE_ON, what, fix, key=True)


def _axes(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Values of each axis as text, in the order of the grid."""
    axes: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in axis_values(cell).items():
            axes.setdefault(name, {})[_readable(name, value)] = None
    return {name: list(values) for name, values in axes.items()}


def _readable(name: str, value: str | float) -> str:
    """Write a value as in the file: sizes in MiB where they are whole."""
    size = meaning(value)
    if name in ("input", "task_memory") and isinstance(size, int) and size % MIB == 0:
        return f"{size // MIB} MiB"
    return readable(name, size) if name in ("disk", "network") else excerpt(value)
