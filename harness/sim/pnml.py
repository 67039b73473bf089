"""
A net as PNML, so that other tools open it.

`write_pnml` writes the standard's form of place/transition nets (ISO/IEC 15909-2), which has no
word for time: a transition's timing stands in a part that other tools skip.  `write_pipe` writes
the form of PIPE2, which is older, and whose transitions have rates.  Both place the nodes as the
picture does, where there can be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from harness.errors import ModelError
from harness.sim.draw import layout
from harness.sim.petri import Net, Transition

_GRAMMAR = "http://www.pnml.org/version-2009/grammar"
_TOOL = {"tool": "mapreduce-harness", "version": "1"}


def write_pnml(net: Net, name: str) -> str:
    """The net in the standard's form; means in the unit of the net."""
    root = ET.Element("pnml", xmlns=f"{_GRAMMAR}/pnml")
    whole = ET.SubElement(root, "net", id="net", type=f"{_GRAMMAR}/ptnet")
    _label(whole, "name", name)
    page = ET.SubElement(whole, "page", id="page")
    at = _positions(net)
    for place, tokens in zip(net.places, net.marking(), strict=True):
        node = _node(page, "place", place, at)
        if tokens:
            _label(node, "initialMarking", str(tokens))
    for transition in net.transitions:
        node = _node(page, "transition", transition.name, at)
        own = ET.SubElement(node, "toolspecific", _TOOL)
        ET.SubElement(own, "timing", _timing(transition))
    for number, (source, target, weight) in enumerate(_arcs(net), start=1):
        arc = ET.SubElement(page, "arc", id=f"arc{number}", source=source, target=target)
        if weight != 1:
            _label(arc, "inscription", str(weight))
    return _text(root)


def write_pipe(net: Net, name: str) -> str:
    """The net in PIPE2's form; the rate of an immediate transition is its weight."""
    root = ET.Element("pnml")
    whole = ET.SubElement(root, "net", id=name, type="P/T net")
    colour = {"id": "Default", "enabled": "true", "red": "0", "green": "0", "blue": "0"}
    ET.SubElement(whole, "token", colour)
    at = _positions(net)
    for place, tokens in zip(net.places, net.marking(), strict=True):
        node = _node(whole, "place", place, at, word="value")
        _label(node, "initialMarking", f"Default,{tokens}", word="value")
        _label(node, "capacity", "0", word="value")
    for t in net.transitions:
        node = _node(whole, "transition", t.name, at, word="value")
        rate = t.weight if t.immediate else 1 / t.mean
        values = {
            "orientation": "0",
            "rate": repr(rate),
            "timed": "false" if t.immediate else "true",
            "infiniteServer": "false",
            "priority": "1",
        }
        for label, value in values.items():
            _label(node, label, value, word="value")
    for source, target, weight in _arcs(net):
        names = {"id": f"{source} to {target}", "source": source, "target": target}
        arc = ET.SubElement(whole, "arc", names)
        ET.SubElement(arc, "graphics")
        _label(arc, "inscription", f"Default,{weight}", word="value")
        _label(arc, "tagged", "false", word="value")
        for number, end in enumerate((source, target)):
            x, y = at.get(end, (0.0, 0.0))
            point = {"id": f"{number:03}", "x": f"{x:g}", "y": f"{y:g}", "curvePoint": "false"}
            ET.SubElement(arc, "arcpath", point)
        ET.SubElement(arc, "type", value="normal")
    return _text(root)


def _node(
    parent: ET.Element,
    kind: str,
    name: str,
    at: dict[str, tuple[float, float]],
    word: str = "text",
) -> ET.Element:
    node = ET.SubElement(parent, kind, id=name)
    label = _label(node, "name", name, word=word)
    if name in at:
        x, y = at[name]
        offset = {"x": "0", "y": "26"}
        ET.SubElement(ET.SubElement(label, "graphics"), "offset", offset)
        place = ET.SubElement(node, "graphics")
        ET.SubElement(place, "position", x=f"{x:g}", y=f"{y:g}")
    return node


def _label(parent: ET.Element, kind: str, text: str, word: str = "text") -> ET.Element:
    label = ET.SubElement(parent, kind)
    ET.SubElement(label, word).text = text
    return label


def _timing(transition: Transition) -> dict[str, str]:
    if transition.immediate:
        return {"kind": "immediate", "weight": repr(transition.weight)}
    return {"kind": "exponential", "mean": repr(transition.mean)}


def _arcs(net: Net) -> Iterable[tuple[str, str, int]]:
    return (*net.input_arcs, *net.output_arcs)


def _positions(net: Net) -> dict[str, tuple[float, float]]:
    try:
        return dict(layout(net).at)
    except ModelError:  # too large, or with a cycle: the tool places the nodes
        return {}


def _text(root: ET.Element) -> str:
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"
