"""
Tests for the jobs of ``workloads/gpu`` in Hadoop's local runner, on the processor: right results,
and the errors for bad input and missing devices.
"""

import re
import shutil
import zipfile

import numpy as np
import pytest

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads import WORKLOADS
from tests.workloads.local_runner import JAR, LocalRunner

BLOCK = 1 << 20
SMALL = {
    "gpu-kmeans": (200_000, {"iterations": 2, "block": 30_000, "k": 4}),
    "gpu-sbs": (2_400_000, {"width": 80, "height": 20, "block": 100_000}),
    "gpu-matmul": (1_310_720, {"tile": 32, "inner": 4, "block": 65_536}),
}
# Records of the task's counters that say what it did.
COUNTER = re.compile(r"\b([A-Z0-9_]+)=(\d+)$", re.MULTILINE)

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="there is no g++, so the jar has no library"
    ),
]


def spec_of(name, **changes):
    """
    A small input, computed by the processor.
    """
    size, own = SMALL[name]
    return WorkloadSpec(name=name, input_bytes=size, parameters={"device": "cpu", **own, **changes})


def generated(runner, spec, folder="in", block=BLOCK):
    """
    Generate an input; its files.
    """
    command = WORKLOADS[spec.name].generate(spec, block, str(runner.folder / folder))
    assert runner.run(command) == 0, runner.output
    return runner.files(folder)


def submitted(runner, spec, out="out"):
    """
    Run the jobs on what lies in the folder `in`; the status of the client.
    """
    (command,) = WORKLOADS[spec.name].submit(
        spec, str(runner.folder / "in"), str(runner.folder / out)
    )
    return runner.run(command)


def put(runner, name, data):
    """
    Put one file into the input folder.
    """
    (runner.folder / "in").mkdir(exist_ok=True)
    (runner.folder / "in" / name).write_bytes(data)


@pytest.fixture
def runner(tmp_path):
    """
    A local runner of this test's own.
    """
    return LocalRunner(tmp_path)


@pytest.mark.parametrize("name", SMALL)
def test_right_output(runner, name):
    """
    A generated input has the size planned, its output passes the proof, and the processor is named.
    """
    spec, workload = spec_of(name), WORKLOADS[name]
    files = generated(runner, spec)
    plan = workload.plan_input(spec, BLOCK)
    assert [(n, len(data)) for n, (data,) in files] == [(f.name, f.bytes) for f in plan.files]

    assert submitted(runner, spec) == 0, runner.output

    folder = workload.outputs(spec, "out")
    verdict = workload.verdict(spec, runner.files(folder), workload.sample(spec, files))
    assert verdict == ""
    counters = dict(COUNTER.findall(runner.output))
    assert int(counters["BYTES_IN"]) == plan.bytes
    assert int(counters["KERNEL_NS"]) > 0
    assert "DEVICE_CPU" in counters
    assert "DEVICE_CUDA" not in counters
    assert 'gpu: device=cpu name="' in runner.output


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_bytes_do_not_depend_on_the_number_of_maps(runner, name):
    """
    One file or several: together the same bytes; another seed has others.
    """
    spec = spec_of(name)
    one, several = (
        b"".join(data for _, (data,) in generated(runner, spec, folder, block))
        for folder, block in (("one", 1 << 24), ("several", 100_000))
    )
    other = generated(runner, spec.model_copy(update={"seed": 2}), "other", 1 << 24)

    assert len(runner.files("several")) > 1
    assert one == several
    assert one != other[0][1][0]


@pytest.mark.long
def test_points_are_a_gaussian_mixture(runner):
    """
    About their middles the points spread as a normal distribution of the width asked for.
    """
    from scipy import stats

    spec = spec_of("gpu-kmeans", k=1, spread=2.0)
    points = np.frombuffer(generated(runner, spec)[0][1][0], "<f4").reshape(-1, 4)

    for coordinate in points.T:
        z = (coordinate - coordinate.mean()) / 2.0
        assert stats.kstest(z, "norm").pvalue > 0.001


