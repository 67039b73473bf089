"""
Kernels and copies of the GPU workloads, each beside what the same device does at best.

    copies       a block of 4 MiB, and of 256 MiB, from memory that is pinned and that is not;
                 share of the fastest pinned copy of this run
    K-means      bytes of points a second, beside the rate at which the device reads its memory
    product      operations a second, beside cuBLAS (PyTorch) or NumPy's BLAS
    depth        frames a second; no peer
    sharing      the same K-means by 1, 2 and 4 processes at once, each with a context of its own

A CUDA device is measured where `make cuda` has built its library and there is one; the processor
always, with one thread.  What the processor does stands under its name: it is no figure of a GPU.

    .venv/bin/python bench/bench_gpu.py [--json FILE]
"""

import argparse
import json
import multiprocessing
import os
import sys

from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from gpu.kernels import NATIVE, Device, devices, peer_matmul, spread

REPEATS = 7
MIB = 2**20
SIDE = {"cuda": 4096, "cpu": 512}
POINTS = {"cuda": 32_000_000, "cpu": 2_000_000}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    chosen = parser.parse_args()
    measurements = [measured(device) for device in devices()]
    if chosen.json:
        chosen.json.write_text(
            json.dumps({"schema_version": 1, "devices": measurements}, indent=1) + "\n"
        )


def measured(device):
    print(f"device={device.kind} name={device.name!r}: context {device.open_s * 1e3:.1f} ms")
    answer = {"device": device.kind, "name": device.name, "open_s": device.open_s}
    for measure in (copies, kmeans, matmul, sbs, sharing):
        answer[measure.__name__] = measure(device)
    return answer


def copies(device):
    rates = {}
    for size in (4 * MIB, 256 * MIB):
        for pinned in (True, False):
            block = device.memory(size, pinned=pinned)
            block[:] = 1
            key = f"{size // MIB} MiB, {'pinned' if pinned else 'pageable'}"
            device.upload(block)
            rates[f"{key}, to the device"] = spread(
                [size / device.upload(block) for _ in range(REPEATS)]
            )
            device.matmul(size // (8 * 64 * 64), 64)  # products lie where a download finds them
            half = block[: size // 2]
            rates[f"{key}, to the host"] = spread(
                [half.nbytes / device.download(half) for _ in range(REPEATS)]
            )
            device.release(block, pinned=pinned)
    best = max(r["median"] for key, r in rates.items() if "pinned" in key)
    for key, r in rates.items():
        print(
            f"  copy of {key}: {r['median'] / 1e9:.2f} GB/s,"
            f" {r['median'] / best:.0%} of the best pinned"
        )
    return rates


def kmeans(device):
    n, d, k = POINTS[device.kind], 4, 10
    rng = np.random.default_rng(1)
    points = rng.uniform(-1, 1, (n, d)).astype(np.float32)
    device.upload(points)
    device.kmeans(n, points[:k].copy())
    rates = spread([points.nbytes / device.kmeans(n, points[:k].copy()) for _ in range(REPEATS)])
    roof = spread([device.memory_rate(points.nbytes) for _ in range(REPEATS)])
    share = rates["median"] / roof["median"]
    print(
        f"  K-means, {n} points x {d}, {k} centres: {rates['median'] / 1e9:.2f} GB/s,"
        f" {share:.0%} of reading memory ({roof['median'] / 1e9:.2f} GB/s)"
    )
    return {"bps": rates, "memory_bps": roof, "share": share}


def matmul(device):
    side = SIDE[device.kind]
    pair = np.random.default_rng(1).uniform(-1, 1, (2, side, side)).astype(np.float32)
    device.upload(pair)
    device.matmul(1, side)
    work = 2 * side**3
    rates = spread([work / device.matmul(1, side) for _ in range(REPEATS)])
    peer, beside = peer_matmul(device.kind, side, REPEATS)
    text = f"  product {side} x {side}: {rates['median'] / 1e9:.1f} GFLOP/s"
    if not peer:
        print(f"{text}; PyTorch is not installed, so cuBLAS was not measured")
        return {"flops": rates}
    share = rates["median"] / float(np.median(beside))
    print(f"{text}, {share:.0%} of {peer} ({np.median(beside) / 1e9:.1f})")
    return {"flops": rates, "peer": peer, "peer_flops": spread(beside), "share": share}


def sbs(device):
    width, height, count = 640, 180, 32
    frames = np.random.default_rng(1).integers(0, 256, (count, height, width, 3), np.uint8)
    device.upload(frames)
    device.sbs(count, width, height, 16, 2)
    rates = spread([count / device.sbs(count, width, height, 16, 2) for _ in range(REPEATS)])
    print(f"  depth, {width} x {height}, 16 shifts, radius 2: {rates['median']:.0f} frames/s")
    return {"frames_per_s": rates}


def sharing(device):
    """Processes that share the device: what each gets of its K-means."""
    answer = {}
    context = multiprocessing.get_context("spawn")
    for processes in (1, 2, 4):
        with context.Pool(processes) as pool:
            rates = pool.map(alone, [device.kind] * processes)
        answer[processes] = rates
        print(f"  {processes} processes at once: {np.mean(rates) / 1e9:.2f} GB/s each in K-means")
    return answer


def alone(kind):
    device = Device(NATIVE / f"libharness-gpu-{kind}.so")
    n = POINTS[kind] // 4
    points = np.random.default_rng(1).uniform(-1, 1, (n, 4)).astype(np.float32)
    device.upload(points)
    return float(
        np.median(
            [points.nbytes / device.kmeans(n, points[:10].copy()) for _ in range(4 * REPEATS)]
        )
    )


if __name__ == "__main__":
    main()
