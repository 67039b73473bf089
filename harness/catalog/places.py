"""Where histories of past jobs lie: folders and runs, HDFS, and history servers."""

from __future__ import annotations

import json
import re

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast
from urllib.parse import urlsplit

from harness.base.errors import ClusterError, HarnessError, ParseError, SpecError
from harness.base.hadoop.values import expanded
from harness.base.records.trace import AttemptState, JobTrace, TaskAttempt
from harness.base.text import excerpt, printable
from harness.catalog.applications import HEAD_BYTES, Applications, ReadHead
from harness.catalog.jobs import WANTED
from harness.catalog.sources import JOB, Files, Source, paired, too_large, unpacked
from harness.clusters.existing.discovery import (
    ADDRESS,
    active_namenode,
    elements,
    get_json,
    inner,
    list_in_hdfs,
    open_in_hdfs,
    whole,
)
from harness.core.store import Run, os_error_as_machine_error
from harness.core.store.packed import opened
from harness.observe.parsing.clocks import settled
from harness.observe.parsing.lines import LARGEST
from harness.observe.storage.files import walk_folders
from harness.observe.storage.opener import MANIFEST, PACKED, Opener

_SCHEMES = ("hdfs:", "webhdfs:", "http:")
_LOG = re.compile(r"(job-[0-9]{1,6})-history\.jhist")  # of a trial
_FILE_NAME = re.compile(r"(?!\.\.?$)[^/\x00]{1,255}")
_JOBS = "/ws/v1/history/mapreduce/jobs"
_APPLICATIONS = "/ws/v1/cluster/apps"  # of a ResourceManager
_ATTEMPT = re.compile(r"attempt_[0-9]{1,16}_[0-9]{1,10}_[mr]_[0-9]{1,10}_[0-9]{1,10}")
_TASK = re.compile(r"task_[0-9]{1,16}_[0-9]{1,10}_([mr])_[0-9]{1,10}")
_IN_MEMORY_BYTES = 2**26
_LONGEST_TEXT = 4000
_STATES: dict[str, AttemptState] = {
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "KILLED": "killed",
}

# A job of Hadoop 1 has the minute in its id at which its JobTracker started; its host was in front.
_OLD_NAME = re.compile(r"(?:.{1,150}_)?job_[0-9]{12}_[0-9]{4,10}_(?!conf\.xml).{1,150}(?<!\.jhist)")
_OLD = "a history of Hadoop 1, which is not read: of Hadoop 0.23 or later it is"

LeaveOut = Callable[[str, str], None]


def is_remote(place: str | Path) -> bool:
    """Whether *place* is in HDFS or a history server, not a folder."""
    return str(place).startswith(_SCHEMES)


def list_sources(
    place: str | Path, leave_out: LeaveOut, applications: Applications | None = None
) -> Iterator[Source]:
    """
    Past jobs at *place*, in an order that stays; what cannot be listed is left out.

    It is a folder, `hdfs:/PATH` in the cluster of ``HADOOP_CONF_DIR``, `webhdfs://HOST:PORT/PATH`
    with the web address of a NameNode, or `http://HOST:PORT` of a history server, or of a
    ResourceManager, which has no jobs.  Those that are no MapReduce jobs are counted in
    *applications*.  `HarnessError` where nobody answers there.
    """
    others = Applications() if applications is None else applications
    if not is_remote(place):
        yield from _list_folder(opened(Path(place)), leave_out, others)
        return
    url = urlsplit(str(place))
    if url.scheme == "hdfs" and not url.netloc:
        yield from _list_hdfs(active_namenode(), PurePosixPath(url.path), leave_out, others)
        return
    if not ADDRESS.fullmatch(url.netloc) or url.scheme == "hdfs":
        forms = "hdfs:/PATH, webhdfs://NAMENODE:9870/PATH or http://HISTORYSERVER:19888"
        what = f"'{excerpt(str(place))}' is no address of histories"
        raise SpecError(what, where="SOURCE", fix=f"write {forms}")
    if url.scheme == "webhdfs":
        yield from _list_hdfs(url.netloc, PurePosixPath(url.path), leave_out, others)
        return
    for job in _served_jobs(url.netloc, others):
        job_id = str(job.get("id"))
        if JOB.fullmatch(job_id):
            yield _ServedJob(job_id, url.netloc)


