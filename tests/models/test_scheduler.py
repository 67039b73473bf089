"""
Tests for `harness.models.scheduler`.
"""

import math

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.models.scheduler import schedule

times = st.floats(0, 100)
jobs = st.fixed_dictionaries(
    {
        "map_times_s": st.lists(times, max_size=25),
        "num_reduces": st.integers(0, 8),
        "shuffle_s": times,
        "after_shuffle_s": times,
        "map_slots": st.integers(1, 6),
        "reduce_slots": st.integers(1, 6),
        "slowstart": st.floats(0, 1),
        "pool": st.sampled_from(["separate", "shared"]),
        "task_overhead_s": st.floats(0, 5),
        "job_overhead_s": st.floats(0, 20),
    }
)


def job(**changes):
    """
    Five maps of 10 s on two slots, three reduces on two slots.
    """
    usual = {
        "map_times_s": [10.0] * 5, "num_reduces": 3, "shuffle_s": 5.0, "after_shuffle_s": 7.0,
        "map_slots": 2, "reduce_slots": 2, "slowstart": 0.05,
    }  # fmt: skip
    return usual | changes


def slow_schedule(  # noqa: PLR0917 - handed over by name
    map_times_s, num_reduces, shuffle_s, after_shuffle_s, map_slots, reduce_slots, slowstart,
    pool, task_overhead_s, job_overhead_s,
):  # fmt: skip
    """
    The seven steps of the specification, word for word.
    """
    free = [0.0] * map_slots
    finish = []
    for time in map_times_s:
        slot = free.index(min(free))
        free[slot] += task_overhead_s + time
        finish.append(free[slot])
    finish.sort()
    m, maps_end = len(finish), finish[-1] if finish else 0.0
    if num_reduces == 0:
        return [], maps_end + job_overhead_s
    need = math.ceil(slowstart * m - 1e-9)
    may_start = 0.0 if need <= 0 else finish[need - 1]
    slots = [0.0] * reduce_slots if pool == "separate" else free
    rows = []
    for _ in range(num_reduces):
        slot = slots.index(min(slots))
        start = max(slots[slot], may_start)
        c = start + task_overhead_s
        for f in finish:
            c = max(c, f) + shuffle_s / m
        rows.append((start, c, c + after_shuffle_s))
        slots[slot] = c + after_shuffle_s
    return rows, max([maps_end, *(end for *_, end in rows)]) + job_overhead_s


class TestSchedule:
    @given(jobs)
    def test_equals_the_steps_written_out(self, arguments):
        """
        Heap and closed form give what the specification's loops give.
        """
        rows, job_s = slow_schedule(**arguments)

        fast = schedule(**arguments)

        lists = zip(
            fast["reduce_start_s"], fast["shuffle_end_s"], fast["reduce_end_s"], strict=True
        )
        flat = [t for row in lists for t in row]
        assert flat == pytest.approx([t for row in rows for t in row], rel=1e-9, abs=1e-6)
        assert fast["job_s"] == pytest.approx(job_s, rel=1e-9, abs=1e-6)

    @given(jobs, st.floats(0.01, 100))
    def test_scales_with_all_times(self, arguments, c):
        """
        All times c times as long make a job c times as long.
        """
        scaled = dict(arguments, map_times_s=[c * t for t in arguments["map_times_s"]])
        for name in ("shuffle_s", "after_shuffle_s", "task_overhead_s", "job_overhead_s"):
            scaled[name] = c * arguments[name]

        assert schedule(**scaled)["job_s"] == pytest.approx(c * schedule(**arguments)["job_s"])

    @given(jobs)
    def test_job_ends_after_all_work(self, arguments):
        """
        No job is shorter than its work spread over all slots, nor than its longest chain.
        """
        answer = schedule(**arguments)
        work = sum(arguments["map_times_s"]) / arguments["map_slots"]

        assert answer["job_s"] >= work - 1e-6
        if arguments["num_reduces"]:
            chain = arguments["after_shuffle_s"] + answer["maps_end_s"]
            assert answer["job_s"] >= chain - 1e-6

    def test_no_maps_copy_nothing(self):
        """
        Without maps the shuffle takes no time.
        """
        answer = schedule(**job(map_times_s=[], num_reduces=1, task_overhead_s=2.0))

        assert (answer["map_waves"], answer["maps_end_s"]) == (0, 0.0)
        assert answer["shuffle_end_s"] == [2.0]
        assert answer["job_s"] == 9.0

    def test_gate_forgives_rounding(self):
        """
        0.07 x 100 is a little more than 7 in floats, and 7 maps open the gate.
        """
        answer = schedule(**job(map_times_s=list(range(1, 101)), map_slots=100, slowstart=0.07))

        assert answer["reduce_gate_s"] == 7.0

    def test_many_unused_slots_cost_nothing(self):
        """
        A slot that no task needs takes no memory.
        """
        answer = schedule(**job(map_slots=10**12, pool="shared"))

        assert (answer["map_waves"], answer["reduce_waves"]) == (1, 1)


def test_bracket_holds_both_pools():
    """
    In one pool the reduces wait for containers of maps, so that job is not the shorter one here.
    """
    separate, shared = (
        schedule(**job(reduce_slots=4, num_reduces=4, pool=pool)) for pool in ("separate", "shared")
    )

    assert separate["job_s"] < shared["job_s"]


def test_map_spans_follow_their_order():
    """
    Each map starts where a slot is free first.
    """
    result = schedule(**job(map_times_s=[3.0, 9.0, 4.0], map_slots=2, task_overhead_s=1.0))

    assert result["map_spans"] == [(0.0, 4.0), (0.0, 10.0), (4.0, 9.0)]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"map_slots": 0}, "map_slots"),
        ({"reduce_slots": 0}, "reduce_slots"),
        ({"slowstart": 1.1}, "slowstart"),
        ({"slowstart": float("nan")}, "slowstart"),
        ({"map_times_s": [1.0, -1.0]}, "map_times_s"),
        ({"map_times_s": [float("inf")]}, "map_times_s"),
        ({"num_reduces": -1}, "num_reduces"),
        ({"num_reduces": 1.5}, "num_reduces"),
        ({"shuffle_s": -1.0}, "shuffle_s"),
        ({"after_shuffle_s": float("nan")}, "after_shuffle_s"),
        ({"task_overhead_s": -1.0}, "task_overhead_s"),
        ({"job_overhead_s": "3"}, "job_overhead_s"),
        ({"pool": "both"}, "pool"),
    ],
)
def test_bad_input_is_named(changes, field):
    """
    What the specification refuses is refused by name.
    """
    with pytest.raises(ValueError, match=field):
        schedule(**job(**changes))


@pytest.mark.parametrize("changes", [{"pool": "shared"}, {"num_reduces": 0}])
def test_reduce_slots_count_only_where_used(changes):
    """
    One pool, or no reduces: reduce slots may be 0.
    """
    assert schedule(**job(reduce_slots=0, **changes))["job_s"] > 0
