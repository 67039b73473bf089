"""
Jobs that have run: what each was, as its history and its configuration say, and its family.

Where they lie, and what their names come to, is known to the catalog of past jobs.
"""

from __future__ import annotations

import re

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from harness.base.errors import DataError, HarnessError
from harness.base.hadoop.properties import PARALLEL, READ_NAMES, job_config, successor
from harness.base.hadoop.secrets import SECRETS
from harness.base.hadoop.site import read_properties
from harness.base.hadoop.slots import KINDS
from harness.base.hadoop.values import LIMIT, MEMORY, expanded, plain_value, runs_on_java_8
from harness.base.records.trace import (
    FILE_OUTPUT_COUNTER,
    FILE_SYSTEM_COUNTER,
    TASK_COUNTER,
    JobTrace,
    NodeClock,
    TaskKind,
)
from harness.base.records.trial import digest
from harness.base.text import excerpt
from harness.catalog.applications import Applications
from harness.catalog.families import STAGE, families, stem
from harness.catalog.jobs import WANTED, past_job
from harness.catalog.places import list_sources
from harness.catalog.sources import JOB, Files
from harness.clusters.workloads.base import MOST_FILES
from harness.clusters.workloads.history import COMBINER
from harness.observe.parsing.history import read_history
from harness.observe.storage.opener import MOST_WHOLE_BYTES

_OPTIONS = "mapreduce.{}.java.opts"
_ADMIN_OPTIONS = "mapreduce.admin.{}.child.java.opts"
_OLD_OPTIONS = "mapred.child.java.opts"
_NAMES = READ_NAMES | {
    "dfs.replication",
    *(LIMIT.format(kind) for kind in KINDS),
    *(MEMORY.format(kind) for kind in KINDS),
}
_HEAP_OPTION = re.compile(
    r"-Xm[xsn]\S+|-XX:[+-]Use(\w*GC|AdaptiveSizePolicy)"
    r"|-XX:\w*(HeapSize|NewSize|NewRatio|SurvivorRatio)=\S+"
)
_LONGEST_NAME = 40
_MOST_NAMED = 3  # files that were left out, in an error


@dataclass(frozen=True, slots=True)
class PastJob:
    """
    A job that has succeeded, read from *source*.

    *family* is the catalog's, of a rule or of its name without numbers and its program.
    *configuration* is what models read of it, with its memory; *at_once* the most of its tasks of
    each kind that ran at one moment; *has_repeats* whether attempts failed or were killed; *clocks*
    those of nodes that are off.  The *input_bytes* of a job that *reads_files* are what its maps
    read, of another what they wrote.
    """

    source: Files
    job_id: str
    name: str
    family: str
    submit_s: float
    finish_s: float
    input_bytes: int
    num_maps: int
    configuration: Mapping[str, str]
    at_once: Mapping[TaskKind, int]
    hosts: frozenset[str]
    has_repeats: bool
    clocks: tuple[NodeClock, ...] = ()
    reads_files: bool = True

    def trace(self) -> JobTrace:
        """What its history says of it, task by task."""
        history = self.source.read(self.source.history, MOST_WHOLE_BYTES)
        return read_history([history], self.job_id)

    def files(self) -> list[bytes]:
        """Contents of its history and of its configuration, without secrets."""
        history = self.source.read(self.source.history, MOST_WHOLE_BYTES)
        return [history, _clean_conf(self.source)]


class Histories(NamedTuple):
    """
    Past *jobs* in the order of their submission, and why files were *left_out*, by file.

    *where* are the places at which they lie, with *applications* that are no such jobs, and
    *copies*: further histories of the same jobs.
    """

    jobs: list[PastJob]
    left_out: dict[str, str]
    where: str
    applications: Applications
    copies: list[str]

    def reasons(self) -> list[str]:
        """Say why the first files were left out."""
        reasons = [f"{Path(path).name}: {reason}" for path, reason in self.left_out.items()]
        return reasons[:_MOST_NAMED]


