"""Job histories: recorded ones of both forms, and cut, foreign, inconsistent and damaged ones."""

import json
import re
import tracemalloc

from contextlib import suppress
from itertools import pairwise

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.base.records.trace import (
    FILE_INPUT_COUNTER,
    FILE_OUTPUT_COUNTER,
    FILE_SYSTEM_COUNTER,
    JOB_COUNTER,
    TASK_COUNTER,
    JobTrace,
)
from harness.observe.parsing import history as history_module
from harness.observe.parsing.history import read_history
from tests.parsing.histories import HEAD, JSON, RECORDED, binary, history

BINARY = {name: binary(text) for name, text in JSON.items()}
BINARY_HEAD = b"".join(BINARY["wordcount"].splitlines(keepends=True)[:2])
LINES = {name: text.splitlines(keepends=True) for name, text in JSON.items()}
EVENTS = [line for line in LINES["wordcount"][2:] if line.strip()]

JOB = "job_1_0002"
MAP = "attempt_1_0002_m_000000_0"
SUBMITTED = ("JOB_SUBMITTED", {"jobid": JOB, "jobName": "n", "userName": "u", "submitTime": 1000})
FINISHED = (
    "JOB_FINISHED",
    {"jobid": JOB, "finishTime": 9000, "finishedMaps": 1, "finishedReduces": 0},
)
FAILED = ("JOB_FAILED", {"jobid": JOB, "finishTime": 9000})
STARTED = ("MAP_ATTEMPT_STARTED", {"attemptId": MAP, "startTime": 2000, "trackerName": "w1"})
MAPPED = (
    "MAP_ATTEMPT_FINISHED",
    {"attemptId": MAP, "mapFinishTime": 3000, "finishTime": 4000, "hostname": "w1"},
)
RECALLED = (
    "MAP_ATTEMPT_KILLED",
    {"attemptId": MAP, "finishTime": 5000, "hostname": "w1", "error": "node lost"},
)


def changed(event, **fields):
    """An event with other fields."""
    return event[0], {**event[1], **fields}


def counted(*groups):
    """The end of a map with counters, of (group, {name: value})."""
    listed = [
        {"name": group, "counts": [{"name": n, "value": v} for n, v in counters.items()]}
        for group, counters in groups
    ]
    return changed(MAPPED, counters={"name": "COUNTERS", "groups": listed})


def read(text):
    """The job of a history that comes in one piece."""
    return read_history([text], "x.jhist")


def attempt_states(job):
    """Task, attempt and state of the attempts of *job*."""
    return [(a.task_id[-8:], a.attempt_id[-1], a.state) for a in job.attempts]


