"""
What a run's manifest is told of the tracer's cost, from files good and bad.
"""

import json

from dataclasses import asdict
from random import Random

import pytest

from harness.run.overhead import tracer_overhead
from harness.tracer import overhead as selftest_overhead
from harness.tracer.effects import Sample
from tests.hostile.mutate import mutate

HOME = object()
KEY = {"tracer": "abc", "java": "17.0.15"}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """
    The place of what was measured, for a tracer and a machine that are the same each time.
    """
    place = tmp_path / "tracer-overhead.json"
    load = selftest_overhead.load
    monkeypatch.setattr(selftest_overhead, "known", lambda _: load(place, KEY))
    return place


def document(jobs=6, cost=0.1, key=KEY):
    """
    Two seconds a task, and *cost* more of them with spans, in jobs of twelve tasks.
    """
    chance, samples = Random(3), []
    for job in range(jobs):
        for place in range(12):
            mode = ("off", "spans", "units")[place % 3]
            cpu_s = 2 * (1 + cost * (mode != "off")) * (1 + 0.01 * chance.gauss())
            sample = Sample(
                workload="wordcount",
                job=f"job_1_{job:04d}",
                mode=mode,
                start_s=1.7e9 + 100 * job + place,
                cpu_s=cpu_s,
                start_up_s=1.0,
                rate=1e6,
            )
            samples.append(asdict(sample))
    return {"schema_version": 1, "of": key, "measured_s": 1.7e9, "samples": samples}


def test_what_was_measured_is_told_with_its_date(file):
    """
    Each workload and mode: the share with its interval, from how many tasks, and when.
    """
    file.write_text(json.dumps(document()))

    spans, units = tracer_overhead(HOME)

    assert (spans.workload, spans.mode, spans.kind) == ("wordcount", "spans", "map")
    assert spans.low < 0.1 < spans.high
    assert (spans.tasks, spans.stock, spans.measured_s) == (24, 24, 1.7e9 + 510)
    assert units.mode == "units"


@pytest.mark.parametrize("key", [{**KEY, "tracer": "other"}, {**KEY, "java": "21"}])
def test_what_was_measured_of_another_tracer_is_not(file, key):
    """
    A figure of another tracer, Java or machine says nothing of this run.
    """
    file.write_text(json.dumps(document(key=key)))

    assert tracer_overhead(HOME) == []


def test_nothing_measured_is_nothing_told(file):
    """
    Most runs come before anybody has measured.
    """
    assert not file.exists()
    assert tracer_overhead(HOME) == []


def test_no_file_breaks_a_run(file):
    """
    Whatever stands in the file, the answer is numbers, or none.
    """
    whole = json.dumps(document(jobs=3)).encode()
    found = set()
    for number in range(150):
        random = Random(f"overhead {number}")
        file.write_bytes(mutate(whole, whole, random))
        found.add(len(tracer_overhead(HOME)))

    assert found == {0, 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu_s": "2"},
        {"cpu_s": float("inf")},
        {"cpu_s": 10**400},
        {"rate": "fast"},
        {"job": ["a"]},
        {"start_s": None},
        {"start_s": float("nan")},
        {"mode": {}},
    ],
    ids=str,
)
def test_a_value_of_no_task_is_not_computed_with(file, changes):
    """
    A number that no task has gives no figure that a report would show, and no error.
    """
    told = document()
    for sample in told["samples"]:
        sample.update(changes)
    file.write_text(json.dumps(told))

    assert tracer_overhead(HOME) == []


def test_deep_nesting_is_no_error(file):
    """
    A file that is nothing but brackets.
    """
    file.write_text("[" * 100_000)

    assert tracer_overhead(HOME) == []
