"""Logs of containers, brought to the attempts that wrote them."""

import gzip
import re

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from harness.base.errors import DataError, ParseError
from harness.core.evaluate.observations import logged_times
from harness.core.store import RawLogs
from harness.observe.storage.opener import Opener
from tests.parsing.recorded import history, text

TAKEN = ("m_000000_0", "r_000000_0")


def stored(folder, job, *, separate=True, change=bytes, reduce_change=None):
    """
    Raw logs as a trial keeps them: of the first map and of a reduce, by container, each changed.
    """
    trace = history(job)
    for attempt in trace.attempts:
        short = attempt.attempt_id[-len("m_000000_0") :]
        if short not in TAKEN:
            continue
        there = folder / "containers" / attempt.host / attempt.container_id
        there.mkdir(parents=True)
        main, changed = text(job, f"{short}.syslog"), change
        if attempt.kind == "reduce":
            changed = reduce_change or change
            own = text(job, f"{short}.syslog.shuffle")
            if separate:
                (there / "syslog.shuffle.gz").write_bytes(gzip.compress(changed(b"".join(own))))
            else:
                main = sorted(own + main, key=lambda line: line[:23])
        (there / "syslog.gz").write_bytes(gzip.compress(changed(b"".join(main))))
    return RawLogs(Opener(folder), folder), trace


@pytest.mark.parametrize("separate", [True, False])
def test_map_and_reduce(tmp_path, separate):
    """
    Each log belongs to its container's attempt, wherever the shuffle was written.
    """
    logs = stored(tmp_path, "disk", separate=separate)

    times = {task.attempt_id[-10:]: task for task in logged_times(*logs, is_compressed=True)}

    assert times.keys() == {"m_000000_0", "r_000000_0"}
    assert len(times["m_000000_0"].spills) == 3
    assert len(times["r_000000_0"].segments) == 12


def test_sizes_that_hadoop_gets_wrong(tmp_path):
    """
    Of compressed spills merged in passes no size is taken.
    """
    logs = stored(tmp_path, "passes")

    (task,) = (t for t in logged_times(*logs, is_compressed=True) if "_m_" in t.attempt_id)

    assert {s.file_bytes for s in task.spills} == {None}


def test_uberized_job(tmp_path):
    """
    The application master's log of such a job mixes its tasks, and tells nothing of one.
    """
    raw, trace = stored(tmp_path, "disk")

    assert not [*logged_times(raw, replace(trace, uberized=True), is_compressed=True)]


STAMP = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", re.MULTILINE)


def in_zone(zone, name=None):
    """What the log of a task in UTC is where its JVM is in *zone*, which it calls *name*."""

    def local(stamp):
        moment = datetime.fromisoformat(stamp[0].decode().replace(",", ".")).replace(tzinfo=UTC)
        text = moment.astimezone(ZoneInfo(zone)).isoformat(" ", "milliseconds")
        return text[:23].replace(".", ",").encode()

    return lambda log: f"user.timezone: {name or zone}\n".encode() + STAMP.sub(local, log)


@pytest.mark.parametrize(
    ("zone", "name"),
    [("Asia/Tokyo", None), ("America/St_Johns", None), ("Asia/Kolkata", "GMT+05:30")],
)
def test_tasks_of_any_zone(tmp_path, zone, name):
    """
    The same tasks give the same times, wherever their nodes lie: nothing is asked of anybody, the
    log names its zone.
    """
    plain = [*logged_times(*stored(tmp_path / "utc", "disk"), is_compressed=False)]
    there = stored(tmp_path / "there", "disk", change=in_zone(zone, name))

    assert [*logged_times(*there, is_compressed=False)] == plain


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/St_Johns", "UTC"])
def test_a_log_that_names_no_zone_is_read_in_that_of_its_attempt(tmp_path, zone):
    """
    Stock logs name none, but the history knows when the task ran.
    """
    plain = [*logged_times(*stored(tmp_path / "utc", "disk"), is_compressed=False)]
    unnamed = stored(
        tmp_path / "there", "disk", change=lambda log: in_zone(zone)(log).partition(b"\n")[2]
    )

    assert [*logged_times(*unnamed, is_compressed=False)] == plain


