"""
Inputs of the GPU workloads, and right outputs computed the obvious way.
"""

import itertools
import struct
import zlib

import numpy as np


def floats(rng, size):
    """
    Numbers below 1, in single precision.
    """
    return rng.uniform(-1, 1, size // 4).astype("<f4").tobytes()


def clustered(files):
    """
    Centres of SciPy's K-means after one iteration, from the first ten points.
    """
    from scipy.cluster.vq import vq

    points = np.frombuffer(b"".join(files), "<f4").reshape(-1, 4).astype(float)
    centres = points[:10]
    labels, _ = vq(points, centres)
    lines = []
    for c in range(10):
        mean = points[labels == c].mean(axis=0)
        coordinates = " ".join(f"{x:+.9e}" for x in mean)
        lines.append(f"{c:05d}\t{(labels == c).sum():012d}\t{1:05d}\t{coordinates}\n")
    return "".join(lines).encode()


def deep(files):
    """
    Depth of each frame of two rows, pixel by pixel of the 5 x 5 window.
    """
    frames = np.frombuffer(b"".join(files), np.uint8).reshape(-1, 2, 16, 3).astype(int)
    luma = (77 * frames[..., 0] + 150 * frames[..., 1] + 29 * frames[..., 2]) // 256
    left, right = luma[:, :, :8], luma[:, :, 8:]
    sads = np.zeros((16, len(frames), 2, 8), int)
    for s, y, x, i, j in itertools.product(
        range(16), range(2), range(8), range(-2, 3), range(-2, 3)
    ):
        row, at = min(max(y + j, 0), 1), min(max(x + i, 0), 7)
        sads[s, :, y, x] += abs(left[:, row, at] - right[:, row, max(at - s, 0)])
    return (255 * sads.argmin(axis=0) // 15).astype(np.uint8).tobytes()


def multiplied(files):
    """
    Sums of two products of tiles of 4 x 4, each behind its head.
    """
    pairs = np.frombuffer(b"".join(files), "<f4").reshape(-1, 2, 2, 4, 4)
    products = np.einsum("npik,npkj->nij", pairs[:, :, 0], pairs[:, :, 1])
    across = max(n for n in range(1, len(pairs) + 1) if len(pairs) % n == 0 and n * n <= len(pairs))
    out = b""
    for number, tile in enumerate(products.astype("<f4")):
        head = struct.pack("<iiiI", *divmod(number, across), 2, zlib.crc32(tile.tobytes()))
        out += head + tile.tobytes()
    return out
