"""
The paper's net as data, Eqs. (1) and (2), in both variants that its counts allow.

`build_net` gives the lists of the specification, section 4; `timed_net` the same for the engine,
each transition with the mean of its phase: an exponential delay, Eqs. (3) and (4), or an immediate
transition where the mean is 0.

Without reduces (ours) the net ends where the maps have ended: it has neither a shuffle nor what
follows, and the counts of (1) and (2) do not apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_count, range_error
from harness.models.spn_gc.inputs import WHERE
from harness.models.spn_gc.phases import PHASES
from harness.sim.petri import Arc, Net, Transition

VARIANTS = ("shared_read", "shared_shuffle")
MOST_ARCS = 300_000  # of a net that is listed or played

# Transition -> its phase.
PHASE_OF = dict(
    zip(
        ("load", "read", "to_gpu", "gpu", "from_gpu", "spill", "shuffle", "merge", "reduce"),
        PHASES,
        strict=True,
    )
)

# Of one map: a place, the transition that takes from it, the next place, ...
_MAP = {
    "shared_read": (
        "host_input", "to_gpu", "gpu_input", "gpu", "gpu_output", "from_gpu", "host_output",
        "spill", "spilled", "shuffle",
    ),
    "shared_shuffle": (
        "split", "read", "host_input", "to_gpu", "gpu_input", "gpu", "gpu_output", "from_gpu",
        "host_output", "spill",
    ),
}  # fmt: skip

Phases = Mapping[str, float | Sequence[float]]


def num_places(num_maps: int, num_reduces: int) -> int:
    """Places, Eq. (1): 5 M + 3 R + 2."""
    return 5 * num_maps + 3 * num_reduces + 2


def num_transitions(num_maps: int, num_reduces: int) -> int:
    """Transitions, Eq. (2): 5 M + 2 R + 2."""
    return 5 * num_maps + 2 * num_reduces + 2


def num_arcs(num_maps: int, num_reduces: int, variant: str) -> tuple[int, int]:
    """Input arcs, output arcs."""
    m, r = num_maps, num_reduces
    return num_transitions(m, r), 5 * m + m * r + 2 * r + 1 if variant == "shared_read" else (
        6 * m + 3 * r
    )


def build_net(num_maps: int, num_reduces: int, variant: str = "shared_read") -> dict[str, Any]:
    """
    Counts and lists of the net, by the names of the specification.

    Above `MOST_ARCS` arcs the counts alone.  ``ModelError`` for a number of tasks that is none,
    no maps, or an unknown variant.
    """
    m, r = _tasks(num_maps, num_reduces, variant)
    if r and sum(num_arcs(m, r, variant)) > MOST_ARCS:
        inputs, outputs = num_arcs(m, r, variant)
        counts = num_places(m, r), num_transitions(m, r), inputs, outputs
        return dict(
            zip(("places", "transitions", "input_arcs", "output_arcs"), counts, strict=True)
        )
    net = timed_net(dict.fromkeys(PHASES, 1.0), m, r, variant)
    return {
        "places": len(net.places),
        "transitions": len(net.transitions),
        "input_arcs": len(net.input_arcs),
        "output_arcs": len(net.output_arcs),
        "place_names": list(net.places),
        "transition_names": [t.name for t in net.transitions],
        "input_arc_list": [list(arc) for arc in net.input_arcs],
        "output_arc_list": [list(arc) for arc in net.output_arcs],
        "initial_marking": dict(net.initial),
        "final_marking": final_marking(m, r, variant),
    }


def timed_net(phases: Phases, num_maps: int, num_reduces: int, variant: str = "shared_read") -> Net:
    """
    The net with the delays of *phases*: a mean per phase, or one per map or reduce.

    ``ModelError`` as from `build_net`, and above `MOST_ARCS` arcs.
    """
    m, r = _tasks(num_maps, num_reduces, variant)
    if sum(num_arcs(m, r, variant)) > MOST_ARCS:
        raise ModelError(f"a net of {m} maps and {r} reduces is too large to list", where=WHERE)
    read = variant == "shared_read"
    line = _MAP[variant] if r or not read else _MAP[variant][:-1]
    places = ["start", *(["loaded"] if read else [])]
    places += [f"{name}_{j}" for j in range(1, m + 1) for name in line[::2]]
    places += [] if read else ["map_outputs"]
    places += [f"{name}_{i}" for i in range(1, r + 1) for name in ("fetched", "merged", "reduced")]
    names = [
        *(("load", "read") if read else ("load",)),
        *(f"{name}_{j}" for j in range(1, m + 1) for name in line[1::2]),
        *(("shuffle",) if r and not read else ()),
        *(f"{name}_{i}" for i in range(1, r + 1) for name in ("merge", "reduce")),
    ]
    return Net(
        tuple(places),
        tuple(Transition(name, mean_of(phases, name)) for name in names),
        tuple(_input_arcs(line, m, r, read=read)),
        tuple(_output_arcs(line, m, r, read=read)),
        {"start": 1},
    )


def mean_of(phases: Phases, transition: str) -> float:
    """Mean of a *transition*: of its phase, where that has one per task the task's own."""
    name, _, number = transition.rpartition("_")
    kind, index = (name, int(number) - 1) if number.isdigit() else (transition, 0)
    mean = phases[PHASE_OF[kind]]
    return float(mean if isinstance(mean, int | float) else mean[index])


