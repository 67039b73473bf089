"""
Tests for `harness.sim.petri`: what a net is, and what may fire.
"""

import pytest

from harness.errors import ModelError
from harness.sim.petri import Net, Transition
from tests.sim.nets import net

JOIN = Net(
    ("a", "b", "c"),
    (Transition("t", 1.0),),
    (("a", "t", 2), ("b", "t", 1)),
    (("t", "c", 3),),
    {"a": 2, "b": 1},
)


class TestFiring:
    def test_takes_and_puts_what_the_arcs_weigh(self):
        """
        Two from a, one from b, three into c.
        """
        assert JOIN.tokens(JOIN.fire(JOIN.marking(), 0)) == {"c": 3}

    @pytest.mark.parametrize(
        ("marking", "able"), [((2, 1, 0), [0]), ((1, 9, 0), []), ((9, 0, 0), [])]
    )
    def test_needs_enough_in_each_place(self, marking, able):
        """
        A transition is enabled by the weights of all its arcs.
        """
        assert JOIN.enabled(marking) == able

    def test_immediate_goes_first(self):
        """
        No time passes while an immediate transition is enabled.
        """
        both = net({"slow": (1.0, "a", "b"), "at_once": (0.0, "a", "c")}, {"a": 1})

        assert both.enabled(both.marking()) == [1]

    def test_parallel_arcs_are_one(self):
        """
        Two arcs of weight 1 take two tokens.
        """
        twice = Net(("a",), (Transition("t"),), (("a", "t", 1), ("a", "t", 1)), (), {"a": 1})

        assert twice.inputs == (((0, 2),),)
        assert twice.enabled((1,)) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"places": ("a", "a", "b", "c")}, "'a' names 2 nodes"),
        ({"places": ("a", "b", "t", "c")}, "'t' names 2 nodes"),
        ({"input_arcs": (("a", "u", 1),)}, "no nodes for the arc 'a' -> 'u'"),
        ({"output_arcs": (("c", "t", 1),)}, "no nodes for the arc 'c' -> 't'"),
        ({"input_arcs": (("a", "t", 0),)}, "'a' -> 't' of weight 0"),
        ({"input_arcs": ()}, "'t' has no input"),
        ({"transitions": (Transition("t", -1.0),)}, "'t' has mean -1.0"),
        ({"transitions": (Transition("t", float("nan")),)}, "'t' has mean nan"),
        ({"transitions": (Transition("t", 0.0, 0.0),)}, "weight 0.0"),
        ({"initial": {"z": 1}}, "1 tokens in 'z'"),
        ({"initial": {"a": -1}}, "-1 tokens in 'a'"),
    ],
)
def test_what_is_no_net_is_refused(change, complaint):
    """
    The error names the node or the arc.
    """
    whole = {
        "places": JOIN.places, "transitions": JOIN.transitions,
        "input_arcs": JOIN.input_arcs, "output_arcs": JOIN.output_arcs, "initial": JOIN.initial,
    }  # fmt: skip
    with pytest.raises(ModelError, match=complaint):
        Net(**whole | change)
