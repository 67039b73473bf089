"""
K-means over a generated mixture of normal distributions, a job for each iteration.

The proof of its output: the centres of every iteration are those of scikit-learn, and the
iterations end where they should.  Of an input that is too large for memory, a sample judges each
iteration from the centres that it began with, and the sum over all points is compared.
"""

from __future__ import annotations

import base64
import itertools
import re
import warnings

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from numpy.typing import NDArray

from harness.base.errors import JobError
from harness.base.extras import CLUSTERS, extra
from harness.base.records.trial import WorkloadSpec, digest
from harness.clusters.workloads.base import (
    File,
    InputPlan,
    Parameter,
    Sample,
    Workload,
    bad_input_error,
    even_sizes,
    shown,
)
from harness.clusters.workloads.files import (
    checksum,
    difference,
    generated_input,
    read_matches,
    read_points,
    whole_records,
)

VERSION = 1  # of the generator's bytes
LIBRARIES = ("sklearn", "threadpoolctl")

IN_MEMORY_BYTES = 2**29  # of an input that scikit-learn sees whole; it takes a few times as much
SAMPLED = 10_000  # points of a larger one

# Sums of doubles in another order: 1e-9 of the largest coordinate is far above what they differ by.
_TOLERANCE = 1e-9
_SIGMAS = 6.0  # one in 5e8 comparisons of a right output is beyond
_LEAST = 30  # points of a sample whose mean is near to normal
_NUMBER = rb"-?\d+(?:\.\d+)?(?:[Ee][-+]?\d{1,3})?"
_LINE = re.compile(rb"(\d{1,9})\t(\d{1,9})\t(\d{1,18})\t(%b(?:,%b)*)" % (_NUMBER, _NUMBER))

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """Centres after one iteration (before the first: the start), and the points of each."""

    centres: Floats
    points: Ints


