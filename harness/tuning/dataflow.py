"""What goes through a job with some settings, as equations count it, and what they do in it."""

from __future__ import annotations

import math

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.base.documents.wording import by_number, count
from harness.base.errors import HarnessError
from harness.base.records.profile import Profile
from harness.base.units import MIB, format_bytes
from harness.models.checks import require_statistics
from harness.models.merge import merge_passes
from harness.models.whatif.map_task import grown_share
from harness.observe.profiling.dataflow import spill_count
from harness.tuning.settings import SETTINGS, SPLIT, SWITCH, Job


def map_output(profile: Profile, read_bytes: float) -> tuple[float, float]:
    """Bytes and records that a map writes of *read_bytes*, before it combines."""
    statistics = profile.statistics
    needed = frozenset({"input_record_bytes"})
    require_statistics(needed, statistics, profile, "a plan for one spill")
    read_records = read_bytes / statistics["input_record_bytes"].value

    def selectivity(name: str) -> float:
        """What comes out of a map function for what goes in; 1 where the profile does not say."""
        return statistics[name].value if name in statistics else 1.0

    return (
        read_bytes * selectivity("map_bytes_selectivity"),
        read_records * selectivity("map_records_selectivity"),
    )


def combined_bytes(profile: Profile, job: Job, size: float, records: float) -> float:
    """What a combiner leaves of a map's output of *size* bytes and so many *records*, if any."""
    statistics = profile.statistics
    if not job.configuration.use_combiner or "combine_bytes_selectivity" not in statistics:
        return size
    share = statistics["combine_bytes_selectivity"].value
    if (profiled_records := statistics.get("records_per_combine")) and profiled_records.value > 0:
        size_ratio = max(1.0, records) / profiled_records.value
        share = float(grown_share(share, size_ratio, statistics["combine_bytes_exponent"].value))
    return size * share


def maps_and_waves(job: Job, values: Mapping[str, float]) -> tuple[int, int]:
    """Maps of a job with these *values*, and the waves that they take."""
    maps = job.job_input.num_splits
    if SPLIT in values:
        maps = int(job.num_maps(np.array([values[SPLIT]]))[0])
    return maps, math.ceil(maps / job.cluster.map_slots)


@dataclass(frozen=True)
class Flow:
    """What goes through *job* with these *values* of its settings, by what *profile* knows."""

    profile: Profile
    job: Job
    values: Mapping[str, float]

    def value(self, name: str) -> float:
        """A setting as it is chosen, else as the job has it."""
        return float(self.values.get(name, getattr(self.job.configuration, name, 0.0)))

    @cached_property
    def maps(self) -> int:
        """Number of maps."""
        return maps_and_waves(self.job, self.values)[0]

    @cached_property
    def written(self) -> tuple[float, float]:
        """Bytes and records that a map writes."""
        return map_output(self.profile, self.job.job_input.input_bytes / self.maps)

    @cached_property
    def spills(self) -> int:
        """Spills of a map: equation (16) of What-If, with Hadoop 3's one buffer."""
        size, records = self.written
        if not records:
            return 0
        buffer_bytes = self.value("sort_buffer_mb") * MIB * self.value("sort_spill_percent")
        return spill_count(records, size / records, buffer_bytes)

    @cached_property
    def segment_bytes(self) -> float:
        """Bytes that a reduce copies of one map."""
        combined = combined_bytes(self.profile, self.job, *self.written)
        ratio = self.profile.statistics.get("map_output_compression_ratio")
        if self.value(SWITCH) and ratio is not None:
            combined *= ratio.value
        return combined / max(1.0, self.value("num_reduces"))

    @property
    def copied_bytes(self) -> float:
        """Bytes that a reduce copies."""
        return self.segment_bytes * self.maps

    @property
    def buffer_bytes(self) -> float:
        """Bytes of a reduce's heap that keep what it copies."""
        return self.value("shuffle_buffer_percent") * self.job.configuration.reduce_heap_bytes

    def passes(self, files: int) -> int:
        """Passes of a merge of so many *files*: equation (26)."""
        return int(merge_passes(np.array(files), np.array(self.value("merge_factor"))))

    @property
    def spilled(self) -> str:
        """The number of spills in words."""
        return "one spill" if self.spills == 1 else count(self.spills, "spill")


def _size(size: float) -> str:
    return format_bytes(round(size))


def _splits(flow: Flow) -> str:
    maps, waves = maps_and_waves(flow.job, flow.values)
    size = _size(flow.job.job_input.input_bytes / maps)
    slots = count(flow.job.cluster.map_slots, "slot")
    return f"{count(maps, 'map')} of {size}, {count(waves, 'wave')} on {slots}"


def _sort_buffer(flow: Flow) -> str:
    size, records = flow.written
    percent = flow.value("sort_spill_percent")
    return (
        f"a map writes {_size(size)} and {records:.0f} records: {flow.spilled}, full to {percent:g}"
    )


def _spill_percent(flow: Flow) -> str:
    size, _ = flow.written
    buffer_mb = flow.value("sort_buffer_mb")
    return f"of {buffer_mb:g} MiB, for {_size(size)} that a map writes: {flow.spilled}"


