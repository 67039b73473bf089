"""
The paper's net as data, Eqs. (1) and (2), in both variants that its counts allow.

`build_net` gives the lists of the specification, section 4; `timed_net` the same for the engine,
each transition with the mean of its phase: an exponential delay, Eqs. (3) and (4), or an immediate
transition where the mean is 0.

Without reduces (ours) the net ends where the maps have ended: it has neither a shuffle nor what
follows, and the counts of (1) and (2) do not apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.base.errors import ModelError
from harness.models.checks import check_count, range_error
from harness.models.sim.petri import Arc, Net, Transition
from harness.models.spn_gc.phases import PHASES, WHERE

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


@dataclass
class _Listing:
    """Places and arcs of a net in the order of the specification, as far as they are listed."""

    places: list[str] = field(default_factory=list)
    inputs: list[Arc] = field(default_factory=list)
    outputs: list[Arc] = field(default_factory=list)

    def add_map(self, number: int, nodes: Sequence[str]) -> None:
        """A map: place, transition that takes from it, next place, ..., with an arc between two."""
        names = [f"{node}_{number}" for node in nodes]
        places = names[::2]
        transitions = names[1::2]
        self.places += places
        self.inputs += [
            (place, transition, 1) for place, transition in zip(places, transitions, strict=False)
        ]
        self.outputs += [
            (transition, place, 1)
            for transition, place in zip(transitions, places[1:], strict=False)
        ]

    def add_reduce(self, number: int, tokens_to_merge: int) -> None:
        """A reduce, which starts when so many tokens have come."""
        self.places += [f"fetched_{number}", f"merged_{number}", f"reduced_{number}"]
        self.inputs.append((f"fetched_{number}", f"merge_{number}", tokens_to_merge))
        self.inputs.append((f"merged_{number}", f"reduce_{number}", 1))
        self.outputs.append((f"merge_{number}", f"merged_{number}", 1))
        self.outputs.append((f"reduce_{number}", f"reduced_{number}", 1))


def list_shared_read(num_maps: int, num_reduces: int) -> _Listing:
    """The net with one read for all maps, each of which shuffles to all reduces."""
    nodes = _MAP["shared_read"] if num_reduces else _MAP["shared_read"][:-1]
    first_place = nodes[0]
    listing = _Listing(places=["start", "loaded"])
    listing.inputs += [("start", "load", 1), ("loaded", "read", 1)]
    listing.outputs.append(("load", "loaded", 1))
    for number in range(1, num_maps + 1):
        listing.outputs.append(("read", f"{first_place}_{number}", 1))
        listing.add_map(number, nodes)
        listing.outputs += [
            (f"shuffle_{number}", f"fetched_{reduce_number}", 1)
            for reduce_number in range(1, num_reduces + 1)
        ]
    for number in range(1, num_reduces + 1):
        # The join: a reduce starts when all maps have delivered.
        listing.add_reduce(number, tokens_to_merge=num_maps)
    return listing


def list_shared_shuffle(num_maps: int, num_reduces: int) -> _Listing:
    """The net whose maps read themselves, with one shuffle for all reduces behind all of them."""
    nodes = _MAP["shared_shuffle"]
    first_place = nodes[0]
    last_transition = nodes[-1]
    listing = _Listing(places=["start"], inputs=[("start", "load", 1)])
    for number in range(1, num_maps + 1):
        listing.outputs.append(("load", f"{first_place}_{number}", 1))
        listing.add_map(number, nodes)
        listing.outputs.append((f"{last_transition}_{number}", "map_outputs", 1))
    listing.places.append("map_outputs")
    if num_reduces:
        listing.inputs.append(("map_outputs", "shuffle", num_maps))
    for number in range(1, num_reduces + 1):
        listing.outputs.append(("shuffle", f"fetched_{number}", 1))
        listing.add_reduce(number, tokens_to_merge=1)
    return listing


def timed_net(
    phases: Mapping[str, float], num_maps: int, num_reduces: int, variant: str = "shared_read"
) -> Net:
    """The net whose transitions have the means of *phases*."""
    if sum(num_arcs(num_maps, num_reduces, variant)) > MOST_ARCS:
        what = f"a net of {num_maps} maps and {num_reduces} reduces"
        raise ModelError(f"{what} is too large to list", where=WHERE)
    if variant == "shared_read":
        listing = list_shared_read(num_maps, num_reduces)
    else:
        listing = list_shared_shuffle(num_maps, num_reduces)
    # In the order in which they take tokens; a name without its number says the phase.
    names = dict.fromkeys(transition for _, transition, _ in listing.inputs)
    transitions = [Transition(name, phases[PHASE_OF[name.rstrip("_0123456789")]]) for name in names]
    return Net(
        places=tuple(listing.places),
        transitions=tuple(transitions),
        input_arcs=tuple(listing.inputs),
        output_arcs=tuple(listing.outputs),
        initial={"start": 1},
    )


def final_marking(num_maps: int, num_reduces: int, variant: str) -> dict[str, int]:
    """Tokens at the end, where nothing is enabled any more."""
    if num_reduces:
        return {f"reduced_{number}": 1 for number in range(1, num_reduces + 1)}
    if variant == "shared_read":
        return {f"spilled_{number}": 1 for number in range(1, num_maps + 1)}
    return {"map_outputs": num_maps}
