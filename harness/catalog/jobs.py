"""
One past job as a row of the catalog: what its history and its configuration say, and no more.

A number or a class that neither says is `None`, and the column `missing` says why; nothing is
estimated in its place.  Times are seconds, sizes are bytes as they are stored.
"""

from __future__ import annotations

import re

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from statistics import fmean
from typing import Any
from urllib.parse import unquote_plus

from harness.base.documents.wording import count
from harness.base.hadoop.properties import READ_NAMES
from harness.base.hadoop.slots import KINDS
from harness.base.hadoop.values import plain_value
from harness.base.records import trace as records
from harness.base.records.trace import JobTrace, TaskAttempt, TaskKind
from harness.base.records.trial import digest
from harness.base.text import excerpt
from harness.catalog.families import short_class, stem
from harness.observe.parsing.lines import LARGEST

Row = dict[str, Any]

_LONGEST_NAME = 300
_LONGEST_VALUE = 200  # characters
_MOST_WORDS = 10  # of a command that a script is looked for among
_SCRIPT = re.compile(r"[A-Za-z_][\w-]{0,60}\.(?:py|rb|pl|sh|R|js|php|awk|lua|jar)")
_COMMAND = re.compile(r"[A-Za-z_][\w-]{0,20}")
# Class of each part by the new interface, by the old one, and what says which of them is used.
_CLASSES = {
    "mapper": ("mapreduce.job.map.class", "mapred.mapper.class", "mapred.mapper.new-api"),
    "combiner": ("mapreduce.job.combine.class", "mapred.combiner.class", "mapred.reducer.new-api"),
    "reducer": ("mapreduce.job.reduce.class", "mapred.reducer.class", "mapred.reducer.new-api"),
}
_KEPT = READ_NAMES | {
    "dfs.blocksize", "mapreduce.input.fileinputformat.split.maxsize",
    "mapreduce.input.fileinputformat.split.minsize", "mapreduce.map.java.opts",
    "mapreduce.map.memory.mb", "mapreduce.map.output.compress.codec",
    "mapreduce.output.fileoutputformat.compress.codec",
}  # fmt: skip
# Formats of input and output by the old interface: words that stand for them, by default none.
_FORMATS = {
    "in": (
        "mapreduce.job.inputformat.class", "mapred.input.format.class", "mapred.mapper.new-api"
    ),
    "out": (
        "mapreduce.job.outputformat.class", "mapred.output.format.class", "mapred.reducer.new-api"
    ),
}  # fmt: skip
_PLAIN_FORMATS = re.compile(
    r"org\.apache\.hadoop\.mapred(uce\.lib\.(in|out)put)?\.Text\w+putFormat"
)
# What tells programs of one engine apart, by the word for it; values may hold passwords.
_TELLS = {
    "map": "stream.map.streamprocessor",
    "combine": "stream.combine.streamprocessor",
    "reduce": "stream.reduce.streamprocessor",
    "pig": "pig.job.feature",
    "alias": "pig.alias",
    "query": "hive.query.id",
    "action": "oozie.launcher.action.main.class",
    "imports": "mapreduce.jdbc.input.table.name",
    "exports": "mapreduce.jdbc.output.table.name",
}
WANTED = _KEPT.union(*_CLASSES.values(), *_FORMATS.values(), _TELLS.values())

