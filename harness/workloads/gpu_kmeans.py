"""
K-means whose maps compare points with centres on a GPU: a job for each iteration.

The proof of its output: the same iterations in double precision and with other arithmetic
(distances by one matrix product), from the same points to begin with.
"""

from __future__ import annotations

import math
import re

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.errors import JobError, SpecError
from harness.records.trial import WorkloadSpec
from harness.workloads.base import File, InputPlan, JobCommand, Parameter, Value, Verdict
from harness.workloads.gpu import (
    client,
    device_parameters,
    generator,
    gpu_properties,
    plan_records,
    read_records,
)
from harness.workloads.shape import arguments, shown

# HiBench's numbers of samples (30 thousand to 1.2 billion), 16 bytes each as points are here.
SCALES = {
    "tiny": 480_000,
    "small": 48_000_000,
    "large": 320_000_000,
    "huge": 1_600_000_000,
    "gigantic": 3_200_000_000,
    "bigdata": 19_200_000_000,
}

MOST_POINTS = 2_000_000  # that the proof holds in memory; of more it takes a sample
# Points at a border, compared in another precision, go to another centre: a share of them, or a few,
# each of which moves a centre by its distance over the number of points.
_FLIP, _FLIPS = 1e-4, 4
_DEVIATIONS = 10  # by which a sample's centre may miss that of all points
_CHUNK = 65_536
_LINE = re.compile(r"(\d{5})\t(\d{12})\t(\d{5})\t([-+.e0-9]+(?: [-+.e0-9]+)*)")
_NUMBER = re.compile(r"[-+]\d\.\d{9}e[-+]\d\d")


class GpuKMeans:
    """
    Lloyd's K-means over points of a Gaussian mixture, 32-bit floats.

    It begins with the first *k* points, and ends when no centre moves farther than *epsilon* or
    after *iterations*.  A centre without points stays where it was.
    """

    name = "gpu-kmeans"
    uses_combiner = False
    description = (
        "K-means, points compared on a GPU; proved by other arithmetic from the same start"
    )
    scales: Mapping[str, int] = SCALES
    parameters: Mapping[str, Parameter] = {  # noqa: RUF012 - nobody writes to it
        **device_parameters(320_000),  # 20 000 points: the paper's block
        "k": Parameter(10, "centres, and clusters of the generated points", 1, 10_000),
        "dimensions": Parameter(4, "coordinates of a point", 1, 1024),
        "spread": Parameter(5.0, "standard deviation of a cluster in each coordinate", 0.0, 1e6),
        "iterations": Parameter(5, "iterations, and so jobs, at most", 1, 1000),
        "epsilon": Parameter(
            0.001, "iterations end when no centre has moved farther than this", 0.0, 1e6
        ),
    }

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """A GPU for each map where *device* is gpu."""
        return gpu_properties(spec, self.parameters)

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """One for each iteration, as many as it takes; one where one is the limit."""
        return 1 if arguments(spec, self.parameters)["iterations"] == 1 else None

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each, their points equal in number to one."""
        values = arguments(spec, self.parameters)
        # What the proof keeps depends on the iterations, too.
        names = ("k", "dimensions", "spread", "iterations", "epsilon")
        plan = plan_records(
            spec, block_bytes, _point(values), {name: values[name] for name in names}
        )
        if plan.bytes // _point(values) < int(values["k"]):
            raise SpecError(
                f"{plan.bytes // _point(values)} points are fewer than {values['k']} centres",
                where=f"{spec.name}, input and k",
                fix=f"ask for {_point(values) * int(values['k'])} bytes or more, or for a smaller k",
            )
        return plan

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Points about *k* middles, the same for any number of files."""
        values, plan = arguments(spec, self.parameters), self.plan_input(spec, block_bytes)
        own = {f"gpu.{name}": str(values[name]) for name in ("k", "dimensions", "spread")}
        return generator("points", plan, _point(values), spec, own, uri)

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """
        Return `points`, `stride` (every so many-th was compared), and the centres of each iteration.

        `iterations` is a list of `centres`, `counts` and `shift` (the farthest move); `scale` is the
        root mean square distance of a point from its centre, per coordinate.
        """
        values = arguments(spec, self.parameters)
        points, start, count, stride = _points(spec, files, values)
        moves, scale = _lloyd(points, start, int(values["iterations"]))
        return {"points": count, "stride": stride, "iterations": moves, "scale": scale}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One client, which runs the jobs one after the other."""
        values = arguments(spec, self.parameters)
        own = [name for name in self.parameters if name != "spread"]
        return (client("GpuKMeans", (input_uri, output_uri), values, own),)

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:  # noqa: ARG002 - the last job's
        """Folder of the last iteration."""
        return f"{output_uri}/result"

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Every centre once, where the proof has it after as many iterations, all points counted."""
        values = arguments(spec, self.parameters)
        found = _Centres({}, {}, set())
        for name, chunks in outputs:
            if wrong := found.read(name, b"".join(chunks), int(values["dimensions"])):
                return Verdict(right=False, reason=wrong)
        reason = _difference(found, values, sample)
        facts: dict[str, int | str] = {
            "centres": len(found.at),
            "points": sum(found.counts.values()),
            "iterations": max(found.iterations, default=0),
            "every so many-th point compared": sample["stride"],
        }
        return Verdict(right=not reason, reason=reason, facts=facts)


def _point(values: Mapping[str, Value]) -> int:
    """Bytes of a point."""
    return 4 * int(values["dimensions"])