class TestRecorded:
    """Histories that Hadoop wrote."""

    def test_wordcount(self):
        """
        Times, numbers and counters of a job stand as in its history.
        """
        job = read(JSON["wordcount"])

        assert (job.job_id, job.name, job.user, job.state, job.num_maps, job.num_reduces) == (
            "job_1795224441974_0001", "word count", "root", "SUCCEEDED", 3, 2,
        )  # fmt: skip
        assert (job.submit_s, job.launch_s, job.finish_s) == (
            1795224567.936, 1795224577.706, 1795224600.369,
        )  # fmt: skip
        assert job.counters[f"{JOB_COUNTER}.TOTAL_LAUNCHED_MAPS"] == 3
        assert job.reduce_counters["Shuffle Errors.IO_ERROR"] == 0

    def test_one_attempt(self):
        """
        An attempt has the task, the host, the container and the locality that its start names.
        """
        first = read(JSON["wordcount"]).attempts[0]

        assert first.task_id == f"task{first.attempt_id[7:-2]}"
        assert first.container_id.startswith("container_1795224441974_0001_01_0000")
        assert (first.host[:3], first.locality) == ("pzw", "NODE_LOCAL")

    def test_phases_follow_each_other(self):
        """
        Every attempt has its phases in order, and only those of its kind.
        """
        job = read(JSON["terasort"])

        for m in job.succeeded("map"):
            assert m.start_s < m.map_finish_s <= m.finish_s
            assert (m.shuffle_finish_s, m.sort_finish_s) == (None, None)
        for r in job.succeeded("reduce"):
            assert r.start_s < r.shuffle_finish_s <= r.sort_finish_s <= r.finish_s
            assert r.map_finish_s is None
        assert {a.host for a in job.attempts} == {"pzw1", "pzw2"}
        assert len({a.container_id for a in job.attempts}) == 5

    def test_map_only_jobs(self):
        """
        A job without reduces has maps only, and their output counts.
        """
        job = read(JSON["teragen"])
        other = read(RECORDED["maponly-binary"])

        assert (job.num_reduces, len(job.succeeded("map")), job.reduce_counters) == (0, 3, {})
        assert (other.num_reduces, other.uberized) == (0, False)
        assert other.counters[f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN"] == 500_000

    @pytest.mark.parametrize("text", [JSON["failed"], RECORDED["failed-binary"]])
    def test_failed_job(self, text):
        """
        Failed attempts keep their errors; a reduce killed before it had a container never ran.
        """
        job = read(text)

        assert (job.state, attempt_states(job)) == (
            "FAILED", [("m_000000", "0", "failed"), ("m_000000", "1", "failed")],
        )  # fmt: skip
        assert "failedMaps:1" in job.diagnostics
        assert all("codec does.not.Exist was not found" in a.error for a in job.attempts)

    def test_killed_job(self):
        """
        A killed job has killed attempts, and none that succeeded.
        """
        job = read(JSON["killed"])

        assert job.state == "KILLED"
        assert {a.state for a in job.attempts} == {"killed"}
        assert {a.kind for a in job.attempts} == {"map", "reduce"}

    @pytest.mark.parametrize("form", ["json", "binary"])
    def test_uber_job(self, form):
        """
        An uber job ran all its attempts, one after the other, in the first container.
        """
        job = read(RECORDED[f"uber-{form}"])

        assert job.uberized
        assert attempt_states(job) == [(f"{k}_00000{n}", "0", "succeeded") for k, n in
                                       (("m", 0), ("m", 1), ("m", 2), ("r", 0))]  # fmt: skip
        assert {a.container_id[-7:] for a in job.attempts} == {"_000001"}
        for before, after in pairwise(job.attempts):
            assert before.finish_s <= after.start_s

    @pytest.mark.parametrize(
        ("form", "late"),
        [("json", ["m_000000_1", "m_000006_1"]), ("binary", ["m_000000_1", "m_000005_1"])],
    )
    def test_speculative_attempts(self, form, late):
        """
        Attempts that were started beside slow ones are killed; each task succeeds once.
        """
        job = read(RECORDED[f"speculative-{form}"])
        killed = [a for a in job.attempts if a.state == "killed"]

        assert [a.attempt_id[-10:] for a in killed] == late
        assert all("Speculation: " in a.error for a in killed)
        assert len(job.succeeded("map")) == len({a.task_id for a in job.succeeded("map")}) == 7

    @pytest.mark.parametrize("text", [JSON["wordcount"], RECORDED["wordcount-binary"]])
    def test_counters_of_maps_add_up(self, text):
        """
        The counters of the maps are the job's.
        """
        job = read(text)

        assert job.map_counters[f"{TASK_COUNTER}.MAP_INPUT_RECORDS"] > 0
        for name, total in job.map_counters.items():
            if name.startswith((f"{TASK_COUNTER}.MAP_OUTPUT", FILE_INPUT_COUNTER)):
                assert sum(a.counters[name] for a in job.succeeded("map")) == total


class TestForms:
    """The two forms of one history, in pieces of any size."""

    @pytest.mark.parametrize("name", sorted(JSON))
    def test_same_job(self, name):
        """
        A history in binary form is the same job.
        """
        assert read(BINARY[name]) == read(JSON[name])

    @pytest.mark.parametrize("name", ["wordcount", "failed"])
    @pytest.mark.parametrize("form", ["json", "binary"])
    def test_version_before(self, name, form):
        """
        Hadoop 3.4 writes the same events so that the same job is read.
        """
        assert read(RECORDED[f"{name}-3.4-{form}"]) == read(JSON[name])

    @given(st.sampled_from(sorted(JSON)), st.booleans(), st.lists(st.integers(0, 60_000)))
    def test_pieces_end_anywhere(self, name, is_binary, cuts):
        """
        A history in pieces is the same job, wherever they end.
        """
        text = (BINARY if is_binary else JSON)[name]
        places = [0, *sorted(cuts), len(text)]

        pieces = (text[start:end] for start, end in pairwise(places))

        assert read_history(pieces, "x") == read(JSON[name])

    @pytest.mark.parametrize("is_binary", [False, True])
    def test_open_files(self, is_binary, tmp_path):
        """
        An open file is read to its end.
        """
        path = tmp_path / "x.jhist"
        path.write_bytes((BINARY if is_binary else JSON)["wordcount"])

        with path.open("rb") as file:
            assert read_history(file, "x") == read(JSON["wordcount"])

    def test_fields_of_other_versions(self):
        """
        Fields that a version added, left out or moved do not matter, nor do texts that are null.
        """
        fields = {"later": {"map": {"a": 1}}, "locality": None, "startTime": 2000}
        started = (STARTED[0], {**fields, "attemptId": MAP, "containerId": {"string": "c"}})

        (attempt,) = read(b"".join(history(SUBMITTED, started, MAPPED, FINISHED))).attempts

        assert (attempt.container_id, attempt.locality, attempt.host) == ("c", "", "w1")


class TestOrder:
    """Events come in any order; of two the later one counts."""

    @given(st.permutations(EVENTS))
    def test_order_does_not_matter(self, events):
        """
        The same events in another order make the same job.
        """
        assert read_history(history(*events), "x") == read(JSON["wordcount"])

    @given(st.lists(st.sampled_from(EVENTS), max_size=5))
    def test_repeated_lines_count_once(self, repeated):
        """
        A line that stands twice adds nothing.
        """
        assert read_history(history(*EVENTS, *repeated), "x") == read(JSON["wordcount"])

    def test_later_events_override(self):
        """
        Of several reports of one thing the last one counts, as in Hadoop's own reader.
        """
        events = [
            SUBMITTED, changed(SUBMITTED, submitTime=1500),
            STARTED, changed(STARTED, startTime=2500),
            MAPPED, changed(MAPPED, finishTime=4500), FAILED, FINISHED,
        ]  # fmt: skip

        job = read_history(history(*events), "x")

        assert (job.submit_s, job.state) == (1.5, "SUCCEEDED")
        assert [(a.start_s, a.finish_s) for a in job.attempts] == [(2.5, 4.5)]

    def test_attempt_called_back(self):
        """
        An attempt that succeeded and was lost with its node counts as killed, its success is gone.
        """
        job = read_history(history(SUBMITTED, STARTED, MAPPED, RECALLED, FAILED), "x")

        (attempt,) = job.attempts
        assert (attempt.state, attempt.error, attempt.finish_s, attempt.map_finish_s) == (
            "killed", "node lost", 5.0, None,
        )  # fmt: skip

    def test_attempt_without_an_end(self):
        """
        An attempt that a failed job left running is left out.
        """
        assert read_history(history(SUBMITTED, STARTED, FAILED), "x").attempts == ()


class TestCounters:
    """Counters by their group's whole name and their own."""

    def counters(self, *groups):
        """Counters of the attempt of a history whose map has these *groups*."""
        events = history(SUBMITTED, STARTED, counted(*groups), FINISHED)
        return dict(read_history(events, "x").attempts[0].counters)

    def test_groups_of_one_last_name(self):
        """
        Groups that differ in their packages only are different groups.
        """
        assert self.counters(("a.Group", {"N": 1}), ("b.Group", {"N": 2}), ("Group", {"N": 3})) == {
            "a.Group.N": 1, "b.Group.N": 2, "Group.N": 3,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("old", "group"),
        [
            ("org.apache.hadoop.mapred.Task$Counter", TASK_COUNTER),
            ("org.apache.hadoop.mapred.JobInProgress$Counter", JOB_COUNTER),
            ("FileSystemCounters", FILE_SYSTEM_COUNTER),
            ("org.apache.hadoop.mapred.FileInputFormat$Counter", FILE_INPUT_COUNTER),
            ("org.apache.hadoop.mapreduce.lib.output.FileOutputFormat$Counter",
             FILE_OUTPUT_COUNTER),
        ],
    )  # fmt: skip
    def test_groups_of_old_interfaces(self, old, group):
        """
        Names of old interfaces are the names that Hadoop's own reader maps them to.
        """
        assert self.counters((old, {"N": 1})) == {f"{group}.N": 1}

    def test_repeated_name_counts_once(self):
        """
        Of two counters of one name the later one counts.
        """
        assert self.counters(("g", {"N": 1}), ("g", {"N": 2})) == {"g.N": 2}

    def test_tagged_counters(self):
        """
        Counters that a version puts into a union are read behind the name of their type.
        """
        tagged = changed(MAPPED, counters={"JhCounters": counted(("g", {"N": 3}))[1]["counters"]})

        job = read_history(history(SUBMITTED, STARTED, tagged, FINISHED), "x")

        assert job.attempts[0].counters == {"g.N": 3}

    @given(
        st.lists(
            st.lists(
                st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from("abc"), max_size=3)),
                max_size=3,
                unique_by=lambda group: group[0],
            ),
            min_size=1,
            max_size=6,
        )
    )
    def test_attempts_keep_their_own(self, sets):
        """
        Attempts share names, and each has its own counters, however much the names are alike.
        """
        starts = []
        ends = []
        expected = []
        for at, groups in enumerate(sets):
            counters = [(group, dict.fromkeys(names, at)) for group, names in groups]
            name = {"attemptId": f"attempt_1_0002_m_00000{at}_0"}
            starts.append(changed(STARTED, **name))
            ends.append(changed(counted(*counters), **name))
            expected.append({f"{group}.{n}": at for group, names in counters for n in names})
        finished = changed(FINISHED, finishedMaps=len(sets))

        job = read_history(history(SUBMITTED, *starts, *ends, finished), "x")

        assert [dict(a.counters) for a in job.attempts] == expected


