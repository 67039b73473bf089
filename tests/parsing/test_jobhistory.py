"""Job histories: real ones, cut, foreign and mutated ones."""

import json
import tracemalloc

from contextlib import suppress
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ParseError
from harness.parsing.jobhistory import read_job
from harness.records.trace import JOB_COUNTER, TASK_COUNTER, JobTrace

DATA = Path(__file__).parent / "data"
FILES = {name: (DATA / f"{name}.jhist").read_bytes() for name in
         ("wordcount", "teragen", "terasort", "failed", "killed")}  # fmt: skip
LINES = {name: text.splitlines(keepends=True) for name, text in FILES.items()}
EVENTS = [line for line in LINES["wordcount"][2:] if line.strip()]


def history(*events):
    """The header of a real history, then *events* as (type, fields) or as raw lines."""
    lines = [
        e if isinstance(e, bytes) else json.dumps({"type": e[0], "event": {e[0]: e[1]}}).encode()
        for e in events
    ]
    return [*LINES["wordcount"][:2], *(line.rstrip(b"\n") + b"\n\n" for line in lines)]


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


class TestRealHistories:
    """Histories that Hadoop wrote."""

    def test_wordcount(self):
        """
        Times, numbers and counters of a job stand as in its history.
        """
        job = read_job(LINES["wordcount"], "wordcount.jhist")

        assert (job.job_id, job.name, job.user, job.state, job.num_maps, job.num_reduces) == (
            "job_1795224441974_0001", "word count", "root", "SUCCEEDED", 3, 2,
        )  # fmt: skip
        assert (job.submit_s, job.launch_s, job.finish_s) == (
            1795224567.936, 1795224577.706, 1795224600.369,
        )  # fmt: skip
        assert job.map_counters[f"{TASK_COUNTER}.MAP_INPUT_RECORDS"] == sum(
            a.counters[f"{TASK_COUNTER}.MAP_INPUT_RECORDS"] for a in job.succeeded("map")
        )
        assert job.counters[f"{JOB_COUNTER}.TOTAL_LAUNCHED_MAPS"] == 3
        assert job.reduce_counters["Shuffle Errors.IO_ERROR"] == 0

    def test_phases_follow_each_other(self):
        """
        Every attempt has its phases in order, and only those of its kind.
        """
        job = read_job(LINES["terasort"], "terasort.jhist")

        for m in job.succeeded("map"):
            assert m.start_s < m.map_finish_s <= m.finish_s
            assert (m.shuffle_finish_s, m.sort_finish_s) == (None, None)
        for r in job.succeeded("reduce"):
            assert r.start_s < r.shuffle_finish_s <= r.sort_finish_s <= r.finish_s
            assert r.map_finish_s is None
        assert {a.host for a in job.attempts} == {"pzw1", "pzw2"}
        assert len({a.container_id for a in job.attempts}) == 5

    def test_map_only_job(self):
        """
        A job without reduces has maps only.
        """
        job = read_job(LINES["teragen"], "teragen.jhist")

        assert (job.num_reduces, len(job.succeeded("map")), job.reduce_counters) == (0, 3, {})

    def test_failed_job(self):
        """
        Failed attempts keep their errors; a reduce killed before it had a container never ran.
        """
        job = read_job(LINES["failed"], "failed.jhist")

        assert job.state == "FAILED"
        assert "failedMaps:1" in job.diagnostics
        assert [(a.kind, a.state, a.task_id[-6:]) for a in job.attempts] == [
            ("map", "failed", "000000")
        ] * 2
        assert all("codec does.not.Exist was not found" in a.error for a in job.attempts)

    def test_killed_job(self):
        """
        A killed job has killed attempts, and none that succeeded.
        """
        job = read_job(LINES["killed"], "killed.jhist")

        assert job.state == "KILLED"
        assert {a.state for a in job.attempts} == {"killed"}
        assert {a.kind for a in job.attempts} == {"map", "reduce"}


