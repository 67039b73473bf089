"""
Tests for `harness.sim.draw` and `harness.sim.pnml`: what others see of a net.
"""

from xml.etree import ElementTree as ET

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ModelError
from harness.sim.draw import MOST_NODES, draw_svg, layout
from harness.sim.petri import Net, Transition
from harness.sim.pnml import write_pipe, write_pnml
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


def read_pipe(text):
    """
    The same of PIPE2's form.
    """
    found = ET.fromstring(text).find("net")

    def number(node, path):
        return int(node.findtext(path).removeprefix("Default,"))

    places = {p.get("id"): number(p, "initialMarking/value") for p in found.iter("place")}
    rates = {
        t.get("id"): (t.findtext("timed/value"), float(t.findtext("rate/value")))
        for t in found.iter("transition")
    }
    arcs = [
        (a.get("source"), a.get("target"), number(a, "inscription/value"))
        for a in found.iter("arc")
    ]
    return places, rates, arcs


class TestPnml:
    @settings(max_examples=15)
    @given(forward_nets())
    def test_holds_the_whole_net(self, drawn):
        """
        Read again, it has the same places, tokens, transitions, timings and arcs.
        """
        timings = {
            t.name: {"kind": "immediate", "weight": repr(t.weight)}
            if t.immediate
            else {"kind": "exponential", "mean": repr(t.mean)}
            for t in drawn.transitions
        }

        assert read_pnml(write_pnml(drawn, "net")) == (
            dict(zip(drawn.places, drawn.marking(), strict=True)),
            timings,
            [*drawn.input_arcs, *drawn.output_arcs],
        )

    @settings(max_examples=15)
    @given(forward_nets())
    def test_pipe_holds_rates(self, drawn):
        """
        In the other form a mean is a rate, and all arcs have an inscription.
        """
        rates = {
            t.name: ("false", t.weight) if t.immediate else ("true", 1 / t.mean)
            for t in drawn.transitions
        }

        assert read_pipe(write_pipe(drawn, "net")) == (
            dict(zip(drawn.places, drawn.marking(), strict=True)),
            rates,
            [*drawn.input_arcs, *drawn.output_arcs],
        )

    def test_a_net_with_a_cycle_is_written(self):
        """
        Only without positions, which the tool finds.
        """
        loop = net({"t": (1.0, "p", "p q")}, {"p": 1})

        assert read_pnml(write_pnml(loop, "loop"))[0] == {"p": 1, "q": 0}
        assert "position" not in write_pnml(loop, "loop")


class TestPicture:
    @settings(max_examples=15)
    @given(forward_nets())
    def test_shows_every_node_and_arc(self, drawn):
        """
        A circle for a place, a bar for a transition, a line for an arc; tokens and names.
        """
        picture = ET.fromstring(draw_svg(drawn, "net"))
        circles = [c for c in picture.iter(f"{SVG}circle") if c.get("class") == "place"]
        bars = [r.get("class") for r in picture.iter(f"{SVG}rect")]
        lines = [p for p in picture.iter(f"{SVG}path") if p.get("class") == "arc"]
        names = {t.text for t in picture.iter(f"{SVG}text")}

        assert len(circles) == len(drawn.places)
        assert bars.count("immediate") == sum(t.immediate for t in drawn.transitions)
        assert bars.count("timed") + bars.count("immediate") == len(drawn.transitions)
        assert len(lines) == len(drawn.input_arcs) + len(drawn.output_arcs)
        assert names >= {*drawn.places, *(t.name for t in drawn.transitions)}

    @settings(max_examples=15)
    @given(forward_nets())
    def test_arcs_lead_to_the_right_and_nodes_lie_apart(self, drawn):
        """
        Within the picture's size, no two at one place.
        """
        plan = layout(drawn)

        assert all(plan.at[a][0] < plan.at[b][0] for a, b, _ in drawn.input_arcs)
        assert all(plan.at[a][0] < plan.at[b][0] for a, b, _ in drawn.output_arcs)
        assert len(set(plan.at.values())) == len(plan.at)
        assert all(0 < x < plan.width and 0 < y < plan.height for x, y in plan.at.values())

    def test_refuses_what_has_no_left_and_right(self):
        """
        A cycle, and a net that nobody could look at.
        """
        with pytest.raises(ModelError, match="with a cycle"):
            draw_svg(net({"t": (1.0, "p", "p")}, {"p": 1}))
        many = Net(tuple(f"p{i}" for i in range(MOST_NODES + 1)), (), (), ())
        with pytest.raises(ModelError, match="401 nodes are too many"):
            draw_svg(many)


@pytest.mark.parametrize("write", [draw_svg, write_pnml, write_pipe])
def test_names_are_no_markup(write):
    """
    Whatever a node or a net is called, the text is XML, and a name makes no element of it.
    """
    odd = Net((HOSTILE,), (Transition(f"t{HOSTILE}"),), ((HOSTILE, f"t{HOSTILE}", 1),), ())

    elements = ET.fromstring(write(odd, HOSTILE)).iter()

    assert "script" not in {e.tag.rpartition("}")[2] for e in elements}


@given(st.integers(2, 99))
def test_weights_are_labelled(weight):
    """
    An arc that takes several tokens says how many.
    """
    join = Net(("p",), (Transition("t"),), (("p", "t", weight),), (), {"p": weight})
    labels = [t.text for t in ET.fromstring(draw_svg(join)).iter(f"{SVG}text")]

    assert labels.count(str(weight)) == 2
