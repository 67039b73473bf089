"""
Tests for `harness.models.sim.petri`: a net as others read it.
"""

from dataclasses import replace
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.sim.petri import (
    MOST_PLACED,
    Net,
    Transition,
    node_positions,
    to_mermaid,
    to_pnml,
)
from tests.sim.nets import forward_nets, net

PNML = "{http://www.pnml.org/version-2009/grammar/pnml}"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '"/><script>&a</script>'


def read_pnml(text):
    """
    Places with tokens, transitions with timing, arcs: what a reader of the standard's form finds.
    """
    page = ET.fromstring(text).find(f"{PNML}net/{PNML}page")
    places = {
        p.get("id"): int(p.findtext(f"{PNML}initialMarking/{PNML}text", "0"))
        for p in page.iter(f"{PNML}place")
    }
    timings = {
        t.get("id"): t.find(f".//{PNML}timing").attrib for t in page.iter(f"{PNML}transition")
    }
    arcs = [
        (a.get("source"), a.get("target"), int(a.findtext(f"{PNML}inscription/{PNML}text", "1")))
        for a in page.iter(f"{PNML}arc")
    ]
    return places, timings, arcs


class TestPnml:
    @settings(max_examples=15)
    @given(forward_nets())
    def test_holds_the_whole_net(self, drawn):
        """
        Read again, it has the same places, tokens, transitions, timings and arcs.
        """
        timings = {
            t.name: {"kind": "immediate"}
            if t.mean == 0
            else {"kind": "exponential", "mean": repr(t.mean)}
            for t in drawn.transitions
        }

        assert read_pnml(to_pnml(drawn, "net")) == (
            dict(zip(drawn.places, drawn.marking(), strict=True)),
            timings,
            [*drawn.input_arcs, *drawn.output_arcs],
        )

    def test_a_net_with_a_cycle_is_written(self):
        """
        Only without positions, which the tool finds.
        """
        loop = net({"t": (1.0, "p", "p q")}, {"p": 1})

        assert read_pnml(to_pnml(loop, "loop"))[0] == {"p": 1, "q": 0}
        assert "position" not in to_pnml(loop, "loop")


class TestPositions:
    @settings(max_examples=15)
    @given(forward_nets())
    def test_arcs_lead_to_the_right_and_nodes_lie_apart(self, drawn):
        """
        No two nodes at one place.
        """
        positions = node_positions(drawn)

        assert all(positions[a][0] < positions[b][0] for a, b, _ in drawn.arcs)
        assert len(set(positions.values())) == len(drawn.names)

    def test_large_nets_have_none(self):
        """
        The tool that opens it places the nodes.
        """
        assert node_positions(Net(tuple(f"p{i}" for i in range(MOST_PLACED + 1)), (), (), ())) == {}


@given(forward_nets(), st.integers(2, 99))
def test_mermaid_shows_every_node_and_arc(drawn, weight):
    """
    A line for each node and arc; weights above 1 and tokens are labelled.
    """
    heavy = replace(drawn, input_arcs=(*drawn.input_arcs, ("p0", "t0", weight)))
    lines = to_mermaid(heavy).splitlines()

    assert len(lines) == 1 + len(heavy.names) + len(heavy.arcs)
    assert f"    n0 -->|{weight}| n{len(heavy.places)}" in lines
    assert f'    n0(("p0<br/>{heavy.initial["p0"]}"))' in lines


def test_names_are_escaped():
    """
    Whatever a node or a net is called, the text is XML, and a name makes no element of it.
    """
    odd = Net((HOSTILE,), (Transition(f"t{HOSTILE}", 0.0),), ((HOSTILE, f"t{HOSTILE}", 1),), ())

    elements = ET.fromstring(to_pnml(odd, HOSTILE)).iter()

    assert "script" not in {e.tag.rpartition("}")[2] for e in elements}
