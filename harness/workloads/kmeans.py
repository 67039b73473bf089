"""
K-means over a generated mixture of normal distributions, a job for each iteration, as HiBench's.

The proof of its output: the centres of every iteration, from the first points on, are those of
scikit-learn, and the iterations end where they should.  Of an input that is too large to be held,
a sample judges each iteration, and the sum over all points is compared.
"""

from __future__ import annotations

import base64

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from harness.errors import JobError, SpecError
from harness.records.trial import WorkloadSpec, digest
from harness.workloads.base import JOBS, File, InputPlan, JobCommand, Parameter, Verdict
from harness.workloads.generate import generated, generated_files
from harness.workloads.kmeans_oracle import Floats, Step, differs, lloyd, shift, unlikely
from harness.workloads.shape import arguments, blocks, regroup, shown

JOB = "mapreduce.harness.jobs.kmeans.KMeans"
CONTENT = "mapreduce.harness.jobs.kmeans.Mixture"
VERSION = 1  # of the generator's bytes

HELD_BYTES = 2**29  # of an input that scikit-learn sees whole; it takes a few times as much memory
SAMPLED = 10_000  # points of a larger one

# HiBench's profiles have 30,000 points of 3 dimensions (tiny), and 3, 20, 100, 200 and 1200 million
# of 20; a coordinate takes 8 bytes.
SCALES = {
    "tiny": 720_000,
    "small": 480_000_000,
    "large": 3_200_000_000,
    "huge": 16_000_000_000,
    "gigantic": 32_000_000_000,
    "bigdata": 192_000_000_000,
}

PARAMETERS = {
    "centres": Parameter(10, "centres looked for (k)", least=1, most=10_000),
    "dimensions": Parameter(20, "coordinates of a point", least=1, most=1000),
    "clusters": Parameter(5, "normal distributions that points are drawn from", least=1, most=1000),
    "spread": Parameter(5.0, "their standard deviation; middles lie 0 to 100", least=0, most=1e6),
    "epsilon": Parameter(0.5, "ends when no centre moves farther", least=0, most=1e9),
    "iterations": Parameter(5, "jobs at most", least=1, most=100),
}


