"""The libraries of the GPU workloads through ctypes, and how fast their steps are."""

import ctypes
import time

from ctypes import byref, c_double, c_int64, c_void_p
from pathlib import Path

import numpy as np

NATIVE = Path(__file__).parents[2] / "workloads" / "gpu" / "target" / "native"
KINDS = ("cuda", "cpu")


class Device:
    """An open device of one library; `kind` is cuda or cpu, as the library itself says."""

    def __init__(self, path, threads=1):
        self.lib = ctypes.CDLL(str(path))
        self.lib.hg_text.restype = self.lib.hg_name.restype = ctypes.c_char_p
        self.handle, opened, count = c_void_p(), c_double(), ctypes.c_int()
        self.check(self.lib.hg_count(byref(count)))
        if count.value == 0:
            raise OSError("no device")
        self.check(self.lib.hg_open(0, threads, c_int64(0), byref(self.handle), byref(opened)))
        self.kind = "cuda" if self.lib.hg_is_cuda() else "cpu"
        self.name, self.open_s = self.lib.hg_name(self.handle).decode(), opened.value * 1e-9

    def check(self, code):
        if code:
            raise OSError(self.lib.hg_text().decode())

    def memory(self, size, *, pinned):
        """Memory of the host, as an array of bytes."""
        at = c_void_p()
        self.check(self.lib.hg_host_alloc(self.handle, c_int64(size), int(pinned), byref(at)))
        return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(at.value))

    def release(self, memory, *, pinned):
        self.lib.hg_host_free(at(memory), int(pinned))

    def memory_rate(self, size):
        rate = c_double()
        self.check(self.lib.hg_memory_rate(self.handle, c_int64(size), byref(rate)))
        return rate.value

    def timed(self, function, *arguments):
        """Seconds of one step, by the device's clock."""
        ns = c_double()
        self.check(function(self.handle, *arguments, byref(ns)))
        return ns.value * 1e-9

    def upload(self, block):
        return self.timed(self.lib.hg_upload, at(block), c_int64(block.nbytes))

    def download(self, results):
        return self.timed(self.lib.hg_download, at(results), c_int64(results.nbytes))

    def kmeans(self, n, centres):
        k, d = centres.shape
        return self.timed(self.lib.hg_kmeans, c_int64(n), d, at(centres), k)

    def matmul(self, pairs, tile, repeats=1):
        return self.timed(self.lib.hg_matmul, c_int64(pairs), tile, repeats)

    def sbs(self, frames, width, height, shifts, radius):
        return self.timed(self.lib.hg_sbs, c_int64(frames), width, height, shifts, radius)


def at(array):
    return array.ctypes.data_as(c_void_p)


def devices(threads=1):
    """Devices that there are: CUDA's where its library finds one, and the processor."""
    for kind in KINDS:
        path = NATIVE / f"libharness-gpu-{kind}.so"
        if not path.exists():
            print(f"{path.name} is not built (make {'cuda' if kind == 'cuda' else 'setup'})")
            continue
        try:
            yield Device(path, threads)
        except OSError as why:
            print(f"{kind}: {why}")


def spread(values):
    """Median, lowest and highest."""
    return {
        "median": float(np.median(values)),
        "low": float(min(values)),
        "high": float(max(values)),
    }


def peer_matmul(kind, n, repeats):
    """
    Floating-point operations per second of a product of n x n by a library made for it.

    cuBLAS through PyTorch on a CUDA device, NumPy's BLAS (one thread) on the processor; with its
    name, or none where it is not there.
    """
    if kind == "cpu":
        a = np.random.default_rng(1).uniform(-1, 1, (n, n)).astype(np.float32)
        return "NumPy", [rate(n, lambda: a @ a) for _ in range(repeats)]
    try:
        import torch
    except ModuleNotFoundError:
        return "", []
    torch.backends.cuda.matmul.allow_tf32 = False  # single precision, as ours
    a = torch.rand(n, n, device="cuda")
    observed = []
    for _ in range(repeats + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.mm(a, a)
        end.record()
        end.synchronize()
        observed.append(2 * n**3 / (begin.elapsed_time(end) * 1e-3))
    return "cuBLAS (PyTorch)", observed[1:]


def rate(n, product):
    started = time.perf_counter()
    product()
    return 2 * n**3 / (time.perf_counter() - started)