def find_jobs(
    places: Sequence[str | Path],
    only: Collection[str] = (),
    rules: Mapping[str, str] | None = None,
) -> Histories:
    """Read the jobs at *places* as `read_jobs` does; `DataError`: there is none."""
    applications = Applications()
    copies = list[str]()
    jobs, left_out = read_jobs(places, only, applications, rules, copies)
    histories = Histories(jobs, left_out, ", ".join(map(str, places)), applications, copies)
    if not jobs:
        reasons = [*histories.reasons(), *filter(None, [applications.sentence()])]
        what = "; ".join(["there is no job history (.jhist) that can be used", *reasons])
        fix = "name a copy of the folder mapreduce.jobhistory.done-dir, configurations included"
        raise DataError(what, where=histories.where, fix=fix)
    return histories


def read_jobs(
    places: Iterable[str | Path],
    only: Collection[str] = (),
    applications: Applications | None = None,
    rules: Mapping[str, str] | None = None,
    copies: list[str] | None = None,
) -> tuple[list[PastJob], dict[str, str]]:
    """
    Jobs at *places* in the order of their submission; and why others are left out, by file.

    A job that is there twice counts once; further files of it are put to the *copies*.  Others than
    *only* these ids, if any, do not count.  Those that are no MapReduce jobs are counted in
    *applications*.  Families are those of *rules*, or their own.
    """
    jobs = dict[str, PastJob]()
    left_out = dict[str, str]()
    further = list[str]() if copies is None else copies

    def is_wanted(job_id: str) -> bool:
        """Whether the job is one of *only*, or all are wanted."""
        return not only or job_id in only

    listed = (list_sources(place, left_out.__setitem__, applications) for place in places)
    for source in chain.from_iterable(listed):
        id_match = JOB.match(source.key)  # the files of a run have no id in their names
        if id_match and not is_wanted(id_match[0]):
            continue
        if not isinstance(source, Files):
            left_out[source.label] = "a history server has no files to copy: name their folder"
            continue
        try:
            job = read_job(source, rules)
        except HarnessError as error:
            left_out[source.label] = excerpt(reason_of(error), 300)
            continue
        if job.job_id in jobs:
            further.append(source.label)
        elif is_wanted(job.job_id):
            jobs[job.job_id] = job
    return sorted(jobs.values(), key=lambda job: (job.submit_s, job.job_id)), left_out


def reason_of(error: HarnessError) -> str:
    """Why a job is left out: what is wrong, and where that is known."""
    return f"{error.what} ({error.where})" if error.where else error.what


def read_job(source: Files, rules: Mapping[str, str] | None = None) -> PastJob:
    """Read one job; `HarnessError` says why no model can be asked about it."""
    trace = read_history([source.read(source.history, MOST_WHOLE_BYTES)], source.history)
    source = with_configuration(source, trace.job_id)
    properties = read_properties(_clean_conf(source), source.configuration)
    return job_of(trace, properties, source, rules)


def with_configuration(source: Files, job_id: str) -> Files:
    """*source* with the configuration of the job; `DataError`: there is none beside its history."""
    whole_source = source.of_job(job_id)
    if not whole_source.configuration:
        raise DataError(f"there is no {job_id}_conf.xml beside it")
    return whole_source


def job_of(
    trace: JobTrace,
    properties: Mapping[str, str],
    source: Files,
    rules: Mapping[str, str] | None = None,
) -> PastJob:
    """
    Make the job of its *trace* and the *properties* of its configuration, which *source* has.

    Its family is that of the first of *rules* that fits, or its own.
    """
    input_bytes = _size(trace)
    wanted = {name: expanded(properties[name], properties) for name in WANTED & properties.keys()}
    row = past_job(trace, wanted)
    names = ("name", "mapper", "combiner", "reducer", "program")
    (family,) = families(rules or {}, [tuple(row[name] for name in names)])
    return PastJob(
        source=source,
        job_id=trace.job_id,
        name=trace.name,
        family=family,
        submit_s=trace.submit_s,
        finish_s=trace.finish_s,
        input_bytes=input_bytes,
        num_maps=trace.num_maps,
        configuration=configuration_of(properties, trace, row["combiner"]),
        at_once={kind: row[f"{kind}_slots"] for kind in KINDS},
        hosts=frozenset(attempt.host for attempt in trace.attempts if attempt.host),
        has_repeats=row["failed_attempts"] + row["killed_attempts"] > 0,
        clocks=trace.clocks,
        reads_files=trace.input_bytes > 0,
    )


