"""
Tests for `harness.sim.petri`: what a valid net is.
"""

import pytest

from harness.errors import ModelError
from harness.sim.petri import Net, Transition

JOIN = Net(
    ("a", "b", "c"),
    (Transition("t", 1.0),),
    (("a", "t", 2), ("b", "t", 1)),
    (("t", "c", 3),),
    {"a": 2, "b": 1},
)


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
def test_invalid_nets_are_refused(change, complaint):
    """
    The error names the node or the arc.
    """
    whole = {
        "places": JOIN.places, "transitions": JOIN.transitions,
        "input_arcs": JOIN.input_arcs, "output_arcs": JOIN.output_arcs, "initial": JOIN.initial,
    }  # fmt: skip
    with pytest.raises(ModelError, match=complaint):
        Net(**whole | change)
