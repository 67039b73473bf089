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

from harness.errors import SpecError
from harness.records.trial import WorkloadSpec
from harness.workloads.base import File, InputPlan, Parameter, Verdict, scales
from harness.workloads.gpu import GpuWorkload, device_parameters
from harness.workloads.rows import Bytes, read_rows, regroup

# HiBench has no such workload: 60 frames of the default size (20.7 MB), then as its sizes grow.
SCALES = scales(
    20_736_000, 207_360_000, 2_073_600_000, 20_736_000_000, 103_680_000_000, 311_040_000_000
)
PARAMETERS = {
    **device_parameters(4 * 2**20),
    "width": Parameter(640, "columns of a frame, both views; an even number", 2, 16_384),
    "height": Parameter(180, "rows of a frame", 1, 16_384),
    "shifts": Parameter(16, "distances that are compared, from 0", 2, 256),
    "radius": Parameter(2, "pixels of the window to each side of its middle", 0, 7),
}

MOST_COSTS = 400_000_000  # pixels x shifts that the proof computes: some ten seconds
MOST_FRAMES = 100_000  # of which it keeps a checksum


class GpuSbs(GpuWorkload):
    """
    Depth by block matching: for each pixel of the left view, how far the right view shows it moved.

    Frames are raw: RGB, *width* x *height*, the left view in the left half.  The output has a grey
    frame of half the width for each, in their order.  ``workloads/gpu/kernels/sbs.h`` has the
    arithmetic.
    """

    name = "gpu-sbs"
    description = (
        "Stereo video to depth video, matched on a GPU; verified to the byte by another way"
    )
    parameters = PARAMETERS
    scales = SCALES
    main_class = "GpuSbs"
    content = "frames"
    generator_parameters = ("width", "height", "shifts")
    key_parameters = ("width", "height", "shifts", "radius")

    def record_bytes(self, arguments: Mapping[str, Any]) -> int:
        """Bytes of a frame."""
        return 3 * int(arguments["width"]) * int(arguments["height"])

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Fewest files that fit a block each, their frames equal in number to one."""
        width = self.arguments(spec)["width"]
        if width % 2:
            raise SpecError(
                f"a frame of {width} columns has no halves",
                where=f"{spec.name}, width",
                fix=f"write, for example, width: {width + 1}",
            )
        return super().plan_input(spec, block_bytes)

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Return `frames` (all), `stride`, and `depths`: a checksum of every *stride*-th one."""
        arguments = self.arguments(spec)
        frame_bytes, shifts = self.record_bytes(arguments), arguments["shifts"]
        costs = frame_bytes // 6 * shifts
        frames = spec.input_bytes // frame_bytes
        stride = max(1, -(-frames * costs // MOST_COSTS), -(-frames // MOST_FRAMES))
        count, depths = 0, []
        for rows in read_rows(spec.name, input_files, frame_bytes):
            for row in rows[-count % stride :: stride]:
                frame = row.reshape(arguments["height"], arguments["width"], 3)
                depth = depth_of(frame, shifts, arguments["radius"])
                depths.append(hashlib.sha256(depth.tobytes()).hexdigest()[:16])
            count += len(rows)
        return {"frames": count, "stride": stride, "depths": depths}

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """As many frames as the input has, in their order, and the sampled ones to the byte."""
        size = self.record_bytes(self.arguments(spec)) // 6
        count, stride, expected = 0, sample["stride"], sample["depths"]
        for file_name, file_chunks in outputs:
            for frame in regroup(file_chunks, size):
                if len(frame) != size:
                    return Verdict(f"{file_name} ends inside a depth frame of {size} bytes")
                index, rest = divmod(count, stride)
                if rest == 0 and index < len(expected):
                    checksum = hashlib.sha256(frame).hexdigest()[:16]
                    if checksum != expected[index]:
                        return Verdict(f"{file_name}: depth frame {count} is wrong")
                count += 1
        reason = ""
        if count != sample["frames"]:
            reason = f"the output has {count} frames, the input {sample['frames']}"
        return Verdict(reason, {"frames": count, "frames compared": len(expected)})


def depth_of(frame: Bytes, shifts: int, radius: int) -> Bytes:
    """Depth of one frame (rows, columns, RGB), by the definition, all shifts at once."""
    luma = (frame.astype(np.int32) @ np.array([77, 150, 29], np.int32)) >> 8
    view = luma.shape[1] // 2
    left, right, columns = luma[:, :view], luma[:, view:], np.arange(view)
    costs = np.stack(
        [np.abs(left - right[:, np.maximum(columns - shift, 0)]) for shift in range(shifts)]
    )
    padded = np.pad(costs, ((0, 0), (radius + 1, radius), (radius + 1, radius)), "edge")
    # Sum over each window: the running sums at its corners.
    sums, side = padded.cumsum(axis=1).cumsum(axis=2), 2 * radius + 1
    differences = sums[:, side:, side:] - sums[:, :-side, side:] - sums[:, side:, :-side]
    differences += sums[:, :-side, :-side]
    depth: Bytes = (255 * differences.argmin(axis=0) // (shifts - 1)).astype(np.uint8)
    return depth