def _served_jobs(server: str, applications: Applications) -> list[dict[str, Any]]:
    """Jobs of a history *server*; of a ResourceManager none, but *applications* that are none."""
    try:
        return elements(get_json(server, _JOBS), "jobs", "job")
    except ClusterError as error:
        try:
            answer = get_json(server, _APPLICATIONS)
        except ClusterError:
            raise error from None
        applications.add_answers(elements(answer, "apps", "app"))
        return []


def _list_folder(folder: Path, leave_out: LeaveOut, applications: Applications) -> Iterator[Source]:
    """Histories below a *folder* of this machine."""
    if folder.is_file():
        leave_out(printable(folder), f"a source is a folder: name {printable(folder.parent)}")
        return
    for parent, history, configuration, run in _named(folder, leave_out, applications):
        ending = ".gz" if run else ""
        names = filter(None, (history, configuration))
        paths = [parent / f"{name}{ending}" for name in names]
        try:
            facts = [path.lstat() for path in paths]
        except OSError as error:
            leave_out(printable(parent / history), (error.strerror or str(error)).lower())
            continue
        place = f"{printable(paths[0])} {facts[0].st_mtime_ns}"
        key = _key(history, place, [fact.st_size for fact in facts])
        yield Files(key, parent, history, configuration, run)


def _key(history: str, place: str, sizes: list[int]) -> str:
    """
    Key of a job: its id, or the *place* of a history without one in its name; and sizes of files.

    A job has one history, wherever that is copied to.
    """
    match = JOB.search(history)
    return " ".join([match[0] if match else place, *map(str, sizes)])


def _named(
    folder: Path, leave_out: LeaveOut, applications: Applications
) -> Iterator[tuple[Path, str, str, Path | None]]:
    """Folder, history and configuration of each job below *folder*, and its run, if any."""

    def leave_out_folder(error: OSError) -> None:
        leave_out(printable(error.filename), (error.strerror or str(error)).lower())

    for parent, folders, names in walk_folders(folder, leave_out_folder):
        if MANIFEST in names and "trials" in folders:
            folders.clear()
            yield from _named_in_run(Run(Path(parent)), leave_out)
            continue
        applications.add_files(Path(parent).name, names, partial(_head, Path(parent)))
        for name in hadoop_1(names, partial(_head, Path(parent))):
            leave_out(printable(Path(parent, name)), _OLD)
        for history, configuration in paired(names):
            yield Path(parent), history, configuration, None


def hadoop_1(names: Iterable[str], read_head: ReadHead) -> list[str]:
    """Those of *names* whose files are histories of Hadoop 1, as they begin."""
    candidates = sorted(filter(_OLD_NAME.fullmatch, names))
    heads = ((name, read_head(name)) for name in candidates)
    return [name for name, head in heads if head and head.startswith(b"Meta VERSION=")]


def _head(folder: Path, name: str) -> bytes | None:
    """First bytes of a file in *folder*; `None` where it cannot be read."""
    with suppress(HarnessError, OSError), Opener(folder).open(folder / name, "") as stream:
        return stream.read(HEAD_BYTES)
    return None


def _named_in_run(run: Run, leave_out: LeaveOut) -> Iterator[tuple[Path, str, str, Path]]:
    """The same of each job of a *run*, whose files have names of their own."""
    for trial_id in run.trial_ids():
        try:
            names = run.raw(trial_id).names()
        except HarnessError as error:
            leave_out(error.where, error.what)
            continue
        for match in filter(None, map(_LOG.fullmatch, names)):
            configuration = f"{match[1]}-conf.xml"
            beside = configuration if configuration in names else ""
            yield run.trial_dir(trial_id) / "raw", match[0], beside, run.path