# Sums over all successful tasks of a kind; a map-only job has its output counted in its maps.
_COUNTERS: dict[str, tuple[TaskKind, str]] = {
    "input_bytes": ("map", records.BYTES_READ),  # as `bytes_read` has it
    "map_input_records": ("map", f"{records.TASK_COUNTER}.MAP_INPUT_RECORDS"),
    "map_output_records": ("map", f"{records.TASK_COUNTER}.MAP_OUTPUT_RECORDS"),
    "map_spilled_records": ("map", f"{records.TASK_COUNTER}.SPILLED_RECORDS"),
    "combine_input_records": ("map", f"{records.TASK_COUNTER}.COMBINE_INPUT_RECORDS"),
    "combine_output_records": ("map", f"{records.TASK_COUNTER}.COMBINE_OUTPUT_RECORDS"),
    "map_output_bytes": ("map", f"{records.TASK_COUNTER}.MAP_OUTPUT_BYTES"),
    "map_materialized_bytes": ("map", f"{records.TASK_COUNTER}.MAP_OUTPUT_MATERIALIZED_BYTES"),
    "reduce_shuffle_bytes": ("reduce", f"{records.TASK_COUNTER}.REDUCE_SHUFFLE_BYTES"),
    "reduce_input_records": ("reduce", f"{records.TASK_COUNTER}.REDUCE_INPUT_RECORDS"),
    "reduce_input_groups": ("reduce", f"{records.TASK_COUNTER}.REDUCE_INPUT_GROUPS"),
    "reduce_output_records": ("reduce", f"{records.TASK_COUNTER}.REDUCE_OUTPUT_RECORDS"),
    "output_bytes": ("reduce", f"{records.FILE_OUTPUT_COUNTER}.BYTES_WRITTEN"),
}
# Counters that a job may be without: one that combines nothing, and one that has only maps.
_WITH_COMBINER = {"combine_input_records", "combine_output_records"}
_WITH_REDUCES = {*_WITH_COMBINER, "map_output_bytes", "map_materialized_bytes"}
# Quotients of the numbers above, and of the terms of `_ratios`.
_RATIOS = {
    "split_bytes": ("read_bytes", "num_maps"),
    "reduce_input_bytes": ("reduce_shuffle_bytes", "map_output_ratio"),
    "records_per_reduce_group": ("reduce_input_records", "reduce_input_groups"),
    "map_records_selectivity": ("map_output_records", "map_input_records"),
    "map_bytes_selectivity": ("map_bytes", "read_bytes"),
    "combine_records_selectivity": ("combine_output_records", "combine_input_records"),
    "reduce_records_selectivity": ("reduce_output_records", "reduce_input_records"),
    "reduce_bytes_selectivity": ("output_bytes", "reduce_input_bytes"),
    "input_record_bytes": ("read_bytes", "map_input_records"),
    "map_output_record_bytes": ("map_bytes", "map_output_records"),
    "output_record_bytes": ("output_bytes", "output_records"),
}
# What makes two jobs alike whatever their sizes: shares of records and bytes, widths of records.
FEATURES = tuple(_RATIOS)[3:]
# Mean seconds from one moment of a successful attempt to another.
_TIMES: dict[str, tuple[TaskKind, str, str]] = {
    "map_task_s": ("map", "start_s", "finish_s"),
    "map_function_s": ("map", "start_s", "map_finish_s"),
    "map_merge_s": ("map", "map_finish_s", "finish_s"),
    "reduce_task_s": ("reduce", "start_s", "finish_s"),
    "reduce_shuffle_s": ("reduce", "start_s", "shuffle_finish_s"),
    "reduce_sort_s": ("reduce", "shuffle_finish_s", "sort_finish_s"),
    "reduce_function_s": ("reduce", "sort_finish_s", "finish_s"),
}
_CPU_TIMES = ("map_cpu_s", "reduce_cpu_s")

_TRACED = {
    "job_id": str,
    "state": str,
    "submit_s": float,
    "job_s": float,
    "uberized": bool,
    "num_maps": int,
    "num_reduces": int,
}
_COUNTED = ("failed_attempts", "killed_attempts", "hosts", "map_slots", "reduce_slots")
# Fields by group, and where the group comes from.
GROUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "job": ("history: events of the job", {
        **_TRACED, "name": str, "job_start_s": float | None, "job_end_s": float | None,
        "counters_from": str, **dict.fromkeys(("source", "source_key", "configuration"), str),
    }),
    "program": ("the job configuration, where there is one", {
        **dict.fromkeys((*_CLASSES, "program"), str | None), "properties": tuple[str, ...],
    }),
    "slots": ("history: most attempts that ran at once", dict.fromkeys(_COUNTED, int)),
    "records and bytes": ("history: see counters_from", dict.fromkeys(_COUNTERS, int | None)),
    "ratios": (
        "quotients of records and bytes",
        dict.fromkeys(("map_output_ratio", *_RATIOS), float | None),
    ),
    "mean times of tasks": (
        "history: attempts that succeeded", dict.fromkeys((*_TIMES, *_CPU_TIMES), float | None)
    ),
    "missing": ("what should be there", {"missing": tuple[str, ...]}),
}  # fmt: skip
LATER = ("program",)  # columns that catalogs of before lack
COLUMNS = dict(chain.from_iterable(fields.items() for _, fields in GROUPS.values()))


