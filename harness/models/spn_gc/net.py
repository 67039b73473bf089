"""
The paper's net as data, Eqs. (1) and (2), in both variants that its counts allow.

`build_net` gives the lists of the specification, section 4; `timed_net` the same for the engine,
each transition with the mean of its phase: an exponential delay, Eqs. (3) and (4), or an immediate
transition where the mean is 0.

Without reduces (ours) the net ends where the maps have ended: it has neither a shuffle nor what
follows, and the counts of (1) and (2) do not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import ModelError
from harness.models.checks import check_count, range_error
from harness.models.spn_gc.phases import PHASES, WHERE
from harness.sim.petri import Net, Transition

VARIANTS = ("shared_read", "shared_shuffle")
MOST_ARCS = 300_000  # of a net that is listed or played

# Transition -> its phase: load -> t1_load_s.
PHASE_OF = {phase[3:-2]: phase for phase in PHASES}

# Of one map: a place, the transition that takes from it, the next place, ...
_ON_GPU = (
    "host_input", "to_gpu", "gpu_input", "gpu", "gpu_output", "from_gpu", "host_output", "spill",
)  # fmt: skip
_MAP = {
    "shared_read": (*_ON_GPU, "spilled", "shuffle"),
    "shared_shuffle": ("split", "read", *_ON_GPU),
}


def num_places(num_maps: int, num_reduces: int) -> int:
    """Places, Eq. (1): 5 M + 3 R + 2."""
    return 5 * num_maps + 3 * num_reduces + 2


def num_transitions(num_maps: int, num_reduces: int) -> int:
    """Transitions, Eq. (2): 5 M + 2 R + 2."""
    return 5 * num_maps + 2 * num_reduces + 2


def num_arcs(num_maps: int, num_reduces: int, variant: str) -> tuple[int, int]:
    """Input arcs, output arcs."""
    if variant == "shared_read":
        outputs = 5 * num_maps + num_maps * num_reduces + 2 * num_reduces + 1
    else:
        outputs = 6 * num_maps + 3 * num_reduces
    return num_transitions(num_maps, num_reduces), outputs


def build_net(num_maps: int, num_reduces: int, variant: str = "shared_read") -> dict[str, Any]:
    """Counts and lists of the net, by name; above `MOST_ARCS` counts alone."""
    if variant not in VARIANTS:
        raise range_error("variant", variant, "shared_read or shared_shuffle", WHERE)
    num_maps = check_count("num_maps", num_maps, where=WHERE, low=1)
    num_reduces = check_count("num_reduces", num_reduces, where=WHERE)
    inputs, outputs = num_arcs(num_maps, num_reduces, variant)
    if num_reduces and inputs + outputs > MOST_ARCS:
        return {
            "places": num_places(num_maps, num_reduces),
            "transitions": num_transitions(num_maps, num_reduces),
            "input_arcs": inputs,
            "output_arcs": outputs,
        }
    net = timed_net(dict.fromkeys(PHASES, 1.0), num_maps, num_reduces, variant)
    return {
        "places": len(net.places),
        "transitions": len(net.transitions),
        "input_arcs": len(net.input_arcs),
        "output_arcs": len(net.output_arcs),
        "place_names": list(net.places),
        "transition_names": [transition.name for transition in net.transitions],
        "input_arc_list": [list(arc) for arc in net.input_arcs],
        "output_arc_list": [list(arc) for arc in net.output_arcs],
        "initial_marking": dict(net.initial),
        "final_marking": final_marking(num_maps, num_reduces, variant),
    }


def timed_net(
    phases: Mapping[str, float], num_maps: int, num_reduces: int, variant: str = "shared_read"
) -> Net:
    """The net whose transitions have the means of *phases*."""
    if sum(num_arcs(num_maps, num_reduces, variant)) > MOST_ARCS:
        what = f"a net of {num_maps} maps and {num_reduces} reduces"
        raise ModelError(f"{what} is too large to list", where=WHERE)
    shared_read = variant == "shared_read"
    maps = range(1, num_maps + 1)
    reduces = range(1, num_reduces + 1)
    map_nodes = _MAP[variant] if num_reduces or not shared_read else _MAP[variant][:-1]
    map_places = map_nodes[::2]
    map_transitions = map_nodes[1::2]
    last = map_nodes[-1]
    places = ["start", *(["loaded"] if shared_read else [])]
    places += [f"{name}_{number}" for number in maps for name in map_places]
    places += [] if shared_read else ["map_outputs"]
    places += [
        f"{name}_{number}" for number in reduces for name in ("fetched", "merged", "reduced")
    ]
    # Arcs stand in the order of the transitions, and in that of the specification.
    inputs = [("start", "load", 1)]
    outputs = []
    if shared_read:
        inputs.append(("loaded", "read", 1))
        outputs.append(("load", "loaded", 1))
    for number in maps:
        for place, transition in zip(map_places, map_transitions, strict=False):
            inputs.append((f"{place}_{number}", f"{transition}_{number}", 1))
        outputs.append(("read" if shared_read else "load", f"{map_nodes[0]}_{number}", 1))
        for transition, place in zip(map_transitions, map_places[1:], strict=False):
            outputs.append((f"{transition}_{number}", f"{place}_{number}", 1))
        if shared_read:
            outputs += [
                (f"{last}_{number}", f"fetched_{reduce_number}", 1) for reduce_number in reduces
            ]
        else:
            outputs.append((f"{last}_{number}", "map_outputs", 1))
    if num_reduces and not shared_read:
        inputs.append(("map_outputs", "shuffle", num_maps))
    for number in reduces:
        # The join: a reduce starts when all maps have delivered.
        inputs.append((f"fetched_{number}", f"merge_{number}", num_maps if shared_read else 1))
        inputs.append((f"merged_{number}", f"reduce_{number}", 1))
        if not shared_read:
            outputs.append(("shuffle", f"fetched_{number}", 1))
        outputs.append((f"merge_{number}", f"merged_{number}", 1))
        outputs.append((f"reduce_{number}", f"reduced_{number}", 1))
    transitions = dict.fromkeys(transition for _, transition, _ in inputs)
    return Net(
        tuple(places),
        tuple(
            Transition(name, phases[PHASE_OF[name.rstrip("_0123456789")]]) for name in transitions
        ),
        tuple(inputs),
        tuple(outputs),
        {"start": 1},
    )


def final_marking(num_maps: int, num_reduces: int, variant: str) -> dict[str, int]:
    """Tokens at the end, where nothing is enabled any more."""
    if num_reduces:
        return {f"reduced_{number}": 1 for number in range(1, num_reduces + 1)}
    if variant == "shared_read":
        return {f"spilled_{number}": 1 for number in range(1, num_maps + 1)}
    return {"map_outputs": num_maps}
