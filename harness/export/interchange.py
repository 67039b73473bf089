"""
A run for other programs of the field: samples of PerfKitBenchmarker, job traces of Rumen.

Rumen has no place for a job's own counters, uber mode, the end of the map function, containers,
locality and messages.  What it wants and a trace does not hold is Hadoop's default (rack, queue).
"""

from __future__ import annotations

import uuid

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import IO, Any

import orjson

from pydantic import TypeAdapter

from harness.base.errors import ParseError
from harness.base.records.trace import FILE_SYSTEM_COUNTER, TASK_COUNTER, JobTrace, TaskAttempt
from harness.base.text import excerpt, printable
from harness.base.version import __version__
from harness.core.frames import Frames

_RACK = "default-rack"
_NO_TIMES = {"numberValues": 0, "minimum": 0, "maximum": 0, "rankings": ()}
_MOST_BYTES = 1 << 26  # of one job: 25,000 attempts
_RESULTS = {"SUCCEEDED": "SUCCESS", "FAILED": "FAILED", "KILLED": "KILLED"}
_STATES = {result: state for state, result in _RESULTS.items()} | {"SUCCEEDED": "SUCCEEDED"}
# What an attempt has, by Rumen's names: times and counters, -1 where there is none ...
_TIMES = {
    "startTime": "start_s", "finishTime": "finish_s",
    "shuffleFinished": "shuffle_finish_s", "sortFinished": "sort_finish_s",
}  # fmt: skip
_COUNTERS = {
    "hdfsBytesRead": f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_READ",
    "hdfsBytesWritten": f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN",
    "fileBytesRead": f"{FILE_SYSTEM_COUNTER}.FILE_BYTES_READ",
    "fileBytesWritten": f"{FILE_SYSTEM_COUNTER}.FILE_BYTES_WRITTEN",
    "mapInputRecords": f"{TASK_COUNTER}.MAP_INPUT_RECORDS",
    "mapInputBytes": f"{TASK_COUNTER}.MAP_INPUT_BYTES",
    "mapOutputBytes": f"{TASK_COUNTER}.MAP_OUTPUT_BYTES",
    "mapOutputRecords": f"{TASK_COUNTER}.MAP_OUTPUT_RECORDS",
    "combineInputRecords": f"{TASK_COUNTER}.COMBINE_INPUT_RECORDS",
    "reduceInputGroups": f"{TASK_COUNTER}.REDUCE_INPUT_GROUPS",
    "reduceInputRecords": f"{TASK_COUNTER}.REDUCE_INPUT_RECORDS",
    "reduceShuffleBytes": f"{TASK_COUNTER}.REDUCE_SHUFFLE_BYTES",
    "reduceOutputRecords": f"{TASK_COUNTER}.REDUCE_OUTPUT_RECORDS",
    "spilledRecords": f"{TASK_COUNTER}.SPILLED_RECORDS",
}
_RESOURCES = {  # ... and 0 where there is none
    "cumulativeCpuUsage": f"{TASK_COUNTER}.CPU_MILLISECONDS",
    "virtualMemoryUsage": f"{TASK_COUNTER}.VIRTUAL_MEMORY_BYTES",
    "physicalMemoryUsage": f"{TASK_COUNTER}.PHYSICAL_MEMORY_BYTES",
    "heapUsage": f"{TASK_COUNTER}.COMMITTED_HEAP_BYTES",
}
_FLOW = {  # of a task, from the attempt that succeeded: bytes and records, in and out
    "map": "hdfsBytesRead mapInputRecords fileBytesWritten mapOutputRecords",
    "reduce": "reduceShuffleBytes reduceInputRecords hdfsBytesWritten reduceOutputRecords",
}
_JOB = TypeAdapter(JobTrace)
# What is sampled: its name, its value and unit, when, and the row of a frame that it is from.
_Sample = tuple[str, float, str, float, Mapping[str, Any]]