class TestRefused:
    """What is not the whole history of one job."""

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([b"Avro-Binary\n", b"{}\n"], "not the schema"),
            ([b"Avro-Json\n", b"[]\n"], "not the schema"),
            ([b"Avro-Json\n", b'{"fields":[{"type":{"symbols":[7]}}]}\n'], "not the schema"),
            ([b"Avro-Json\n", b"{\n"], "not the schema"),
            ([b"<html>\n"], "not a job history: '<html>'"),
            ([b"# a comment\n", *HEAD], "not a job history: '# a comment'"),
            ([b'Meta VERSION="1" .\n', b'Job JOBID="job_1" .\n'], "a Hadoop 1 history: 'Meta"),
            ([], "not a job history"),
        ],
    )
    def test_foreign_files(self, lines, message):
        """
        A file that does not start like a history is refused at its first lines.
        """
        with pytest.raises(ParseError, match=message) as error:
            read_history(lines, "x.jhist")

        assert error.value.where.startswith("x.jhist:")

    @pytest.mark.parametrize("form", [JSON, BINARY], ids=["json", "binary"])
    def test_every_cut_is_noticed(self, form):
        """
        A history that ends early is refused, wherever it was cut.
        """
        text = form["wordcount"].rstrip(b"\n")
        for size in [*range(0, len(text), 997), len(text) - 1]:
            with pytest.raises(ParseError, match=r"x\.jhist"):
                read(text[:size])

    def test_half_a_line_is_named(self):
        """
        A cut line is named with its number.
        """
        at = next(n for n, line in enumerate(LINES["wordcount"]) if b'{"type":"MAP_ATT' in line)
        text = b"".join(LINES["wordcount"][:at]) + LINES["wordcount"][at][:40]

        with pytest.raises(ParseError, match="not JSON") as error:
            read(text)

        assert error.value.line == at + 1

    def test_a_map_of_the_old_interface_does_not_say_when_its_function_ended(self):
        """
        Without reduces Hadoop writes 0, which is no moment.
        """
        lines = history(SUBMITTED, STARTED, changed(MAPPED, mapFinishTime=0), FAILED)
        (attempt,) = read_history(lines, "x").attempts

        assert attempt.map_finish_s is None

    def test_clocks_that_differ(self):
        """
        A phase may end up to three seconds outside its attempt, whose master is elsewhere.
        """
        (attempt,) = read_history(
            history(SUBMITTED, STARTED, changed(MAPPED, mapFinishTime=6999), FAILED), "x"
        ).attempts

        assert attempt.map_finish_s - attempt.finish_s == pytest.approx(2.999)

    def test_a_clock_that_is_off(self):
        """
        What the node reports does not count; what its master saw does.
        """
        lines = history(SUBMITTED, STARTED, changed(MAPPED, mapFinishTime=7202000), FAILED)
        job = read_history(lines, "x")

        assert (job.attempts[0].map_finish_s, job.attempts[0].duration_s) == (None, 2.0)
        assert [(clock.host, clock.tasks, clock.moved) for clock in job.clocks] == [
            ("w1", 1, False)
        ]

    @pytest.mark.parametrize("index", range(len(EVENTS)))
    def test_lost_lines_change_nothing_unseen(self, index):
        """
        Without one of its lines a history is refused, or reads the same.
        """
        events = [*EVENTS[:index], *EVENTS[index + 1 :]]
        whole = read(JSON["wordcount"])

        with suppress(ParseError):
            job = read_history(history(*events), "x")
            assert (job.attempts, job.submit_s, job.finish_s) == (
                whole.attempts,
                whole.submit_s,
                whole.finish_s,
            )

    @pytest.mark.parametrize(
        ("events", "message"),
        [
            ([SUBMITTED, MAPPED, FINISHED], "succeeds without having started"),
            ([SUBMITTED, STARTED, FINISHED], "finishedMaps is 1, and the history has 0"),
            ([SUBMITTED, STARTED, MAPPED], "no event reports the end"),
            ([STARTED, MAPPED, FINISHED], "no event reports JOB_SUBMITTED"),
            ([SUBMITTED, changed(FAILED, finishTime=1)], "ends before it is submitted"),
            ([SUBMITTED, changed(FAILED, jobid="job_1_0003")], "in the history of job_1_0002"),
            ([SUBMITTED, changed(STARTED, attemptId="attempt_1_0003_m_000000_0")], "history of"),
            ([SUBMITTED, STARTED, changed(MAPPED, finishTime=1), FAILED], "ends before it starts"),
            ([changed(SUBMITTED, jobid="job_x")], "'job_x' is not a job id"),
            ([changed(STARTED, attemptId="../../etc")], "not the id of a map attempt"),
            ([changed(STARTED, attemptId="attempt_1_0002_r_000000_0")], "not the id of a map"),
            ([changed(STARTED, startTime="2000")], "startTime is '2000', not a whole number"),
            ([changed(STARTED, startTime=True)], "startTime is True"),
            ([changed(STARTED, startTime=10**30)], "not a whole number"),
            ([changed(STARTED, startTime=-1)], "startTime is -1"),
            ([changed(STARTED, trackerName=7)], "trackerName is 7, not text"),
            ([("JOB_INITED", {"jobid": JOB, "uberized": "yes"})], "uberized is 'yes'"),
            ([changed(MAPPED, counters={"groups": [7]})], "not groups of named whole numbers"),
            ([changed(MAPPED, counters={"groups": [{"name": 1}]})], "not groups of named"),
            ([counted((7, {"n": 1}))], "not groups of named whole numbers"),
            ([counted(("g", {"n": 1.5}))], "not groups of named whole numbers"),
            ([counted(("g", {"n": True}))], "not groups of named whole numbers"),
            ([counted(("g", {"n": 2**63}))], "not groups of named whole numbers"),
            ([("NO_SUCH_EVENT", {})], "not an event of the schema"),
            ([b'{"type":"JOB_FINISHED","event":null}'], "without its fields"),
            ([b'{"type":["JOB_FINISHED"]}'], "not an event of the schema"),
            ([b"[]"], "not an event of the schema"),
            ([rb'{"type":"JOB_FINISHED","event":"\ud800"}'], "not JSON"),
        ],
    )  # fmt: skip
    def test_inconsistent_events(self, events, message):
        """
        Events that cannot all be true of one job are refused with the reason.
        """
        with pytest.raises(ParseError, match=message):
            read_history(history(*events), "x")

    def test_numbers_with_too_many_digits(self):
        """
        A number of ten thousand digits is refused like any other that is too large.
        """
        line = b'{"type":"JOB_SUBMITTED","event":{"a":{"submitTime":' + b"9" * 9999 + b"}}}"

        with pytest.raises(ParseError):
            read_history(history(line), "x")

    @pytest.mark.parametrize("depth", [500, 900, 990, 100_000])
    @pytest.mark.parametrize("field", ["jobid", "submitTime", "counters"])
    def test_deep_nesting(self, depth, field):
        """
        Nesting that would exhaust the stack is refused.
        """
        deep = b"[" * depth + b"]" * depth
        line = b'{"type":"JOB_SUBMITTED","event":{"a":{"jobid":"job_1_0002","%s":%s}}}'

        with pytest.raises(ParseError):
            read_history(history(line % (field.encode(), deep)), "x")

    @pytest.mark.parametrize(
        "head",
        [b"".join(HEAD), BINARY_HEAD + bytes(2) + b"\xfe" * 8 + b"\x01", b"Avro-Json"],
        ids=["json", "binary", "first line"],
    )
    def test_endless_event(self, head):
        """
        An event (or a first line) of many megabytes is refused before all of it is in memory.
        """
        taken = []

        def pieces():
            yield head
            for _ in range(1000):
                taken.append(1)
                yield b" " * (1 << 20)

        with pytest.raises(ParseError):
            read_history(pieces(), "x")
        assert len(taken) < 20