class KMeans:
    """
    Finds centres of clusters; its jobs have a combiner, and read centres from the cache.

    All of its parameters are part of an input's key: what is kept of the input are the centres that
    are to come out.
    """

    name = "kmeans"
    uses_combiner = True
    description = "K-means over a mixture of normal distributions; proved by scikit-learn"
    parameters: Mapping[str, Parameter] = PARAMETERS
    scales: Mapping[str, int] = SCALES

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:  # noqa: ARG002 - it sets none
        """Nothing: the configuration is the experiment's."""
        return {}

    def jobs(self, spec: WorkloadSpec) -> int | None:  # noqa: ARG002 - the points decide
        """As many as it takes."""
        return None

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """As many points as the size asked holds, spread evenly over the fewest files that fit."""
        given = arguments(spec, PARAMETERS)
        points, files = _points(spec, block_bytes)
        key = digest(
            {"mixture": VERSION, "seed": spec.seed, "points": points, "files": files, **given}
        )
        made = generated_files(points, files, _record_bytes(spec))
        return InputPlan(f"mixture-{key}", tuple(made))

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Our generator's job, with one map for each file of the plan."""
        given = arguments(spec, PARAMETERS)
        points, files = _points(spec, block_bytes)
        return generated(
            CONTENT,
            records=points,
            files=files,
            seed=spec.seed,
            uri=uri,
            properties={
                f"mixture.{n}": str(given[n]) for n in ("clusters", "dimensions", "spread")
            },
        )

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """
        Return `records` (points), `bytes`, and the `steps` that are due: centres and their points.

        Of more than `HELD_BYTES` instead of steps the `start`, `points` of a sample (in base64) and
        the `sums` of all coordinates.  Raises `JobError` for points that are none.
        """
        given = arguments(spec, PARAMETERS)
        count, width = int(given["centres"]), int(given["dimensions"])
        if spec.input_bytes > HELD_BYTES:
            return _thinned(files, width, count, spec.input_bytes // (8 * width))
        points = np.concatenate([np.zeros((0, width)), *_read(files, width)])
        _refuse_few(len(points), count)
        steps = lloyd(points, points[:count], float(given["epsilon"]), int(given["iterations"]))
        return {
            "records": len(points),
            "bytes": points.nbytes,
            "scale": float(np.abs(points).max()),
            "steps": [[s.centres.tolist(), s.points.tolist()] for s in steps],
        }

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One client, which submits jobs until the centres stand still."""
        given = arguments(spec, PARAMETERS)
        names = ("centres", "dimensions", "epsilon", "iterations")
        properties = {f"kmeans.{name}": str(given[name]) for name in names}
        return (JobCommand(JOB, (input_uri, output_uri), properties=properties, jar=JOBS),)

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:  # noqa: ARG002 - one folder
        """Folder with the centres of all iterations."""
        return f"{output_uri}/centres"

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """The centres of each iteration, and as many iterations as it takes."""
        given = arguments(spec, PARAMETERS)
        try:
            steps = _read_steps(outputs, int(given["centres"]), int(given["dimensions"]))
        except ValueError as error:
            return Verdict(right=False, reason=str(error))
        reason = _wrong_end(steps, float(given["epsilon"]), int(given["iterations"]))
        if not reason:
            reason = _compared(steps, sample) if "steps" in sample else _judged(steps, sample)
        facts: dict[str, int | str] = {"iterations": len(steps) - 1, "points": sample["records"]}
        return Verdict(right=not reason, reason=reason, facts=facts)


def _record_bytes(spec: WorkloadSpec) -> int:
    return 8 * int(arguments(spec, PARAMETERS)["dimensions"])


def _points(spec: WorkloadSpec, block_bytes: int) -> tuple[int, int]:
    """Points and files of the input; `SpecError` where they cannot be made of the size asked."""
    size, centres = _record_bytes(spec), int(arguments(spec, PARAMETERS)["centres"])
    points = (spec.input_bytes + size // 2) // size
    if points < centres or abs(points * size - spec.input_bytes) * 100 > spec.input_bytes:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes is no input of {centres} points or more of"
            f" {size} bytes",
            where="kmeans, input",
            fix=f"ask for {max(centres, 50) * size} bytes or more",
        )
    if block_bytes < size:
        raise SpecError(
            f"a block of {block_bytes} bytes does not hold a point of {size} bytes",
            where="kmeans, dfs.blocksize",
            fix="use blocks of 1 MiB or more",
        )
    files = max(blocks(spec, block_bytes), -(-points // (block_bytes // size)))
    return points, files


def _read(files: Iterable[File], width: int) -> Iterator[Floats]:
    """Points in blocks; `JobError` where a file is cut short, or a coordinate is not finite."""
    size = 8 * width
    for name, chunks in files:
        first = 0
        for block in regroup(chunks, 10_000 * size):
            if len(block) % size:
                raise _no_points(f"{name}: record {first + len(block) // size} is cut short")
            points = np.frombuffer(block, ">f8").astype(np.float64).reshape(-1, width)
            if not np.isfinite(points).all():
                bad = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
                raise _no_points(
                    f"{name}: record {first + bad} has a coordinate that is not finite"
                )
            first += len(points)
            yield points


def _refuse_few(points: int, centres: int) -> None:
    if points < centres:
        raise _no_points(f"{points} points, fewer than {centres} centres")


def _no_points(what: str) -> JobError:
    return JobError(
        what,
        where="input of kmeans, as its generator left it",
        fix="remove this input, so that it is generated again",
    )


def _thinned(files: Iterable[File], width: int, centres: int, expected: int) -> dict[str, Any]:
    """What is kept of an input of about *expected* points that is too large to be held."""
    stride = max(expected // SAMPLED, 1)
    start, kept = np.zeros((0, width)), []
    sums, seen = np.zeros(width), 0
    for points in _read(files, width):
        start = np.concatenate((start, points[: max(centres - len(start), 0)]))
        kept.append(points[-seen % stride :: stride])
        sums += points.sum(axis=0)
        seen += len(points)
    _refuse_few(seen, centres)
    chosen = np.concatenate(kept).astype("<f8").tobytes()
    return {
        "records": seen,
        "bytes": seen * 8 * width,
        "start": start.tolist(),
        "sums": sums.tolist(),
        "points": base64.b64encode(chosen).decode("ascii"),
    }


def _read_steps(outputs: Iterable[File], centres: int, width: int) -> list[Step]:
    """Steps in the output; `ValueError` says what is no line of a centre, or which is missing."""
    rows = [
        (f"{name}:{number}", line)
        for name, chunks in outputs
        for number, line in enumerate(b"".join(chunks).split(b"\n"), start=1)
    ]
    rows = [(at, line) for at, line in rows if line]
    if not rows or len(rows) % centres:
        raise ValueError(f"the output has {len(rows)} lines, not {centres} for each iteration")
    places, points = np.zeros((len(rows), width)), np.zeros(len(rows), np.int64)
    for row, (at, line) in enumerate(rows):
        head = b"%d\t%d\t" % divmod(row, centres)
        count, _, numbers = line[len(head) :].partition(b"\t")
        coordinates = numbers.split(b",")
        if not (line.startswith(head) and count.isdigit() and len(coordinates) == width):
            raise ValueError(f"{at}: {shown(line)} is not centre {row % centres} as it should be")
        try:
            places[row], points[row] = [float(each) for each in coordinates], int(count)
        except (ValueError, OverflowError):
            raise ValueError(f"{at}: {shown(line)} has no numbers") from None
    return [
        Step(places[at : at + centres], points[at : at + centres])
        for at in range(0, len(rows), centres)
    ]


def _wrong_end(steps: list[Step], epsilon: float, most: int) -> str:
    """Whether the iterations end too early or too late, or nothing."""
    shifts = [shift(a.centres, b.centres) for a, b in zip(steps, steps[1:], strict=False)]
    due = next((i for i, moved in enumerate(shifts, start=1) if moved <= epsilon), most)
    if len(shifts) == due:
        return ""
    return f"the output has {len(shifts)} iterations, not {due}"


def _compared(steps: list[Step], sample: Mapping[str, Any]) -> str:
    """What differs from the steps that are due, or nothing."""
    due = [Step(np.array(c), np.array(n)) for c, n in sample["steps"]]
    if len(due) != len(steps):
        return f"the output has {len(steps) - 1} iterations, not {len(due) - 1}"
    pairs = enumerate(zip(steps, due, strict=True))
    found = (differs(number, step, other, sample["scale"]) for number, (step, other) in pairs)
    return next(filter(None, found), "")


def _judged(steps: list[Step], sample: Mapping[str, Any]) -> str:
    """What the sample of the points says against the steps, or nothing."""
    start, total = np.array(sample["start"]), int(sample["records"])
    if (steps[0].centres != start).any() or steps[0].points.any():
        return "iteration 0: the start is not the first points"
    chosen = np.frombuffer(base64.b64decode(sample["points"]), "<f8").reshape(-1, start.shape[1])
    for number, (before, after) in enumerate(zip(steps, steps[1:], strict=False), start=1):
        sums = (after.points[:, np.newaxis] * after.centres).sum(axis=0)
        if after.points.sum() != total or not np.allclose(sums, sample["sums"], rtol=1e-9):
            return f"iteration {number}: its means are not those of all {total} points"
        if reason := unlikely(number, before, after, chosen, total):
            return reason
    return ""
