"""
Tests for `harness.clusters.workloads.base`.
"""

import pytest

from harness.base.records.trace import TASK_COUNTER, JobTrace
from harness.clusters.workloads.base import unbalanced

# Counters of real jobs on Hadoop 3.5.0.  WordCount of 9 MB: 3 maps, 3 reduces, a sort buffer of
# 2 MiB and a merge factor of 3, so that its maps combine in spills and again in their merges.
WORDCOUNT = {
    "MAP_INPUT_RECORDS": 144240, "MAP_OUTPUT_RECORDS": 1586659,
    "MAP_OUTPUT_MATERIALIZED_BYTES": 706544,
    "COMBINE_INPUT_RECORDS": 1853440, "COMBINE_OUTPUT_RECORDS": 325613,
    "REDUCE_SHUFFLE_BYTES": 706544, "REDUCE_INPUT_RECORDS": 58832,
    "SHUFFLED_MAPS": 9, "FAILED_SHUFFLE": 0,
}  # fmt: skip
# TeraSort of 100 003 rows: 7 maps, 3 reduces.
TERASORT = {
    "MAP_INPUT_RECORDS": 100003, "MAP_OUTPUT_RECORDS": 100003,
    "MAP_OUTPUT_MATERIALIZED_BYTES": 10400438,
    "COMBINE_INPUT_RECORDS": 0, "COMBINE_OUTPUT_RECORDS": 0,
    "REDUCE_SHUFFLE_BYTES": 10400438, "REDUCE_INPUT_RECORDS": 100003,
    "SHUFFLED_MAPS": 21, "FAILED_SHUFFLE": 0,
}  # fmt: skip
TERAGEN = {"MAP_INPUT_RECORDS": 100003, "MAP_OUTPUT_RECORDS": 100003}


def complaint(counters, *, maps, reduces, combiner=False, records=None, **changes):
    """
    What is said of a job with these counters, some of them changed.
    """
    values = {f"{TASK_COUNTER}.{k}": v for k, v in (counters | changes).items() if v is not None}
    trace = JobTrace("job_1_0001", "", "", "SUCCEEDED", 0, 0, 1, maps, reduces, (), values)
    return unbalanced(trace, uses_combiner=combiner, input_records=records)


def wordcount(**changes):
    """
    What is said of the WordCount.
    """
    kind = {"maps": 3, "reduces": 3, "combiner": True, "records": 144240}
    return complaint(WORDCOUNT, **(kind | changes))


def terasort(**changes):
    """
    What is said of the TeraSort.
    """
    return complaint(TERASORT, **({"maps": 7, "reduces": 3, "records": 100003} | changes))


def test_real_jobs_balance():
    """
    Nothing is said of jobs that ran, with and without combiner and reduces, known input or not.
    """
    assert wordcount() == ""
    assert wordcount(records=None) == ""
    assert terasort() == ""
    assert complaint(TERAGEN, maps=7, reduces=0, records=100003) == ""


def test_untouched_counters_are_zero():
    """
    Hadoop leaves out what nothing counted.
    """
    absent = {"COMBINE_INPUT_RECORDS": None, "COMBINE_OUTPUT_RECORDS": None}

    assert terasort(FAILED_SHUFFLE=None, **absent) == ""


@pytest.mark.parametrize("counter", sorted(WORDCOUNT))
@pytest.mark.parametrize("job", [wordcount, terasort])
def test_every_counter_matters(job, counter):
    """
    One more of any counter breaks a rule that names it, or the rule that it enters.
    """
    value = (WORDCOUNT if job is wordcount else TERASORT)[counter]

    assert job(**{counter: value + 1}) != ""


@pytest.mark.parametrize(
    ("complaints", "expected"),
    [
        (terasort(records=7), "MAP_INPUT_RECORDS is 100003, not 7 (records of the input)"),
        (terasort(SHUFFLED_MAPS=20), "SHUFFLED_MAPS is 20, not 21 (maps x reduces)"),
        (
            terasort(REDUCE_SHUFFLE_BYTES=1),
            "REDUCE_SHUFFLE_BYTES is 1, not 10400438 (MAP_OUTPUT_MATERIALIZED_BYTES)",
        ),
        (
            wordcount(REDUCE_INPUT_RECORDS=58831),
            "REDUCE_INPUT_RECORDS is 58831, not 58832 (map output records less combined ones)",
        ),
        (
            wordcount(COMBINE_INPUT_RECORDS=267827, COMBINE_OUTPUT_RECORDS=-1260000),
            "COMBINE_INPUT_RECORDS is 267827, not 1586659 (MAP_OUTPUT_RECORDS, or more)",
        ),
        (
            terasort(FAILED_SHUFFLE=2, SHUFFLED_MAPS=0),
            (
                "SHUFFLED_MAPS is 0, not 21 (maps x reduces);"
                " FAILED_SHUFFLE is 2, not 0 (a job without repeated fetches)"
            ),
        ),
        (
            complaint(TERAGEN, maps=7, reduces=0, records=1),
            "MAP_INPUT_RECORDS is 100003, not 1 (records of the input)",
        ),
        (complaint({}, maps=1, reduces=1), "the job's counters lack MAP_INPUT_RECORDS"),
    ],
)
def test_says_what_does_not_add_up(complaints, expected):
    """
    The counter, its value, the value that it should have, and why.
    """
    assert complaints == expected
