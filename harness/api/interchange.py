"""
A run for other programs of the field: samples of PerfKitBenchmarker, job traces of Rumen.

Of a job Rumen holds id, name, user, outcome, times and tasks; of an attempt id, result, host, times
and the counters below.  It has no place for the job's own counters, uber mode, the end of the map
function, containers, locality and messages.  What it asks for and a trace does not hold is Hadoop's
default (rack, queue); a task's times are those of its attempts.
"""

from __future__ import annotations

import re
import uuid

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

import orjson

from pydantic import FailFast, Field, ValidationError, create_model

from harness import __version__
from harness.errors import ParseError
from harness.parsing.lines import value_excerpt
from harness.records.trace import FILE_SYSTEM_COUNTER, TASK_COUNTER, JobTrace, TaskAttempt, TaskKind
from harness.text import excerpt, printable

if TYPE_CHECKING:
    from harness.api.run import Run

_RACK = "default-rack"
_MOST_BYTES = 1 << 26  # of one job, 25,000 attempts; a hostile one takes 18 times as many of memory
_LONGEST_TEXT = 4000
_STRING_OR_BRACE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}]')
_RESULTS = {"SUCCEEDED": "SUCCESS", "FAILED": "FAILED", "KILLED": "KILLED"}
_STATES: Any = {result: state for state, result in _RESULTS.items()} | {"SUCCEEDED": "SUCCEEDED"}
_TIMES = {
    "startTime": "start_s", "finishTime": "finish_s",
    "shuffleFinished": "shuffle_finish_s", "sortFinished": "sort_finish_s",
}  # fmt: skip
# Of an attempt; -1 where there is none.
_COUNTERS = {
    name: f"{group}.{re.sub('(?=[A-Z])', '_', name).upper()}"
    for group, names in {
        FILE_SYSTEM_COUNTER: "hdfsBytesRead hdfsBytesWritten fileBytesRead fileBytesWritten",
        TASK_COUNTER: "mapInputRecords mapInputBytes mapOutputBytes mapOutputRecords"
        " combineInputRecords reduceInputGroups reduceInputRecords reduceShuffleBytes"
        " reduceOutputRecords spilledRecords",
    }.items()
    for name in names.split()
}
_RESOURCES = {  # 0 where there is none
    "cumulativeCpuUsage": f"{TASK_COUNTER}.CPU_MILLISECONDS",
    "virtualMemoryUsage": f"{TASK_COUNTER}.VIRTUAL_MEMORY_BYTES",
    "physicalMemoryUsage": f"{TASK_COUNTER}.PHYSICAL_MEMORY_BYTES",
    "heapUsage": f"{TASK_COUNTER}.COMMITTED_HEAP_BYTES",
}
_FLOW = {  # of a task: input and output, bytes and records, of the attempt that succeeded
    "map": ("hdfsBytesRead", "mapInputRecords", "fileBytesWritten", "mapOutputRecords"),
    "reduce": (
        "reduceShuffleBytes", "reduceInputRecords", "hdfsBytesWritten", "reduceOutputRecords",
    ),
}  # fmt: skip

# What is read of a trace.
_Text = Annotated[str | None, Field(strict=True)]
_Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
_Time = Annotated[int, Field(strict=True, ge=-1, lt=2**53)]
_Moment = Annotated[int, Field(strict=True, ge=0, lt=2**53)]
_T = TypeVar("_T")
_List = Annotated[list[_T], FailFast()]  # a foreign list may be wrong in millions of places
_Result = Literal["SUCCESS", "SUCCEEDED", "FAILED", "KILLED"]
_JobId = Annotated[str, Field(pattern=r"^job_[0-9]{1,16}_[0-9]{1,10}$")]
_ID = r"^attempt_[0-9]{1,16}_[0-9]{1,10}_[mr]_[0-9]{1,10}_[0-9]{1,10}$"
_FIELDS: Any = dict.fromkeys(_TIMES, (_Time, -1)) | dict.fromkeys(_COUNTERS, (_Whole, -1))
_USAGE: Any = dict.fromkeys(_RESOURCES, (_Whole, 0))
_Usage: Any = create_model("_Usage", **_USAGE)
_Attempt: Any = create_model(
    "_Attempt", attemptID=Annotated[str, Field(pattern=_ID)], result=(_Result | None, None),
    hostName=(_Text, None), resourceUsageMetrics=(_Usage, _Usage()), **_FIELDS,
)  # fmt: skip
_Task: Any = create_model("_Task", attempts=(_List[_Attempt], []))
_Job: Any = create_model(
    "_Job", jobID=_JobId, jobName=(_Text, None), user=(_Text, None), outcome=_Result,
    submitTime=_Moment, launchTime=(_Time, -1), finishTime=_Moment, totalMaps=(_Time, -1),
    totalReduces=(_Time, -1), mapTasks=(_List[_Task], []), reduceTasks=(_List[_Task], []),
)  # fmt: skip