def schema(**fields):
    """A binary history whose events are records with *fields*, and no event."""
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    types = {"type": "enum", "name": "T", "symbols": ["JOB_INITED", "TASK_STARTED"]}
    event = [{"type": "record", "name": "R", "fields": kinds}]
    parts = [{"name": "type", "type": types}, {"name": "event", "type": event}]
    whole = {"type": "record", "name": "Event", "fields": parts}
    return b"Avro-Binary\n" + json.dumps(whole).encode() + b"\n"


def nested(depth):
    """Lists of lists of lists."""
    kind = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return kind


def doubled(length):
    """Records, each of two of the one before."""
    kinds = {"r0": {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}}
    for n in range(1, length):
        fields = [{"name": name, "type": f"R{n - 1}"} for name in "ab"]
        kinds[f"r{n}"] = {"type": "record", "name": f"R{n}", "fields": fields}
    return kinds


TOO_LONG = b"\xfe" * 8 + b"\x01"  # a size of many terabytes


class TestForeignSchemas:
    """The schema in a binary history is foreign, too."""

    @pytest.mark.process
    def test_tiny_records(self):
        """
        An event of millions of tiny records is refused before they fill the memory.
        """
        tiny = {"type": "record", "name": "Tiny", "fields": [{"name": "a", "type": "int"}]}
        taken = []

        def pieces():
            yield schema(records={"type": "array", "items": tiny})
            yield bytes(2) + b"\x80\x80\x80\x10"  # an event with 2**24 of them
            for _ in range(64):
                taken.append(1)
                yield bytes(1 << 18)

        with pytest.raises(ParseError, match="more than 1048576 bytes"):
            read_history(pieces(), "x")
        assert len(taken) <= 8

    @pytest.mark.parametrize(
        ("kind", "message"),
        [
            ("null", "not known"),
            ("Later", "not known"),
            ("R", "contains itself"),
            (7, "schema"),
            ([], "union of nothing"),
            ([["int"]], "unions"),
            ({"type": "fixed", "name": "F", "size": 0}, "not known"),
            ({"type": "array", "items": "null"}, "not known"),
            ({"type": "record", "name": "E", "fields": []}, "without fields"),
            ({"type": "record", "name": "E", "fields": [{"name": [3], "type": "int"}]}, "schema"),
            ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, "name"),
            ({"type": "enum", "name": "T", "symbols": ["a"]}, "T"),
            ({"type": "enum", "name": "N", "symbols": 7}, "schema"),
            ({"type": "enum", "name": "../N", "symbols": ["a"]}, "not the name of a type"),
            (nested(40), "in each other"),
        ],
    )
    def test_refused(self, kind, message):
        """
        Types that histories do not need, and all that takes no bytes, are refused at line 2.
        """
        with pytest.raises(ParseError, match=message) as error:
            read(schema(jobid=kind))

        assert error.value.where == "x.jhist:2"

    def test_many_types(self):
        """
        Hundreds of types are refused: each may contain the one before.
        """
        with pytest.raises(ParseError, match="types"):
            read(schema(**doubled(300)))

    @pytest.mark.parametrize(
        ("kind", "datum"),
        [
            ({"type": "array", "items": "int"}, TOO_LONG),
            ({"type": "map", "values": "int"}, TOO_LONG),
            ("string", TOO_LONG),
            ("string", b"\x01"),  # a size of -1
            ("string", b"\x02\xff"),
            ("long", b"\xff" * 12),
            (["null", "int"], b"\x0a"),
            ("double", b"1234"),
        ],
    )
    def test_bytes_that_do_not_fit(self, kind, datum):
        """
        Sizes that are not there and values that are not valid are refused at their event's byte.
        """
        head = schema(jobid=kind)

        with pytest.raises(ParseError) as error:
            read(head + bytes(2) + datum)

        assert error.value.where == f"x.jhist, byte {len(head)}"

    @pytest.mark.parametrize(
        "kind",
        ["float", "double", "bytes", {"type": "array", "items": {"type": "string"}},
         {"type": "map", "values": "int"}, {"type": "bytes", "logicalType": "decimal"}],
    )  # fmt: skip
    def test_other_types_in_known_fields(self, kind):
        """
        A field of another type than Hadoop's is read, and refused by its name.
        """
        with pytest.raises(ParseError, match=r"jobid is|is not a job id"):
            read(schema(jobid=kind) + bytes(2) + bytes(8))

    def test_events_of_another_shape(self):
        """
        The type of an event may be a list, and the event a number: then nothing is reported.
        """
        types = {"type": "array", "items": "int", "symbols": ["JOB_INITED"]}
        parts = [{"name": "type", "type": types}, {"name": "event", "type": "int"}]
        head = json.dumps({"type": "record", "name": "Event", "fields": parts}).encode()

        with pytest.raises(ParseError, match="no event reports JOB_SUBMITTED"):
            read(b"Avro-Binary\n" + head + b"\n" + bytes([2, 2, 0, 2]))


