"""
HiBench's names of sizes mean here what they mean there.

The numbers are those of https://github.com/Intel-bigdata/HiBench, each file at the commit beside
it: `conf/workloads/<file>`.
"""

import pytest

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.sleep import RECORD

NAMES = ("tiny", "small", "large", "huge", "gigantic", "bigdata")
MIB = 2**20
ROW = 100  # bytes of a row of TeraGen, which writes the input of repartition, too
POINT = 20 * 8  # bytes of a point of 20 dimensions; that of `tiny` has 3
# workload -> file of HiBench, its commit, what it counts by size, and bytes of one of these here
TABLE = {
    "wordcount": (
        "micro/wordcount.conf", "1dc2331d7392d537dc467802834537ecfc93ec79",
        (32_000, 320_000_000, 3_200_000_000, 32_000_000_000, 320_000_000_000, 1_600_000_000_000),
        1,
    ),
    "sort": (
        "micro/sort.conf", "09bf570d0f9fa118e66d5e83767b80e02ef347b7",
        (32_000, 3_200_000, 320_000_000, 3_200_000_000, 32_000_000_000, 300_000_000_000),
        1,
    ),
    "terasort": (
        "micro/terasort.conf", "cb633ac435217cccdb211070c1d42208bef161b9",
        (32_000, 3_200_000, 32_000_000, 320_000_000, 3_200_000_000, 6_000_000_000),
        ROW,
    ),
    "shuffle": (
        "micro/repartition.conf", "296e5edfa8801f477d161abddf80a912548d95af",
        (32_000, 3_200_000, 32_000_000, 320_000_000, 3_200_000_000, 6_000_000_000),
        ROW,
    ),
    "dfsio": (
        "micro/dfsioe.conf", "68e4861804b85847b83470d92fca3460404aa528",
        (16 * 1, 32 * 10, 64 * 10, 256 * 100, 512 * 400, 2048 * 1000),
        MIB,
    ),
    "kmeans": (
        "ml/kmeans.conf", "09bf570d0f9fa118e66d5e83767b80e02ef347b7",
        (30_000 * 3 / 20, 3_000_000, 20_000_000, 100_000_000, 200_000_000, 1_200_000_000),
        POINT,
    ),
}  # fmt: skip
# websearch/pagerank.conf at c99e3358b36eb2992c556119d4ddd269d64a17af
PAGES = (50, 5_000, 500_000, 5_000_000, 30_000_000, 50_000_000)
# micro/sleep.conf at 7ad10f866817c2c53347b2168e180f87499a3fe1: seconds of a map
SLEEPS = (3, 30, 90, 90, 90, 10)


@pytest.mark.parametrize("name", TABLE)
def test_bytes_of_each_size(name):
    """
    What HiBench counts (bytes, rows, files, points), in bytes of our formats.
    """
    _, _, counts, unit_bytes = TABLE[name]

    assert WORKLOADS[name].scales == {
        size: int(count * unit_bytes) for size, count in zip(NAMES, counts, strict=True)
    }


@pytest.mark.parametrize(("size", "pages"), [*zip(NAMES, PAGES, strict=True)])
def test_pages_of_each_size(size, pages):
    """
    The generated graph has HiBench's number of pages, to one in a hundred or half of the smallest.
    """
    workload = WORKLOADS["pagerank"]
    spec = WorkloadSpec(name="pagerank", input_bytes=workload.scales[size])
    generator = workload.plan_input(spec, 2**28).generator

    assert int(generator.properties["graph.pages"]) == pytest.approx(pages, rel=0.006, abs=25)


def test_seconds_of_each_size():
    """
    One map over the input sleeps as long as HiBench's, a time for each record.
    """
    workload = WORKLOADS["sleep"]
    record_s = workload.parameters["map_ms"].default / 1000

    assert [size / RECORD * record_s for size in workload.scales.values()] == list(SLEEPS)