def _merge_factor(flow: Flow) -> str:
    text = f"{flow.spilled} of a map"
    if flow.spills > 1:
        passes = flow.passes(flow.spills)
        text += f" merged in {passes} {by_number(passes, 'pass', 'passes')}"
    if not flow.value("num_reduces"):
        return text
    passes = max(1, flow.passes(flow.maps))
    return f"{text}, {count(flow.maps, 'output')} of maps in {passes} at most by a reduce"


def _reduces(flow: Flow) -> str:
    reduces = round(flow.value("num_reduces"))
    slots = max(1, flow.job.cluster.reduce_slots)
    waves = count(math.ceil(reduces / slots), "wave")
    copied = _size(flow.copied_bytes)
    return f"{waves} on {count(slots, 'slot')}, each copies {copied}"


def _copiers(flow: Flow) -> str:
    outputs = count(flow.maps, "output")
    return f"a reduce copies {outputs} of maps, of {_size(flow.segment_bytes)} each"


def _shuffle_buffer(flow: Flow) -> str:
    heap = _size(flow.job.configuration.reduce_heap_bytes)
    return f"a reduce copies {_size(flow.copied_bytes)}, its heap has {heap}"


def _shuffle_merge(flow: Flow) -> str:
    threshold = flow.value("shuffle_merge_percent") * flow.buffer_bytes
    copied = flow.copied_bytes
    if copied <= threshold:
        return f"merged to disk from {_size(threshold)} on: {_size(copied)} stay below it"
    times = count(math.floor(copied / threshold), "time") if threshold else "at once"
    return f"merged to disk from {_size(threshold)} on: {times} of {_size(copied)}"


def _segment_limit(flow: Flow) -> str:
    limit = flow.value("shuffle_segment_limit_percent") * flow.buffer_bytes
    verb = "stays in memory" if flow.segment_bytes < limit else "goes to disk at once"
    return f"an output of {_size(flow.segment_bytes)} {verb}: up to {_size(limit)} may stay"


def _merged_outputs(flow: Flow) -> str:
    threshold = round(flow.value("inmem_merge_segments"))
    if threshold <= 0:
        return f"bytes alone decide when to merge, not {count(flow.maps, 'output')}"
    if flow.maps < threshold:
        return f"a reduce copies {count(flow.maps, 'output')}: bytes decide when to merge"
    merges = count(flow.maps // threshold, "time")
    return f"a reduce copies {count(flow.maps, 'output')}: merged {merges} by their number"


def _reduce_buffer(flow: Flow) -> str:
    kept = flow.value("reduce_buffer_percent") * flow.job.configuration.reduce_heap_bytes
    copied = _size(flow.copied_bytes)
    if not kept:
        return f"all {copied} of a reduce are on disk before its function begins"
    if kept >= flow.copied_bytes:
        return f"all {copied} of a reduce stay in memory while its function runs"
    return f"{_size(kept)} of a reduce's {copied} stay in memory while its function runs"


def _slowstart(flow: Flow) -> str:
    maps, waves = maps_and_waves(flow.job, flow.values)
    ended = math.ceil(flow.value("reduce_slowstart") * maps)
    if ended >= maps:
        return f"reduces start when all {count(maps, 'map')} have ended: nothing overlaps"
    return (
        f"reduces start when {ended} of {count(maps, 'map')} have ended, in {count(waves, 'wave')}"
    )


def _compression(flow: Flow) -> str:
    ratio = flow.profile.statistics.get("map_output_compression_ratio")
    segment = _size(flow.segment_bytes)
    if not flow.value(SWITCH):
        return f"a reduce copies {segment} of each map, and nothing is compressed"
    share = "" if ratio is None else f", {100 * ratio.value:.0f} % of what it was"
    return f"a reduce copies {segment} of each map{share}, for time of the processor"


# What a setting does in one job: a sentence made of what goes through that job with it.
REASONS: Mapping[str, Callable[[Flow], str]] = {
    SPLIT: _splits,
    "sort_buffer_mb": _sort_buffer,
    "sort_spill_percent": _spill_percent,
    "merge_factor": _merge_factor,
    "num_reduces": _reduces,
    "parallel_copies": _copiers,
    "shuffle_buffer_percent": _shuffle_buffer,
    "shuffle_merge_percent": _shuffle_merge,
    "shuffle_segment_limit_percent": _segment_limit,
    "inmem_merge_segments": _merged_outputs,
    "reduce_buffer_percent": _reduce_buffer,
    "reduce_slowstart": _slowstart,
    SWITCH: _compression,
}


def reasons_of(profile: Profile, job: Job, values: Mapping[str, float]) -> dict[str, str]:
    """
    What each of *values* does in this job, by its name.

    Where the profile does not know what goes through the job, or no reason is computed for a
    setting, why it is tuned at all.
    """
    flow = Flow(profile, job, values)
    reasons = dict[str, str]()
    for name in values:
        reasons[name] = SETTINGS[name].meaning
        if name in REASONS:
            try:
                reasons[name] = REASONS[name](flow)
            except HarnessError:  # a statistic is missing: nothing is known of what goes through
                continue
    return reasons