def test_nodes_of_different_zones(tmp_path):
    """
    Each task is read in its own zone.
    """
    plain = [*logged_times(*stored(tmp_path / "utc", "disk"), is_compressed=False)]
    changes = {"change": in_zone("Asia/Tokyo"), "reduce_change": in_zone("America/St_Johns")}
    there = stored(tmp_path / "there", "disk", **changes)

    assert [*logged_times(*there, is_compressed=False)] == plain


@pytest.mark.parametrize("name", ["Foo/Bar", "JST", "../../etc/passwd", "America", "GMT+99:00"])
def test_a_zone_that_does_not_exist(tmp_path, name):
    """
    It is named with the node that is in it, and no file outside the database is opened.
    """
    there = stored(tmp_path, "disk", change=in_zone("Asia/Tokyo", name))

    message = rf"worker\d is in the zone '{re.escape(name)}', which this machine does not know"
    with pytest.raises(DataError, match=message) as error:
        list(logged_times(*there, is_compressed=False))
    assert error.value.where.endswith("/syslog")


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/St_Johns"])
def test_a_zone_that_is_not_the_one_named(tmp_path, zone):
    """
    No moment outside an attempt's time becomes a statistic: file and line are named.
    """
    there = stored(tmp_path, "disk", change=in_zone(zone, "UTC"))

    with pytest.raises(ParseError, match=r"(?s) s into an attempt of .*/syslog:\d+\n  fix: "):
        list(logged_times(*there, is_compressed=False))


def test_damage_is_named(tmp_path):
    """
    A log with a hole is refused by its name in the trial.
    """
    raw, trace = stored(tmp_path, "disk", change=lambda log: log.replace(b"Spilling map", b"x"))

    with pytest.raises(ParseError, match=r"containers/worker\d/container_.*/syslog:"):
        list(logged_times(raw, trace, is_compressed=True))


def test_a_log_that_lacks_its_head_gives_the_same_times_or_none(tmp_path):
    """
    Wherever it was cut: no part of a task passes for the whole.
    """
    whole, trace = stored(tmp_path / "whole", "uneven")
    times = {task.attempt_id: task for task in logged_times(whole, trace, is_compressed=False)}
    kept = set()
    lines = text("uneven", "m_000000_0.syslog")
    for count in range(1, len(lines), 3):
        cut = stored(tmp_path / f"{count}", "uneven", change=lambda log: last_lines(log, count))  # noqa: B023
        for task in logged_times(*cut, is_compressed=False):
            assert task == times[task.attempt_id]
            kept.add(count)

    assert 0 < len(kept) < len(range(1, len(lines), 3)) - 5


def last_lines(log, count):
    """The last lines of a log, as many as *count*."""
    return b"".join(log.splitlines(keepends=True)[-count:])


@pytest.mark.parametrize("ahead_s", [8, -8, 300])
def test_a_clock_that_is_off(tmp_path, ahead_s):
    """
    What lies between two moments of the log is as ever; what reaches to the master's is not known.
    """
    plain = [*logged_times(*stored(tmp_path / "plain", "disk"), is_compressed=False)]
    there = stored(tmp_path / "there", "disk", change=lambda log: moved(log, ahead_s))

    times = [*logged_times(*there, is_compressed=False)]

    assert len(times) == len(plain) == 2
    for task, right in zip(times, plain, strict=True):
        assert (task.start_up_s, task.end_s) == (None, None)
        spans = ("alone_s", "merge_s", "flush_s") if "_m_" in task.attempt_id else ("loop_s",)
        for name in spans:
            assert getattr(task, name) == pytest.approx(getattr(right, name), abs=1e-5)


def moved(log, ahead_s):
    """A log by a clock that is so many seconds ahead."""

    def later(stamp):
        moment = datetime.fromisoformat(stamp[0].decode().replace(",", "."))
        shown = (moment + timedelta(seconds=ahead_s)).isoformat(" ", "milliseconds")
        return shown.replace(".", ",").encode()

    return STAMP.sub(later, log)