def _list_hdfs(
    namenode: str, top: PurePosixPath, leave_out: LeaveOut, applications: Applications
) -> Iterator[Source]:
    """Histories below a folder in HDFS; a folder below it that is closed is left out."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list_in_hdfs(namenode, str(folder))
        except ClusterError as error:
            if folder == top:
                raise
            leave_out(f"hdfs:{printable(folder)}", error.what)
            continue
        entry_of = {str(entry.get("pathSuffix")): entry for entry in entries}
        files = {}
        subfolders = []
        for name in sorted(filter(_FILE_NAME.fullmatch, entry_of)):
            if entry_of[name].get("type") == "DIRECTORY":
                subfolders.append(folder / name)
            else:
                files[name] = entry_of[name]
        waiting += reversed(subfolders)  # the first of them is the next
        applications.add_files(folder.name, files, partial(_head_in_hdfs, namenode, folder))
        for name in hadoop_1(files, partial(_head_in_hdfs, namenode, folder)):
            leave_out(f"hdfs:{printable(folder / name)}", _OLD)
        yield from _paired_in_hdfs(namenode, folder, files)


def _head_in_hdfs(namenode: str, folder: PurePosixPath, name: str) -> bytes | None:
    """First bytes of a file in a *folder* in HDFS; `None` where it cannot be read."""
    with suppress(ClusterError), open_in_hdfs(namenode, str(folder / name)) as pieces:
        return next(pieces, b"")[:HEAD_BYTES]
    return None


def _paired_in_hdfs(
    namenode: str, folder: PurePosixPath, files: Mapping[str, Mapping[str, Any]]
) -> Iterator[Source]:
    """Histories among *files*, those of a folder in HDFS by name, with the NameNode's answers."""
    for history, configuration in paired([*files]):
        sizes = [whole(files[name].get("length")) for name in (history, configuration) if name]
        changed_ms = whole(files[history].get("modificationTime"))
        key = _key(history, f"{printable(folder / history)} {changed_ms}", sizes)
        yield _HdfsFiles(key, Path(folder), history, configuration, namenode=namenode)


@dataclass(frozen=True, slots=True)
class _HdfsFiles(Files):
    """A history and its configuration in HDFS, by the web address of its NameNode."""

    namenode: str = ""

    @property
    def label(self) -> str:
        """Path of the history."""
        return f"hdfs:{printable(self.folder / self.history)}"

    @contextmanager
    def open(self, name: str, most_bytes: int) -> Iterator[IO[bytes]]:
        """Copy one of the two, to memory where it is small, and open that."""
        path = self.folder / name
        with os_error_as_machine_error(path), SpooledTemporaryFile(_IN_MEMORY_BYTES) as copy:
            with open_in_hdfs(self.namenode, str(path)) as pieces:
                for piece in pieces:
                    copy.write(piece)
                    if copy.tell() > most_bytes:
                        raise too_large(name, most_bytes, f"hdfs:{printable(path)}")
            copy.seek(0)
            stored = cast("IO[bytes]", copy)
            yield unpacked(stored, most_bytes, self.label) if name.endswith(PACKED) else stored


