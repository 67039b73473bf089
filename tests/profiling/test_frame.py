"""The frame as measured: what the history, spans and logs show of it, of many jobs and of one."""

from dataclasses import replace

import pytest

from harness.base.records.profile import FRAME, SpeedCorrection, Statistic
from harness.base.records.tasks import MapTimes, ReduceTimes
from harness.observe.profiling import fit_profile
from harness.observe.profiling.frame import jvm_ends, measure_frame, task_ends
from tests.profiling.jobs import COSTS, observation

FAST = SpeedCorrection(reference_rate=100.0, coefficient=1.0, gain=0.5, count=9)
STARTS = ("map_start_s", "map_end_s", "reduce_start_s", "reduce_end_s")


def stat(value):
    """A statistic of which only the value matters."""
    return Statistic(value=value, count=1, spread=0.0, source="test")


def with_ends(made, source="spans", start_s=1.25, end_s=0.25):
    """The same job, of whose tasks *source* shows start and end."""
    rows = []
    for attempt in made.trace.attempts:
        of = (attempt.attempt_id, source, "w1", 0, ())
        ends = {"start_up_s": start_s, "end_s": end_s}
        rows.append(
            MapTimes(*of, **ends) if attempt.kind == "map" else ReduceTimes(*of, (), **ends)
        )
    return replace(made, task_times=(*made.task_times, *rows))


def values(*made, **more):
    """Parts of the frame of jobs."""
    return {name: part.value for name, part in measure_frame(made, **more).items()}


class TestHistory:
    """What lies between tasks."""

    def test_shows_what_lies_between_tasks(self):
        """
        2 s before and 1.5 s behind all tasks, 0.7 s between two; reduces start with no gap.
        """
        shown = values(observation(maps=5, gap=0.7))

        assert shown == pytest.approx(
            {"job_start_s": 2.0, "job_end_s": 1.5, "task_gap_s": 0.7, "reduce_gap_s": 0.0}
        )

    def test_reduces_that_start_early_show_no_gap(self):
        """
        It would be negative, which is no time.
        """
        assert "reduce_gap_s" not in values(observation(slowstart_wait=2.0))

    def test_one_wave_shows_no_gap_between_tasks(self):
        """
        Nor do jobs that ran more tasks at once than there are slots.
        """
        made = observation(maps=5)
        tight = replace(made, cluster=made.cluster.model_copy(update={"map_slots": 1}))

        assert "task_gap_s" not in values(observation(maps=2))
        assert "task_gap_s" not in values(tight)

    def test_is_brought_to_reference_speed(self):
        """
        A machine of half the speed takes twice as long.
        """
        slow = observation(maps=5, gap=0.7, rate=50.0)

        assert values(slow, speed=FAST) == pytest.approx(
            {name: seconds / 2 for name, seconds in values(slow).items()}
        )


