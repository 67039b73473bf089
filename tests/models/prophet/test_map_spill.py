"""
Tests for `harness.models.prophet.map_spill`.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ModelError
from harness.models.prophet.map_spill import map_and_spill, waiting_for_spill_s

TIMES = (
    "sort_s_per_record", "combine_s_per_record", "spill_write_s_per_byte", "map_s_per_record",
    "map_while_spilling_s_per_record",
)  # fmt: skip
costs = st.floats(1e-9, 1e-4)


def given_of(*, machines=1, **fields):
    """
    128 MiB of records of 100 bytes in a buffer of 50 MB; every list equal on all *machines*.
    """
    values = {
        "map_records_selectivity": 1.0,
        "map_bytes_selectivity": 1.0,
        "sort_s_per_record": 1e-6,
        "combine_s_per_record": 0.0,
        "spill_write_s_per_byte": 1e-8,
        "combine_bytes_selectivity": 1.0,
        "map_s_per_record": 4e-6,
        "map_while_spilling_s_per_record": 5e-6,
    }
    lists = {n: [fields.pop(n, v)] * machines for n, v in values.items()}
    task = {"map_in_records": 1342177.28, "map_in_bytes": 134217728.0, "sort_buffer_mb": 50}
    return task | {"sort_spill_percent": 0.8} | lists | fields


def simulated(records, cost, beside, spill_s, *, full, room):
    """
    The map function and the spill thread, a record after the other: the end of the last flush.

    *spill_s* is a function of the number of records in a spill.
    """
    now, started, running_until, waiting = 0.0, 0, 0.0, 0
    for done in range(1, records + 1):
        if running_until > now and done - started > room:
            now = running_until  # the buffer is full
        now += beside if running_until > now else cost
        waiting = done - started
        if waiting >= full and done < records and running_until <= now:
            started, running_until = done, now + spill_s(waiting)
    return max(now, running_until) + spill_s(records - started)


class TestAgainstSimulation:
    @pytest.mark.parametrize("spill_cost", [1e-6, 30e-6])
    def test_record_by_record(self, spill_cost):
        """
        Whether the map function waits for spills or not, (1) is the end of the last flush.
        """
        records, full = 20_000, 3613
        task = given_of(
            map_in_records=records, map_in_bytes=100.0 * records, sort_buffer_mb=0.5,
            sort_s_per_record=spill_cost, spill_write_s_per_byte=0.0,
        )  # fmt: skip

        answer = map_and_spill(task)
        expected = simulated(records, 4e-6, 5e-6, lambda n: n * spill_cost, full=full,
                             room=answer["headroom_records"])  # fmt: skip

        assert answer["records_per_spill"] >= full
        assert answer["map_and_spill_s"] == pytest.approx(expected, rel=0.01)


class TestMapAndSpill:
    @given(st.floats(1e-7, 1e-4), st.integers(1, 5))
    def test_branches_meet(self, cost, machines):
        """
        Where a spill lasts exactly as long as the buffer has room, sleeping or not is the same.
        """
        task = given_of(machines=machines, map_while_spilling_s_per_record=cost,
                        spill_write_s_per_byte=0.0)  # fmt: skip
        probe = map_and_spill(task)
        per_record = probe["map_while_one_spill_s"] / probe["records_per_spill"]
        ends = [
            map_and_spill({**task, "sort_s_per_record": [per_record * f] * machines})
            for f in (1 - 1e-9, 1 + 1e-9)
        ]

        assert [e["main_thread_sleeps"] for e in ends] == [False, True]
        assert ends[0]["map_and_spill_s"] == pytest.approx(ends[1]["map_and_spill_s"], rel=1e-6)

    @given(st.fixed_dictionaries(dict.fromkeys(TIMES, costs)), st.floats(1e-3, 1e3))
    def test_units_cancel(self, times, factor):
        """
        Seconds scaled by a factor scale every time by it.
        """
        one = map_and_spill(given_of(**times))
        scaled = map_and_spill(given_of(**{n: v * factor for n, v in times.items()}))

        for name in ("map_and_spill_s", "spill_s", "last_spill_s", "map_s", "overlap_s"):
            assert scaled[name] == pytest.approx(one[name] * factor, rel=1e-9)

    @given(st.fixed_dictionaries(dict.fromkeys(TIMES, costs)), st.floats(1, 10))
    def test_a_slower_part_never_helps(self, times, factor):
        """
        More expensive sorting and writing lengthen the task.
        """
        slow = {n: v * factor if n in TIMES[:3] else v for n, v in times.items()}
        if times["map_while_spilling_s_per_record"] < times["map_s_per_record"]:
            return

        one, other = (map_and_spill(given_of(**t))["map_and_spill_s"] for t in (times, slow))

        assert other >= one * (1 - 1e-9)

    def test_machines_count_by_the_ratio_of_means(self):
        """
        A statistic over another is the ratio of sums, not the mean of ratios (P10).
        """
        task = given_of(machines=2) | {
            "map_records_selectivity": [0.5, 1.5],
            "map_while_spilling_s_per_record": [2e-6, 8e-6],
        }
        answer = map_and_spill(task)

        a = (2e-6 + 8e-6) / (0.5 + 1.5)
        assert answer["map_while_one_spill_s"] == pytest.approx(answer["headroom_records"] * a)

    def test_a_record_wider_than_the_buffer_is_a_spill(self):
        """
        Ten records of a MiB in a buffer of half of one: ten spills.
        """
        answer = map_and_spill(
            given_of(map_in_records=10, map_in_bytes=10 * 2.0**20, sort_buffer_mb=0.5)
        )

        assert (answer["records_per_spill"], answer["num_spills"]) == (1, 10)

    def test_flush_waits_for_the_spill_that_is_running(self):
        """
        Few records after the last spill's start: the map function ends before it does.
        """
        answer = map_and_spill(given_of(map_in_records=1.1e6, map_in_bytes=1.1e8))
        beside = answer["last_spill_records"] * 5e-6

        assert waiting_for_spill_s(answer) == pytest.approx(answer["one_spill_s"] - beside)
        assert waiting_for_spill_s(map_and_spill(given_of())) == 0


class TestDefaults:
    def test_no_combiner_and_no_cost_of_spilling(self):
        """
        Absent: combining 0, bytes unchanged, the map function as fast beside spills.
        """
        absent = ("combine_s_per_record", "combine_bytes_selectivity",
                  "map_while_spilling_s_per_record")  # fmt: skip
        full = given_of(map_while_spilling_s_per_record=4e-6)

        assert map_and_spill({n: v for n, v in full.items() if n not in absent}) == map_and_spill(
            full
        )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("map_s_per_record", []),
        ("map_s_per_record", 1e-6),
        ("map_s_per_record", [1e-6, 1e-6]),
        ("sort_s_per_record", [-1e-6]),
        ("spill_write_s_per_byte", [math.nan]),
        ("map_while_spilling_s_per_record", [0.0]),
        ("map_in_records", -1),
        ("map_in_bytes", math.inf),
        ("sort_spill_percent", 0),
        ("sort_spill_percent", 1.5),
        ("combine_bytes_selectivity", "1"),
    ],
)
def test_refuses_by_name(field, value):
    """
    Bad input is never answered, and the error names the field.
    """
    task = given_of() | {field: value}
    if isinstance(value, list) and len(value) == 2:
        field = "map_records_selectivity"  # the first list of another length

    with pytest.raises(ModelError, match=field):
        map_and_spill(task)


@pytest.mark.parametrize("field", ["map_in_records", "map_s_per_record", "sort_s_per_record"])
def test_refuses_what_is_missing(field):
    """
    No statistic without a default is taken from nowhere.
    """
    task = given_of()
    del task[field]

    with pytest.raises(ModelError, match=f"{field} is missing"):
        map_and_spill(task)


@pytest.mark.parametrize(
    ("fields", "text"),
    [({"sort_spill_percent": 0.4}, "below 0.5"), ({"map_s_per_record": 6e-6}, "noise")],
)
def test_warns_outside_validity(fields, text):
    """
    The equations are evaluated, and the answer says where they do not hold.
    """
    assert any(text in w for w in map_and_spill(given_of(**fields))["warnings"])


def test_too_large_numbers_are_refused():
    """
    An infinite count is no number of spills.
    """
    with pytest.raises(ModelError, match="not finite"):
        map_and_spill(given_of(map_in_records=1e308, map_records_selectivity=1e10))