@dataclass(frozen=True, slots=True)
class _ServedJob(Source):
    """A job as a history server answers for it; its key is its id, as it changes no more."""

    server: str

    @property
    def label(self) -> str:
        """Address of the job."""
        return f"http://{self.server}{_JOBS}/{self.key}"

    @property
    def configuration_label(self) -> str:
        """Address of its configuration."""
        return f"{self.label}/conf"

    def read_trace(self) -> JobTrace:
        """
        The job by its attempts and the totals of its counters.

        The server knows neither counters of the attempts at once nor when a map function ended.
        """
        job = inner(self._get(), "job")
        totals = self._counters()
        attempts, clocks = settled(self._attempts())
        submit_s = _moment(job, "submitTime")
        finish_s = _moment(job, "finishTime")
        if submit_s is None or finish_s is None or submit_s > finish_s:
            raise ParseError("the answer has no moments of the job", source=self.label)
        return JobTrace(
            job_id=self.key,
            name=excerpt(job.get("name", ""), _LONGEST_TEXT),
            user="",
            state=excerpt(job.get("state", "")),
            submit_s=submit_s,
            launch_s=_moment(job, "startTime") or submit_s,
            finish_s=finish_s,
            num_maps=_count(job, "mapsTotal"),
            num_reduces=_count(job, "reducesTotal"),
            attempts=tuple(attempts),
            clocks=clocks,
            counters=totals["total"],
            map_counters=totals["map"],
            reduce_counters=totals["reduce"],
            uberized=job.get("uberized") is True,
        )

    def read_wanted(self) -> dict[str, str]:
        """Properties of the job that are wanted."""
        listed = elements(self._get("/conf"), "conf", "property")
        properties = {str(answer.get("name")): answer.get("value", "") for answer in listed}
        if not properties:
            raise ParseError("the answer has no properties", source=self.configuration_label)
        texts = {}
        for name in WANTED & properties.keys():
            value = properties[name]
            # A server writes what looks like a number, or a truth, as that.
            text = value if isinstance(value, str) else json.dumps(value)
            texts[name] = text.encode(errors="replace").decode()  # halves of pairs stay out
        whole_texts = {name: str(value) for name, value in properties.items()}
        return {name: expanded(text, whole_texts) for name, text in texts.items()}

    def _counters(self) -> dict[str, dict[str, int]]:
        """Counters of the whole job, and of its maps and its reduces."""
        totals: dict[str, dict[str, int]] = {"total": {}, "map": {}, "reduce": {}}
        for group in elements(self._get("/counters"), "jobCounters", "counterGroup"):
            for counter in elements(group, "counter"):
                name = f"{group.get('counterGroupName')}.{counter.get('name')}"
                for kind, counts in totals.items():
                    counts[name] = _count(counter, f"{kind}CounterValue")
        return totals

    def _attempts(self) -> tuple[TaskAttempt, ...]:
        """Attempts of all tasks that ran and have an end."""
        attempts = list[TaskAttempt]()
        for task in elements(self._get("/tasks"), "tasks", "task"):
            if match := _TASK.fullmatch(str(task.get("id"))):
                listed = self._get(f"/tasks/{match[0]}/attempts")
                answers = elements(listed, "taskAttempts", "taskAttempt")
                attempts += filter(None, (_attempt(match, answer) for answer in answers))
        return tuple(attempts)

    def _get(self, below: str = "") -> Any:
        """What the server answers about the job, or what is *below* it in the address."""
        return get_json(self.server, f"{_JOBS}/{self.key}{below}")


def _attempt(task: re.Match[str], answer: dict[str, Any]) -> TaskAttempt | None:
    """An attempt of *task* by a server's *answer*; `None` where it never ran, or has no end."""
    start_s = _moment(answer, "startTime")
    finish_s = _moment(answer, "finishTime")
    state = _STATES.get(str(answer.get("state")))
    attempt_id = str(answer.get("id"))
    if not state or not _ATTEMPT.fullmatch(attempt_id):
        return None
    if start_s is None or finish_s is None or start_s > finish_s:
        return None
    return TaskAttempt(
        attempt_id=attempt_id,
        task_id=task[0],
        kind="map" if task[1] == "m" else "reduce",
        state=state,
        start_s=start_s,
        finish_s=finish_s,
        host=excerpt(answer.get("nodeHttpAddress", "")).partition(":")[0],
        shuffle_finish_s=_moment(answer, "shuffleFinishTime"),
        sort_finish_s=_moment(answer, "mergeFinishTime"),
    )


def _moment(answer: dict[str, Any], name: str) -> float | None:
    """Seconds of a moment in milliseconds; `None` where there is none."""
    return _count(answer, name) / 1e3 or None


def _count(answer: dict[str, Any], name: str) -> int:
    """A count of an *answer*; 0 for anything else, and what no history has either."""
    count = whole(answer.get(name))
    return count if 0 <= count < LARGEST else 0