class TestEnds:
    """Start and end of the JVM around a task's work."""

    def test_are_medians_over_tasks_of_a_kind(self):
        """
        With their count and where they come from.
        """
        frame = measure_frame([with_ends(observation(maps=4, reduces=2))])

        assert {n: (frame[n].value, frame[n].count) for n in STARTS} == {
            "map_start_s": (1.25, 4), "map_end_s": (0.25, 4),
            "reduce_start_s": (1.25, 2), "reduce_end_s": (0.25, 2),
        }  # fmt: skip
        assert frame["map_start_s"].source == "spans: median"

    def test_spans_before_logs(self):
        """
        A task counts once.
        """
        both = with_ends(with_ends(observation(), "logs", 9.0, 9.0))

        assert {source for *_, source in task_ends(both).values()} == {"spans"}
        assert values(both)["map_start_s"] == 1.25
        assert values(with_ends(observation(), "logs", 9.0, 9.0))["map_start_s"] == 9.0

    @pytest.mark.parametrize("ends", [(None, 0.2), (1.0, None), (-0.1, 0.2), (1.0, -0.1)])
    def test_of_which_one_is_not_known_say_nothing(self, ends):
        """
        Nor where the clocks of two hosts contradict.
        """
        assert not set(STARTS) & set(values(with_ends(observation(), "spans", *ends)))

    def test_that_nothing_shows_are_those_of_the_fit(self):
        """
        Assumed, and by their name; without a fitted cost they are absent.
        """
        costs = {"setup_cpu_s": stat(1.2), "cleanup_cpu_s": stat(0.3)}
        frame = measure_frame([observation()], costs=costs)

        assert {n: frame[n].value for n in STARTS} == {
            "map_start_s": 1.2, "map_end_s": 0.3, "reduce_start_s": 1.2, "reduce_end_s": 0.3,
        }  # fmt: skip
        assert all(frame[n].assumed and "setup" in frame[n].source for n in STARTS[::2])
        assert not set(STARTS) & set(measure_frame([observation()]))

    def test_stand_in_the_profile(self):
        """
        A profile without tracer has the fitted ones, one without any cost says what is absent.
        """
        profile = fit_profile("w", [observation(r) for r in (100_000, 200_000, 300_000)])
        packed = fit_profile("w", [observation(map_output_compressed=True)])

        assert profile.frame["map_start_s"].value == pytest.approx(COSTS["setup_cpu_s"], rel=0.01)
        assert profile.frame["map_start_s"].assumed
        assert set(packed.frame) & set(STARTS) == set()
        assert [w for w in packed.warnings if "map_start_s" in w]
        assert packed.jobs[0].body_s is None

    def test_are_within_the_shortest_task_where_they_are_fitted(self):
        """
        Both of a kind together nine tenths of it, in the ratio of the fit.
        """
        costs = {"setup_cpu_s": stat(300.0), "cleanup_cpu_s": stat(100.0)}
        job = observation()
        shortest_s = min(attempt.duration_s for attempt in job.trace.succeeded("map"))

        frame = measure_frame([job], costs=costs)

        assert frame["map_start_s"].value == pytest.approx(0.75 * 0.9 * shortest_s)
        assert frame["map_end_s"].value == pytest.approx(0.25 * 0.9 * shortest_s)
        assert "within the shortest task" in frame["map_end_s"].source


class TestJvmEnds:
    """Start and end of each attempt's JVM, and where a job has them from."""

    def test_need_nothing_of_the_profile(self):
        """
        Where the job shows them itself.
        """
        made = with_ends(observation(maps=4))

        ends, borrowed = jvm_ends(made, dict.fromkeys(FRAME, stat(99.0)))

        assert set(ends.values()) == {(1.25, 0.25)}
        assert borrowed == ()

    def test_an_attempt_that_shows_none_has_those_of_its_job(self):
        """
        Before those of the profile, as a failed one has no recording to its end.
        """
        made = with_ends(observation(maps=4))
        first, *others = made.task_times
        partly = replace(made, task_times=tuple(others))

        ends, borrowed = jvm_ends(partly, dict.fromkeys(FRAME, stat(99.0)))

        assert (ends[first.attempt_id], borrowed) == ((1.25, 0.25), ())

    def test_are_borrowed_where_the_job_shows_none(self):
        """
        By name; at the machine's speed during the job.
        """
        made = observation(rate=50.0)

        ends, borrowed = jvm_ends(made, {name: stat(0.5) for name in STARTS}, FAST)

        assert set(ends.values()) == {(1.0, 1.0)}
        assert borrowed == STARTS

    def test_are_unknown_where_nothing_shows_both(self):
        """
        A start without an end bounds no task.
        """
        assert jvm_ends(observation(), {}) == ({}, ())
        assert jvm_ends(observation(), {"map_start_s": stat(1.0)}) == ({}, ())

    def test_an_uberized_job_has_no_jvm_for_its_tasks(self):
        """
        They run in that of its application master.
        """
        made = observation()
        uber = replace(made, trace=replace(made.trace, uberized=True))

        ends, borrowed = jvm_ends(uber, dict.fromkeys(FRAME, stat(99.0)))

        assert (set(ends.values()), borrowed) == ({(0.0, 0.0)}, ())
        assert len(ends) == len(made.trace.attempts)
