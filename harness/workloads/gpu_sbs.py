"""
Side-by-side stereo video to depth video, frames matched on a GPU.

The proof of its output: the same whole numbers by another way (windows by running sums), to the
byte; of a long video, frames at even distances.
"""

from __future__ import annotations

import hashlib

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from numpy.typing import NDArray

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec
from harness.workloads.base import File, InputPlan, JobCommand, Parameter, SingleJob, Value, Verdict
from harness.workloads.gpu import (
    client,
    device_parameters,
    generator,
    gpu_properties,
    plan_records,
    read_records,
)
from harness.workloads.shape import arguments, regroup

# HiBench has no such workload: 60 frames of the default size (20.7 MB), then as its sizes grow.
SCALES = {
    "tiny": 20_736_000,
    "small": 207_360_000,
    "large": 2_073_600_000,
    "huge": 20_736_000_000,
    "gigantic": 103_680_000_000,
    "bigdata": 311_040_000_000,
}

MOST_COSTS = 400_000_000  # pixels x shifts that the proof computes: some ten seconds
MOST_FRAMES = 100_000  # of which it keeps a checksum


class GpuSbs(SingleJob):
    """
    Depth by block matching: for each pixel of the left view, how far the right view shows it moved.

    Frames are raw: RGB, *width* x *height*, the left view in the left half.  The output has a grey
    frame of half the width for each, in their order.  ``workloads/gpu/kernels/sbs.h`` has the
    arithmetic.
    """

    name = "gpu-sbs"
    uses_combiner = False
    description = "Stereo video to depth video, matched on a GPU; proved to the byte by another way"
    scales: Mapping[str, int] = SCALES
    parameters: Mapping[str, Parameter] = {  # noqa: RUF012 - nobody writes to it
        **device_parameters(4 * 2**20),
        "width": Parameter(640, "columns of a frame, both views; an even number", 2, 16_384),
        "height": Parameter(180, "rows of a frame", 1, 16_384),
        "shifts": Parameter(16, "distances that are compared, from 0", 2, 256),
        "radius": Parameter(2, "pixels of the window to each side of its middle", 0, 7),
    }

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """A GPU for each map where *device* is gpu."""
        return gpu_properties(spec, self.parameters)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each, their frames equal in number to one."""
        values = arguments(spec, self.parameters)
        if int(values["width"]) % 2:
            raise SpecError(
                f"a frame of {values['width']} columns has no halves",
                where=f"{spec.name}, width",
                fix=f"write, for example, width: {int(values['width']) + 1}",
            )
        content = {name: values[name] for name in ("width", "height", "shifts", "radius")}
        return plan_records(spec, block_bytes, _frame(values), content)

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Frames of two layers at different depths, the same for any number of files."""
        values, plan = arguments(spec, self.parameters), self.plan_input(spec, block_bytes)
        own = {f"gpu.{name}": str(values[name]) for name in ("width", "height", "shifts")}
        return generator("frames", plan, _frame(values), spec, own, uri)

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return `frames` (all), `stride`, and `depths`: a checksum of every *stride*-th one."""
        values = arguments(spec, self.parameters)
        costs = _frame(values) // 6 * int(values["shifts"])
        frames = spec.input_bytes // _frame(values)
        stride = max(1, -(-frames * costs // MOST_COSTS), -(-frames // MOST_FRAMES))
        count, depths = 0, []
        shape = int(values["height"]), int(values["width"]), 3
        for rows in read_records(spec.name, files, _frame(values)):
            for frame in rows[-count % stride :: stride]:
                depth = depth_of(frame.reshape(shape), int(values["shifts"]), int(values["radius"]))
                depths.append(_checksum(depth.tobytes()))
            count += len(rows)
        return {"frames": count, "stride": stride, "depths": depths}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """One job."""
        values = arguments(spec, self.parameters)
        return (client("GpuSbs", (input_uri, output_uri), values, self.parameters),)

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """As many frames as the input has, in their order, and those that were sampled to the byte."""
        size = _frame(arguments(spec, self.parameters)) // 6
        count, stride, expected = 0, sample["stride"], sample["depths"]
        for name, chunks in outputs:
            for frame in regroup(chunks, size):
                if len(frame) != size:
                    return Verdict(
                        right=False, reason=f"{name} ends inside a depth frame of {size} bytes"
                    )
                at, rest = divmod(count, stride)
                if rest == 0 and at < len(expected) and _checksum(frame) != expected[at]:
                    return Verdict(right=False, reason=f"{name}: depth frame {count} is wrong")
                count += 1
        reason = ""
        if count != sample["frames"]:
            reason = f"the output has {count} frames, the input {sample['frames']}"
        facts: dict[str, int | str] = {"frames": count, "frames compared": len(expected)}
        return Verdict(right=not reason, reason=reason, facts=facts)


def depth_of(frame: NDArray[np.uint8], shifts: int, radius: int) -> NDArray[np.uint8]:
    """Depth of one frame (rows, columns, RGB), by the definition, all shifts at once."""
    luma = (frame.astype(np.int32) @ np.array([77, 150, 29], np.int32)) >> 8
    view = luma.shape[1] // 2
    left, right, x = luma[:, :view], luma[:, view:], np.arange(view)
    costs = np.stack([np.abs(left - right[:, np.maximum(x - s, 0)]) for s in range(shifts)])
    padded = np.pad(costs, ((0, 0), (radius + 1, radius), (radius + 1, radius)), "edge")
    sums, side = padded.cumsum(axis=1).cumsum(axis=2), 2 * radius + 1
    sad = sums[:, side:, side:] - sums[:, :-side, side:] - sums[:, side:, :-side]
    sad += sums[:, :-side, :-side]
    best: NDArray[np.intp] = sad.argmin(axis=0)
    return (255 * best // (shifts - 1)).astype(np.uint8)


def _frame(values: Mapping[str, Value]) -> int:
    """Bytes of a frame."""
    return 3 * int(values["width"]) * int(values["height"])


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
