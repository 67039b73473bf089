"""
What the models read of a job's configuration, from Hadoop 3's property names.

Values are text, as ``job.xml`` and experiment files hold them; names and defaults are those of
``docs/models/whatif.md``, section 4.1.
"""

from __future__ import annotations

import math
import re

from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import SpecError
from harness.records.prediction import JobConfig

MIB = 2**20
MOST_REDUCES = 100_000  # models look at each of them, and no cluster of ours runs as many

_XMX = re.compile(r"(?:^|\s)-(?:Xmx|XX:MaxHeapSize=)([0-9]{1,18})([kKmMgGtT]?)(?=\s|$)")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_SUFFIX = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_COMBINERS = ("mapreduce.job.combine.class", "mapred.combiner.class")


def job_config(properties: Mapping[str, str], *, use_combiner: bool | None = None) -> JobConfig:
    """
    Models' view of a job with *properties*; names that models do not know are ignored.

    *use_combiner* says whether the job sets a combiner; `None`: whether *properties* name one.
    ``SpecError`` names a property whose value Hadoop would refuse or the models cannot read.
    """
    values = {
        field: read(property_name, properties[property_name])
        for field, (property_name, read) in _PROPERTIES.items()
        if property_name in properties
    }
    if use_combiner is None:
        use_combiner = any(
            properties.get(property_name, "").strip() for property_name in _COMBINERS
        )
    config = JobConfig(
        **values, use_combiner=use_combiner, reduce_heap_bytes=reduce_heap_bytes(properties)
    )
    limit, merge = config.shuffle_segment_limit_percent, config.shuffle_merge_percent
    if config.num_reduces and not 0 < limit < merge:
        raise SpecError(
            f"a segment limit of {limit:g} is not above 0 and below the merge threshold {merge:g}",
            where="mapreduce.reduce.shuffle.memory.limit.percent, .merge.percent",
            fix="Hadoop fails such reduces: lower the limit, or raise the merge threshold",
        )
    return config


def reduce_heap_bytes(properties: Mapping[str, str]) -> int:
    """
    Memory of which Hadoop takes the shuffle buffer, in bytes.

    It is ``mapreduce.reduce.memory.totalbytes`` where set, else ``Runtime.maxMemory()`` of the
    reduce's JVM: the heap, or with ``-XX:+UseSerialGC`` what `serial_max_memory` says.
    """
    total = "mapreduce.reduce.memory.totalbytes"
    if total in properties:
        return whole(total, properties[total])
    property_name = "mapreduce.reduce.java.opts"
    if property_name not in properties and "mapred.child.java.opts" in properties:
        property_name = "mapred.child.java.opts"
    options = properties.get(property_name, "")
    memory, ratio = "mapreduce.reduce.memory.mb", "mapreduce.job.heap.memory-mb.ratio"
    if sizes := _XMX.findall(options):
        number, suffix = sizes[-1]  # the last one wins in the JVM
        heap_bytes = int(number) * _SUFFIX[suffix.lower()]
        if heap_bytes < 2 * MIB:
            raise _value_error(property_name, options, "options of a JVM: its heap is below 2 MiB")
    elif "-Xmx" in options:
        raise _value_error(
            property_name, options, "options of a JVM: -Xmx needs a size such as 400m"
        )
    elif memory not in properties and ratio not in properties:
        heap_bytes = JobConfig().reduce_heap_bytes
    else:  # a share of the container, whose size of -1 is Hadoop's default and stands for 1024
        given = properties.get(memory, "-1").strip()
        container_mb = 1024 if given == "-1" else whole(memory, given)
        heap_bytes = int(_share()(ratio, properties.get(ratio, "0.8")) * container_mb * MIB)
    # Another shape of the young generation would need another rule.
    is_shaped = re.search(r"-Xmn|NewSize|NewRatio|SurvivorRatio", options)
    is_serial = "-XX:+UseSerialGC" in options.split() and not is_shaped
    return serial_max_memory(heap_bytes) if is_serial else heap_bytes


