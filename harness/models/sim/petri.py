"""
Stochastic Petri nets as data: places, transitions, weighted arcs, tokens; and as text.

    [Mar95] M. Ajmone Marsan, G. Balbo, G. Conte, S. Donatelli, G. Franceschinis. "Modelling with
    Generalized Stochastic Petri Nets". Wiley, 1995.

A transition is *enabled* when each of its input places holds at least as many tokens as the arc's
weight.  Firing takes these tokens and puts the output arcs' weights into the output places.  An
exponential transition fires after a delay of its *mean*; it is one server: several sets of tokens
in front of it wait for one another.  An immediate transition (mean 0) fires at once, before any
exponential one.

Other tools draw and open the text: `to_mermaid` writes a Mermaid flowchart, which Markdown viewers
draw; `to_pnml` the standard's form of place/transition nets (ISO/IEC 15909-2), which has no word
for time, so that a transition's timing stands in a part that other tools skip.
"""

from __future__ import annotations

import math

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from harness.base.errors import ModelError

Arc = tuple[str, str, int]

MOST_PLACED = 400  # nodes; a larger net is placed by the tool that opens it
_GRAMMAR = "http://www.pnml.org/version-2009/grammar"
_COLUMN = 74
_ROW = 62  # distance of neighbours, in the tools' pixels


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition and its mean delay (0: immediate)."""

    name: str
    mean: float


@dataclass(frozen=True)
class Net:
    """
    A net: arcs are (place, transition, weight) and (transition, place, weight).

    *initial* holds the tokens of the places that are not empty.  Names are unique, and each
    transition has an input.  `ModelError` for a mean that is no time.
    """

    places: tuple[str, ...]
    transitions: tuple[Transition, ...]
    input_arcs: tuple[Arc, ...]
    output_arcs: tuple[Arc, ...]
    initial: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.transitions:
            if not 0 <= node.mean < math.inf:
                what = f"transition {node.name!r} has mean {node.mean!r}"
                raise ModelError(what, where="Petri net")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all nodes: places, then transitions."""
        return (*self.places, *(node.name for node in self.transitions))

    @property
    def arcs(self) -> tuple[Arc, ...]:
        """All arcs: into transitions, then out of them."""
        return (*self.input_arcs, *self.output_arcs)

    def marking(self) -> tuple[int, ...]:
        """Tokens of all places at the start, in the order of the places."""
        return tuple(self.initial.get(name, 0) for name in self.places)


def to_mermaid(net: Net) -> str:
    """A flowchart: circles are places with their tokens, boxes transitions, labels arc weights."""
    numbers = {name: f"n{number}" for number, name in enumerate(net.names)}
    lines = ["flowchart LR"]
    for name, tokens in zip(net.places, net.marking(), strict=True):
        text = escape(name, {'"': "#quot;"}) + (f"<br/>{tokens}" if tokens else "")
        lines.append(f'    {numbers[name]}(("{text}"))')
    lines += [
        f'    {numbers[node.name]}["{escape(node.name, {chr(34): "#quot;"})}"]'
        for node in net.transitions
    ]
    for source, target, weight in net.arcs:
        label = f"|{weight}|" if weight > 1 else ""
        lines.append(f"    {numbers[source]} -->{label} {numbers[target]}")
    return "\n".join(lines) + "\n"


def to_pnml(net: Net, title: str) -> str:
    """The net in the standard's form; means in the unit of the net."""
    root = ET.Element("pnml", xmlns=f"{_GRAMMAR}/pnml")
    whole = ET.SubElement(root, "net", id="net", type=f"{_GRAMMAR}/ptnet")
    _add_label(whole, "name", title)
    page = ET.SubElement(whole, "page", id="page")
    positions = node_positions(net)
    for place, tokens in zip(net.places, net.marking(), strict=True):
        element = _add_node(page, "place", place, positions)
        if tokens:
            _add_label(element, "initialMarking", str(tokens))
    for node in net.transitions:
        element = _add_node(page, "transition", node.name, positions)
        timing_part = ET.SubElement(
            element, "toolspecific", {"tool": "mapreduce-harness", "version": "1"}
        )
        timing = {"kind": "immediate"}
        if node.mean > 0:
            timing = {"kind": "exponential", "mean": repr(node.mean)}
        ET.SubElement(timing_part, "timing", timing)
    for number, (source, target, weight) in enumerate(net.arcs, start=1):
        element = ET.SubElement(page, "arc", id=f"arc{number}", source=source, target=target)
        if weight != 1:
            _add_label(element, "inscription", str(weight))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def node_positions(net: Net) -> dict[str, tuple[int, int]]:
    """
    Where each node may be drawn, in pixels: right of all nodes that lead to it.

    Nothing for a net of more than `MOST_PLACED` nodes or with a cycle: the tool places those.
    """
    if len(net.names) > MOST_PLACED:
        return {}
    columns = dict.fromkeys(net.names, 0)
    for _ in net.names:
        late_arcs = [
            (source, target) for source, target, _ in net.arcs if columns[target] <= columns[source]
        ]
        if not late_arcs:
            break
        for source, target in late_arcs:
            columns[target] = max(columns[target], columns[source] + 1)
    else:
        return {}
    heights: defaultdict[int, int] = defaultdict(int)
    positions = {}
    for name, column in columns.items():
        heights[column] += 1
        positions[name] = column * _COLUMN + _COLUMN, heights[column] * _ROW
    return positions


def _add_node(
    parent: ET.Element, kind: str, name: str, positions: dict[str, tuple[int, int]]
) -> ET.Element:
    """A place or transition with its name, and where it is drawn if that is known."""
    element = ET.SubElement(parent, kind, id=name)
    label = _add_label(element, "name", name)
    if name in positions:
        x, y = positions[name]
        ET.SubElement(ET.SubElement(label, "graphics"), "offset", {"x": "0", "y": "26"})
        ET.SubElement(ET.SubElement(element, "graphics"), "position", x=f"{x}", y=f"{y}")
    return element


def _add_label(parent: ET.Element, kind: str, text: str) -> ET.Element:
    """A label of that *kind*, as the standard has it: its text is an element of its own."""
    label = ET.SubElement(parent, kind)
    ET.SubElement(label, "text").text = text
    return label
