"""
Small nets for the tests of the engine.
"""

from collections import Counter

from hypothesis import strategies as st

from harness.models.sim.petri import Net, Transition

means = st.one_of(st.just(0.0), st.floats(0.1, 10.0))


def net(arrows, initial):
    """
    A net written as {transition: (mean, "a b", "c")}: one token per place that is named.
    """
    inputs = [(p, t, 1) for t, (_, before, _) in arrows.items() for p in before.split()]
    outputs = [(t, p, 1) for t, (_, _, after) in arrows.items() for p in after.split()]
    named = dict.fromkeys([*(p for p, _, _ in inputs), *(p for _, p, _ in outputs), *initial])
    nodes = [Transition(t, mean) for t, (mean, _, _) in arrows.items()]
    return Net(tuple(named), tuple(nodes), tuple(inputs), tuple(outputs), initial)


@st.composite
def forward_nets(draw):
    """
    A net whose tokens only move forward, so that each run ends: forks, joins, conflicts, weights.
    """
    size = draw(st.integers(3, 5))
    places = [f"p{i}" for i in range(size)]
    nodes, inputs, outputs = [], [], []
    for i in range(draw(st.integers(2, 5))):
        first = draw(st.integers(0, size - 2))
        before = draw(st.sets(st.integers(0, first), min_size=1, max_size=2))
        after = draw(st.sets(st.integers(max(before) + 1, size - 1), max_size=2))
        nodes.append(Transition(f"t{i}", draw(means)))
        inputs += [(places[p], f"t{i}", draw(st.integers(1, 2))) for p in sorted(before)]
        outputs += [(f"t{i}", places[p], 1) for p in sorted(after)]
    initial = {"p0": draw(st.integers(1, 3)), "p1": draw(st.integers(0, 2))}
    return Net(tuple(places), tuple(nodes), tuple(inputs), tuple(outputs), initial)


def grouped(net, arcs):
    """
    For each transition the (place, weight) of its arcs by position; parallel arcs are one.
    """
    places = {name: index for index, name in enumerate(net.places)}
    transitions = {node.name: index for index, node in enumerate(net.transitions)}
    weights = [Counter() for _ in net.transitions]
    for transition, place, weight in arcs:
        weights[transitions[transition]][places[place]] += weight
    return [tuple(sorted(counter.items())) for counter in weights]


def inputs(net):
    """
    For each transition the (place, weight) that it takes from.
    """
    return grouped(net, [(target, source, weight) for source, target, weight in net.input_arcs])


def outputs(net):
    """
    For each transition the (place, weight) that it puts into.
    """
    return grouped(net, net.output_arcs)


def enabled(net, marking):
    """
    Transitions that may fire next: immediate ones alone, where there are any.
    """
    able = [
        index
        for index, arcs in enumerate(inputs(net))
        if all(marking[place] >= weight for place, weight in arcs)
    ]
    return [index for index in able if net.transitions[index].mean == 0] or able


def fire(net, marking, transition):
    """
    Marking after *transition*, which is enabled, has fired.
    """
    after = list(marking)
    for place, weight in inputs(net)[transition]:
        after[place] -= weight
    for place, weight in outputs(net)[transition]:
        after[place] += weight
    return tuple(after)


def tokens(net, marking):
    """
    Tokens by place, empty places left out.
    """
    return {name: count for name, count in zip(net.places, marking, strict=True) if count}