def pkb_samples(run: Run) -> Iterator[bytes]:
    """
    Lines of *run* as PerfKitBenchmarker's publisher of JSON writes samples.

    There is one for each scored trial and quantity, and for each model's error of `job_s` and
    `body_s` in each cell; its labels are the rest of the row of `run.measurements` or `run.scores`.
    A label cannot hold `|`, which is written as `/`.
    """
    ended_s = dict(zip(run.trials["trial"], run.trials["finished_s"], strict=True))
    samples = [
        (name, row[name], "seconds", ended_s[row["trial"]], row)
        for row in run.measurements.to_dict("records")
        for name in row
        if name.endswith("_s") and row[name] >= 0
    ]
    last_s = max(ended_s.values(), default=0.0)
    samples += [
        (f"{row['quantity']} signed error", row["signed_error"], "ratio", last_s, row)
        for row in run.scores.to_dict("records")
        if row["quantity"] in ("job_s", "body_s")
    ]
    for metric, number, unit, at_s, row in samples:
        facts = {name: fact for name, fact in row.items() if not name.endswith("_s")}
        facts |= {"experiment": run.evaluation.experiment.name, "harness": __version__}
        pairs = [
            f"{printable(name).replace(':', '=')}:{printable(fact)}".replace("|", "/")
            for name, fact in sorted(facts.items())
            if str(fact) not in ("", "nan", "None")
        ]
        sample = {
            "metric": metric, "value": number, "unit": unit, "timestamp": at_s,
            "test": row["workload"], "product_name": "mapreduce-harness", "official": False,
            "owner": "", "run_uri": run.run.id,
        }  # fmt: skip
        # Theirs is drawn at random; here the same run gives the same file.
        uri = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{sample}{pairs}"))
        labels = ",".join(f"|{pair}|" for pair in pairs)
        yield orjson.dumps({**sample, "sample_uri": uri, "labels": labels}) + b"\n"


def rumen_topology(hosts: Iterable[str]) -> bytes:
    """Give the tree of *hosts*, in one rack, that goes with a trace for Rumen."""
    children = [{"name": host, "children": None} for host in sorted({*hosts} - {""})]
    root = {"name": "<root>", "children": [{"name": _RACK, "children": children}]}
    return orjson.dumps(root, option=orjson.OPT_INDENT_2) + b"\n"


def rumen_trace(jobs: Iterable[JobTrace]) -> Iterator[bytes]:
    """Give *jobs* as the objects of a trace for Rumen, which stand one behind another."""
    for job in jobs:
        tasks, took_ms = (
            defaultdict[str, list[TaskAttempt]](list),
            defaultdict[str, list[int]](list),
        )
        for attempt in job.attempts:
            tasks[attempt.task_id].append(attempt)
            took = _ms(attempt.finish_s) - _ms(attempt.start_s)
            took_ms[f"{attempt.kind} {attempt.state}"].append(took)
        # A second master counts attempts from 1000 on.
        tries = [int(each.attempt_id.rpartition("_")[2]) % 1000 for each in job.succeeded("map")]
        shares = [tries.count(n) / len(tries) for n in range(max(tries, default=-1) + 1)]
        logged = [_logged_task(*each) for each in sorted(tasks.items())]
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
            # From these its replayer makes up attempts that are missing; of maps by the distance to
            # their input, the last where that is not known.
            "mapperTriesToSucceed": shares or None,
            "successfulMapAttemptCDFs": [*[_cdf([])] * 3, _cdf(took_ms["map succeeded"])],
            "failedMapAttemptCDFs": [*[_cdf([])] * 3, _cdf(took_ms["map failed"])],
            "successfulReduceAttemptCDF": _cdf(took_ms["reduce succeeded"]),
            "failedReduceAttemptCDF": _cdf(took_ms["reduce failed"]),
        }
        yield orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _logged_task(task_id: str, attempts: Sequence[TaskAttempt]) -> Mapping[str, object]:
    """Rumen's object of a task."""
    logged = [
        {
            "attemptID": each.attempt_id,
            "result": _RESULTS[each.state.upper()],
            "hostName": f"/{_RACK}/{each.host}" if each.host else None,
            "location": {"layers": [_RACK, each.host]} if each.host else None,
            **{name: _ms(getattr(each, time)) for name, time in _TIMES.items()},
            **{name: each.count(counter, -1) for name, counter in _COUNTERS.items()},
            "resourceUsageMetrics": {name: each.count(key) for name, key in _RESOURCES.items()},
        }
        for each in attempts
    ]
    ended = [fields for fields in logged if fields["result"] == "SUCCESS"]
    last, kind = (ended or logged)[-1], attempts[0].kind
    names = ("inputBytes", "inputRecords", "outputBytes", "outputRecords")
    return {
        "taskID": task_id,
        "taskType": kind.upper(),
        "taskStatus": last["result"],
        "startTime": _ms(min(each.start_s for each in attempts)),
        "finishTime": last["finishTime"],
        **{name: last[own] if ended else -1 for name, own in zip(names, _FLOW[kind], strict=True)},
        "attempts": logged,
    }


