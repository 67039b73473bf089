"""
Tests for `harness.clusters.workloads.sleep`.
"""

import re

import pytest

from harness.base.records.trial import WorkloadSpec
from harness.clusters.hadoop_home.home import job_jar
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.base import JOBS, job_of_ours
from harness.clusters.workloads.files import checksum, noise
from harness.clusters.workloads.sleep import RECORD
from tests.workloads.local_runner import LocalRunner

MIB = 2**20
workload = WORKLOADS["sleep"]
ROWS = noise(1, 0, 5, RECORD)
FILES = [("part-m-00000", [ROWS[:3].tobytes()]), ("part-m-00001", [ROWS[3:].tobytes()])]


def spec(size=5 * RECORD, **parameters):
    """
    Five records in two maps, under three keys.
    """
    return WorkloadSpec(
        name="sleep", input_bytes=size, parameters={"maps": 2, "keys": 3, **parameters}
    )


def output(rows_by_key=None, read=0, mapped=5 * 10**6, reduced=3 * 10**8, calls=5):
    """
    What the reduces and the client report of a job that did as it was asked.
    """
    # Each map deals its records out from key 0 on.
    under = rows_by_key or {0: [0, 3], 1: [1, 4], 2: [2]}
    wide = ROWS[:, [*range(RECORD), *range(4)]]
    lines = [f"{k}\t{len(v)}\t{checksum(wide[v]):016x}" for k, v in under.items()]
    lines += [f"read\t5\t{read}", f"map\t{calls}\t{mapped}", f"reduce\t3\t{reduced}"]
    return "\n".join([*lines, ""]).encode()


def verdict(*outputs, **parameters):
    """
    What is said of output files with these bytes.
    """
    requested = spec(**parameters)
    listed = ((f"part-{i}", [data]) for i, data in enumerate(outputs))
    return workload.verdict(requested, listed, workload.sample(requested, FILES))


class TestVerdict:
    def test_what_was_asked_is_right(self):
        """
        A millisecond for each of five records, a tenth of a second for each of three keys.
        """
        answer = verdict(output())

        assert answer == ""

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"mapped": 4 * 10**6}, "map slept 0.004 s, not 0.005 s"),
            ({"mapped": 3 * 10**9}, "map slept 3 s, not 0.005 s"),
            ({"read": 1}, "read slept 1e-09 s, not 0 s"),
            ({"reduced": 2 * 10**8}, "reduce slept 0.2 s, not 0.3 s"),
            ({"calls": 4}, "map was called 4 times, not 5"),
            (
                {"rows_by_key": {0: [0, 3], 1: [1, 4]}},
                "key 2 arrived with no record, but 1 ",
            ),
            (
                {"rows_by_key": {0: [0, 4], 1: [1, 3], 2: [2]}},
                "key 0 arrived with 2 records (ch",
            ),
        ],
    )
    def test_refuses_and_says_why(self, changed, reason):
        """
        Too short, too long, without being asked, other calls, lost and exchanged records.
        """
        assert reason in verdict(output(**changed))

    @pytest.mark.parametrize(
        ("more", "reason"),
        [
            (b"0\t1\t0000000000000000\n", "part-1:1: key 0 is reported twice"),
            (b"map\t5\t5000000\n", "part-1:1: map is reported twice"),
            (b"\x1b[2J\n", "part-1:1: '\\x1b[2J' is not a key or a phase"),
        ],
    )
    def test_refuses_what_is_reported_twice_or_otherwise(self, more, reason):
        """
        One line for each key and phase, and no other.
        """
        assert verdict(output(), more) == reason

    def test_records_become_as_many_and_large_as_asked(self):
        """
        A record emitted twice goes to two keys; a smaller one is its beginning.
        """
        sample = workload.sample(spec(outputs=2, bytes=10), FILES)

        under = {0: [0, 1, 3, 4], 1: [0, 2, 3], 2: [1, 2, 4]}
        assert sample["keys"] == {
            str(k): [len(v), checksum(ROWS[v][:, :10])] for k, v in under.items()
        }


def test_every_map_is_a_file():
    """
    As many as asked for, though one block would hold them; a key is another when what the records
    become is another.
    """
    plan = workload.plan_input(spec(96_000), MIB)
    other = workload.plan_input(spec(96_000, bytes=5), MIB)

    assert [f.bytes for f in plan.files] == [48_000, 48_000]
    assert plan.key != other.key


def test_durations_reach_the_job():
    """
    As properties in milliseconds, fractions allowed.
    """
    (job,) = workload.submit(spec(map_ms=0.5), "/in", "/out")

    assert {"sleep.map": "0.5", "sleep.read": "0.0", "sleep.record": "96"}.items() <= dict(
        job.properties
    ).items()
    assert job.arguments == ("/in", "/out")


@pytest.mark.process
def test_the_job_sleeps_and_moves_what_it_should(tmp_path):
    """
    In Hadoop's local runner, over a generated input, its output is accepted.
    """
    runner = LocalRunner(tmp_path, job_jar(JOBS))
    parameters = {"maps": 2, "read_ms": 0.2, "map_ms": 0.5, "outputs": 2, "bytes": 250, "keys": 7}
    requested = WorkloadSpec(name="sleep", input_bytes=300 * RECORD, seed=3, parameters=parameters)

    assert runner.run(workload.generate(requested, 2**20, str(tmp_path / "in"))) == 0, runner.output
    (job,) = workload.submit(requested, str(tmp_path / "in"), str(tmp_path / "out"))
    assert runner.run(job) == 0, runner.output

    sample = workload.sample(requested, runner.files("in"))
    assert workload.verdict(requested, runner.files("out"), sample) == ""


@pytest.mark.process
def test_the_job_makes_its_own_records_where_it_has_no_input(tmp_path):
    """
    As the tracer's self-test runs it: pauses down to the combiner, and a large record.
    """
    runner = LocalRunner(tmp_path, job_jar(JOBS))
    properties = {
        "sleep.maps": 2, "sleep.records": 30, "sleep.map": 1, "sleep.combine": 1, "sleep.work": 20,
        "sleep.large": 2_000_000, "mapreduce.task.io.sort.mb": 1,
    }  # fmt: skip
    job = job_of_ours("Sleep", str(tmp_path / "out"), properties=properties)

    assert runner.run(job) == 0, runner.output

    report = dict(runner.files("out"))["part-slept"][0]
    assert report.startswith(b"read\t60\t0\nmap\t60\t")
    assert max(map(int, re.findall(r"WORK_NS=(\d+)", runner.output))) >= 2 * 20_000_000
    assert "COMBINE_NS=" in runner.output
    assert "Map output records=62" in runner.output
