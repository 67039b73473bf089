"""
Hadoop's properties: which names there are, and what the models read of their values.

Hadoop takes any name and says nothing, so a misspelled property measures its default.  Refused is a
name out of use, and one that is one slip away from a known one; any other that begins as Hadoop's
do is taken with a warning: it may belong to a job's own code.
"""

from __future__ import annotations

import math
import re

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, partial
from importlib.resources import files
from typing import Any

from harness.base.errors import SpecError
from harness.base.hadoop.constants import TASK_MEMORY_MB
from harness.base.records.prediction import JobConfig
from harness.base.text import nearest_name
from harness.base.units import MIB

SEAL = "harness.seal"  # a scored job says which sealed predictions were there before it: SHA-256
SPLIT_MOST = "mapreduce.input.fileinputformat.split.maxsize"
SPLIT_LEAST = "mapreduce.input.fileinputformat.split.minsize"
HEAP_SHARE = "mapreduce.job.heap.memory-mb.ratio"
REDUCE_MEMORY = "mapreduce.reduce.memory.totalbytes"
PARALLEL = "-XX:+UseParallelGC"
_SLOP = 1.1  # splits that the last one of a file may have
MOST_REDUCES = 100_000  # models look at each of them, and no cluster of ours runs as many

_XMX = re.compile(r"(?:^|\s)-(?:Xmx|XX:MaxHeapSize=)([0-9]{1,18})([kKmMgGtT]?)(?=\s|$)")
_XMS = re.compile(r"(?:^|\s)-(?:Xms|XX:InitialHeapSize=)([0-9]{1,18})([kKmMgGtT]?)(?=\s|$)")
_NEW_RATIO = re.compile(r"(?:^|\s)-XX:NewRatio=([0-9]{1,3})(?=\s|$)")
# Options after which the parallel collector's young generation is no share of its heap.
_SHAPED = re.compile(r"-Xmn|NewSize|SurvivorRatio|UseAdaptiveSizePolicy")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_SPACE_BYTES = 2**19  # by which the parallel collector counts
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
        for field, (property_name, read) in JOB_PROPERTIES.items()
        if property_name in properties
    }
    if use_combiner is None:
        use_combiner = any(properties.get(name, "").strip() for name in _COMBINERS)
    heap_bytes = reduce_heap_bytes(properties)
    config = JobConfig(**values, use_combiner=use_combiner, reduce_heap_bytes=heap_bytes)
    limit = config.shuffle_segment_limit_percent
    merge = config.shuffle_merge_percent
    if config.num_reduces and not 0 < limit < merge:
        raise SpecError(
            f"a segment limit of {limit:g} is not above 0 and below the merge threshold {merge:g}",
            where="mapreduce.reduce.shuffle.memory.limit.percent, .merge.percent",
            fix="Hadoop fails such reduces: lower the limit, or raise the merge threshold",
        )
    return config


def split_counts(
    file_sizes: Sequence[int], block_bytes: int, properties: Mapping[str, str]
) -> list[int]:
    """
    How many splits Hadoop's `FileInputFormat` makes of each file.

    A split is a block, unless *properties* have a smaller largest or a larger smallest one; the
    last may be a tenth larger.

    >>> split_counts([100, 1000], 400, {SPLIT_MOST: "90"})
    [2, 11]
    """
    least_bytes = whole(SPLIT_LEAST, properties.get(SPLIT_LEAST, "1"), least=0)
    most_bytes = whole(SPLIT_MOST, properties.get(SPLIT_MOST, str(block_bytes)))
    split_bytes = max(1, least_bytes, min(most_bytes, block_bytes))
    return [1 + max(0, math.ceil(size / split_bytes - _SLOP - 1e-9)) for size in file_sizes]


