"""
Small clouds of points, and their K-means the obvious way.
"""

import struct

import numpy as np


def cloud(seed=1, count=900, width=20, clusters=5):
    """
    Points of a mixture of normal distributions, far enough apart to be found.
    """
    rng = np.random.default_rng(seed)
    middles = rng.uniform(0, 100, (clusters, width))
    return middles[rng.integers(clusters, size=count)] + rng.normal(0, 5, (count, width))


def cloud_bytes(points):
    """
    Records as the generator writes them.
    """
    return b"".join(struct.pack(f">{len(point)}d", *point) for point in points)


def read_cloud(data, width=20):
    """
    Points of such records.
    """
    return [list(each) for each in struct.iter_unpack(f">{width}d", data)]


def slow_steps(points, count=10, epsilon=0.5, most=5):
    """
    Centres and numbers of points from the start on, by loops over points; a centre without points
    stays where it is.
    """
    steps = [([list(point) for point in points[:count]], [0] * count)]
    for _ in range(most):
        before = steps[-1][0]
        groups = [[] for _ in range(count)]
        for point in points:
            groups[min(range(count), key=lambda i: _square(point, before[i]))].append(point)
        after = [_mean(own) if own else old for own, old in zip(groups, before, strict=True)]
        steps.append((after, list(map(len, groups))))
        if max(map(_square, after, before)) ** 0.5 <= epsilon:
            break
    return steps


def _square(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _mean(points):
    return [sum(coordinates) / len(points) for coordinates in zip(*points, strict=True)]


def steps_file(steps):
    """
    Bytes of the job's output.
    """
    return "".join(
        f"{iteration}\t{number}\t{points}\t{','.join(map(repr, map(float, centre)))}\n"
        for iteration, (centres, counts) in enumerate(steps)
        for number, (centre, points) in enumerate(zip(centres, counts, strict=True))
    ).encode()
