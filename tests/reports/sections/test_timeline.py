"""
The section of schedules: tasks as they ran, above the same as models schedule them.
"""

import dataclasses
import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.core.reports.sections.timeline import in_lanes, schedule_figure
from harness.observe.pieces import Piece

TASKS = st.lists(
    st.builds(
        lambda start, length: Piece(start / 8, (start + length) / 8, "map"),
        st.integers(0, 200),
        st.integers(1, 80),
    ),
    max_size=30,
)


def busiest(tasks):
    """
    Most tasks that run at once.
    """
    return max((sum(o.start <= t.start < o.end for o in tasks) for t in tasks), default=0)


def first_figure(data):
    """
    The figure of the first timeline.
    """
    return schedule_figure(data, 0, data.timelines[0][0], [data.timelines[0][1]])


class TestLanes:
    @given(TASKS)
    def test_every_task_has_one_place(self, tasks):
        """
        Lanes hold all tasks, one after the other, and are no more than run at once.
        """
        lanes = in_lanes(tasks)

        assert sorted(t for lane in lanes for t in lane) == sorted(tasks)
        assert all(a.end <= b.start + 1e-6 for lane in lanes for a, b in itertools.pairwise(lane))
        assert len(lanes) == busiest(tasks)


class TestFigure:
    def test_models_stand_below_the_measured_job(self, whole):
        """
        The last task of the measured job and of each model's schedule.
        """
        rows = [tuple(v.text for v in row) for row in first_figure(whole).data.rows]

        assert [name for name, _ in rows] == ["measured", "whatif", "whatif-mr2"]
        assert [end for _, end in rows[1:]] == ["9.00", "9.00"]

    def test_nothing_is_drawn_without_a_prediction(self, whole):
        """
        A measured job alone is the timeline's matter.
        """
        assert first_figure(dataclasses.replace(whole, predictions=())) is None