def _points(
    spec: WorkloadSpec, files: Iterable[File], values: Mapping[str, Value]
) -> tuple[NDArray[np.float32], NDArray[np.float32], int, int]:
    """Points to compare, the first k, the number of all, and how many each compared one stands for."""
    k, record = int(values["k"]), _point(values)
    stride = -(-spec.input_bytes // record // MOST_POINTS) or 1
    kept, first, count = [], [], 0
    for rows in read_records(spec.name, files, record):
        points = rows.view("<f4").astype(np.float32)
        if not np.isfinite(points).all():
            raise JobError(
                f"a point after number {count} has a coordinate that is not finite",
                where=f"input of {spec.name}, as its generator left it",
                fix="remove this input, so that it is generated again",
            )
        if count < k:
            first.append(points[: k - count])
        kept.append(points[-count % stride :: stride])
        count += len(points)
    if count < k:
        raise JobError(f"{count} points are fewer than {k} centres", where=f"input of {spec.name}")
    return np.concatenate(kept), np.concatenate(first), count, stride


def _lloyd(
    points: NDArray[np.float32], start: NDArray[np.float32], most: int
) -> tuple[list[dict[str, Any]], float]:
    """Iterations from *start* until nothing moves, *most* at most; spread about the last centres."""
    centres, moves, scale = start.astype(np.float64), [], 0.0
    middle = points.mean(axis=0, dtype=np.float64)
    for _ in range(most):
        sums, counts, squares = np.zeros_like(centres), np.zeros(len(centres), np.int64), 0.0
        for begin in range(0, len(points), _CHUNK):
            x = points[begin : begin + _CHUNK] - middle
            c = centres - middle
            distance = (c * c).sum(axis=1) - 2 * (x @ c.T)
            nearest = distance.argmin(axis=1)
            squares += float((distance[np.arange(len(x)), nearest] + (x * x).sum(axis=1)).sum())
            counts += np.bincount(nearest, minlength=len(c))
            for j in range(centres.shape[1]):
                sums[:, j] += np.bincount(nearest, x[:, j], minlength=len(c))
        moved = np.where(
            counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None] + middle, centres
        )
        shift = float(np.linalg.norm(moved - centres, axis=1).max())
        centres, scale = moved, math.sqrt(max(squares, 0.0) / points.size)
        moves.append({"centres": moved.tolist(), "counts": counts.tolist(), "shift": shift})
        if shift == 0:
            break
    return moves, scale


@dataclass(frozen=True)
class _Centres:
    """Centres by their numbers, as they are read."""

    at: dict[int, list[float]]
    counts: dict[int, int]
    iterations: set[int]

    def read(self, name: str, data: bytes, dimensions: int) -> str:
        """Add the lines of one output file; what is wrong with them, or nothing."""
        for number, line in enumerate(data.decode("ascii", "replace").splitlines(), start=1):
            match = _LINE.fullmatch(line)
            numbers = match[4].split(" ") if match else []
            if not match or len(numbers) != dimensions or not all(map(_NUMBER.fullmatch, numbers)):
                return f"{name}:{number}: {shown(line)} is not a centre of {dimensions} coordinates"
            centre = int(match[1])
            if centre in self.at:
                return f"{name}:{number}: centre {centre} is there a second time"
            self.at[centre] = [float(each) for each in numbers]
            self.counts[centre] = int(match[2])
            self.iterations.add(int(match[3]))
        return ""


def _difference(found: _Centres, values: Mapping[str, Value], sample: Mapping[str, Any]) -> str:
    """First thing that is not as the proof has it, or nothing."""
    k, most, moves = int(values["k"]), int(values["iterations"]), sample["iterations"]
    if set(found.at) != set(range(k)):
        return f"{len(found.at)} centres were found, {k} were asked for"
    if sum(found.counts.values()) != sample["points"]:
        return f"{sum(found.counts.values())} points were counted, the input has {sample['points']}"
    if len(found.iterations) != 1 or not 1 <= (last := max(found.iterations)) <= most:
        return f"the centres are of the iterations {sorted(found.iterations)[:5]}, {most} at most"
    if sample["stride"] == 1 and (wrong := _ended(last, most, float(values["epsilon"]), moves)):
        return wrong
    return _moved(found, moves[min(last, len(moves)) - 1], sample)


def _ended(last: int, most: int, epsilon: float, moves: list[dict[str, Any]]) -> str:
    """Whether the iterations ended where they should; a shift close to *epsilon* may fall to either side."""
    shifts = [float(move["shift"]) for move in moves]
    margin = 0.01 * epsilon + 1e-4
    if early := [i for i, shift in enumerate(shifts[: last - 1], 1) if shift < epsilon - margin]:
        return f"iteration {last} was made, though iteration {early[0]} moved less than {epsilon:g}"
    if last < most and last <= len(shifts) and shifts[last - 1] > epsilon + margin:
        return f"iteration {last} was the last, though a centre moved by {shifts[last - 1]:.6g}"
    return ""


def _moved(found: _Centres, expected: Mapping[str, Any], sample: Mapping[str, Any]) -> str:
    """First centre that lies elsewhere."""
    for centre, (where, count) in enumerate(
        zip(expected["centres"], expected["counts"], strict=True)
    ):
        # In single precision a coordinate keeps seven digits; a sample's mean strays by its root.
        flips = max(_FLIP, _FLIPS / max(count, 1))
        share = flips if sample["stride"] == 1 else _DEVIATIONS / math.sqrt(max(count, 1))
        allowed = share * sample["scale"] + 1e-6 * max(map(abs, where))
        miss = max(abs(a - b) for a, b in zip(found.at[centre], where, strict=True))
        if not miss <= allowed:
            return f"centre {centre} misses its place by {miss:.6g}, more than {allowed:.6g}"
    return ""
