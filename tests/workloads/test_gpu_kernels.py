"""
Tests for the kernels in ``workloads/gpu/kernels``: the library for processors, and the bodies of
the kernels for CUDA devices as an emulation runs them, against NumPy and SciPy.
"""

import ctypes
import os
import shutil
import subprocess

from ctypes import byref, c_double, c_int64, c_void_p
from pathlib import Path

import numpy as np
import pytest

from scipy.spatial.distance import cdist

KERNELS = Path(__file__).parents[2] / "workloads" / "gpu" / "kernels"
EMULATION = Path(__file__).with_name("cuda_emulation.h")
OUT_OF_MEMORY, BAD_ARGUMENT = 2, 10001

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++"),
]


class Device:
    """
    An open device of a library, and its functions with arrays in and out.
    """

    def __init__(self, library, threads=1, limit=0):
        self.lib = library
        self.lib.hg_text.restype = self.lib.hg_name.restype = ctypes.c_char_p
        self.lib.hg_alloc_ns.restype = c_double
        self.handle, opened = c_void_p(), c_double()
        self.open = self.lib.hg_open(0, threads, c_int64(limit), byref(self.handle), byref(opened))

    @property
    def text(self):
        return self.lib.hg_text().decode()

    def work(self, block, out, kernel, *arguments):
        """
        The three steps of a block; the first code that is not 0, or 0.
        """
        ns = c_double(-1)
        for call in (
            lambda: self.lib.hg_upload(self.handle, at(block), c_int64(block.nbytes), byref(ns)),
            lambda: kernel(self.handle, c_int64(len(block)), *arguments, byref(ns)),
            lambda: self.lib.hg_download(self.handle, at(out), c_int64(out.nbytes), byref(ns)),
        ):
            if code := call():
                return code
            assert ns.value >= 0
        return 0

    def kmeans(self, points, centres):
        """
        Sums and counts for each centre, the first bad point, and the code.
        """
        d, k = points.shape[1], len(centres)
        out = np.zeros(k * (d + 1) + 1)
        code = self.work(points, out, self.lib.hg_kmeans, d, at(centres), k)
        table = out[:-1].reshape(k, d + 1)
        return table[:, :d], table[:, d], out[-1:].view(np.int64)[0], code

    def depth(self, frames, shifts, radius):
        """
        Depth frames.
        """
        count, height, width, _ = frames.shape
        out = np.zeros((count, height, width // 2), np.uint8)
        assert self.work(frames, out, self.lib.hg_sbs, width, height, shifts, radius) == 0
        return out

    def matmul(self, pairs, repeats=1):
        """
        Products of pairs of tiles.
        """
        count, _, tile, _ = pairs.shape
        out = np.zeros((count, tile, tile), np.float32)
        assert self.work(pairs, out, self.lib.hg_matmul, tile, repeats) == 0
        return out


def at(array):
    """
    Address of an array's data.
    """
    assert array.flags.c_contiguous
    return array.ctypes.data_as(c_void_p)


def built(out):
    """
    Compile the source for processors, as the set-up does.
    """
    environment = {**os.environ, "NO_JAVA": "1"}
    subprocess.run([str(KERNELS / "build"), "cpu", str(out)], check=True, env=environment)


def emulated(out):
    """
    Compile the same source with CUDA's words emulated.
    """
    subprocess.run(
        ["g++", "-x", "c++", "-O1", "-std=c++20", "-fPIC", "-shared", "-pthread", "-DHG_NO_JAVA",
         f'-DHG_EMULATION="{EMULATION}"', str(KERNELS / "harness_gpu.cu"), "-o", str(out)],
        check=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """
    The libraries by their kind, built when they are asked for.
    """
    folder, libraries = tmp_path_factory.mktemp("kernels"), {}

    def library(kind):
        if kind not in libraries:
            (emulated if kind == "emulation" else built)(out := folder / f"{kind}.so")
            libraries[kind] = ctypes.CDLL(str(out))
        return libraries[kind]

    return library


@pytest.fixture(params=["processor", "emulation"])
def library(libraries, request):
    """
    Each of them.
    """
    return libraries(request.param)


@pytest.fixture(params=[("processor", 1), ("processor", 3), ("emulation", 1)], ids=str)
def device(libraries, request):
    """
    A device of each, the processor's with one thread and with several.
    """
    kind, threads = request.param
    library = libraries(kind)
    opened = Device(library, threads=threads)
    assert opened.open == 0
    yield opened
    library.hg_close(opened.handle)


def mixture(n, d, k, seed=1):
    """
    Points about k centres far from the origin, as float32.
    """
    rng = np.random.default_rng(seed)
    middles = rng.uniform(-50, 50, (k, d)) + 1000
    return (middles[rng.integers(0, k, n)] + rng.normal(0, 3, (n, d))).astype(np.float32)


@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        (1, 1, 1),
        (1000, 4, 10),
        (777, 2, 3),
        (513, 3, 40),
        (300, 5, 7),
        (700, 16, 99),
        (260, 8, 200),
    ],
)
def test_kmeans(device, n, d, k):
    """
    Each point is counted with the centre that distances in double precision name; so are its sums.
    """
    points = mixture(n, d, k)
    centres = np.resize(points, (k, d)) + np.arange(k, dtype=np.float32)[:, None] / 8
    nearest = cdist(points.astype(float), centres.astype(float)).argmin(axis=1)
    expected = np.zeros((k, d))
    np.add.at(expected, nearest, points.astype(float))

    sums, counts, bad, code = device.kmeans(points, centres)

    assert (code, bad) == (0, -1)
    assert counts.tolist() == np.bincount(nearest, minlength=k).tolist()
    np.testing.assert_allclose(sums, expected, rtol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_kmeans_names_the_first_bad_point(device, value):
    """
    A coordinate that is no number, or too large for a distance, is never silently in a cluster.
    """
    points = mixture(600, 4, 3)
    points[411, 2] = points[577, 0] = value

    assert device.kmeans(points, points[:3].copy())[2:] == (411, 0)


def depth_of(frames, shifts, radius):
    """
    The definition in sbs.h, in NumPy's whole numbers: all shifts at once, windows by running sums.
    """
    luma = (frames.astype(np.int64) @ np.array([77, 150, 29])) >> 8
    view = luma.shape[2] // 2
    left, right = luma[:, :, :view], luma[:, :, view:]
    x = np.arange(view)
    costs = np.stack([np.abs(left - right[:, :, np.maximum(x - s, 0)]) for s in range(shifts)])
    padded = np.pad(costs, ((0, 0), (0, 0), (radius + 1, radius), (radius + 1, radius)), "edge")
    sums, side = padded.cumsum(axis=2).cumsum(axis=3), 2 * radius + 1
    sad = sums[:, :, side:, side:] - sums[:, :, :-side, side:] - sums[:, :, side:, :-side]
    sad += sums[:, :, :-side, :-side]
    return (255 * sad.argmin(axis=0) // (shifts - 1)).astype(np.uint8)


@pytest.mark.parametrize(
    ("shape", "shifts", "radius"),
    [
        ((1, 1, 2), 2, 0),
        ((3, 12, 64), 16, 2),
        ((2, 7, 38), 40, 3),
        ((1, 9, 26), 256, 7),
        ((1, 3, 20), 5, 7),
    ],
)
def test_depth_is_the_same_to_the_byte(device, shape, shifts, radius):
    """
    Whatever the frame holds, also where the view is narrower than the shifts or the window.
    """
    frames = np.random.default_rng(2).integers(0, 256, (*shape, 3), np.uint8)
    frames[:, :, shape[2] // 4 :: 3] = 255
    frames[:, ::2, :1] = 0

    assert np.array_equal(device.depth(frames, shifts, radius), depth_of(frames, shifts, radius))


def test_depth_finds_a_known_shift(device):
    """
    A view and the same moved by six columns: the middle of the picture is six shifts deep.
    """
    view = np.random.default_rng(3).integers(0, 256, (1, 24, 60, 3), np.uint8)
    frames = np.concatenate([view, np.roll(view, -6, axis=2)], axis=2)

    depth = device.depth(frames, shifts=16, radius=2)

    assert set(depth[0, :, 10:50].flat) == {255 * 6 // 15}


@pytest.mark.parametrize(
    ("count", "tile"), [(1, 1), (3, 5), (2, 16), (2, 33), (1, 100), (2, 128), (1, 256)]
)
@pytest.mark.parametrize("repeats", [1, 3])
def test_matmul(device, count, tile, repeats):
    """
    Products within the rounding of single precision, however often they are made.
    """
    if tile > 128 and device.lib.hg_is_cuda() and repeats > 1:
        repeats = 1  # threads of a block are threads of this process: seconds
    rng = np.random.default_rng(4)
    pairs = rng.uniform(-1, 1, (count, 2, tile, tile)).astype(np.float32)

    answer = device.matmul(pairs, repeats)

    exact = pairs[:, 0].astype(float) @ pairs[:, 1].astype(float)
    np.testing.assert_allclose(answer, exact, atol=1e-6 * tile)


def test_memory_beyond_the_limit_is_refused_and_the_device_goes_on(library):
    """
    A block that does not fit gives CUDA's code and how much was asked; a smaller one works.
    """
    device = Device(library, limit=100_000)
    points = mixture(10_000, 4, 2)

    code = device.kmeans(points, points[:2].copy())[3]

    assert (code, device.text) == (
        OUT_OF_MEMORY, "160000 bytes of device memory: out of memory, 0 of 100000 are taken"
    )  # fmt: skip
    assert device.kmeans(points[:1000], points[:2].copy())[3] == 0
    library.hg_close(device.handle)


def test_nonsense_is_refused(device):
    """
    Sizes that no array has are named, not tried.
    """
    code = device.lib.hg_sbs(device.handle, c_int64(1), 7, 5, 2, 0, None)

    assert (code, device.text) == (BAD_ARGUMENT, "1 frames of 7 x 5, 2 shifts, radius 0")


def test_a_kernel_reads_no_further_than_its_block(device):
    """
    More points than were uploaded are refused; so are more results than there are.
    """
    device.kmeans(mixture(100, 4, 2), mixture(2, 4, 2))
    ns, room = c_double(), np.zeros(10_000)

    status = device.lib.hg_kmeans(device.handle, c_int64(10**9), 4, at(room), 2, byref(ns))
    taken = device.lib.hg_download(device.handle, at(room), c_int64(room.nbytes), byref(ns))

    assert (status, taken) == (BAD_ARGUMENT, BAD_ARGUMENT)


def test_memory_rate(device):
    """
    A rate between that of a disk and what no memory reaches.
    """
    rate = c_double()

    assert device.lib.hg_memory_rate(device.handle, c_int64(1 << 22), byref(rate)) == 0
    assert 1e6 < rate.value < 1e14


def test_the_processor_is_never_called_cuda(library):
    """
    The library says what it is, and the processor's has the processor's name.
    """
    device = Device(library)
    name = library.hg_name(device.handle).decode()

    assert (library.hg_is_cuda() == 1) == (name == "emulation")
    library.hg_close(device.handle)