class TestOrder:
    """Events come in any order, and may come twice."""

    @given(st.permutations(EVENTS))
    def test_order_does_not_matter(self, events):
        """
        The same events in another order make the same job.
        """
        assert read_job(history(*events), "x") == read_job(LINES["wordcount"], "x")

    @given(st.lists(st.sampled_from(EVENTS), max_size=5))
    def test_repeated_lines_count_once(self, again):
        """
        A line that stands twice says nothing new.
        """
        assert read_job(history(*EVENTS, *again), "x") == read_job(LINES["wordcount"], "x")

    def test_attempt_called_back(self):
        """
        An attempt that succeeded and was lost with its node counts as killed, in either order.
        """
        for events in ([MAPPED, RECALLED], [RECALLED, MAPPED]):
            job = read_job(history(SUBMITTED, STARTED, *events, FAILED), "x")

            assert [(a.state, a.error) for a in job.attempts] == [("killed", "node lost")]

    def test_attempt_without_an_end(self):
        """
        An attempt that a failed job left running is left out.
        """
        assert read_job(history(SUBMITTED, STARTED, FAILED), "x").attempts == ()


class TestRefused:
    """What is no whole history of one job."""

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([b"Avro-Binary\n", b"{}\n"], "not the schema"),
            ([b"Avro-Json\n", b"[]\n"], "not a JSON object"),
            ([b"Avro-Json\n", b"{}\n"], "not the schema"),
            ([b"<html>\n"], "not a job history: '<html>'"),
            ([], "not a job history"),
        ],
    )
    def test_foreign_files(self, lines, message):
        """
        A file that does not begin like a JSON history is refused at its begin.
        """
        with pytest.raises(ParseError, match=message) as error:
            read_job(lines, "x.jhist")

        assert error.value.where.startswith("x.jhist:")

    def test_every_cut_is_noticed(self):
        """
        A history that ends early is refused, wherever it was cut.
        """
        text = FILES["wordcount"].rstrip()
        for size in [*range(0, len(text), 997), len(text) - 1]:
            with pytest.raises(ParseError, match=r"x\.jhist"):
                read_job(text[:size].splitlines(keepends=True), "x.jhist")

    def test_half_a_line_is_named(self):
        """
        A cut line is named with its number, and called cut.
        """
        lines = [*LINES["wordcount"][:10], LINES["wordcount"][10][:40]]

        with pytest.raises(ParseError, match="the history is cut") as error:
            read_job(lines, "x.jhist")

        assert error.value.line == 11

    @pytest.mark.parametrize("index", range(len(EVENTS)))
    def test_lost_lines_change_nothing_unseen(self, index):
        """
        Without one of its lines a history is refused, or reads the same.
        """
        events = [*EVENTS[:index], *EVENTS[index + 1 :]]
        whole = read_job(LINES["wordcount"], "x")

        with suppress(ParseError):
            job = read_job(history(*events), "x")
            assert (job.attempts, job.submit_s, job.finish_s) == (
                whole.attempts,
                whole.submit_s,
                whole.finish_s,
            )

    @pytest.mark.parametrize(
        ("events", "message"),
        [
            ([SUBMITTED, MAPPED, FINISHED], "succeeds without having started"),
            ([SUBMITTED, STARTED, FINISHED], "finishedMaps is 1, and 0 map tasks"),
            ([SUBMITTED, STARTED, MAPPED], "no event tells the end"),
            ([STARTED, MAPPED, FINISHED], "no event tells JOB_SUBMITTED"),
            ([SUBMITTED, changed(SUBMITTED, submitTime=1)], "contradicts line 3"),
            ([SUBMITTED, FINISHED, FAILED], "contradicts line 5"),
            ([SUBMITTED, changed(FAILED, finishTime=1)], "ends before it is submitted"),
            ([SUBMITTED, changed(FAILED, jobid="job_1_0003")], "in the history of job_1_0002"),
            ([SUBMITTED, changed(STARTED, attemptId="attempt_1_0003_m_000000_0")], "history of"),
            ([STARTED, changed(STARTED, startTime=1)], "starts twice"),
            ([MAPPED, changed(MAPPED, finishTime=1)], "ends twice"),
            ([SUBMITTED, STARTED, changed(MAPPED, finishTime=1), FAILED], "ends before it starts"),
            ([changed(STARTED, attemptId="../../etc")], "no attempt id"),
            ([changed(STARTED, attemptId="attempt_1_0002_r_000000_0")], "no attempt of this kind"),
            ([changed(STARTED, startTime="2000")], "'startTime' is no whole number: '2000'"),
            ([changed(STARTED, startTime=True)], "no whole number"),
            ([changed(STARTED, startTime=10**30)], "too large"),
            ([changed(STARTED, startTime=-1)], "startTime is -1"),
            ([changed(STARTED, trackerName=7)], "trackerName is no text"),
            ([changed(MAPPED, counters={"groups": [7]})], "no list of groups"),
            ([changed(MAPPED, counters={"groups": [{"name": 1}]})], "without a name"),
            ([("NO_SUCH_EVENT", {})], "no such event in the schema"),
            ([b'{"type":"JOB_FINISHED","event":{}}'], "without its body"),
            ([b'{"type":["JOB_FINISHED"]}'], "no such event in the schema: a list"),
        ],
    )  # fmt: skip
    def test_contradictions(self, events, message):
        """
        Events that cannot all be true of one job are refused with the reason.
        """
        with pytest.raises(ParseError, match=message):
            read_job(history(*events), "x")

    def test_numbers_with_too_many_digits(self):
        """
        A number that Python itself refuses to read is refused like any other.
        """
        line = b'{"type":"JOB_SUBMITTED","event":{"a":{"submitTime":' + b"9" * 9999 + b"}}}"

        with pytest.raises(ParseError, match="not JSON"):
            read_job(history(line), "x")

    @pytest.mark.parametrize("depth", [500, 900, 990, 100_000])
    @pytest.mark.parametrize("field", ["jobid", "submitTime", "jobName"])
    def test_deep_nesting(self, depth, field):
        """
        Nesting that would exhaust the stack is refused.
        """
        deep = b"[" * depth + b"]" * depth
        line = b'{"type":"JOB_SUBMITTED","event":{"a":{"jobid":"job_1_0002","%s":%s}}}'

        with pytest.raises(ParseError):
            read_job(history(line % (field.encode(), deep)), "x")

    def test_half_a_character(self):
        """
        A lone surrogate in a text becomes a question mark, for no file could hold it.
        """
        job = read_job(history(changed(SUBMITTED, jobName="\ud800x"), FAILED), "x")

        assert job.name == "?x"


