"""Logs of containers, brought to the attempts that wrote them."""

import gzip

from dataclasses import replace

import pytest

from harness.errors import ParseError
from harness.evaluate.observations import logged_times
from harness.store import RawLogs
from tests.parsing.recorded import history, text

TAKEN = ("m_000000_0", "r_000000_0")


def stored(folder, job, *, separate=True, change=bytes):
    """Raw logs as a trial keeps them: of the first map and of a reduce, by container."""
    trace = history(job)
    for attempt in trace.attempts:
        short = attempt.attempt_id[-len("m_000000_0") :]
        if short not in TAKEN:
            continue
        there = folder / "containers" / attempt.host / attempt.container_id
        there.mkdir(parents=True)
        main = text(job, f"{short}.syslog")
        if attempt.kind == "reduce":
            own = text(job, f"{short}.syslog.shuffle")
            if separate:
                (there / "syslog.shuffle.gz").write_bytes(gzip.compress(b"".join(own)))
            else:
                main = own + main
        (there / "syslog.gz").write_bytes(gzip.compress(change(b"".join(main))))
    return RawLogs(folder), trace


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


def test_damage_is_named(tmp_path):
    """
    A log with a hole is refused by its name in the trial.
    """
    raw, trace = stored(tmp_path, "disk", change=lambda log: log.replace(b"Spilling map", b"x"))

    with pytest.raises(ParseError, match=r"containers/worker\d/container_.*/syslog:"):
        list(logged_times(raw, trace, is_compressed=True))