def final_marking(num_maps: int, num_reduces: int, variant: str) -> dict[str, int]:
    """Tokens at the end, where nothing is enabled any more."""
    if num_reduces:
        return {f"reduced_{i}": 1 for i in range(1, num_reduces + 1)}
    if variant == "shared_read":
        return {f"spilled_{j}": 1 for j in range(1, num_maps + 1)}
    return {"map_outputs": num_maps}


def _input_arcs(line: Sequence[str], m: int, r: int, *, read: bool) -> Iterator[Arc]:
    """Arcs from places, in the order of the transitions."""
    yield "start", "load", 1
    if read:
        yield "loaded", "read", 1
    for j in range(1, m + 1):
        for place, transition in zip(line[::2], line[1::2], strict=False):
            yield f"{place}_{j}", f"{transition}_{j}", 1
    if r and not read:
        yield "map_outputs", "shuffle", m
    for i in range(1, r + 1):
        # The join: a reduce begins when all maps have delivered.
        yield f"fetched_{i}", f"merge_{i}", m if read else 1
        yield f"merged_{i}", f"reduce_{i}", 1


def _output_arcs(line: Sequence[str], m: int, r: int, *, read: bool) -> Iterator[Arc]:
    """Arcs to places, in the order that the specification gives."""
    if read:
        yield "load", "loaded", 1
    for j in range(1, m + 1):
        yield "read" if read else "load", f"{line[0]}_{j}", 1  # the fork
        for transition, place in zip(line[1::2], line[2::2], strict=False):
            yield f"{transition}_{j}", f"{place}_{j}", 1
        if not read:
            yield f"{line[-1]}_{j}", "map_outputs", 1
        for i in range(1, r + 1) if read else ():
            yield f"{line[-1]}_{j}", f"fetched_{i}", 1
    for i in range(1, r + 1):
        if not read:
            yield "shuffle", f"fetched_{i}", 1
        yield f"merge_{i}", f"merged_{i}", 1
        yield f"reduce_{i}", f"reduced_{i}", 1


def _tasks(num_maps: int, num_reduces: int, variant: str) -> tuple[int, int]:
    if variant not in VARIANTS:
        raise range_error("variant", variant, "shared_read or shared_shuffle", WHERE)
    maps = check_count("num_maps", num_maps, where=WHERE, low=1)
    return maps, check_count("num_reduces", num_reduces, where=WHERE)