def reduce_heap_bytes(properties: Mapping[str, str]) -> int:
    """
    Memory of which Hadoop takes the shuffle buffer, in bytes.

    It is ``mapreduce.reduce.memory.totalbytes`` where set, else ``Runtime.maxMemory()`` of the
    reduce's JVM: the heap, or what `serial_max_memory` or `parallel_max_memory` say where the
    options choose that collector.
    """
    if REDUCE_MEMORY in properties:
        return whole(REDUCE_MEMORY, properties[REDUCE_MEMORY])
    property_name = "mapreduce.reduce.java.opts"
    if property_name not in properties and "mapred.child.java.opts" in properties:
        property_name = "mapred.child.java.opts"
    options = properties.get(property_name, "")
    if (heap_bytes := java_heap_bytes(options)) is not None:
        if heap_bytes < 2 * MIB:
            raise _value_error(property_name, options, "options of a JVM: its heap is below 2 MiB")
    elif "-Xmx" in options:
        wanted = "options of a JVM: -Xmx needs a size such as 400m"
        raise _value_error(property_name, options, wanted)
    else:
        heap_bytes = _share_of_container(properties)
    if has_serial_heap(options):
        return serial_max_memory(heap_bytes)
    if PARALLEL in options.split() and not _SHAPED.search(options):
        initial = [number_of_bytes(*size) for size in _XMS.findall(options)]
        ratio = _NEW_RATIO.findall(options)
        shape = {"new_ratio": int(ratio[-1])} if ratio else {}
        return parallel_max_memory(heap_bytes, initial[-1] if initial else 0, **shape)
    return heap_bytes


def _share_of_container(properties: Mapping[str, str]) -> int:
    """Heap in bytes of a reduce whose options set none: a share of its container's memory."""
    memory = "mapreduce.reduce.memory.mb"
    if memory not in properties and HEAP_SHARE not in properties:
        return JobConfig().reduce_heap_bytes
    # A size of -1 stands for Hadoop's default.
    requested = properties.get(memory, "-1").strip()
    container_mb = TASK_MEMORY_MB if requested == "-1" else whole(memory, requested)
    return int(heap_share(properties) * container_mb * MIB)


def heap_share(properties: Mapping[str, str]) -> float:
    """Share of a container's memory that is the heap of a JVM whose options set none."""
    return _share(HEAP_SHARE, properties.get(HEAP_SHARE, "0.8"))


def java_heap_bytes(options: str) -> int | None:
    """Maximal heap in bytes that the *options* of a JVM set; the last one wins."""
    if not (sizes := _XMX.findall(options)):
        return None
    return number_of_bytes(*sizes[-1])


def number_of_bytes(number: str, suffix: str) -> int:
    """Bytes of a size among the options of a JVM: digits, and the letter behind them."""
    return int(number) * _SUFFIX[suffix.lower()]


def has_serial_heap(options: str) -> bool:
    """Tell whether *options* choose the serial collector and leave its generations as they are."""
    is_shaped = re.search(r"-Xmn|NewSize|NewRatio|SurvivorRatio", options)
    return "-XX:+UseSerialGC" in options.split() and not is_shaped


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


