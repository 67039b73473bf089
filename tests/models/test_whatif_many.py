"""
Many cells at once: What-If's grid says what it says of each cell.
"""

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.prediction import Cluster, JobConfig, JobInput
from harness.base.records.profile import Profile
from harness.models import MODELS
from harness.models.whatif.inputs import COSTS
from tests.models.profiled import MIB, cell_inputs, stat

COUNTED = ("body_s", "map_task_s", "reduce_task_s", "map_waves", "reduce_waves")
VARIANTS = ("whatif", "whatif-printed", "whatif-mr2")
flags = st.booleans()


@st.composite
def cells(draw):
    """
    A cell with any number of maps and reduces, map-only ones too, on any number of slots.
    """
    slots, splits = [draw(st.integers(1, 9)) for _ in range(2)], draw(st.integers(1, 60))
    nodes = dict(zip(("map_slots", "reduce_slots"), slots, strict=True))
    split_bytes = draw(st.integers(1, 256)) * float(MIB)
    configuration = JobConfig(
        num_reduces=draw(st.integers(0, 20)),
        sort_buffer_mb=draw(st.integers(1, 500)),
        merge_factor=draw(st.integers(2, 20)),
        reduce_slowstart=draw(st.sampled_from([0.0, 0.05, 0.37, 0.8, 1.0])),
        map_output_compressed=draw(flags),
        use_combiner=draw(flags),
    )
    size = JobInput(
        input_bytes=int(splits * split_bytes),
        num_files=splits, num_splits=splits, split_bytes=split_bytes,
    )  # fmt: skip
    per_node = {f"{name}_per_node": count for name, count in nodes.items()}
    return configuration, Cluster(num_nodes=1, **nodes, **per_node), size


def known(without="", **costs):
    """
    A profile with every cost, each of another size.
    """
    given = {name: 1e-8 * (place + 1) for place, name in enumerate(COSTS)} | costs
    return Profile(
        workload="w",
        statistics={"input_record_bytes": stat(100.0), "map_records_selectivity": stat(1.3)},
        costs={name: stat(value) for name, value in given.items() if name != without},
    )


@pytest.mark.parametrize("name", VARIANTS)
@given(several=st.lists(cells(), min_size=1, max_size=8))
def test_many_are_as_one_by_one(name, several):
    """
    Bodies, tasks, waves and phases; whatever other cells are asked of beside them.
    """
    profile = known()
    for inputs, many in zip(several, MODELS[name].predict_many(profile, several), strict=True):
        one = MODELS[name].predict(profile, *inputs)
        assert many.phases == pytest.approx(one.phases, rel=1e-9)
        assert [getattr(many, each) for each in COUNTED] == [
            None if getattr(one, each) is None else pytest.approx(getattr(one, each), rel=1e-9)
            for each in COUNTED
        ]


def test_one_that_is_refused_refuses_all():
    """
    As does a statistic that one of them needs.
    """
    inputs = [cell_inputs(), cell_inputs(merge_factor=1)]
    with pytest.raises(ModelError, match="merge_factor"):
        list(MODELS["whatif"].predict_many(known(), inputs))
    with pytest.raises(MissingStatistic, match="network_s_per_byte"):
        list(MODELS["whatif"].predict_many(known("network_s_per_byte"), inputs[:1]))
