"""
The contract of every model of `MODELS`.
"""

import math
import random

import numpy as np
import pytest

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.core.evaluate.contract import model_complaints
from harness.models import MODELS, has_equations
from tests.contracts.profiles import MIB, NAMES, profile_of
from tests.models.profiled import cell_inputs

costs = st.floats(1e-10, 1e-6)
# Each of their answers takes 2,000 runs of a net: hundreds of answers take seconds.
NETS = {"spn-gc", "spn-gc-mr2"}
pytestmark = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.process] * (name in NETS)) for name in MODELS]
)


@st.composite
def cells(draw):
    """
    Cells of an experiment: configuration, cluster, input.
    """
    slots, nodes = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    maps, split = draw(st.integers(1, 200)), draw(st.integers(MIB, 256 * MIB))
    config = JobConfig(
        num_reduces=draw(st.integers(1, 40)),
        sort_buffer_mb=draw(st.sampled_from([1, 16, 100, 512])),
        merge_factor=draw(st.integers(2, 100)),
        reduce_slowstart=draw(st.floats(0, 1)),
    )
    cluster = Cluster(
        num_nodes=nodes, map_slots_per_node=slots, reduce_slots_per_node=slots,
        map_slots=nodes * slots, reduce_slots=nodes * slots,
    )  # fmt: skip
    size = JobInput(input_bytes=maps * split, num_files=maps, num_splits=maps, split_bytes=split)
    return config, cluster, size


def seconds(answer):
    """
    Every time that a prediction holds.
    """
    single = (answer.body_s, answer.published_s, answer.map_task_s, answer.reduce_task_s)
    spans = (t for span in answer.timeline for t in (span.start_s, span.end_s))
    several = (answer.phases, answer.measurable, answer.estimates)
    return [*single, *spans, *(t for times in several for t in times.values())]


def _random_state():
    legacy = np.random.get_state()  # noqa: NPY002 - the state that libraries share
    return random.getstate(), legacy[1].tolist(), legacy[2]


@given(cost=costs, cell=cells())
def test_times_are_finite_and_not_negative(name, cost, cell):
    """
    An answer is a time; what is no time is not an answer.
    """
    answer = MODELS[name].predict(profile_of(cost), *cell)

    assert answer.body_s > 0
    assert answer.published_s > 0
    assert all(math.isfinite(s) and s >= 0 for s in seconds(answer) if s is not None)


def test_the_law_of_combiners_is_of_the_model_that_is_named_for_it(name):
    """
    Who knows how what a combiner leaves grows answers as if he did not, but for What-If under
    mr2 rules, alone or over many cells: no other model has an equation for it.
    """
    exponents = {"combine_bytes_exponent": 0.0, "combine_records_exponent": 0.0}
    shares = {"combine_bytes_selectivity": 0.3, "combine_records_selectivity": 0.3}
    without_law = profile_of(without=("records_per_combine", *exponents))
    with_law = profile_of()
    profiles = []
    for values in (shares, shares | exponents | {"records_per_combine": 1000.0}):
        some = with_law if len(values) > 2 else without_law
        changed = {
            key: with_law.statistics[key].model_copy(update={"value": value})
            for key, value in values.items()
        }
        profiles.append(some.model_copy(update={"statistics": some.statistics | changed}))
    cell = cell_inputs(num_reduces=2, use_combiner=True, sort_buffer_mb=2)

    bodies_s = [MODELS[name].predict(some, *cell).body_s for some in profiles]
    assert (bodies_s[0] != bodies_s[1]) == (name == "whatif-mr2")
    if of_fields := getattr(MODELS[name], "bodies", None):
        fields = {"num_maps": np.array([8]), "split_bytes": np.array([16.0 * MIB])}
        grids = [of_fields(some, cell, fields).tolist() for some in profiles]
        assert (grids[0] != grids[1]) == (name == "whatif-mr2")


@settings(max_examples=15)
@given(first=cells(), second=cells())
def test_order_of_calls_does_not_matter(name, first, second):
    """
    A model keeps nothing from one call to the next.
    """
    profile = profile_of()
    one = [MODELS[name].predict(profile, *q) for q in (first, second)]
    other = [MODELS[name].predict(profile, *q) for q in (second, first)]

    assert one == other[::-1]


@settings(max_examples=10)
@given(cell=cells())
def test_nothing_is_changed(name, cell):
    """
    Neither what it was given nor the random numbers of others.
    """
    profile = profile_of()
    before = profile.model_dump_json(), _random_state()

    MODELS[name].predict(profile, *cell)

    assert (profile.model_dump_json(), _random_state()) == before


@given(cell=cells())
def test_more_input_takes_no_less_time(name, cell):
    """
    Twice the splits of the same size.
    """
    config, cluster, size = cell
    twice = JobInput(
        input_bytes=2 * size.input_bytes, num_files=2 * size.num_files,
        num_splits=2 * size.num_splits, split_bytes=size.split_bytes,
    )  # fmt: skip

    small, large = (MODELS[name].predict(profile_of(), config, cluster, s) for s in (size, twice))

    # Another profiling cell may be nearest, with other slots.
    assume(name != "scaling" or small.warnings[0] == large.warnings[0])
    assert large.body_s >= small.body_s * (1 - 1e-9)


@settings(max_examples=15)
@given(cell=cells(), cost=costs, factor=st.floats(1.0, 10.0))
def test_a_slower_machine_takes_no_less_time(name, cell, cost, factor):
    """
    All costs of all phases grow.  What baselines learnt are whole jobs: of a body without its frame
    there is a tenth of the job at least, and a line through such bodies need not grow.
    """
    fast, slow = (MODELS[name].predict(profile_of(c), *cell) for c in (cost, cost * factor))
    learnt = "body_s" if has_equations(MODELS[name]) else "published_s"

    assert getattr(slow, learnt) >= getattr(fast, learnt) * (1 - 1e-9)


@settings(max_examples=10)
@given(cell=cells())
def test_is_a_record(name, cell):
    """
    A prediction that was written down and read again is the same.
    """
    answer = MODELS[name].predict(profile_of(), *cell)

    assert (answer.model, answer.cell) == (name, "")
    assert Prediction.model_validate_json(answer.model_dump_json()) == answer


@settings(max_examples=5)
@given(cell=cells())
def test_names_every_statistic_that_it_requires(name, cell):
    """
    Without one of `required` there is no answer but its name; all else may be missing.
    """
    required = MODELS[name].required
    others = NAMES - required  # of these some may stand in for a required one
    for missing in sorted(required):
        with pytest.raises(MissingStatistic) as refused:
            MODELS[name].predict(profile_of(without={missing, *others}), *cell)
        assert refused.value.names == (missing,)

    assert MODELS[name].predict(profile_of(without=others), *cell).body_s > 0


def test_check_finds_nothing(name):
    """
    What `harness check` asks of a user's model, ours keeps.
    """
    assert [*model_complaints(MODELS[name])] == []
