"""
Tests for `harness.clusters.workloads.dfsio`.
"""

import zlib

import pytest

from harness.base.errors import JobError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.dfsio import RECORD
from harness.clusters.workloads.files import noise
from tests.workloads.generators import printed

MIB = 2**20
workload = WORKLOADS["dfsio"]


def spec(size=6000, mode="write", **parameters):
    """
    Files of *size* bytes in all.
    """
    return WorkloadSpec(
        name="dfsio", input_bytes=size, seed=3, parameters={"mode": mode, **parameters}
    )


def shares(requested, block=MIB):
    """
    The input of a job that writes, as its generator makes it.
    """
    job = workload.generate(requested, block, "/in")
    content, count, files, seed, _ = job.arguments
    lines = printed(content, seed=seed, count=int(count), properties=job.properties)
    assert count == files
    planned = workload.plan_input(requested, block).files
    return list(
        zip(
            (f.name for f in planned),
            ([line] for line in lines.splitlines(keepends=True)),
            strict=True,
        )
    )


def line(name, data, seconds=0.5):
    """
    What a map reports of a file.
    """
    return f"{name}\t{zlib.crc32(data):08x}\t{len(data)}\t{int(seconds * 1e9)}\n".encode()


class TestWrite:
    """Files that a job writes."""

    first, second = (noise(3, start, 15, RECORD).tobytes() for start in (0, 15))

    def verdict(self, *outputs):
        """
        What is said of an output with two files of 15 records each.
        """
        requested = spec(files=2)
        sample = workload.sample(requested, shares(requested))
        return workload.verdict(requested, ((name, [data]) for name, data in outputs), sample)

    def right(self):
        """
        Data, and what the maps report of it.
        """
        return [
            ("part-data-00000", self.first),
            ("part-data-00001", self.second),
            ("part-m-00000", line("part-data-00000", self.first)),
            ("part-m-00001", line("part-data-00001", self.second, 1.5)),
        ]

    @pytest.mark.process
    def test_right_files_pass(self):
        """
        The bytes are made here once more.
        """
        answer = self.verdict(*self.right())

        assert answer == ""

    @pytest.mark.process
    @pytest.mark.parametrize(
        ("which", "instead", "reason"),
        [
            (0, ("part-data-00000", b"x" * 3000), "'part-data-00000' is stored with: 3000 bytes, "),
            (1, ("part-data-00001", b""), "'part-data-00001' is stored with: 0 bytes, CRC-32 0000"),
            (1, ("part-data-00002", b"x"), "'part-data-00001' is stored with: no such file"),
            (3, ("part-m-00001", b""), "'part-data-00001' is reported with: no such file"),
            (
                3,
                ("part-m-00001", line("part-data-00000", b"")),
                "part-data-00000 is reported twice",
            ),
            (3, ("part-m-00001", b"part-data-00001\t1\n"), "is not a file, its CRC-32, bytes"),
        ],
    )
    def test_refuses_and_says_why(self, which, instead, reason):
        """
        Other bytes, a file cut short or missing, a map that reported nothing, twice, or nonsense.
        """
        outputs = self.right()
        outputs[which] = instead

        assert reason in self.verdict(*outputs)

    @pytest.mark.process
    def test_input_is_a_line_for_each_file(self):
        """
        Its size is not that of the files, which hold as many whole records as fit a block.
        """
        requested = spec(10 * MIB)
        sample = workload.sample(requested, shares(requested))

        assert len(shares(requested)) == sample["records"] == 10
        assert {size for size, _ in sample["files"].values()} == {MIB // RECORD * RECORD}

    def test_other_input_is_an_error(self):
        """
        Lines that the generator did not write are reported with the file.
        """
        with pytest.raises(JobError, match="part-m-00000: '1 2 3' is not a share"):
            workload.sample(spec(), [("part-m-00000", [b"1 2 3"])])

    def test_runs_without_reduces(self):
        """
        Whatever the configuration says.
        """
        (job,) = workload.submit(spec(), "/in", "/out")

        assert "-Dmapreduce.job.reduces=0" in job.argv({"mapreduce.job.reduces": "4"})


def test_what_is_kept_is_known_by_mode_and_seed():
    """
    Inputs are kept with what the verdict needs: a seed decides the bytes of both modes.
    """
    requested = [
        spec(mode=m).model_copy(update={"seed": s}) for m in ("read", "write") for s in (1, 2)
    ]

    assert len({workload.plan_input(each, MIB).key for each in requested}) == 4