def _ms(time_s: float | None) -> int:
    return -1 if time_s is None else round(1000 * time_s)


def _cdf(times_ms: list[int]) -> Mapping[str, object]:
    """Rumen's object of a distribution: of *times_ms* those at each twentieth."""
    ranked, count = sorted(times_ms), len(times_ms)
    rankings = [
        {"relativeRanking": percent / 100, "datum": ranked[max(count * percent // 100, 1) - 1]}
        for percent in range(5, 100, 5)
        if count
    ]
    least, most = (ranked[0], ranked[-1]) if count else (-(2**63), 2**63 - 1)
    return {"numberValues": count, "minimum": least, "maximum": most, "rankings": rankings}


def read_rumen(lines: IO[bytes] | Iterable[bytes], source: str) -> Iterator[JobTrace]:
    """
    Read the jobs of a trace that Rumen's TraceBuilder wrote: *lines*, or an open file.

    Attempts without a start or an end are left out.  What is not such a trace, or a job that has
    no end or 64 MiB, is `ParseError` with *source* and the line at which the job starts.
    """
    if hasattr(lines, "readline"):  # a line of a foreign file may have gigabytes
        lines = iter(partial(cast("IO[bytes]", lines).readline, _MOST_BYTES), b"")
    parts, size, depth, first = list[bytes](), 0, 0, 1
    for number, line in enumerate(lines, start=1):
        begin, has_braces = 0, b"{" in line or b"}" in line
        for sign in _STRING_OR_BRACE.finditer(line) if has_braces else ():
            depth += {b"{": 1, b"}": -1}.get(sign[0], 0)
            if depth <= 0 and sign[0] == b"}":
                parts.append(line[begin : sign.end()])
                yield _read_job(b"".join(parts).strip(), source, first)
                parts, size, depth, begin = [], 0, 0, sign.end()
        if parts or line[begin:].strip():
            first = first if parts else number
            parts.append(line[begin:])
            size += len(parts[-1])
        if size >= _MOST_BYTES:
            raise ParseError(f"a job of {_MOST_BYTES} bytes or more", source=source, line=first)
    if parts:
        what = f"not a whole job: '{excerpt(b''.join(parts))}'"
        raise ParseError(what, source=source, line=first, fix="is the trace cut? make it again")


def _read_job(text: bytes, source: str, line: int) -> JobTrace:
    """Read the job in *text*, which starts at the *line* of *source*."""
    error, attempts = partial(ParseError, source=source, line=line), dict[str, TaskAttempt]()
    try:
        job: Any = _Job.model_validate_json(text)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        what = (
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}: {value_excerpt(first['input'])}"
        )
        raise error(f"not a job of Rumen: {excerpt(what, 300)}") from problem
    kinds: tuple[TaskKind, ...] = ("map", "reduce")
    tasks = [(kind, task) for kind in kinds for task in getattr(job, f"{kind}Tasks")]
    for kind, each in ((kind, each) for kind, task in tasks for each in task.attempts):
        of_job, letter, task_number, _ = f"{each.attemptID}".removeprefix("attempt").rsplit("_", 3)
        if f"job{of_job}" != job.jobID or letter != kind[0] or each.attemptID in attempts:
            raise error(f"{each.attemptID} among the attempts at a {kind} of {job.jobID}")
        if each.startTime < 0 or each.finishTime < 0 or each.result is None:
            continue  # It never got a container, or the job ended before it.
        if each.finishTime < each.startTime:
            raise error(f"{each.attemptID} ends before it starts")
        times_ms = {time: getattr(each, name) for name, time in _TIMES.items()}
        times: Any = {name: None if ms < 0 else ms / 1000 for name, ms in times_ms.items()}
        counts = {counter: getattr(each, name) for name, counter in _COUNTERS.items()}
        usage = each.resourceUsageMetrics
        counts |= {counter: getattr(usage, name) or -1 for name, counter in _RESOURCES.items()}
        attempts[each.attemptID] = TaskAttempt(
            attempt_id=each.attemptID,
            task_id=f"task{of_job}_{letter}_{task_number}",
            kind=kind,
            state=_STATES[each.result].lower(),
            host=(each.hostName or "").rpartition("/")[2][:_LONGEST_TEXT],
            counters={counter: count for counter, count in counts.items() if count >= 0},
            **times,
        )
    if job.finishTime < job.submitTime:
        raise error(f"{job.jobID} ends before it is submitted")
    return JobTrace(
        job_id=job.jobID,
        name=(job.jobName or "")[:_LONGEST_TEXT],
        user=(job.user or "")[:_LONGEST_TEXT],
        state=_STATES[job.outcome],
        submit_s=job.submitTime / 1000,
        launch_s=(job.submitTime if job.launchTime < 0 else job.launchTime) / 1000,
        finish_s=job.finishTime / 1000,
        num_maps=max(job.totalMaps, 0),
        num_reduces=max(job.totalReduces, 0),
        attempts=tuple(sorted(attempts.values(), key=attrgetter("start_s", "attempt_id"))),
    )