AT = st.integers(0, 10**6)


def damaged(text, flips, cuts):
    """*text* with bytes flipped and slices taken out."""
    data = bytearray(text)
    for at, bits in flips:
        data[at % len(data)] ^= bits
    for at, size in cuts:
        del data[at % len(data) : at % len(data) + size]
    return bytes(data)


class TestAnyBytes:
    """Whatever the bytes, the answer is a job or `ParseError`."""

    @given(
        st.sampled_from([*JSON.values(), *BINARY.values(), *RECORDED.values()]),
        st.lists(st.tuples(AT, st.integers(1, 255)), max_size=8),
        st.lists(st.tuples(AT, st.integers(1, 400)), max_size=2),
    )
    def test_flipped_and_cut(self, text, flips, cuts):
        """
        Recorded histories with bytes flipped and pieces missing are read or refused.
        """
        with suppress(ParseError):
            assert isinstance(read(damaged(text, flips, cuts)), JobTrace)

    @given(st.integers(0, 10**6), st.integers(1, 255))
    def test_damaged_schema(self, at, bits):
        """
        A damaged schema is read or refused.
        """
        data = bytearray(BINARY["wordcount"])
        data[at % len(BINARY_HEAD)] ^= bits

        with suppress(ParseError):
            assert isinstance(read(bytes(data)), JobTrace)

    @given(
        st.lists(st.sampled_from([line for lines in LINES.values() for line in lines]), max_size=30)
    )
    def test_lines_of_several_histories(self, lines):
        """
        Lines of several jobs, mixed, are read or refused.
        """
        with suppress(ParseError):
            read_history([*HEAD, *lines], "x")

    @given(st.sampled_from([b"".join(HEAD), BINARY_HEAD]), st.lists(st.binary()))
    def test_noise(self, head, pieces):
        """
        Noise behind a real header is read or refused.
        """
        with suppress(ParseError):
            read_history([head, *pieces], "x")

    JUNK = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )

    @given(
        st.sampled_from([SUBMITTED, STARTED, MAPPED, FINISHED, RECALLED]),
        st.sampled_from(["jobid", "attemptId", "startTime", "finishTime", "counters", "error"]),
        JUNK,
    )
    def test_any_value_in_any_field(self, event, name, value):
        """
        Fields of any type are read or refused.
        """
        with suppress(ParseError):
            read_history(
                history(SUBMITTED, STARTED, MAPPED, changed(event, **{name: value}), FAILED), "x"
            )