def parallel_max_memory(heap_bytes: int, initial_bytes: int = 0, new_ratio: int = 2) -> int:
    """
    ``Runtime.maxMemory()`` in bytes of a JVM with the parallel collector, Java 8's default.

    One survivor space is never usable: a third of the young generation at its largest, or an
    eighth of what it begins with, *initial_bytes* being those of the whole heap.  That counts where
    a heap begins nearly as large as it may become, as it does without ``-Xms`` on nodes of 64 times
    its memory: then it is taken to begin small.  Young is one part of 1 + *new_ratio* of the heap
    (rounded up to 2 MiB); parts are rounded down to 512 KiB.  Exact to the byte on OpenJDK 17 and
    25 with 15 heaps and beginnings.

    >>> parallel_max_memory(820 * MIB) / MIB, parallel_max_memory(820 * MIB, 820 * MIB) / MIB
    (729.0, 786.0)
    """
    usable_bytes = []
    for total_bytes, survivors in ((heap_bytes, 3), (min(initial_bytes, heap_bytes), 8)):
        rounded = math.ceil(total_bytes / (2 * MIB)) * 2 * MIB
        young = rounded // (1 + new_ratio) // _SPACE_BYTES * _SPACE_BYTES
        usable_bytes.append(rounded - young // survivors // _SPACE_BYTES * _SPACE_BYTES)
    return max(usable_bytes)


def whole(property_name: str, text: str, least: int = 1, most: float = math.inf) -> int:
    """Whole number that the property *property_name* has; ``SpecError`` for any other *text*."""
    if not _WHOLE.fullmatch(text.strip()):
        raise _value_error(property_name, text, "a whole number")
    if not least <= (number := int(text)) <= most:
        raise _value_error(property_name, text, f"a whole number from {least} to {most:g}")
    return number


def _share(property_name: str, text: str) -> float:
    number = float(text) if _DECIMAL.fullmatch(text.strip()) else math.nan
    if not 0 <= number <= 1:
        raise _value_error(property_name, text, "a share from 0 to 1")
    return number


def _positive_share(property_name: str, text: str) -> float:
    if (number := _share(property_name, text)) == 0:
        raise _value_error(property_name, text, "a share above 0 to 1")
    return number


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


_any_int = partial(whole, least=-(2**31))
# Field of `JobConfig`: property, and how its text is read (docs/models/whatif.md, section 4.1).
JOB_PROPERTIES: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "num_reduces": ("mapreduce.job.reduces", partial(whole, least=0, most=MOST_REDUCES)),
    "sort_buffer_mb": ("mapreduce.task.io.sort.mb", partial(whole, most=2047)),
    "sort_spill_percent": ("mapreduce.map.sort.spill.percent", _positive_share),
    "sort_record_percent": ("io.sort.record.percent", _share),
    "merge_factor": ("mapreduce.task.io.sort.factor", partial(whole, least=2)),
    "combine_min_spills": ("mapreduce.map.combine.minspills", partial(whole, least=0)),
    "inmem_merge_segments": ("mapreduce.reduce.merge.inmem.threshold", _any_int),
    "shuffle_buffer_percent": ("mapreduce.reduce.shuffle.input.buffer.percent", _positive_share),
    "shuffle_merge_percent": ("mapreduce.reduce.shuffle.merge.percent", _share),
    "shuffle_segment_limit_percent": ("mapreduce.reduce.shuffle.memory.limit.percent", _share),
    "reduce_buffer_percent": ("mapreduce.reduce.input.buffer.percent", _share),
    "reduce_slowstart": ("mapreduce.job.reduce.slowstart.completedmaps", _share),
    "parallel_copies": ("mapreduce.reduce.shuffle.parallelcopies", whole),
    "map_output_compressed": ("mapreduce.map.output.compress", _switch),
    "output_compressed": ("mapreduce.output.fileoutputformat.compress", _switch),
}

# Names that models read, of Hadoop 1 some of them.
READ_NAMES = frozenset(name for name, _ in JOB_PROPERTIES.values()) | {
    *_COMBINERS, "mapred.child.java.opts", "mapreduce.job.heap.memory-mb.ratio",
    "mapreduce.reduce.java.opts", "mapreduce.reduce.memory.mb", REDUCE_MEMORY,
}  # fmt: skip

# Names that hold words of their user.
_FAMILIES = re.compile(
    r"yarn\.scheduler\.(capacity|fair)\..*|yarn\.nodemanager\.aux-services\..*"
    r"|yarn\.(nodemanager\.resource-type|resource-types)\..*|mapreduce\.(map|reduce)\.resource\..*"
    r"|yarn\.app\.mapreduce\.am\.resource\..*|mapreduce\.multipleoutputs\..*"
    r"|mapreduce\.job\.log4j-.*|hadoop\.(proxyuser|security|http)\..*|ipc\.\d+\..*"
    r"|fs\.([A-Za-z]+|AbstractFileSystem\..*)\.impl(\..*)?|fs\.s3a\.bucket\..*"
    r"|fs\.viewfs\..*|fs\.azure\..*"
)
_ALIKE = 0.75
_ALIKE_SHORT = 0.5
_SHORT = 3  # of a part that was misspelled; letters of a short one
_LEAST_PARTS = 3  # of a name that lacks one: two alone are too common a name


def is_known(name: str) -> bool:
    """
    Tell whether Hadoop or a model reads *name*.

    >>> is_known("mapreduce.job.reduces"), is_known("yarn.resourcemanager.address.rm1")
    (True, True)
    """
    if name in known_names() or _FAMILIES.fullmatch(name):
        return True
    # What continues a known name of three parts or more.
    parts = name.split(".")
    heads = (".".join(parts[:count]) for count in range(_LEAST_PARTS, len(parts)))
    return any(head in known_names() for head in heads)


