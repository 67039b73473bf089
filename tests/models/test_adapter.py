"""
Tests for `harness.models.adapter`: the inputs that a cell gives to all models.
"""

from dataclasses import MISSING, fields

import pytest

from harness.base.errors import ModelError
from harness.models.adapter import cell_inputs, inputs_of_cell, profile_number
from harness.models.prophet.tasks import Plan
from harness.models.whatif.inputs import ClusterSize, Config
from tests.contracts.profiles import profile_of
from tests.models import profiled


@pytest.mark.parametrize("record", [Config, Plan])
def test_a_cell_gives_each_input_that_has_no_default(record):
    """
    But the times, which follow from the profile.
    """
    inputs = cell_inputs(*profiled.cell_inputs())
    needed = {field.name for field in fields(record) if field.default is MISSING}

    assert needed - {"map_task_s"} <= inputs.keys()


def test_all_slots_are_those_of_one_node():
    """
    What-If multiplies slots by nodes, and a limit on the cluster may lessen them.
    """
    *_, nodes = inputs_of_cell(profile_of(), *profiled.cell_inputs(slots=3))

    assert ClusterSize(**nodes) == ClusterSize(
        num_nodes=1, map_slots_per_node=3, reduce_slots_per_node=3
    )


class TestProfileNumber:
    """
    `profile_number`.
    """

    def test_is_0_where_the_profile_has_none(self):
        """
        What must not be taken as 0 is refused before, by name.
        """
        assert profile_number(profile_of(), "task_gap_s", None) == 0.0

    def test_names_what_it_refuses(self):
        """
        The statistic, and the profile that has it.
        """
        with pytest.raises(ModelError, match=r"task_gap_s = -1\.0 .*\n.*profile of 'example'"):
            profile_number(profile_of(), "task_gap_s", profiled.stat(-1.0))
