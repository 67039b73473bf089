"""
K-means whose maps compare points with centres on a GPU: a job for each iteration.

The proof of its output: the same iterations in double precision by scikit-learn, from the same
first points.
"""

from __future__ import annotations

import itertools
import math
import re

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from numpy.typing import NDArray

from harness.base.errors import JobError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import File, Parameter, Sample, bad_input_error
from harness.clusters.workloads.files import difference, read_matches, read_points
from harness.clusters.workloads.gpu import GpuWorkload, device_parameters
from harness.clusters.workloads.kmeans import LIBRARIES, lloyd, nearest_centres, shift

MOST_POINTS = 2_000_000  # that the proof has in memory; of more it takes a sample
# Points at a border, compared in another precision, go to another centre: a share of them, or a
# few, each of which moves a centre by its distance over the number of points.
_FLIP = 1e-4
_FLIPS = 4
_DEVIATIONS = 10  # by which a sample's centre may miss that of all points
_NUMBER = rb"[-+]\d\.\d{9}e[-+]\d\d"
_LINE = re.compile(rb"(\d{5})\t(\d{12})\t(\d{5})\t(" + _NUMBER + rb"(?: " + _NUMBER + rb")*)")

Singles = NDArray[np.float32]


class GpuKMeans(GpuWorkload):
    """
    Lloyd's K-means over points of a Gaussian mixture, 32-bit floats.

    It starts with the first *k* points, and ends when no centre moves farther than *epsilon* or
    after *iterations*.  A centre without points stays where it was.
    """

    name = "gpu-kmeans"
    libraries = LIBRARIES
    description = "K-means, points compared on a GPU; verified by scikit-learn, the same start"
    parameters: ClassVar = {
        **device_parameters(320_000),  # 20 000 points: the paper's block
        "k": Parameter(10, "centres, and clusters of the generated points", 1, 10_000),
        "dimensions": Parameter(4, "coordinates of a point", 1, 1024),
        "spread": Parameter(5.0, "standard deviation of a cluster in each coordinate", 0.0, 1e6),
        "iterations": Parameter(5, "iterations, and so jobs, at most", 1, 1000),
        "epsilon": Parameter(0.001, "ends when no centre has moved farther", 0.0, 1e6),
    }
    # HiBench's numbers of samples (30 thousand to 1.2 billion), 16 bytes each as points are here.
    sizes = (480e3, 48e6, 320e6, 1.6e9, 3.2e9, 19.2e9)
    main_class = "GpuKMeans"
    content = "points"
    generator_parameters = ("k", "dimensions", "spread")
    # What the proof keeps depends on the iterations, too.
    key_parameters = ("k", "dimensions", "spread", "iterations", "epsilon")
    least = "k"  # a point for each centre

    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a point."""
        return 4 * int(arguments["dimensions"])

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """One for each iteration, as many as it takes; one where one is the limit."""
        return 1 if self.arguments(spec)["iterations"] == 1 else None

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `points`, `stride` (every *stride*-th was compared), and each iteration's centres.

        `iterations` is a list of `centres`, `counts` and `shift` (the farthest move); `scale` is
        the root mean square distance of a point from its centre, per coordinate.
        """
        arguments = self.arguments(spec)
        centres = arguments["k"]
        point_bytes = self.record_bytes(arguments)
        stride = -(-spec.input_bytes // point_bytes // MOST_POINTS) or 1
        compared = list[Singles]()
        start = list[Singles]()
        count = 0
        for points in read_points(spec.name, input_files, "<f4", arguments["dimensions"]):
            start.append(points[: max(centres - count, 0)])
            compared.append(points[-count % stride :: stride])
            count += len(points)
        if count < centres:
            raise bad_input_error(self.name, f"{count} points are fewer than {centres} centres")
        compared_points = np.concatenate(compared).astype(np.float64)
        first_centres = np.concatenate(start).astype(np.float64)
        steps = lloyd(compared_points, first_centres, 0.0, arguments["iterations"])
        moves = [
            {
                "centres": after.centres.tolist(),
                "counts": after.points.tolist(),
                "shift": shift(before.centres, after.centres),
            }
            for before, after in itertools.pairwise(steps)
        ]
        last_start = steps[-2].centres
        distances = compared_points - last_start[nearest_centres(compared_points, last_start)]
        scale = float(np.sqrt((distances**2).mean()))
        return {"points": count, "stride": stride, "iterations": moves, "scale": scale}

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:
        """Folder of the last iteration."""
        return f"{output_uri}/result"

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Every centre once, where the proof has it after as many iterations, and all points."""
        arguments = self.arguments(spec)
        output = read_centres(outputs, arguments["dimensions"])
        if set(output.centres) != set(range(arguments["k"])):
            return f"the output has {len(output.centres)} centres, not {arguments['k']}"
        if reason := difference({"points": output.points}, sample):
            return reason
        limit = arguments["iterations"]
        last = max(output.iterations)
        if len(output.iterations) != 1 or not 1 <= last <= limit:
            listed = sorted(output.iterations)[:5]
            return f"the centres are of the iterations {listed}, {limit} at most"
        moves = sample["iterations"]
        if sample["stride"] == 1:  # a sample's centres do not say when all points stand still
            shifts = [float(move["shift"]) for move in moves]
            if reason := wrong_end(shifts, last, limit, arguments["epsilon"]):
                return reason
        move = moves[min(last, len(moves)) - 1]
        expected = zip(move["centres"], move["counts"], strict=True)
        for number, (coordinates, count) in enumerate(expected):
            # In single precision a coordinate has seven digits.
            allowed = mean_error(count, sample) + 1e-6 * max(map(abs, coordinates))
            pairs = zip(output.centres[number], coordinates, strict=True)
            error = max(abs(actual - due) for actual, due in pairs)
            if not error <= allowed:
                return f"centre {number} misses its place by {error:.6g}, more than {allowed:.6g}"
        return ""


@dataclass(frozen=True, slots=True)
class Output:
    """Centres by their numbers, points of all of them, and of which iterations they are."""

    centres: Mapping[int, Sequence[float]]
    points: int
    iterations: set[int]


def read_centres(outputs: Iterable[File], dimensions: int) -> Output:
    """The output of the last iteration; `JobError` names a line that is not another centre's."""
    centres = dict[int, list[float]]()
    points = 0
    iterations = set[int]()
    for output_file in outputs:
        for place, match in read_matches(output_file, _LINE, "a centre"):
            number = int(match[1])
            coordinates = list(map(float, match[4].split(b" ")))
            if (count := len(coordinates)) != dimensions:
                raise JobError(f"{place}: the centre has {count} coordinates, not {dimensions}")
            if number in centres:
                raise JobError(f"{place}: centre {number} is reported twice")
            centres[number] = coordinates
            points += int(match[2])
            iterations.add(int(match[3]))
    return Output(centres, points, iterations)


def wrong_end(shifts: Sequence[float], last: int, limit: int, epsilon: float) -> str:
    """
    Why iteration *last* should not have been the last one, or nothing.

    *shifts* are the farthest moves of a centre in each iteration of the proof; one that is near
    *epsilon* passes, as it may fall on either side of it in another precision.
    """
    margin = 0.01 * epsilon + 1e-4
    for iteration, moved in enumerate(shifts[: last - 1], start=1):
        if moved < epsilon - margin:
            early = f"iteration {iteration} moved less than {epsilon:g}"
            return f"iteration {last} was made, though {early}"
    if last < limit and last <= len(shifts) and shifts[last - 1] > epsilon + margin:
        return f"iteration {last} was the last, though a centre moved by {shifts[last - 1]:.6g}"
    return ""


def mean_error(count: int, sample: Sample) -> float:
    """By how much a centre of *count* points may miss that of the proof, without roundings."""
    if sample["stride"] == 1:
        share = max(_FLIP, _FLIPS / max(count, 1))
    else:  # the mean of a sample strays by the root of its size
        share = _DEVIATIONS / math.sqrt(max(count, 1))
    return share * float(sample["scale"])
