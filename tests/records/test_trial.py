"""
Tests for `harness.base.records.trial`: limits of nodes, and what an id stands for.
"""

import hashlib
import re

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.records.trial import (
    CONTROLS,
    Cell,
    ClusterSpec,
    Hardware,
    NodeSpec,
    Versions,
    WorkloadSpec,
    digest,
    format_control,
    requested_controls,
    trial_id,
)

VERSIONS = Versions(hadoop="3.5.0", java="17", jars={"a.jar": "00"})
# Ids of that cell, of its cluster, and of its first trial, with that version of ids.
IDS = ("69519f9cf19f619b", "8532d904c9bb4e39", "3862093d5ddbf40d")
CELL = Cell(cluster=ClusterSpec(), workload=WorkloadSpec(name="sort", input_bytes=1))
LIMITS = st.none() | st.integers(1, 2**40)
HARDWARE = st.builds(
    Hardware,
    cores=st.none() | st.floats(0.05, 100.0),
    disk_bytes_per_s=LIMITS,
    network_bytes_per_s=LIMITS,
    memory_bytes=LIMITS,
)


class TestHardware:
    @given(every=HARDWARE, own=HARDWARE)
    def test_a_worker_has_its_own_limits_before_those_of_all(self, every, own):
        """
        Limit by limit: one that a worker lacks is that of all nodes; other workers have no other.
        """
        spec = ClusterSpec(node=NodeSpec(**every.limits()), nodes={"worker2": own})

        expected = {
            name: every.limits()[name] if value is None else value
            for name, value in own.limits().items()
        }
        assert spec.hardware("worker2") == Hardware(**expected)
        assert spec.hardware("worker1") == every
        assert spec.limited == (every.limited or own.limited)

    def test_names_of_limits_are_the_fields(self):
        """
        The memory of a task and the slots of a node limit no hardware.
        """
        limits = NodeSpec(cores=0.5, task_memory_bytes=7, gpus=1).limits()

        assert limits == {"cores": 0.5} | dict.fromkeys(list(CONTROLS)[1:])


class TestControls:
    @given(HARDWARE)
    def test_each_limited_field_requests_all_of_its_controls(self, hardware):
        """
        A disk is limited where it is read and where it is written, a network in each direction.
        """
        expected = {
            control: float(getattr(hardware, field))
            for field, controls in CONTROLS.items()
            for control in controls
            if getattr(hardware, field) is not None
        }

        assert requested_controls(hardware) == expected

    @pytest.mark.parametrize(
        ("control", "rate", "text"),
        [
            ("cores", 0.51234, "0.512 cores"),
            ("disk_write", 5 * 2**20, "5 MiB/s"),
            ("network_in", 1_000_000, "8 Mbit/s"),
        ],
    )
    def test_rates_for_people(self, control, rate, text):
        """
        Cores in cores, disks in bytes, networks in bits per second.
        """
        assert format_control(control, rate) == text


class TestIds:
    def test_digest_is_that_of_canonical_json(self):
        """
        Keys sorted, no spaces, letters outside ASCII escaped: other programs can reproduce it.
        """
        expected = hashlib.sha256(rb'{"a":[1,"\u00e9"],"b":null}').hexdigest()[:16]

        assert digest({"b": None, "a": [1, "é"]}) == expected

    def test_every_part_of_an_outcome_changes_the_id(self):
        """
        Cell, repetition and versions; the same parts give the same id.
        """
        other_cell = CELL.model_copy(update={"configuration": {"x": "1"}})
        ids = [
            trial_id(CELL, 0, VERSIONS),
            trial_id(CELL, 1, VERSIONS),
            trial_id(other_cell, 0, VERSIONS),
            trial_id(CELL, 0, VERSIONS.model_copy(update={"java": "21"})),
        ]

        assert len(set(ids)) == 4
        assert ids[0] == trial_id(CELL.model_copy(), 0, VERSIONS.model_copy())
        assert all(re.fullmatch("[0-9a-f]{16}", each) for each in ids)

    def test_ids_are_those_of_stored_runs(self):
        """
        A changed id would measure every stored trial again: then `ID_VERSION` has to change, too.
        """
        assert (CELL.id, CELL.cluster.id, trial_id(CELL, 0, VERSIONS)) == IDS

    def test_an_exposed_cluster_is_another_one(self):
        """
        Its trials are no repetitions of those on a fenced one.
        """
        exposed = CELL.cluster.model_copy(update={"exposed": True})

        assert exposed.id != CELL.cluster.id
        assert ClusterSpec.model_validate_json(exposed.model_dump_json()) == exposed