def pkb_samples(run: Frames) -> Iterator[bytes]:
    """
    Lines of *run* as PerfKitBenchmarker's publisher of JSON writes samples.

    There is one for each scored trial and quantity, and for each model's error of `job_s` and
    `body_s` in each cell; its labels are the rest of the row of `run.measurements` or `run.scores`.
    A label cannot hold `|`, which is written as `/`.
    """
    for metric, number, unit, at_s, row in _samples(run):
        facts = {name: fact for name, fact in row.items() if not name.endswith("_s")}
        facts |= {"experiment": run.evaluation.experiment.name, "harness": __version__}
        pairs = [
            f"{printable(name).replace(':', '=')}:{printable(fact)}".replace("|", "/")
            for name, fact in sorted(facts.items())
            if str(fact) not in ("", "nan", "None")
        ]
        sample = {
            "metric": metric,
            "value": number,
            "unit": unit,
            "timestamp": at_s,
            "test": row["workload"],
            "product_name": "mapreduce-harness",
            "official": False,
            "owner": "",
            "run_uri": run.run.id,
        }
        # Theirs is drawn at random; here the same run gives the same file.
        sample["sample_uri"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{sample}{pairs}"))
        sample["labels"] = ",".join(f"|{pair}|" for pair in pairs)
        yield orjson.dumps(sample) + b"\n"


def _samples(run: Frames) -> Iterator[_Sample]:
    """Times of the trials of *run*, then errors of its models, dated by the last trial's end."""
    ended_s = dict(zip(run.trials["trial"], run.trials["finished_s"], strict=True))
    for row in run.measurements.to_dict("records"):
        for name in row:
            if name.endswith("_s") and row[name] >= 0:
                yield name, row[name], "seconds", ended_s[row["trial"]], row
    last_s = max(ended_s.values(), default=0.0)
    for row in run.scores.to_dict("records"):
        if row["quantity"] in ("job_s", "body_s"):
            yield f"{row['quantity']} signed error", row["signed_error"], "ratio", last_s, row


def rumen_topology(hosts: Iterable[str]) -> bytes:
    """Give the tree of *hosts*, in one rack, that goes with a trace for Rumen."""
    children = [{"name": host, "children": None} for host in sorted({*hosts} - {""})]
    root = {"name": "<root>", "children": [{"name": _RACK, "children": children}]}
    return orjson.dumps(root, option=orjson.OPT_INDENT_2) + b"\n"


def rumen_trace(jobs: Iterable[JobTrace]) -> Iterator[bytes]:
    """Give *jobs* as the objects of a trace for Rumen, which stand one behind another."""
    for job in jobs:
        tasks = defaultdict[str, list[TaskAttempt]](list)
        for attempt in job.attempts:
            tasks[attempt.task_id].append(attempt)
        logged = [_logged_task(task_id, attempts) for task_id, attempts in sorted(tasks.items())]
        document = {
            "jobID": job.job_id,
            "jobName": job.name,
            "user": job.user,
            "queue": "default",
            "submitTime": _ms(job.submit_s),
            "launchTime": _ms(job.launch_s),
            "finishTime": _ms(job.finish_s),
            "totalMaps": job.num_maps,
            "totalReduces": job.num_reduces,
            # It has no word for a job that ended by an error of its master.
            "outcome": _RESULTS.get(job.state, "FAILED"),
            "mapTasks": [task for task in logged if task["taskType"] == "MAP"],
            "reduceTasks": [task for task in logged if task["taskType"] == "REDUCE"],
            # Without these its replayer stops at a reduce that was killed.
            "successfulReduceAttemptCDF": _NO_TIMES,
            "failedReduceAttemptCDF": _NO_TIMES,
        }
        yield orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _logged_task(task_id: str, attempts: Sequence[TaskAttempt]) -> Mapping[str, object]:
    """Rumen's object of a task, whose times are those of its attempts."""
    logged = [_logged_attempt(attempt) for attempt in attempts]
    ended = [fields for fields in logged if fields["result"] == "SUCCESS"]
    last = (ended or logged)[-1]
    kind = attempts[0].kind
    flow = [last[name] if ended else -1 for name in _FLOW[kind].split()]
    names = ("inputBytes", "inputRecords", "outputBytes", "outputRecords")
    return {
        "taskID": task_id,
        "taskType": kind.upper(),
        "taskStatus": last["result"],
        "startTime": _ms(min(attempt.start_s for attempt in attempts)),
        "finishTime": last["finishTime"],
        **dict(zip(names, flow, strict=True)),
        "attempts": logged,
    }


def _logged_attempt(attempt: TaskAttempt) -> dict[str, object]:
    return {
        "attemptID": attempt.attempt_id,
        "result": _RESULTS[attempt.state.upper()],
        "hostName": f"/{_RACK}/{attempt.host}" if attempt.host else None,
        "location": {"layers": [_RACK, attempt.host]} if attempt.host else None,
        **{name: _ms(getattr(attempt, time)) for name, time in _TIMES.items()},
        **{name: attempt.count(counter, -1) for name, counter in _COUNTERS.items()},
        "resourceUsageMetrics": {name: attempt.count(key) for name, key in _RESOURCES.items()},
    }


def _ms(time_s: float | None) -> int:
    return -1 if time_s is None else round(1000 * time_s)


def read_rumen(file: IO[bytes], source: str) -> Iterator[JobTrace]:
    """
    Read the jobs of a trace that Rumen's TraceBuilder wrote, from an open *file*.

    Attempts without a start or an end are left out.  What is not such a trace, or a job that has
    no end or 64 MiB, is `ParseError` with *source* and the line at which the job starts.
    """
    text = bytearray()
    first = 1
    # A line of a foreign file may have gigabytes.
    for number, line in enumerate(iter(partial(file.readline, _MOST_BYTES), b""), start=1):
        rest = line
        if text and line.startswith(b"}"):  # all else of a job is indented
            yield _read_job(text + b"}", source, first)
            text = bytearray()
            rest = line[1:]
        first = first if text else number
        text += rest if text else rest.lstrip()
        if len(text) >= _MOST_BYTES:
            raise ParseError(f"a job of {_MOST_BYTES} bytes or more", source=source, line=first)
    if text:
        yield _read_job(text, source, first)


def _read_attempts(task: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Fields of the attempts of a *task*, by their names in `TaskAttempt`."""
    for logged in task["attempts"]:
        usage = logged["resourceUsageMetrics"]
        if not logged.get("result") or min(logged["startTime"], logged["finishTime"]) < 0:
            continue  # It never got a container, or the job ended before it.
        yield {
            "attempt_id": logged["attemptID"],
            "task_id": task["taskID"],
            "kind": kind,
            "state": _STATES[logged["result"]].lower(),
            "host": (logged.get("hostName") or "").rpartition("/")[2],
            "counters": {key: logged[name] for name, key in _COUNTERS.items() if logged[name] >= 0}
            | {key: usage[name] for name, key in _RESOURCES.items() if usage[name] > 0},
            **{key: logged[name] / 1000 for name, key in _TIMES.items() if logged[name] >= 0},
        }


def _read_job(text: bytearray, source: str, line: int) -> JobTrace:
    """Read the job in *text*, which starts at the *line* of *source*."""
    try:
        document = orjson.loads(text)
        attempts: list[dict[str, Any]] = []
        for kind in _FLOW:
            for task in document[f"{kind}Tasks"]:
                attempts += _read_attempts(task, kind)
        job = _JOB.validate_python(
            {
                "job_id": document["jobID"],
                "name": document.get("jobName") or "",
                "user": document.get("user") or "",
                "state": _STATES[document["outcome"]],
                "submit_s": document["submitTime"] / 1000,
                "launch_s": max(document["launchTime"], document["submitTime"]) / 1000,
                "finish_s": document["finishTime"] / 1000,
                "num_maps": max(document["totalMaps"], 0),
                "num_reduces": max(document["totalReduces"], 0),
                "attempts": sorted(attempts, key=itemgetter("start_s", "attempt_id")),
            }
        )
        if min(job.job_s, *(attempt.duration_s for attempt in job.attempts), 0.0) < 0:
            raise ValueError("an end before its start")
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"not a job of Rumen: {excerpt(f'{type(error).__name__}: {error}', 300)}"
        raise ParseError(what, source=source, line=line, fix="is it the whole trace?") from error
    return job
