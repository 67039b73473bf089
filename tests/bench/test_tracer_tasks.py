"""The measurement of what tracing costs: which task runs what, and what is kept of it."""

import os
import random
import subprocess

from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from tracer_tasks import Drawn, _add, _draw, _samples, _write_options, load, tied

from harness.base.errors import JobError
from harness.base.hadoop.daemons import Layout, make_members
from harness.base.records.tasks import RecordLoop, TaskLog, TaskSpans
from harness.base.records.trace import TASK_COUNTER, JobTrace, SpeedSample, TaskAttempt
from harness.base.records.trial import ClusterSpec
from harness.tracer.checks import Observed

NAMES = {"map": "attempt_1_0001_m_000000_0", "reduce": "attempt_1_0001_r_000000_0"}


def test_reduces_are_mixed_where_they_have_something_to_do():
    """
    Those of WordCount stay stock.
    """
    modes = ("off", "spans", "units")
    drawn = {name: _draw(random.Random(1), name, modes) for name in ("wordcount", "terasort")}

    values = {name: (Counter(d.map), Counter(d.reduce)) for name, d in drawn.items()}

    twelve, six, two = (dict.fromkeys(modes, each) for each in (12, 6, 2))
    assert values == {"wordcount": (twelve, {}), "terasort": (six, two)}


class Mixing:
    """A cluster as far as options of tasks need it, with the two archives of its home."""

    layout = Layout(make_members(1), base="/base", home="/home")
    home = SimpleNamespace(path="/home", archive="/all.jsa", tasks_archive="/tasks.jsa")
    spec = ClusterSpec()


def test_every_attempt_reads_options_of_its_own(tmp_path):
    """
    Stock classes and their archive, or those with hooks; the recorder is off but where it records.
    """
    drawn = Drawn(["off", "instrumented"], ["units"])
    _write_options(Mixing(), tmp_path, "job_17_0002", drawn)

    values = {file.name: file.read_text().splitlines() for file in tmp_path.iterdir()}
    first = {
        name: (lines[0].rpartition("=")[2], lines[-2].split(":")[0], lines[-1])
        for name, lines in values.items()
        if name.endswith("_0")
    }
    assert first == {
        "attempt_17_0002_m_000000_0": ("/all.jsa", "/home/path.jar", "-Dltrace=off"),
        "attempt_17_0002_m_000001_0": ("/tasks.jsa", "/home/path-trace.jar", "-Dltrace=off"),
        "attempt_17_0002_r_000000_0": ("/tasks.jsa", "/home/path-trace.jar", "-Dltrace=units"),
    }
    assert len(values) == 12


def observed(*, recorded):
    """A job of one map and one reduce, of which both or none have a recording."""
    counts = {f"{TASK_COUNTER}.CPU_MILLISECONDS": 2500, f"{TASK_COUNTER}.GC_TIME_MILLIS": 120}
    attempts = tuple(
        TaskAttempt(name, name[:-2], kind, "succeeded", 1.0, 6.0, "worker1", counters=counts)
        for kind, name in NAMES.items()
    )
    trace = JobTrace("job_1_0001", "n", "u", "SUCCEEDED", 0, 1, 9, 1, 1, attempts, {})
    tasks = {name: recording(name) for name in NAMES.values()} if recorded else {}
    logs = {NAMES["map"]: TaskLog(split_s=2.0), NAMES["reduce"]: TaskLog(shuffle_s=3.0)}
    return Observed("terasort", trace, tasks, logs)


def recording(name):
    """Seven records and nine outputs, without a span."""
    loop = RecordLoop(7, 1.0, 1.0, 0.0, 0.0, 0, 9, 0.0, 0, 0.0, 0, ())
    return TaskSpans(name, "closed", 1.0, 1.0, 0.0, 0, 5, loop, ())


def test_a_sample_of_each_mixed_task():
    """
    With its CPU time, its start-up to the split or the shuffle, and what was recorded.
    """
    both = _samples(observed(recorded=True), Drawn(["spans"], ["units"]), {})
    maps = _samples(observed(recorded=False), Drawn(["instrumented"], []), {})

    values = [(s.kind, s.mode, s.cpu_s, s.gc_s, s.start_up_s, s.outputs) for s in (*both, *maps)]
    assert values == [
        ("map", "spans", 2.5, 0.12, 1.0, 9),
        ("reduce", "units", 2.5, 0.12, 2.0, 9),
        ("map", "instrumented", 2.5, 0.12, 1.0, 0),
    ]


@pytest.mark.parametrize(
    ("recorded", "mode"), [(False, "spans"), (True, "off"), (True, "instrumented")]
)
def test_a_task_that_ran_other_classes_than_it_was_told_is_no_sample(recorded, mode):
    """
    The job is refused, and the attempt named.
    """
    with pytest.raises(JobError, match=f"{NAMES['map']} did not run the classes of mode {mode}"):
        _samples(observed(recorded=recorded), Drawn([mode], []), {})


def test_a_task_is_corrected_by_the_core_it_ran_on():
    """
    Work of the probe on another core says nothing of it.
    """
    job = observed(recorded=False)
    (attempt,) = job.trace.succeeded("map")
    middle = (attempt.start_s + attempt.finish_s) / 2 + 0.5
    probed = {
        attempt.host: [SpeedSample(at_s=middle, thread=1, units=1500, cpu_s=1.0)],
        "elsewhere": [SpeedSample(at_s=middle, thread=0, units=700, cpu_s=1.0)],
    }

    (sample,) = _samples(job, Drawn(["off"], []), probed)

    assert sample.rate == 1500.0


def test_two_self_tests_keep_what_both_have_measured(tmp_path):
    """
    Each adds to what the file holds by then, not to what it held when the test began.
    """
    file, key = tmp_path / "state" / "overhead.json", {"tracer": "a"}
    one, two = (
        _samples(observed(recorded=False), Drawn([m], []), {}) for m in ("off", "instrumented")
    )

    _add(file, key, one)

    assert _add(file, key, two) == [*one, *two] == load(file, key)


CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture
def daemons():
    """
    Process ids by name: a ResourceManager and two NodeManagers, played by sleeping processes.
    """
    names = ("resourcemanager", "nodemanager on worker1", "nodemanager on worker2")
    with ExitStack() as stack:
        started = {}
        for name in names:
            process = subprocess.Popen(["sleep", "60"])
            stack.callback(process.wait)
            stack.callback(process.kill)
            started[name] = process.pid
        yield started


@pytest.mark.process
def test_nodes_are_tied_and_let_go(daemons):
    """
    Each node has the core that its place names, the rest the first one; afterwards all have all.
    """
    with tied(daemons) as places:
        cores = {name: os.sched_getaffinity(pid) for name, pid in daemons.items()}

    assert cores == {
        "resourcemanager": {CORES[0]},
        **{f"nodemanager on {host}": {CORES[place]} for host, place in places.items()},
    }
    assert [os.sched_getaffinity(pid) for pid in daemons.values()] == [set(CORES)] * 3


@pytest.mark.process
@pytest.mark.skipif(len(CORES) < 3, reason="two nodes want two cores beside the first")
def test_nodes_do_not_share_a_core(daemons):
    """
    With enough cores, no node has the daemons' core or another node's.
    """
    with tied(daemons) as places:
        assert sorted(places.values()) == [1, 2]


@pytest.mark.process
def test_a_daemon_that_has_ended_is_left_out(daemons):
    """
    Its process id is nobody's.
    """
    gone = subprocess.Popen(["true"])
    gone.wait()

    with tied({**daemons, "datanode on worker1": gone.pid}) as places:
        assert set(places) == {"worker1", "worker2"}