def past_job(trace: JobTrace, properties: Mapping[str, str] | None, problem: str = "") -> Row:
    """
    Make the row of the job in *trace*, but for the names of its files.

    *properties* are those of its configuration that are `WANTED`, `None` where there is none that
    can be read: *problem* says why.
    """
    missing = [] if trace.state == "SUCCEEDED" else [f"a successful end: it is {trace.state}"]
    if properties is None:
        reason = problem or "no job configuration beside the history"
        missing.append(f"classes and properties: {excerpt(reason, 200)}")
    if dropped := sum(clock.tasks for clock in trace.clocks if not clock.moved):
        missing.append(f"phases of {count(dropped, 'task')}: the clock of their node is off")
    counts, counters_from = _counts(trace, missing)
    return {
        **{field: getattr(trace, field) for field in _TRACED},
        "name": trace.name[:_LONGEST_NAME],
        "counters_from": counters_from,
        **classes_of(properties, _CLASSES),
        "program": None if properties is None else program_of(properties),
        "properties": _kept(properties or {}),
        **_attempts(trace),
        **counts,
        **_ratios(counts, trace, properties, missing),
        **_times(trace),
        "missing": tuple(missing),
    }


def _attempts(trace: JobTrace) -> Row:
    """What the attempts show of the job: its start and end beside them, hosts, slots, repeats."""
    attempts = trace.attempts
    states = [attempt.state for attempt in attempts]
    job_start_s = None
    job_end_s = None
    if attempts:
        job_start_s = min(attempt.start_s for attempt in attempts) - trace.submit_s
        job_end_s = trace.finish_s - max(attempt.finish_s for attempt in attempts)
    return {
        "job_start_s": job_start_s,
        "job_end_s": job_end_s,
        "failed_attempts": states.count("failed"),
        "killed_attempts": states.count("killed"),
        "hosts": len({attempt.host for attempt in attempts}),
        **{f"{kind}_slots": most_at_once(attempts, kind) for kind in KINDS},
    }


def most_at_once(attempts: Iterable[TaskAttempt], kind: TaskKind) -> int:
    """The most *attempts* of a *kind* that ran at once; one that ends makes room for another."""
    moments = list[tuple[float, int]]()  # seconds, and by how many more run from then on
    for attempt in attempts:
        if attempt.kind == kind:
            moments += ((attempt.start_s, 1), (attempt.finish_s, -1))
    return max(accumulate(step for _, step in sorted(moments)), default=0)


def classes_of(
    properties: Mapping[str, str] | None, parts: Mapping[str, tuple[str, str, str]]
) -> dict[str, str | None]:
    """Class of each of *parts*; empty where the job sets none, `None` where nobody knows."""
    if properties is None:
        return dict.fromkeys(parts)
    classes = dict[str, str | None]()
    for part, (new_name, old_name, switch) in parts.items():
        is_new = properties.get(switch, "").strip().lower() == "true"
        names = (new_name, old_name) if is_new else (old_name, new_name)
        values = (properties.get(name, "").strip()[:_LONGEST_NAME] for name in names)
        classes[part] = next(filter(None, values), "")
    return classes


def program_of(properties: Mapping[str, str]) -> str:
    """
    What tells a program apart beside its classes: formats, and for engines one digest of the rest.

    Of a command of Hadoop streaming its first word is shown, or the script that it starts.  Values
    may hold passwords: four digits of a digest of all of them tell nobody which.

    >>> program_of({"stream.map.streamprocessor": "python3+count.py+--key+7"})
    'map count.py, #c0fb'
    """
    words = list[str]()
    for part, class_name in classes_of(properties, _FORMATS).items():
        if class_name and not _PLAIN_FORMATS.fullmatch(class_name):
            words.append(f"{part} {short_class(class_name)}")
    texts = {word: unquote_plus(properties.get(name, "")) for word, name in _TELLS.items()}
    tells = {word: stem(text) for word, text in texts.items() if text.strip()}
    for word in ("map", "combine", "reduce"):
        if word in tells and (script := _script(texts[word])):
            words.append(f"{word} {script}")
    if tells:
        words.append(f"#{digest(tells)[:4]}")
    return ", ".join(words)


def _script(command: str) -> str:
    """The script that a *command* starts, or its first word; empty where that may be anything."""
    names = [word.rpartition("/")[2] for word in command.split()]
    scripts = [name for name in names[:_MOST_WORDS] if _SCRIPT.fullmatch(name)]
    plain = [name for name in names[:1] if _COMMAND.fullmatch(name)]
    return next(iter(scripts or plain), "")


def _kept(properties: Mapping[str, str]) -> tuple[str, ...]:
    """``name=value`` of what models read; of a JVM's options those of -X: others hold passwords."""
    texts = list[str]()
    for name in sorted(_KEPT & properties.keys()):
        words = properties[name].split()
        if name.endswith("java.opts"):
            words = [word for word in words if word.startswith("-X")]
        texts.append(f"{name}={' '.join(words)[:_LONGEST_VALUE]}")
    return tuple(texts)