class KMeans(Workload):
    """
    Finds centres of clusters; its jobs have a combiner, and read centres from the cache.

    All of its parameters are part of an input's key: what is kept of the input are the centres that
    are to come out.
    """

    name = "kmeans"
    libraries = LIBRARIES
    main_class = "kmeans.KMeans"
    description = "K-means over a mixture of normal distributions; verified by scikit-learn"
    unlike_hibench = ""  # where it is asked for, the workload is `MahoutKMeans`
    uses_combiner = True
    parameters: ClassVar = {
        "centres": Parameter(10, "centres to find (k)", 1, 10_000),
        "dimensions": Parameter(20, "coordinates of a point", 1, 1000),
        "clusters": Parameter(5, "normal distributions that points are drawn from", 1, 1000),
        "spread": Parameter(5.0, "their standard deviation; their means are from 0 to 100", 0, 1e6),
        "epsilon": Parameter(0.5, "ends when no centre moves farther", 0, 1e9),
        "iterations": Parameter(5, "jobs at most", 1, 100),
    }
    # HiBench's profiles have 30,000 points of 3 dimensions (tiny), and 3, 20, 100, 200 and 1200
    # million of 20; a coordinate takes 8 bytes.
    sizes = (720e3, 480e6, 3.2e9, 16e9, 32e9, 192e9)

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """As many as it takes: the points decide."""
        return None

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many points as the size asked holds, spread evenly over the fewest files that fit."""
        arguments = self.arguments(spec)
        size = 8 * arguments["dimensions"]
        centres = arguments["centres"]
        points, files = whole_records(spec, block_bytes, size, least_records=centres)
        content = {"mixture": VERSION, "seed": spec.seed, "points": points, "files": files}
        names = ("clusters", "dimensions", "spread")
        return generated_input(
            spec,
            f"mixture-{digest({**content, **arguments})}",
            "kmeans.Mixture",
            records=points,
            sizes=[count * size for count in even_sizes(points, files)],
            properties={f"mixture.{name}": arguments[name] for name in names},
        )

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Return `records` (points), their `checksum`, and the `steps` due: centres and their points.

        Of more than `IN_MEMORY_BYTES` instead of steps the `start`, `points` of a sample (in
        base64) and the `sums` of all coordinates.  Raises `JobError` for damaged points.
        """
        arguments = self.arguments(spec)
        centres = arguments["centres"]
        width = arguments["dimensions"]
        in_memory = spec.input_bytes <= IN_MEMORY_BYTES
        stride = 1 if in_memory else max(spec.input_bytes // (8 * width) // SAMPLED, 1)
        start = np.zeros((0, width))
        chosen = [np.zeros((0, width))]
        sums = np.zeros(width)
        count = 0
        bits = 0
        for block in read_points(self.name, input_files, ">f8", width):
            points = block.astype(np.float64)
            start = np.concatenate((start, points[: max(centres - len(start), 0)]))
            chosen.append(points[-count % stride :: stride])
            sums += points.sum(axis=0)
            bits += checksum(block.view(np.uint8))
            count += len(points)
        if count < centres:
            raise bad_input_error(self.name, f"{count} points are fewer than {centres} centres")
        points = np.concatenate(chosen)
        totals = {"records": count, "checksum": f"{bits % 2**64:016x}"}
        if in_memory:
            steps = lloyd(points, start, arguments["epsilon"], arguments["iterations"])
            return {
                **totals,
                "scale": float(np.abs(points).max()),
                "steps": [[step.centres.tolist(), step.points.tolist()] for step in steps],
            }
        return {
            **totals,
            "start": start.tolist(),
            "sums": sums.tolist(),
            "points": base64.b64encode(points.astype("<f8").tobytes()).decode("ascii"),
        }

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """What the client must know to submit jobs until the centres stand still."""
        arguments = self.arguments(spec)
        names = ("centres", "dimensions", "epsilon", "iterations")
        return {f"kmeans.{name}": arguments[name] for name in names}

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:
        """Folder with the centres of all iterations."""
        return f"{output_uri}/centres"

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """The centres of each iteration, and as many iterations as it takes."""
        arguments = self.arguments(spec)
        steps = read_steps(outputs, arguments["centres"], arguments["dimensions"])
        iterations = len(steps) - 1
        due_iterations = iterations_due(steps, arguments["epsilon"], arguments["iterations"])
        if iterations == due_iterations and "steps" in sample:
            due_iterations = len(sample["steps"]) - 1
        if iterations != due_iterations:
            return f"the output has {iterations} iterations, not {due_iterations}"
        if "steps" not in sample:
            return improbability(steps, sample)
        pairs = zip(steps, sample["steps"], strict=True)
        for number, (step, (centres, points)) in enumerate(pairs):
            if (wrong := np.flatnonzero(step.points != np.array(points))).size:
                centre = wrong[0]
                counts = f"{step.points[centre]} points, not {points[centre]}"
                return f"iteration {number}: centre {centre} has {counts}"
            errors = np.abs(step.centres - np.array(centres)).max(axis=1)
            # The start is taken over, digit by digit.
            if errors.max() > (_TOLERANCE * sample["scale"] if number else 0):
                centre = errors.argmax()
                error = errors.max()
                return f"iteration {number}: centre {centre} misses a coordinate by {error:.3g}"
        return ""


class MahoutKMeans(KMeans):
    """
    K-means as Mahout does it for HiBench: from five centres, and a job more that assigns points.

    It has no reduces, and writes each point with the number of its nearest centre.
    """

    jobs_alike = False
    as_hibench: ClassVar = {"centres": 5, "clusters": 5, "epsilon": 0.5}

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Also that points are assigned in the end."""
        return {**super().client_properties(spec), "kmeans.assign": "true"}

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """The centres of each iteration, and every point with the nearest of the last ones."""
        arguments = self.arguments(spec)
        files = iter(outputs)
        steps = [(name, list(chunks)) for name, chunks in itertools.islice(files, 1)]
        if reason := super().complaint(spec, steps, sample):
            return reason
        width = arguments["dimensions"]
        count = 0
        bits = 0
        centres = read_steps(steps, arguments["centres"], width)[-1].centres
        for block in read_points(self.name, files, ">f8", width + 1):
            points = np.ascontiguousarray(block[:, :-1])
            nearest = nearest_centres(points.astype(np.float64), centres)
            if (wrong := np.flatnonzero(nearest != block[:, -1])).size:
                return f"point {count + wrong[0]} of the output is not with its nearest centre"
            bits += checksum(points.view(np.uint8))
            count += len(points)
        return difference({"records": count, "checksum": f"{bits % 2**64:016x}"}, sample)


def read_steps(outputs: Iterable[File], centres: int, width: int) -> list[Step]:
    """Steps in the output; `JobError` names a line that is not the next centre's."""
    places = list[Floats]()
    points = list[int]()
    for output_file in outputs:
        for place, match in read_matches(output_file, _LINE, "a centre"):
            iteration, centre = divmod(len(places), centres)
            coordinates = match[4].split(b",")
            if (int(match[1]), int(match[2]), len(coordinates)) != (iteration, centre, width):
                expected = f"iteration {iteration}, centre {centre}, {width} coordinates"
                raise JobError(f"{place}: {shown(match[0])} is not that of {expected}")
            places.append(np.array(list(map(float, coordinates))))
            points.append(int(match[3]))
    if not places or len(places) % centres:
        raise JobError(f"the output has {len(places)} lines, not {centres} for each iteration")
    return [
        Step(np.array(places[first : first + centres]), np.array(points[first : first + centres]))
        for first in range(0, len(places), centres)
    ]


def iterations_due(steps: list[Step], epsilon: float, limit: int) -> int:
    """The first iteration in which no centre moves farther than *epsilon*; *limit* if none is."""
    for iteration, (before, after) in enumerate(itertools.pairwise(steps), start=1):
        if shift(before.centres, after.centres) <= epsilon:
            return iteration
    return limit


def lloyd(points: Floats, start: Floats, epsilon: float, limit: int) -> list[Step]:
    """
    Steps from *start* on until no centre moves farther than *epsilon*, *limit* iterations at most.

    Each is one iteration of scikit-learn, which is another way to compute them.  A centre without
    points keeps its place and takes no part in the iteration: scikit-learn would move it far away.
    """
    with extra(CLUSTERS):
        from sklearn.cluster import KMeans as SklearnKMeans
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

    steps = [Step(start, np.zeros(len(start), np.int64))]
    # One thread: sums in one order, and no threads that wait for others where the machine is busy.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # one iteration is what is asked for
        for _ in range(limit):
            before = steps[-1].centres
            counts = np.bincount(nearest_centres(points, before), minlength=len(before))
            nonempty = before[counts > 0]
            model = SklearnKMeans(
                len(nonempty), init=nonempty, n_init=1, max_iter=1, tol=0, algorithm="lloyd"
            )
            after = before.copy()
            after[counts > 0] = model.fit(points).cluster_centers_
            steps.append(Step(after, counts))
            if shift(before, after) <= epsilon:
                break
    return steps


def nearest_centres(points: Floats, centres: Floats) -> Ints:
    """Return the number of each point's nearest centre."""
    with extra(CLUSTERS):
        from sklearn.metrics import pairwise_distances_argmin
        from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        nearest: Ints = pairwise_distances_argmin(points, centres)
    return nearest


def shift(before: Floats, after: Floats) -> float:
    """Farthest that a centre moved."""
    return float(np.sqrt(((after - before) ** 2).sum(axis=1)).max())


def improbability(steps: list[Step], sample: Sample) -> str:
    """
    Say what in an iteration cannot be by chance, given a sample of the points, or nothing.

    The share of points of a centre, and each coordinate of its mean, lie within `_SIGMAS` standard
    errors of those of the sample: points of a mixture are independent of their numbers, so any
    rule that picks by number draws a fair sample.
    """
    start = np.array(sample["start"])
    total = int(sample["records"])
    if (steps[0].centres != start).any() or steps[0].points.any():
        return "iteration 0: the start is not the first points"
    chosen = np.frombuffer(base64.b64decode(sample["points"]), "<f8").reshape(-1, start.shape[1])
    for number, (before, after) in enumerate(itertools.pairwise(steps), start=1):
        sums = (after.points[:, np.newaxis] * after.centres).sum(axis=0)
        if after.points.sum() != total or not np.allclose(sums, sample["sums"], rtol=1e-9):
            return f"iteration {number}: its means are not those of all {total} points"
        nearest = nearest_centres(chosen, before.centres)
        for centre, place in enumerate(after.centres):
            near = chosen[nearest == centre]
            share = after.points[centre] / total
            share_error = np.sqrt(max(share * (1 - share), 1 / total) / len(chosen))
            allowed = _SIGMAS * share_error + 1 / len(chosen)
            if abs(len(near) / len(chosen) - share) > allowed:
                return (
                    f"iteration {number}: centre {centre} has {after.points[centre]} of {total}"
                    f" points, and {len(near)} of {len(chosen)} of a sample"
                )
            if len(near) < _LEAST:
                continue
            mean_errors = near.std(axis=0, ddof=1) / np.sqrt(len(near))
            distances = np.abs(near.mean(axis=0) - place)
            if (distances > _SIGMAS * mean_errors + _TOLERANCE * np.abs(place).max()).any():
                return f"iteration {number}: centre {centre} is not where a sample of its points is"
    return ""