def serial_max_memory(heap_bytes: int) -> int:
    """
    ``Runtime.maxMemory()`` in bytes of a JVM with the serial collector and that heap.

    One survivor space is never usable: the heap (rounded up to 2 MiB) less a tenth of the young
    generation, which is a third of the heap; both parts are rounded down to 64 KiB.  Checked on
    OpenJDK 17 with 14 heaps from 64 MiB to 3 GiB, each exact to the byte.

    >>> serial_max_memory(820 * 2**20)
    831193088
    """
    rounded = math.ceil(heap_bytes / (2 * MIB)) * 2 * MIB
    young = rounded // 3 // 2**16 * 2**16
    return rounded - young // 10 // 2**16 * 2**16


def whole(property_name: str, text: str, least: int = 1) -> int:
    """Whole number that the property *property_name* has; ``SpecError`` for any other *text*."""
    return _whole(least)(property_name, text)


def _whole(low: int, high: float = math.inf) -> Callable[[str, str], int]:
    def read(property_name: str, text: str) -> int:
        if not _WHOLE.fullmatch(text.strip()):
            raise _value_error(property_name, text, "a whole number")
        number = int(text)
        if not low <= number <= high:
            raise _value_error(property_name, text, f"a whole number from {low} to {high:g}")
        return number

    return read


def _share(*, above: bool = False) -> Callable[[str, str], float]:
    def read(property_name: str, text: str) -> float:
        number = float(text) if _DECIMAL.fullmatch(text.strip()) else math.nan
        if not 0 <= number <= 1 or (above and number == 0):
            raise _value_error(
                property_name, text, f"a share {'above 0' if above else 'from 0'} to 1"
            )
        return number

    return read


def _switch(property_name: str, text: str) -> bool:
    # Hadoop takes the default for any other word, which nobody who wrote one expects.
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise _value_error(property_name, text, "true or false")
    return word == "true"


def _value_error(property_name: str, text: str, wanted: str) -> SpecError:
    return SpecError(
        f"{property_name} = {text!r:.200} is not {wanted}", where=f"configuration, {property_name}"
    )


_POSITIVE_SHARE = _share(above=True)
# Field of `JobConfig`: property, and how its text is read.
_PROPERTIES: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "num_reduces": ("mapreduce.job.reduces", _whole(0, MOST_REDUCES)),
    "sort_buffer_mb": ("mapreduce.task.io.sort.mb", _whole(1, 2047)),
    "sort_spill_percent": ("mapreduce.map.sort.spill.percent", _POSITIVE_SHARE),
    "sort_record_percent": ("io.sort.record.percent", _share()),
    "merge_factor": ("mapreduce.task.io.sort.factor", _whole(2)),
    "combine_min_spills": ("mapreduce.map.combine.minspills", _whole(0)),
    "inmem_merge_segments": ("mapreduce.reduce.merge.inmem.threshold", _whole(-(2**31))),
    "shuffle_buffer_percent": ("mapreduce.reduce.shuffle.input.buffer.percent", _POSITIVE_SHARE),
    "shuffle_merge_percent": ("mapreduce.reduce.shuffle.merge.percent", _share()),
    "shuffle_segment_limit_percent": ("mapreduce.reduce.shuffle.memory.limit.percent", _share()),
    "reduce_buffer_percent": ("mapreduce.reduce.input.buffer.percent", _share()),
    "reduce_slowstart": ("mapreduce.job.reduce.slowstart.completedmaps", _share()),
    "parallel_copies": ("mapreduce.reduce.shuffle.parallelcopies", _whole(1)),
    "map_output_compressed": ("mapreduce.map.output.compress", _switch),
    "output_compressed": ("mapreduce.output.fileoutputformat.compress", _switch),
}

# Names that models read, of Hadoop 1 some of them.
READ_NAMES = frozenset(name for name, _ in _PROPERTIES.values()) | {
    *_COMBINERS, "mapred.child.java.opts", "mapreduce.job.heap.memory-mb.ratio",
    "mapreduce.reduce.java.opts", "mapreduce.reduce.memory.mb",
    "mapreduce.reduce.memory.totalbytes",
}  # fmt: skip