def _counts(trace: JobTrace, missing: list[str]) -> tuple[dict[str, int | None], str]:
    """Counters of the job by column, and what they are; what should be there goes to *missing*."""
    kinds = KINDS
    columns = dict(_COUNTERS)
    optional = _WITH_COMBINER
    if not trace.num_reduces:
        kinds = ("map",)
        columns["output_bytes"] = ("map", _COUNTERS["output_bytes"][1])
        optional = _WITH_REDUCES
    totals, counters_from = _totals(trace, kinds)
    missing += [f"counters of {kind}s: none" for kind in kinds if not totals[kind]]
    counts = dict[str, int | None]()
    for column, (kind, counter) in columns.items():
        total = totals.get(kind, {})
        stated = total.get(counter)
        if counter == records.BYTES_READ:
            stated = records.bytes_read(total, trace.num_maps)
        counts[column] = _checked(stated)
        if counts[column] is None and total and column not in optional:
            missing.append(f"{column}: {'no such counter' if stated is None else 'not a count'}")
    return counts, counters_from


def _checked(stated: int | None) -> int | None:
    """A counter as it is stated, unless it is no count."""
    return stated if stated is not None and 0 <= stated < LARGEST else None


def _totals(
    trace: JobTrace, kinds: Iterable[TaskKind]
) -> tuple[dict[TaskKind, Mapping[str, int]], str]:
    """Counters of all tasks of each of *kinds*, and what these are; empty where there are none."""
    stated = {"map": trace.map_counters, "reduce": trace.reduce_counters}
    if any(stated.values()):
        return {kind: stated[kind] for kind in kinds}, "totals of the job"
    sums = {kind: trace.task_counters(kind) for kind in kinds}
    return sums, "sums over the tasks that succeeded" if any(sums.values()) else ""


def _ratios(
    counts: Mapping[str, int | None],
    trace: JobTrace,
    properties: Mapping[str, str] | None,
    missing: list[str],
) -> dict[str, float | None]:
    """Compression of the maps' output, selectivities and widths of records."""
    has_reduces = trace.num_reduces > 0
    terms: dict[str, float | None] = {
        **counts,
        "map_output_ratio": _map_output_ratio(counts, properties, missing),
        "num_maps": trace.num_maps,
        # Maps that read no file have records without bytes: that is no size of a record.
        "read_bytes": counts["input_bytes"] or None,
        "map_bytes": counts["map_output_bytes" if has_reduces else "output_bytes"],
        "output_records": counts["reduce_output_records" if has_reduces else "map_output_records"],
    }
    for name, (top, bottom) in _RATIOS.items():  # each may be a term of a later one
        terms[name] = _quotient(terms[top], terms[bottom])
    return {name: terms[name] for name in ("map_output_ratio", *_RATIOS)}


def _map_output_ratio(
    counts: Mapping[str, int | None], properties: Mapping[str, str] | None, missing: list[str]
) -> float | None:
    """Bytes of the maps' output as it is stored by those before the codec; 1 without a codec."""
    ratio = _quotient(counts["map_materialized_bytes"], counts["map_output_bytes"])
    if ratio is None:
        return None
    if properties is not None:
        name = "mapreduce.map.output.compress"
        if plain_value(name, properties.get(name, "")) != "true":
            return 1.0  # more than that only frames the records
    if counts["combine_input_records"] == 0:
        return ratio
    missing.append("map_output_ratio: no counter tells the combiner from the codec")
    return None


def _quotient(top: float | None, bottom: float | None) -> float | None:
    """The one by the other; `None` where a term is not known, or nothing can be divided by it."""
    return None if top is None or not bottom else top / bottom


def _times(trace: JobTrace) -> dict[str, float | None]:
    """Mean seconds of the parts of successful attempts, as far as the history has their ends."""
    tasks = {kind: trace.succeeded(kind) for kind in KINDS}
    means_s = dict[str, float | None]()
    for name, (kind, start, end) in _TIMES.items():
        moments = ((getattr(task, start), getattr(task, end)) for task in tasks[kind])
        spans_s = [end_s - start_s for start_s, end_s in moments if None not in (start_s, end_s)]
        means_s[name] = _mean(spans_s)
    for name, kind_tasks in zip(_CPU_TIMES, tasks.values(), strict=True):
        counts_ms = (task.count("CPU_MILLISECONDS", -1) for task in kind_tasks)
        means_s[name] = _mean([count_ms / 1e3 for count_ms in counts_ms if count_ms >= 0])
    return means_s


def _mean(values: Sequence[float]) -> float | None:
    """Mean of *values*; `None` of none."""
    return fmean(values) if values else None
