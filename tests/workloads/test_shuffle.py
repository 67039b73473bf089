"""
Tests for `harness.clusters.workloads.shuffle`.
"""

import numpy as np
import pytest

from harness.base.errors import SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.files import checksum, noise

workload = WORKLOADS["shuffle"]
RECORDS = noise(1, 0, 9, 24)


def spec(size=216, **parameters):
    """
    A shuffle of records of 24 bytes.
    """
    return WorkloadSpec(name="shuffle", input_bytes=size, parameters={"record": 24, **parameters})


def reported(rows):
    """
    What a reduce reports that got these.
    """
    return b"%d\t%d\t%016x\n" % (len(rows), 24 * len(rows), checksum(rows))


def verdict(*outputs, files=1):
    """
    What is said of the lines of all reduces, for an input in some files.
    """
    pieces = np.array_split(RECORDS, files)
    sample = workload.sample(spec(), ((f"f{n}", [p.tobytes()]) for n, p in enumerate(pieces)))
    listed = ((f"part-r-{i:05d}", [data]) for i, data in enumerate(outputs))
    return workload.verdict(spec(), listed, sample)


class TestVerdict:
    def test_sums_what_the_reduces_got(self):
        """
        Whoever got which record.
        """
        answer = verdict(reported(RECORDS[::2]), reported(RECORDS[1::2]))

        assert answer == ""

    def test_uneven_shares_are_wrong(self):
        """
        A map deals its records out in turn; several maps may each be one off.
        """
        uneven = reported(RECORDS[:6]), reported(RECORDS[6:])

        assert verdict(*uneven) == "the shares of the reduces are from 3 to 6 records"
        assert verdict(*uneven, files=3) == ""

    @pytest.mark.parametrize(
        ("outputs", "reason"),
        [
            ([reported(RECORDS[:8])], "records: 8 in the output, 9 in the input"),
            ([reported(np.roll(RECORDS, 1))], "checksum: "),
            ([b"9\t216\n"], "part-r-00000: '9\\t216\\n' is not one reduce's line"),
            ([reported(RECORDS) * 2], "is not one reduce's line"),
            ([], "no reduce reported anything"),
        ],
    )
    def test_refuses_and_says_why(self, outputs, reason):
        """
        A lost record, other bytes, a mangled or a second line, nothing.
        """
        assert reason in verdict(*outputs)


def test_records_are_whole_words():
    """
    As the generator makes them; the plan and the job agree, and others are refused.
    """
    with pytest.raises(SpecError, match="record of shuffle is '25': it must be a multiple of 8"):
        workload.plan_input(spec(30_000, record=25), 2**20)
    requested = spec(30_000, record=32)
    made = workload.generate(requested, 2**20, "/in")
    (job,) = workload.submit(requested, "/in", "/out")

    assert made.properties == {"noise.bytes": "32"}
    assert made.arguments[1:3] == ("938", "1")
    assert workload.plan_input(requested, 2**20).bytes == 938 * 32
    assert job.properties == {"shuffle.record": "32"}
