"""
Applications that are no MapReduce jobs where histories of jobs lie: Tez's and Spark's, counted.

Their files are known by their names, as the two projects give them:

    Tez      history.txt.appattempt_ID_N         SimpleHistoryLoggingService
             appattempt_ID_N, dag_ID_N_N         ProtoHistoryLoggingService; the first has its class
             dag_ID_N.recovery                   of its application master
             summarylog-, entitylog-...          of a timeline server, with entities named TEZ_
    Spark    application_ID_N.zstd.inprogress    an event log: attempt, codec, whether it goes on
             app-, local-, spark-...             the same where no YARN gave the id
             eventlog_v2_ID/events_N_ID          one that is rolled over

What a name leaves open the first bytes tell.  A ResourceManager names the type of each application.
"""

from __future__ import annotations

import re

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.base.documents.wording import by_number, listing
from harness.base.text import excerpt

HEAD_BYTES = 4096
_MOST_HEADS = 10_000  # files that are opened to know them; beyond these names alone decide
_MOST_NAMED = 20
_MOST_KINDS = 20
_OTHERS = "other"
_CODEC = r"(?:\.(?:lz4|lzf|snappy|zstd))"
_ENDS = r"(?:\.inprogress)?(?:\.compact)?"
_SPARK_ID = (
    r"(?P<id>application_[0-9]{1,16}_[0-9]{1,10}|app-[0-9]{14}-[0-9]{4,10}|local-[0-9]{1,16}"
    r"|spark-[0-9a-f]{32}|spark-application-[0-9]{1,16})"
)
_YARN_ID = r"(?P<yarn>[0-9]{1,16}_[0-9]{1,10})"
_ROLLED = re.compile(
    rf"eventlog_v2_(?:{_SPARK_ID}(?:_[0-9]+)?|(?P<other>[\w-]{{1,200}}))", re.ASCII
)
_OF_ROLLED = re.compile(r"(?:events_[0-9]+|appstatus)_.+")
# By kind, what names are its files', and what stands at their beginning where the name may be
# another's: nothing where it cannot.
_FORMS: tuple[tuple[str, re.Pattern[str], bytes], ...] = (
    ("Tez", re.compile(rf"history\.txt\.appattempt_{_YARN_ID}_[0-9]+"), b""),
    ("Tez", re.compile(rf"dag_{_YARN_ID}_[0-9]+(?:_[0-9]+)?(?:\.recovery|\.zip)?"), b""),
    ("Tez", re.compile(rf"entitylog-timelineEntityGroupId_{_YARN_ID}_dag_.+"), b""),
    ("Tez", re.compile(rf"appattempt_{_YARN_ID}_[0-9]+"), b"org.apache.tez."),
    ("Tez", re.compile(rf"summarylog-appattempt_{_YARN_ID}_[0-9]+"), b'"TEZ_'),
    ("Spark", re.compile(rf"{_SPARK_ID}(?:_[0-9]+)?{_CODEC}{_ENDS}"), b""),
    ("Spark", re.compile(rf"{_SPARK_ID}(?:_[0-9]+)?{_ENDS}"), b'{"Event":"SparkListener'),
)
_TYPES = {"TEZ": "Tez", "SPARK": "Spark"}  # of a ResourceManager
_MAPREDUCE = "MAPREDUCE"
_APPLICATION = re.compile(r"application_[0-9]{1,16}_[0-9]{1,10}")

ReadHead = Callable[[str], bytes | None]  # the first bytes of a file; `None`: it cannot be read


class Applications:
    """Applications by kind, each once, however many files it has."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._ids = dict[str, set[str]]()
        self._heads_left = _MOST_HEADS

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._ids)

    def add(self, kind: str, application_id: str) -> None:
        """Count an application of a *kind*, unless it was."""
        if kind not in self._ids and len(self._ids) >= _MOST_KINDS:
            kind = _OTHERS
        self._ids.setdefault(kind, set()).add(application_id)

    def add_files(self, folder: str, names: Iterable[str], read_head: ReadHead) -> None:
        """Count those whose files are among *names*, which lie in the folder of this name."""
        if rolled := _ROLLED.fullmatch(folder):
            if any(map(_OF_ROLLED.fullmatch, names)):
                self.add("Spark", rolled["id"] or rolled["other"])
            return
        for name in sorted(names):
            for kind, form, beginning in _FORMS:
                if match := form.fullmatch(name):
                    if not beginning or self._begins(name, beginning, read_head):
                        groups = match.groupdict()
                        self.add(kind, groups.get("id") or f"application_{groups['yarn']}")
                    break

    def add_answers(self, answers: Iterable[Mapping[str, Any]]) -> None:
        """Count those of a ResourceManager's *answers* that are of another type than MapReduce."""
        for answer in answers:
            application_id = str(answer.get("id"))
            application_type = excerpt(answer.get("applicationType") or "", 40)
            if _APPLICATION.fullmatch(application_id) and application_type != _MAPREDUCE:
                self.add(_TYPES.get(application_type, application_type or _OTHERS), application_id)

    def counted(self) -> dict[str, dict[str, Any]]:
        """Of each kind how many there are, and the ids of the first."""
        return {
            kind: {"count": len(ids), "first": sorted(ids)[:_MOST_NAMED]}
            for kind, ids in self._by_kind()
        }

    def sentence(self) -> str:
        """
        Say how many of each kind were left out, and why; empty where there are none.

        >>> applications = Applications()
        >>> applications.add_files("logs", ["history.txt.appattempt_1_0007_000001"], lambda _: None)
        >>> applications.sentence()
        '1 Tez application was left out: it is no MapReduce job, and its times follow other rules'
        """
        if not self:
            return ""
        number = sum(map(len, self._ids.values()))
        kinds = listing([f"{len(ids)} {kind}" for kind, ids in self._by_kind()])
        left_out = by_number(number, "application was", "applications were")
        reason = by_number(
            number,
            "it is no MapReduce job, and its times",
            "they are no MapReduce jobs, and their times",
        )
        return f"{kinds} {left_out} left out: {reason} follow other rules"

    def _by_kind(self) -> list[tuple[str, set[str]]]:
        """Kinds with their ids, those of most applications first."""
        return sorted(self._ids.items(), key=lambda item: (-len(item[1]), item[0]))

    def _begins(self, name: str, beginning: bytes, read_head: ReadHead) -> bool:
        """Whether a file has *beginning* among its first bytes, as far as it may be asked."""
        if not self._heads_left:
            return True
        self._heads_left -= 1
        head = read_head(name)
        if head is None:
            return False
        # A log that was opened just now is empty.
        return beginning in head or (not head and name.endswith(".inprogress"))