@pytest.mark.process
class TestMemory:
    """What is kept grows with the number of attempts, and with nothing else."""

    def peak(self, pieces):
        """Bytes that reading the history in *pieces* takes at most."""
        tracemalloc.start()
        read_history(pieces, "x")
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    def test_events_of_tasks_take_none(self):
        """
        Events without attempts pass by, however many there are.
        """
        skipped = next(line for line in EVENTS if b"TASK_FINISHED" in line)

        def pieces(count):
            yield from history(SUBMITTED, STARTED, MAPPED)
            for _ in range(count):
                yield skipped
            yield from history(FINISHED)[2:]

        self.peak(pieces(10))  # what is made once per process is there
        assert self.peak(pieces(20_000)) < 2 * self.peak(pieces(10))

    @pytest.mark.parametrize("form", ["json", "binary"])
    def test_attempts_share_names(self, form):
        """
        Attempts alike share the names of their counters: one more takes less than 4 kB.
        """
        started, ended = (
            next(line for line in EVENTS if b'"MAP_ATTEMPT_%s"' % what in line)
            for what in (b"STARTED", b"FINISHED")
        )
        others = [line for line in EVENTS if line.startswith(b'{"type":"JOB_')]

        def pieces(count):
            lines = [
                re.sub(rb"_m_\d{6}_0", b"_m_%06d_0" % n, line)
                for n in range(count)
                for line in (started, ended)
            ]
            whole = b"".join([*HEAD, *lines, *others]).replace(
                b'"finishedMaps":3,"finishedReduces":2',
                b'"finishedMaps":%d,"finishedReduces":0' % count,
            )
            whole = binary(whole) if form == "binary" else whole
            return [whole[at : at + 4096] for at in range(0, len(whole), 4096)]

        few = pieces(50)
        many = pieces(200)
        assert self.peak(many) - self.peak(few) < 150 * 4096

    def test_sets_of_names_are_forgotten(self, monkeypatch):
        """
        An attempt that ends again and again, each time with other counters, fills no memory.
        """
        monkeypatch.setattr(history_module, "_MOST_NAME_SETS", 10)

        def pieces(count):
            yield from history(SUBMITTED, STARTED)
            for n in range(count):
                yield history(counted((f"g{n}", dict.fromkeys(map(str, range(50)), n))))[2]
            yield from history(FINISHED)[2:]

        self.peak(pieces(10))
        assert self.peak(pieces(500)) < 2 * self.peak(pieces(50))
