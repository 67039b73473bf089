"""Recordings of tasks as tables, and back."""

from dataclasses import asdict

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.base.records.tasks import RecordLoop, Span, TaskSpans, UnitTimes
from harness.observe.profiling.task_times import recorded_segments
from harness.observe.storage import tables
from harness.observe.storage.opener import Opener
from harness.observe.storage.tables import (
    read_recordings,
    read_table,
    read_units,
    write_recordings,
)

seconds = st.floats(0, 1e6)
spans = st.lists(
    st.builds(
        Span,
        name=st.sampled_from(["main", "spill", "copy to the device"]),
        thread=st.sampled_from(["main", "SpillThread"]),
        start_s=seconds,
        wall_s=seconds,
        cpu_s=st.none() | seconds,
        parent=st.just(-1),
        open=st.booleans(),
        amount=st.integers(0, 2**40),
        text=st.text(max_size=5),
        details=st.lists(st.integers(0, 2**40), max_size=5).map(tuple),
    ),
    max_size=4,
)


def task(number, *recorded):
    """Recording of the attempt *number*."""
    loop = RecordLoop(7, 1.0, 2.0, 0.5, 0.1, 2, 9, 0.7, 1, 0.0, 0, (0, 3, 4))
    name = f"attempt_1_0001_m_{number:06d}_0"
    return TaskSpans(name, "closed", 100.0, None, 0.004, 0, 5, loop, recorded)


class Kept:
    """Recordings in memory."""

    def __init__(self, *tasks, units=()):
        self._tasks = tasks
        self._units = units

    def tasks(self):
        """All of them."""
        return iter(self._tasks)

    def units(self):
        """Their units."""
        return iter(self._units)


class TestRecordings:
    @given(recorded=st.lists(spans, max_size=3))
    def test_come_back_as_they_were_written(self, tmp_path_factory, recorded):
        """
        Every field of every span, whatever a workload calls them.
        """
        folder = tmp_path_factory.mktemp("trace")
        tasks = [task(n, *own) for n, own in enumerate(recorded)]

        write_recordings(folder, Kept(*tasks))
        assert list(read_recordings(Opener(folder), folder)) == tasks

    def test_units_are_there_where_they_were_asked_for(self, tmp_path):
        """
        Without units there is no table; with them every duration comes back.
        """
        write_recordings(tmp_path, Kept(task(1)))
        assert list(read_units(Opener(tmp_path), tmp_path)) == []

        units = [UnitTimes("a", 5, (1.0, 0.5)), UnitTimes("b", 5, (2.0,))]
        write_recordings(tmp_path, Kept(task(1), units=units))
        assert list(read_units(Opener(tmp_path), tmp_path)) == units

    def test_units_of_one_attempt_in_many_parts_are_one(self, tmp_path, monkeypatch):
        """
        A table of millions of rows is written and read in parts, which no attempt minds.
        """
        units = [UnitTimes("a", 5, (1.0, 0.5, 0.25)), UnitTimes("b", 2, (2.0,) * 5)]
        monkeypatch.setattr(tables, "AT_ONCE", 2)
        write_recordings(tmp_path, Kept(task(1), units=units))

        assert list(read_units(Opener(tmp_path), tmp_path)) == units

    def test_copies_come_back_with_their_reduce(self, tmp_path):
        """
        Each map output that a reduce copied, as its spans tell of it.
        """
        copies = [
            Span("visit", "fetcher#1", 1.0, 9.0, None, -1, text="worker1"),
            Span("connect", "fetcher#1", 1.0, 0.5, None, 0),
            Span("segment", "fetcher#1", 2.0, 3.0, None, 0, text="m_0", details=(9, 12, 0)),
            Span("segment", "fetcher#1", 5.0, 1.0, None, 0, text="m_1", details=(7, 12, 1)),
        ]
        reduce = task(1, *copies)
        write_recordings(tmp_path, Kept(task(0), reduce))

        table = tmp_path / "segments.parquet"
        result = list(read_table(Opener(tmp_path), table, tables._SEGMENT))

        owner = {"attempt_id": reduce.attempt_id}
        assert result == [owner | asdict(s) for s in recorded_segments(reduce)]
        assert [(s["to"], s["sent_bytes"], s["connect_s"]) for s in result] == [
            ("memory", 9, 0.5),
            ("disk", 7, 0.0),
        ]

    def test_nothing_recorded_is_nothing_read(self, tmp_path):
        """
        Trials without the tracer have no such tables.
        """
        assert list(read_recordings(Opener(tmp_path), tmp_path)) == []

    def test_foreign_spans_are_refused(self, tmp_path):
        """
        Spans of an attempt that is not among the tasks are told, not dropped.
        """
        span = Span("main", "main", 1.0, 1.0, None, -1)
        for number in (1, 2):
            (tmp_path / str(number)).mkdir()
            write_recordings(tmp_path / str(number), Kept(task(number, span)))
        (tmp_path / "1" / "spans.parquet").replace(tmp_path / "2" / "spans.parquet")

        with pytest.raises(DataError, match="not among the tasks"):
            list(read_recordings(Opener(tmp_path / "2"), tmp_path / "2"))
