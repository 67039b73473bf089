"""What is wrong with an experiment's grid as a whole, and with the cells that its profiles take."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import SpecError
from harness.experiment import shapes
from harness.experiment.grid import axis_values, expand, is_profiling, meaning, readable
from harness.experiment.model import Experiment
from harness.experiment.shapes import Listed, Value
from harness.experiment.yamltree import Entries, Place, Problems, nearest, shown
from harness.records.trial import Cell
from harness.units import MIB


def check_grid(
    experiment: Experiment, tree: Entries, problems: Problems, *, narrowed: bool
) -> None:
    """Note what is wrong with the grid and its profiles; overrides may have *narrowed* it."""
    try:
        cells = expand(experiment)
    except SpecError as error:
        problems.add(tree.at, error.what, error.fix)
        return
    predict = tree.entries.get("predict")
    if isinstance(predict, Entries):
        chosen = predict.entries["profile_on"]
        assert isinstance(chosen, Entries)
        if _values_exist(cells, chosen, problems, narrowed=narrowed):
            _check_split(experiment, cells, predict.keys["profile_on"], problems)


def _values_exist(
    cells: Sequence[Cell], chosen: Entries, problems: Problems, *, narrowed: bool
) -> bool:
    """
    Note what `profile_on` names and the grid does not have.

    Where overrides *narrowed* the grid, it is enough that one of an axis' values is left.
    """
    axes, good = _axes(cells), True
    for name, node in chosen.entries.items():
        if name not in axes:
            what = f"predict.profile_on: the grid has no axis '{shown(name)}'"
            problems.add(chosen.keys[name], what, nearest(name, sorted(axes)))
            good = False
            continue
        exist = [meaning(value) for value in axes[name]]
        values = Listed(Value(shapes.hadoop_text, {})).read(node, name, problems)
        lacking = [v for v in values if meaning(v) not in exist]
        if lacking and not (narrowed and len(lacking) < len(values)):
            missed = ", ".join(_readable(name, v) for v in lacking)
            what = f"predict.profile_on: no cell has {shown(name)} {missed}"
            problems.add(node.at, what, f"its values are {', '.join(axes[name])}")
            good = False
    return good


def _check_split(
    experiment: Experiment, cells: Sequence[Cell], at: Place, problems: Problems
) -> None:
    """Note a workload that feeds no profile, and a grid of which nothing is left to score."""
    profiling = [is_profiling(cell, experiment.predict) for cell in cells]
    fed = {cell.workload.name for cell, feeds in zip(cells, profiling, strict=True) if feeds}
    exist = "; ".join(
        f"{name} has {', '.join(values)}" for name, values in _axes(cells).items() if values[1:]
    )
    fix = f"choose some values and leave some: {exist or 'no axis has two values yet'}"
    for name in sorted({cell.workload.name for cell in cells} - fed):
        problems.add(at, f"predict.profile_on selects no cell of {name}", fix)
    if all(profiling):
        problems.add(at, "predict.profile_on selects every cell, and none is left to score", fix)


def _axes(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Values of each axis as text, in the order of the grid."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in axis_values(cell).items():
            found.setdefault(name, {})[_readable(name, value)] = None
    return {name: list(values) for name, values in found.items()}


def _readable(name: str, value: str | float) -> str:
    """Write a value as in the file: sizes in MiB where they are whole."""
    whole = meaning(value)
    if name in ("input", "task_memory") and isinstance(whole, int) and whole % MIB == 0:
        return f"{whole // MIB} MiB"
    if name in ("disk", "network"):
        return readable(name, whole)
    return shown(str(value))