def damaged(text, flips, cuts):
    """*text* with bytes flipped and slices taken out."""
    data = bytearray(text)
    for at, bits in flips:
        data[at % len(data)] ^= bits
    for at, size in cuts:
        del data[at % len(data) : at % len(data) + size]
    return bytes(data)


AT = st.integers(0, 10**6)


class TestAnyBytes:
    """Whatever the bytes, the answer is a job or `ParseError`."""

    @given(
        st.sampled_from(sorted(FILES)),
        st.lists(st.tuples(AT, st.integers(1, 255)), max_size=8),
        st.lists(st.tuples(AT, st.integers(1, 400)), max_size=2),
    )
    def test_flipped_and_cut(self, name, flips, cuts):
        """
        Real histories with bytes flipped and pieces missing are read or refused.
        """
        lines = damaged(FILES[name], flips, cuts).splitlines(keepends=True)

        with suppress(ParseError):
            assert isinstance(read_job(lines, "x"), JobTrace)

    @given(
        st.lists(st.sampled_from([line for lines in LINES.values() for line in lines]), max_size=30)
    )
    def test_lines_of_several_histories(self, lines):
        """
        Lines of several jobs, mixed, are read or refused.
        """
        with suppress(ParseError):
            read_job([*LINES["failed"][:2], *lines], "x")

    @given(st.lists(st.binary()))
    def test_noise(self, lines):
        """
        Noise behind a real header is read or refused.
        """
        with suppress(ParseError):
            read_job([*LINES["failed"][:2], *lines], "x")

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
            read_job(
                history(SUBMITTED, STARTED, MAPPED, changed(event, **{name: value}), FAILED), "x"
            )


def test_memory_holds_attempts_only():
    """
    Events that tell nothing of attempts pass by, however many there are.
    """

    def lines(count):
        yield from history(SUBMITTED, STARTED, MAPPED)
        skipped = next(line for line in EVENTS if b"TASK_FINISHED" in line)
        for _ in range(count):
            yield skipped
        yield from history(FINISHED)[2:]

    def peak(count):
        tracemalloc.start()
        read_job(lines(count), "x")
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(20_000) < 2 * peak(10)