@cache
def known_names() -> frozenset[str]:
    """All names that are in use, those that models read among them; families apart."""
    return READ_NAMES | {name for name, replacement in _table().items() if not replacement}


def is_own(name: str) -> bool:
    """Tell whether *name* begins as none of Hadoop's does: a property of the user's own."""
    hadoops_first_words = {hadoops_name.partition(".")[0] for hadoops_name in _table()}
    return name.partition(".")[0] not in hadoops_first_words


def successor(name: str) -> str:
    """
    Name that took the place of *name*, empty where it is in use or unknown.

    >>> successor("mapred.reduce.tasks")
    'mapreduce.job.reduces'
    """
    return "" if name in READ_NAMES else _table().get(name, "")


def meant(name: str) -> str:
    """
    Give the known name that an unknown *name* is one slip away from, or nothing.

    >>> meant("mapreduce.task.io.sort.bm"), meant("mapreduce.job.quorum"), meant("my.job.reduces")
    ('mapreduce.task.io.sort.mb', '', '')
    """
    if is_known(name):
        return ""
    parts = name.split(".")
    similar = _similar_names()
    near = {*similar.get(("letters", _letters(name)), ())}
    if len(parts) >= _LEAST_PARTS:
        near.update(similar.get(("shortened", name), ()))
    for index, part in enumerate(parts):
        for candidate in similar.get(("masked", _masked(parts, index)), ()):
            if _is_slip(part, candidate.split(".")[index]):
                near.add(candidate)
    return min(near, key=lambda candidate: (-_likeness(name, candidate), candidate), default="")


def _is_slip(part: str, known_part: str) -> bool:
    """Whether *part* of a name may be *known_part* with letters mistaken."""
    # With digits it is another word: fs.s3a and fs.s3n are two file systems.
    if any(letter.isdigit() for letter in part + known_part):
        return False
    least = _ALIKE_SHORT if len(known_part) <= _SHORT else _ALIKE
    return _likeness(part, known_part) >= least


def resembling(name: str) -> str:
    """
    The known name that looks most like an unknown *name*, or nothing.

    It is slow, for it compares *name* with every name of Hadoop's.
    """
    # Hadoop's names are long and alike: a lower cut-off would offer one for any.
    return nearest_name(name, known_names(), cutoff=0.85) or ""


def objection(name: str) -> tuple[str, str] | None:
    """Say what is wrong with *name* as a property, and what to write; `None`: it may stand."""
    if later := successor(name):
        return (f"'{name}' is obsolete in Hadoop 3, and is not read here", f"write {later}")
    if near := meant(name):
        fix = f"did you mean {near}? a property of your own needs its own first word"
        return f"Hadoop knows no property '{name}'", fix
    return None


def _likeness(name: str, known_name: str) -> float:
    """From 0, nothing alike, to 1, the same."""
    return SequenceMatcher(None, name, known_name).ratio()


def _letters(name: str) -> str:
    return re.sub(r"[._-]", "", name).lower()


def _masked(parts: list[str], index: int) -> str:
    """The name of *parts* with a ``*`` in the place of one of them."""
    return ".".join([*parts[:index], "*", *parts[index + 1 :]])


@cache
def _similar_names() -> dict[tuple[str, str], list[str]]:
    """Known names by their letters alone, shortened by one of their parts, and with it masked."""
    names = defaultdict(list)
    for name in known_names():
        names["letters", _letters(name)].append(name)
        parts = name.split(".")
        for index in range(len(parts)):
            names["shortened", ".".join([*parts[:index], *parts[index + 1 :]])].append(name)
            names["masked", _masked(parts, index)].append(name)
    return dict(names)


@cache
def _table() -> dict[str, str]:
    """
    Every name that Hadoop has or had, with its replacement where it is out of use.

    ``scripts/export-properties`` writes them from Hadoop's jars.
    """
    text = (files("harness.base.hadoop") / "property-names.txt").read_text(encoding="utf-8")
    rows = [line.partition(" ") for line in text.splitlines()]
    return {name: replacement for name, _, replacement in rows}
