"""
Tests for what `harness.clusters.workloads.gpu` and its workloads plan, ask for and refuse.
"""

import numpy as np
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import JobError, SpecError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from harness.clusters.workloads.files import read_rows
from harness.clusters.workloads.gpu import GPU_OF_MAP, columns_of
from tests.workloads.gpu_solutions import clustered

NAMES = ("gpu-kmeans", "gpu-sbs", "gpu-matmul")
BLOCK = 8 << 20
TIGHT = {
    "gpu-kmeans": {"iterations": 1},
    "gpu-sbs": {"width": 16, "height": 2},
    "gpu-matmul": {"tile": 4, "inner": 2},
}


def spec_of(name, size=20_000_000, **parameters):
    """
    A workload with arguments.
    """
    return WorkloadSpec(name=name, input_bytes=size, parameters=parameters)


@pytest.mark.parametrize("name", NAMES)
class TestDevice:
    @pytest.mark.parametrize(
        ("device", "properties"), [("gpu", {GPU_OF_MAP: "1"}), ("cpu", {}), ("any", {})]
    )
    def test_only_a_gpu_is_asked_of_the_cluster(self, name, device, properties):
        """
        A stand-in takes no GPU's place in the scheduler.
        """
        assert WORKLOADS[name].properties(spec_of(name, device=device)) == properties

    def test_arguments_reach_the_job(self, name):
        """
        Device, block and the like are properties of the client, which comes from our jar.
        """
        spec = spec_of(name, device="cpu", block=5_000, threads=2, pinned="yes", memory=10**9)
        (command,) = WORKLOADS[name].submit(spec, "/in", "/out")

        wanted = {"device": "cpu", "block": "5000", "threads": "2", "pinned": "true"}
        assert command.jar == "harness-gpu.jar"
        assert {n: command.properties[f"gpu.{n}"] for n in wanted} == wanted

    def test_another_device_is_the_same_input(self, name):
        """
        What decides where and how fast, and not what, shares an input.
        """
        keys = {
            WORKLOADS[name].plan_input(spec_of(name, **more), BLOCK).key
            for more in ({}, {"device": "cpu"}, {"block": 10**6}, {"threads": 4})
        }

        assert len(keys) == 1

    def test_scales_are_planned(self, name):
        """
        Each of HiBench's names is a size that blocks of 128 MiB can hold, with default arguments.
        """
        workload = WORKLOADS[name]
        for size in workload.scales.values():
            plan = workload.plan_input(spec_of(name, size), 128 << 20)
            assert abs(plan.bytes - size) * 100 <= size


@given(st.sampled_from(NAMES), st.integers(20_000, 10**8), st.integers(1 << 16, 1 << 26))
def test_files_are_whole_records(name, size, block):
    """
    Of nearly equal numbers of records, each within a block.
    """
    record = {"gpu-kmeans": 16, "gpu-sbs": 96, "gpu-matmul": 128}[name]
    plan = WORKLOADS[name].plan_input(spec_of(name, size, **TIGHT[name]), block)
    sizes = [f.bytes for f in plan.files]

    assert all(n % record == 0 and n <= block for n in sizes)
    assert max(sizes) - min(sizes) <= record


@pytest.mark.parametrize(
    ("name", "size", "parameters", "complaint"),
    [
        ("gpu-sbs", 10**6, {}, "not within 1 % of 1 or more times 345600 bytes"),
        ("gpu-sbs", 10**8, {"width": 641}, "width of gpu-sbs is '641': it must be a multiple of 2"),
        ("gpu-sbs", 10**9, {"width": 4096, "height": 2160}, "a block of 8388608 bytes does not"),
        ("gpu-sbs", 10**8, {"radius": 8}, "radius of gpu-sbs is '8': it must be from 0 to 7"),
        ("gpu-matmul", 10**8, {"tile": 2048}, "does not hold a record"),
        ("gpu-kmeans", 320, {"k": 21}, "320 bytes is not within 1 % of 21 or more times 16 bytes"),
        ("gpu-kmeans", 10**6, {"device": "tpu"}, "it must be one of gpu, cpu, any"),
    ],
)
def test_what_cannot_be_is_refused(name, size, parameters, complaint):
    """
    Before anything is made, with the numbers.
    """
    with pytest.raises(SpecError, match=complaint):
        WORKLOADS[name].plan_input(spec_of(name, size, **parameters), BLOCK)


@given(st.lists(st.binary(min_size=1, max_size=40)), st.integers(1, 9))
def test_records_are_read_as_they_lie(chunks, record):
    """
    However the bytes come in, the records are theirs; half a one is an error with the file's name.
    """
    data = b"".join(chunks)
    pieces = read_rows("w", [("f", chunks)], record, together=5)
    if len(data) % record:
        with pytest.raises(JobError, match=f"^f has {len(data)} bytes"):
            list(pieces)
    else:
        assert b"".join(rows.tobytes() for rows in pieces) == data


@given(st.integers(1, 5000))
def test_columns_of_a_result(tiles):
    """
    Rows and columns make up all tiles, and there are no more columns than rows.
    """
    assert tiles % columns_of(tiles) == 0
    assert columns_of(tiles) ** 2 <= tiles


@pytest.mark.process  # the proof imports scikit-learn
class TestKMeans:
    """
    The proof of K-means on points of which it takes all, and of which it takes a sample.
    """

    def judged(self, points, most, monkeypatch, output=None):
        """
        What is said of SciPy's centres for *points*, when the proof holds *most* of them.
        """
        monkeypatch.setattr("harness.clusters.workloads.gpu_kmeans.MOST_POINTS", most)
        data, workload = points.astype("<f4").tobytes(), WORKLOADS["gpu-kmeans"]
        spec = spec_of("gpu-kmeans", len(data), iterations=1)
        sample = workload.sample(spec, [("f", [data])])
        return workload.verdict(spec, [("p", [output or clustered([data])])], sample)

    def points(self):
        """
        A mixture whose first ten points are near its middles.
        """
        rng = np.random.default_rng(5)
        middles = rng.uniform(-50, 50, (10, 4))
        return middles[np.arange(20_000) % 10] + rng.normal(0, 2, (20_000, 4))

    def test_a_sample_proves_the_same(self, monkeypatch):
        """
        Right centres pass, however many of the points are looked at.
        """
        for most in (10**6, 3_000):
            verdict = self.judged(self.points(), most, monkeypatch)
            assert verdict == ""

    def test_a_sample_finds_a_wrong_centre(self, monkeypatch):
        """
        One that lies a standard deviation elsewhere, where one in seven points is looked at.
        """
        points = self.points()
        lines = clustered([points.astype("<f4").tobytes()]).decode().splitlines()
        head, where = lines[3].rsplit("\t", 1)
        first, rest = where.split(" ", 1)
        lines[3] = f"{head}\t{float(first) + 2:+.9e} {rest}"

        verdict = self.judged(points, 3_000, monkeypatch, "\n".join(lines).encode())

        assert verdict
        assert verdict.startswith("centre 3 misses its place by ")