def _size(trace: JobTrace) -> int:
    """
    Bytes that the maps of a job read, or what stands for them where they read no files.

    `DataError`: no model can be asked about such a job.
    """
    if trace.state != "SUCCEEDED":
        reason = trace.diagnostics.strip() or "no reason is given"
        raise DataError(f"the job ended as {trace.state}: {reason}")
    if trace.uberized:
        raise DataError("its tasks ran within its application master, which no model covers")
    if not 1 <= trace.num_maps <= MOST_FILES:
        raise DataError(f"it has {trace.num_maps} maps, and models take 1 to {MOST_FILES}")
    counters = trace.map_counters or trace.task_counters("map")
    if not counters:
        raise DataError("it has no counters: nothing says what the job read")
    if not (size := trace.input_bytes or _other_size(counters)):
        raise DataError("its maps read no bytes and wrote none: nothing says how large it was")
    return size


def _other_size(counters: Mapping[str, int]) -> int:
    """
    Bytes that stand for the size of a job whose maps read no files, by their *counters*.

    What they wrote, or else the descriptions of their splits: they grow with the work, too.
    """
    written = counters.get(f"{FILE_OUTPUT_COUNTER}.BYTES_WRITTEN", 0)
    collected = counters.get(f"{TASK_COUNTER}.MAP_OUTPUT_BYTES", 0)
    return written or collected or counters.get(f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_READ", 0)


def _clean_conf(source: Files) -> bytes:
    """The job configuration without secrets."""
    return SECRETS.clean_conf(source.read(source.configuration, MOST_WHOLE_BYTES))


def configuration_of(
    properties: Mapping[str, str], trace: JobTrace, combiner: str
) -> dict[str, str]:
    """
    What models read of a job's *properties*, under the names of today, its memory and *combiner*.

    Values are as Hadoop reads them; what it takes its default for is not there.  Of the options of
    a JVM the heap's alone: others hold paths, or a password.  `SpecError` for a value that models
    cannot read.
    """
    renamed = {successor(name): text for name, text in properties.items() if successor(name)}
    stated = renamed | dict(properties)

    def stated_text(name: str) -> str:
        return plain_value(name, expanded(stated.get(name, ""), stated))

    # How the input was split is known from the history.
    names = sorted(name for name in _NAMES if not name.startswith("mapreduce.input."))
    chosen = {name: text for name in names if (text := stated_text(name))}
    shared_options = chosen.pop(_OLD_OPTIONS, "")
    for kind in KINDS:
        options = _OPTIONS.format(kind)
        # Hadoop puts those of its administrator before those of the job.
        typed = stated_text(_ADMIN_OPTIONS.format(kind))
        typed = f"{typed} {stated_text(options) or shared_options}"
        chosen[options] = heap_options(typed, stated)
        chosen.setdefault(MEMORY.format(kind), "1024")  # Hadoop's default
    chosen |= {"mapreduce.job.reduces": str(trace.num_reduces), COMBINER: combiner}
    job_config(chosen)
    return chosen


def heap_options(options: str, properties: Mapping[str, str]) -> str:
    """Of the *options* of a JVM those of its heap, with the collector that Java 8 takes itself."""
    words = list(filter(_HEAP_OPTION.fullmatch, options.split()))
    has_collector = any(word.endswith("GC") and "+Use" in word for word in words)
    if not has_collector and runs_on_java_8(options, properties):
        words.append(PARALLEL)
    return " ".join(words)


def _short_name(job: PastJob) -> str:
    """Words of the name of *job* without numbers, its stage at the end; or of its rule's name."""
    name = stem(job.name)
    if not job.family.startswith(f"{name} ["):  # of a rule
        name = job.family
    name = name.lower()
    stages = STAGE.findall(name)
    tail = "-".join(re.findall("[a-z0-9]+", stages[-1])) if stages else ""
    words = re.findall("[a-z]+", STAGE.sub(" ", name))
    room = _LONGEST_NAME - len(tail) - bool(tail)
    head = "-".join(words)[:room].rstrip("-")
    return "-".join(filter(None, (head, tail))) or "job"


def family_names(jobs: Iterable[PastJob]) -> dict[str, str]:
    """
    Short names of the families of *jobs*, safe as parts of paths: the words of the jobs' name.

    Families that would share one have a part of their hash behind it.
    """
    short = {job.family: _short_name(job) for job in jobs}
    counts = Counter(short.values())
    for family, name in short.items():
        if counts[name] > 1:
            short[family] = f"{name}-{digest(family)[:4]}"
    return short