@pytest.mark.long
def test_generated_frames_have_two_depths(runner):
    """
    Most pixels of the depth frames are those of the two layers that the generator moved.
    """
    spec = spec_of("gpu-sbs")
    generated(runner, spec)
    assert submitted(runner, spec) == 0, runner.output

    depths = np.frombuffer(b"".join(d for _, (d,) in runner.files("out")), np.uint8)
    values, counts = np.unique(depths.reshape(-1, 20 * 40)[0], return_counts=True)
    # Shift 1 behind and 3 in front, of 16.
    assert set(values[np.argsort(counts)[-2:]]) == {255 * 1 // 15, 255 * 3 // 15}


def test_a_file_cut_short_is_refused_by_name(runner):
    """
    Before anything runs, with the file, its bytes and what its last frame lacks.
    """
    put(runner, "whole", bytes(4800))
    put(runner, "short", bytes(4800 * 2 - 7))

    assert submitted(runner, spec_of("gpu-sbs")) != 0
    assert re.search(
        r"/in/short has 9593 bytes, which is not a whole number of records of 4800 bytes: its last"
        r" record"
        r" lacks 7 bytes",
        runner.output,
    )


@pytest.mark.parametrize(
    "value", [np.nan, pytest.param(np.inf, marks=pytest.mark.long)], ids=["nan", "infinite"]
)
def test_a_coordinate_that_is_no_number_is_refused_by_record(runner, value):
    """
    With the record's number in its file, the file and the byte; no centre is written.
    """
    points = np.random.default_rng(1).uniform(-1, 1, (5000, 4)).astype("<f4")
    put(runner, "a", points.tobytes())
    points[4321, 1] = value
    put(runner, "b", points.tobytes())

    assert submitted(runner, spec_of("gpu-kmeans")) != 0
    assert re.search(
        r"record 4321 of file:\S*/in/b \(byte 69136\) has a coordinate that is NaN, infinite",
        runner.output,
    )
    assert not (runner.folder / "out" / "result").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", r"the input is empty: \S*/in"),
        (bytes(16 * 3), r"/in has 3 points, fewer than the 4 centres asked for \(gpu.k\)"),
    ],
    ids=["empty", "few"],
)
def test_too_few_points_are_refused(runner, data, complaint):
    """
    Nothing, or fewer points than centres.
    """
    put(runner, "a", data)

    assert submitted(runner, spec_of("gpu-kmeans")) != 0
    assert re.search(complaint, runner.output)


@pytest.mark.long
def test_empty_centres_stay_where_they_were(runner):
    """
    Equal points all go to the first centre; the others keep their places, and their lines.
    """
    put(runner, "a", np.tile(np.array([1, 2, 3, 4], "<f4"), 1000).tobytes())

    assert submitted(runner, spec_of("gpu-kmeans")) == 0, runner.output

    lines = b"".join(data for _, (data,) in runner.files("out/result")).decode().splitlines()
    where = "+1.000000000e+00 +2.000000000e+00 +3.000000000e+00 +4.000000000e+00"
    counts = [1000, 0, 0, 0]
    assert sorted(lines) == [f"{c:05d}\t{counts[c]:012d}\t00001\t{where}" for c in range(4)]


@pytest.mark.long
def test_memory_of_the_device_that_runs_out(runner):
    """
    The task fails with the bytes asked, the node and a cure; no result is written.
    """
    put(runner, "a", np.random.default_rng(1).uniform(-1, 1, 40_000).astype("<f4").tobytes())

    assert submitted(runner, spec_of("gpu-kmeans", memory=20_000)) != 0
    assert re.search(
        r"30000 bytes of device memory: out of memory.*; at: \S+; fix: ask for a smaller gpu.block",
        runner.output,
    ), runner.output
    assert not (runner.folder / "out" / "result").exists()


def test_without_a_library_nothing_is_submitted(tmp_path):
    """
    A jar that was built without g++ says which package is missing.
    """
    bare = tmp_path / "bare.jar"
    with zipfile.ZipFile(JAR) as full, zipfile.ZipFile(bare, "w") as out:
        for name in full.namelist():
            if not name.startswith("native/"):
                out.writestr(name, full.read(name))
    runner = LocalRunner(tmp_path, bare)
    put(runner, "a", bytes(16 * 100))

    assert submitted(runner, spec_of("gpu-kmeans")) != 0
    assert "harness-gpu.jar has no libharness-gpu-cpu.so" in runner.output
    assert "fix: install g++ (apt-get install -y g++)" in runner.output
    assert "Submitting tokens" not in runner.output


@pytest.mark.long
def test_a_map_without_reduces_is_refused(runner):
    """
    The order of the output is the reduces' work.
    """
    put(runner, "a", bytes(4800))
    (command,) = WORKLOADS["gpu-sbs"].submit(
        spec_of("gpu-sbs"), str(runner.folder / "in"), str(runner.folder / "out")
    )
    properties = {**command.properties, "mapreduce.job.reduces": "0"}

    assert runner.run(type(command)(command.main_class, command.arguments, properties=properties))
    assert "set mapreduce.job.reduces to 1 or more" in runner.output
