"""
Tests for `harness.run.versions`: what trials ran on.
"""

import pytest

from harness.errors import DataError
from harness.providers.versions import RanOn
from harness.records.trial import trial_id
from tests.run.fakes import VERSIONS, terasort

SAME = RanOn("3.5.0", "17.0.19+10", "6.1.0")
OTHER = RanOn("3.5.0", "17.0.15+6", "6.1.0")


def trials(count):
    """
    Repetitions of one cell.
    """
    return [terasort(n) for n in range(count)]


def noted(run):
    """
    Versions of Java and the kernels in the trials of a run.
    """
    return {(r.versions.java, r.kernel) for r in run.trials().values()}


def test_trials_say_what_their_nodes_have(run, clusters, execution):
    """
    One value where all agree; in the manifest, too.
    """
    clusters.ran_on = {"worker1": SAME, "worker2": SAME}
    execution().execute(trials(2), set())

    manifest = run.manifest()
    assert noted(run) == {("17.0.19+10", "6.1.0")}
    assert manifest["nodes"] == {"hadoop": "3.5.0", "java": "17.0.19+10", "kernel": "6.1.0"}
    assert manifest["versions"] == {**VERSIONS.model_dump(), "java": "17.0.19+10"}


def test_nodes_that_differ_are_named(run, clusters, execution):
    """
    Each with its own; one that says nothing is unknown.
    """
    clusters.ran_on = {"worker1": SAME, "worker2": OTHER, "worker3": RanOn("3.5.0", "", "")}
    execution().execute(trials(1), set())

    assert noted(run) == {(
        "worker1: 17.0.19+10, worker2: 17.0.15+6, worker3: unknown",
        "worker1: 6.1.0, worker2: 6.1.0, worker3: unknown",
    )}  # fmt: skip
    assert run.manifest()["nodes"]["java"] == {
        "worker1": "17.0.19+10", "worker2": "17.0.15+6", "worker3": "",
    }  # fmt: skip


def test_a_run_is_not_continued_on_another_java(run, clusters, execution):
    """
    Its trials could not be compared; nothing more is run, and the fix is a new run.
    """
    planned = trials(2)
    clusters.ran_on = {"worker1": OTHER}
    execution().execute(planned[:1], set())
    clusters.ran_on = {"worker1": SAME}

    with pytest.raises(DataError, match=r"worker1 has Java 17\.0\.19\+10 now, .* ran on") as caught:
        execution().execute(planned, {planned[0].id})
    assert "--new" in caught.value.fix
    assert (len(run.trials()), clusters.running) == (1, 0)


def test_trials_of_other_versions_do_not_hold_it_up(run, clusters, execution):
    """
    They are none of the plan's: all of that is run anew.
    """
    clusters.ran_on = {"worker1": OTHER}
    execution().execute(trials(1), set())
    clusters.ran_on = {"worker1": SAME}
    newer = VERSIONS.model_copy(update={"java": "17.0.19+10"})
    later = terasort(1)
    later = later.model_copy(update={"id": trial_id(later.cell, 1, newer)})
    execution(versions=newer).execute([later], set())

    assert {java for java, _ in noted(run)} == {"17.0.15+6", "17.0.19+10"}
