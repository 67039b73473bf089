"""Job histories as they come: binary and JSON, of several versions, and of every kind of job."""

import gzip
import json
import random
import re
import tracemalloc

from contextlib import suppress
from itertools import cycle, pairwise
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import ParseError
from harness.parsing import jobhistory_counters, jobhistory_shapes
from harness.parsing.jobhistory import read_job
from harness.parsing.jobhistory_job import READ, Job
from harness.records.trace import FILE_INPUT_COUNTER, FILE_SYSTEM_COUNTER, TASK_COUNTER, JobTrace
from tests.parsing.avro import binary, number, text

DATA = Path(__file__).parent / "data"
JSON = {name: (DATA / f"{name}.jhist").read_bytes() for name in
        ("wordcount", "teragen", "terasort", "failed", "killed")}  # fmt: skip
REAL = {path.name.removesuffix(".jhist.gz"): gzip.decompress(path.read_bytes())
        for path in sorted(DATA.glob("*.jhist.gz"))}  # fmt: skip
BINARY = {name: binary(whole) for name, whole in JSON.items()}
HEAD = b"".join(BINARY["wordcount"].splitlines(keepends=True)[:2])


def read(history):
    """Job of *history*, which comes in one piece."""
    return read_job([history], "x.jhist")


def answer(history):
    """Job of *history*, or why it is none."""
    try:
        return read(history)
    except ParseError as error:
        return str(error)


def slowly(history):
    """The same, each event read by name."""
    with (
        patch.object(jobhistory_shapes, "_SHAPES", 0),
        patch.object(jobhistory_counters, "_SETS", 0),
    ):
        return answer(history)


def ran(job):
    """Task, attempt and state of the attempts of *job*."""
    return [(a.task_id[-8:], a.attempt_id[-1], a.state) for a in job.attempts]


class TestForms:
    """The two forms of one history."""

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
        assert read(REAL[f"{name}-3.4-{form}"]) == read(JSON[name])

    @pytest.mark.parametrize("form", ["json", "binary"])
    def test_uber_job(self, form):
        """
        An uber job ran all its attempts, one after the other, in the first container.
        """
        job = read(REAL[f"uber-{form}"])

        assert job.uberized
        assert ran(job) == [(f"{k}_00000{n}", "0", "succeeded") for k, n in
                            (("m", 0), ("m", 1), ("m", 2), ("r", 0))]  # fmt: skip
        assert {a.container_id[-7:] for a in job.attempts} == {"_000001"}
        for before, after in pairwise(job.attempts):
            assert before.finish_s <= after.start_s

    def test_map_only_job(self):
        """
        A job without reduces has maps only, and their output counts.
        """
        job = read(REAL["maponly-binary"])

        assert (job.num_reduces, job.uberized) == (0, False)
        assert ran(job) == [("m_000000", "0", "succeeded"), ("m_000001", "0", "succeeded")]
        assert job.counters[f"{FILE_SYSTEM_COUNTER}.HDFS_BYTES_WRITTEN"] == 500_000

    def test_failed_job(self):
        """
        Failed attempts keep their errors.
        """
        job = read(REAL["failed-binary"])

        assert (job.state, ran(job)) == (
            "FAILED", [("m_000000", "0", "failed"), ("m_000000", "1", "failed")],
        )  # fmt: skip
        assert all("codec does.not.Exist was not found" in a.error for a in job.attempts)

    @pytest.mark.parametrize(
        ("form", "late"),
        [("json", ["m_000000_1", "m_000006_1"]), ("binary", ["m_000000_1", "m_000005_1"])],
    )
    def test_speculative_attempts(self, form, late):
        """
        Attempts that were started beside slow ones are killed; each task succeeds once.
        """
        job = read(REAL[f"speculative-{form}"])
        killed = [a for a in job.attempts if a.state == "killed"]

        assert [a.attempt_id[-10:] for a in killed] == late
        assert all("Speculation: " in a.error for a in killed)
        assert len(job.succeeded("map")) == len({a.task_id for a in job.succeeded("map")}) == 7

    def test_counters_add_up(self):
        """
        The counters of the maps are the job's.
        """
        job = read(REAL["wordcount-binary"])

        for name, total in job.map_counters.items():
            if name.startswith((f"{TASK_COUNTER}.MAP_OUTPUT", FILE_INPUT_COUNTER)):
                assert sum(a.counters[name] for a in job.succeeded("map")) == total

    @given(st.sampled_from(sorted(JSON)), st.booleans(), st.lists(st.integers(0, 60_000)))
    def test_pieces_end_anywhere(self, name, is_binary, cuts):
        """
        A history in pieces is the same job, wherever they end.
        """
        whole = (BINARY if is_binary else JSON)[name]
        ends = [0, *sorted(cuts), len(whole)]
        pieces = [whole[a:b] for a, b in pairwise(ends)]

        assert read_job(pieces, "x") == read(whole)

    @pytest.mark.parametrize("is_binary", [False, True])
    def test_open_files(self, is_binary, tmp_path):
        """
        Open files, compressed or not, are the same job.
        """
        whole = (BINARY if is_binary else JSON)["terasort"]
        (tmp_path / "a").write_bytes(whole)
        with gzip.open(tmp_path / "b", "wb") as packed:
            packed.write(whole)

        for opened in (Path.open, gzip.open):
            with opened(tmp_path / ("a" if opened is Path.open else "b"), "rb") as lines:
                assert read_job(lines, "x") == read(whole)


def grown(name, tasks, seed=0):
    """A JSON history whose first map is repeated as the maps of a larger job."""
    lines = [line for line in JSON[name].splitlines() if line.strip()]
    rng, out = random.Random(seed), []
    for line in lines:
        out.append(re.sub(rb'("(?:total|finished)Maps":)\d+', rb"\g<1>%d" % tasks, line))
        if b"_m_000000" in line:
            for n in range(10, 10 + tasks):
                other = re.sub(rb"_m_\d{6}", b"_m_%06d" % n, line)
                times = rb'"value":\d+'
                out.append(re.sub(times, lambda _: b'"value":%d' % rng.randrange(2**59), other))
    kept = [line for line in out[2:] if not re.search(rb"_m_00000\d", line)]
    return b"\n".join([*out[:2], b"\n\n".join(kept)]) + b"\n"


LARGE = grown("wordcount", 12)
LARGE_BINARY = binary(LARGE)
AT = st.integers(0, 10**6)


def damaged(whole, flips, cuts):
    """*whole* with bytes flipped and slices taken out, behind its first two lines."""
    start = whole.index(b"\n", whole.index(b"\n") + 1) + 1
    data = bytearray(whole[start:])
    for at, bits in flips:
        data[at % len(data)] ^= bits
    for at, size in cuts:
        del data[at % len(data) : at % len(data) + size]
    return whole[:start] + bytes(data)


class TestQuickly:
    """What is read by the shape of an event before is what is read by name."""

    @pytest.mark.parametrize("whole", [LARGE, LARGE_BINARY], ids=["json", "binary"])
    def test_is_quick(self, whole):
        """
        Of many attempts alike the first is read by name, and the others are the same job.
        """
        named = Mock(side_effect=Job.attempt_finished)
        with patch.dict(READ, {"MAP_ATTEMPT_FINISHED": named}):
            job = read(whole)

        assert job == slowly(whole) == read(LARGE)
        assert (len(job.succeeded("map")), named.call_count) == (12, 1)

    @pytest.mark.parametrize("whole", [LARGE, LARGE_BINARY], ids=["json", "binary"])
    @given(
        flips=st.lists(st.tuples(AT, st.integers(1, 255)), max_size=4),
        cuts=st.lists(st.tuples(AT, st.integers(1, 40)), max_size=1),
    )
    def test_damaged_alike(self, whole, flips, cuts):
        """
        Damaged histories give the same job or the same complaint either way.
        """
        assert answer(damaged(whole, flips, cuts)) == slowly(damaged(whole, flips, cuts))

    @pytest.mark.parametrize(
        "field", ["hostname", "trackerName", "containerId", "rackname", "splitLocations"]
    )
    @settings(max_examples=15)
    @given(sizes=st.lists(st.integers(0, 90), min_size=2, max_size=5), is_binary=st.booleans())
    def test_texts_of_any_size(self, field, sizes, is_binary):
        """
        Texts shorter or longer than those before them are read whole.
        """
        size = cycle(sizes)
        other = re.sub(
            rb'("%s":")[^"]*' % field.encode(), lambda m: m[1] + b"t" * next(size), LARGE
        )
        whole = binary(other) if is_binary else other

        assert answer(whole) == slowly(whole) == read(other)

    @given(st.integers(0, 10**6), st.sampled_from(b'0123456789-",:{}[] \\.\x00\x7f\xff'))
    def test_one_other_byte(self, at, byte):
        """
        One byte that JSON gives a meaning, anywhere: the same either way.
        """
        data = bytearray(LARGE)
        at = 7000 + at % (len(data) - 7000)
        data[at] = byte

        assert answer(bytes(data)) == slowly(bytes(data))

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (b'"value":0}', b'"value":00}'),
            (b'"value":0}', b'"value":-3}'),
            (b'"value":0}', b'"value":9223372036854775807}'),
            (b'"value":0}', b'"value":9223372036854775808}'),
            (b'"value":0}', b'"value":1.5}'),
            (b'"clockSplits":[', b'"clockSplits":[01,'),
            (b'"hostname":"', b'"hostname":"\\u0041'),
            (b'"rackname":"', b'"rackname":"\xc3\xa9'),
            (b'"startTime":', b'"startTime":0'),
            (b'"attemptId":"attempt_', b'"attemptId":"attempt_0'),
            (b'"locality":{"string":"NODE_LOCAL"}', b'"locality":null'),
        ],
    )
    def test_last_of_many_is_odd(self, old, new):
        """
        An attempt like those before it but for one value: the same either way.
        """
        at = LARGE.rindex(old)
        odd = LARGE[:at] + new + LARGE[at + len(old) :]

        assert answer(odd) == slowly(odd)


def schema(**fields):
    """A history whose events are records with *fields*, and one event."""
    kinds = [{"name": name, "type": kind} for name, kind in fields.items()]
    types = {"type": "enum", "name": "T", "symbols": ["JOB_INITED", "TASK_STARTED"]}
    event = [{"type": "record", "name": "R", "fields": kinds}]
    fields = [{"name": "type", "type": types}, {"name": "event", "type": event}]
    whole = {"type": "record", "name": "Event", "fields": fields}
    return b"Avro-Binary\n" + json.dumps(whole).encode() + b"\n"


def nested(depth):
    """Lists of lists of lists."""
    kind = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return kind


def chain(length):
    """Records, each of two of the one before."""
    kinds = {"r0": {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}}
    for n in range(1, length):
        fields = [{"name": name, "type": f"R{n - 1}"} for name in "ab"]
        kinds[f"r{n}"] = {"type": "record", "name": f"R{n}", "fields": fields}
    return kinds


class TestForeignSchemas:
    """A schema in a file is somebody else's."""

    def test_types_without_end(self):
        """
        Of thousands of types that tell nothing a few are learnt, and all are passed.
        """
        names = [f"T{n}" for n in range(3000)]
        head = schema(jobid="string").replace(b'"TASK_STARTED"', json.dumps(names).encode()[1:-1])
        events = b"".join(number(n + 1) + number(0) + text("j") for n in range(3000))

        with (
            patch.object(jobhistory_shapes.re, "compile", wraps=re.compile) as compiled,
            pytest.raises(ParseError, match="no event tells JOB_SUBMITTED"),
        ):
            read(head + events * 3)

        assert 0 < compiled.call_count <= 200

    @pytest.mark.parametrize(
        ("kind", "message"),
        [
            ("null", "not known"),
            ("Later", "not known"),
            ("R", "contains itself"),
            (7, "no name, list or object"),
            ([], "union of nothing"),
            ([["int"]], "unions"),
            ({"type": "fixed", "name": "F", "size": 0}, "not known"),
            ({"type": "array", "items": "null"}, "not known"),
            ({"type": "record", "name": "E", "fields": []}, "without fields"),
            ({"type": "record", "name": "E", "fields": [{"name": 3, "type": "int"}]}, "field"),
            ({"type": "record", "fields": [{"name": "a", "type": "int"}]}, "name of its own"),
            ({"type": "enum", "name": "T", "symbols": ["a"]}, "name of its own"),
            ({"type": "enum", "name": "N", "symbols": "ab"}, "without symbols"),
            (nested(40), "deep"),
        ],
    )
    def test_refused(self, kind, message):
        """
        Types that histories do not need, and all that takes no bytes, are refused at line 2.
        """
        with pytest.raises(ParseError, match=message) as error:
            read(schema(jobid=kind))

        assert error.value.where == "x.jhist:2"

    def test_long_chains_are_refused(self):
        """
        Records of records of records are refused where they nest too deep.
        """
        with pytest.raises(ParseError, match="deep"):
            read(schema(**chain(200)))

    @pytest.mark.parametrize(
        ("kind", "datum", "message"),
        [
            ({"type": "array", "items": "int"}, number(2**60), "history is cut"),
            ({"type": "map", "values": "int"}, number(2**60), "history is cut"),
            ("string", number(2**60), "history is cut"),
            ("string", number(-1), "text of -1 bytes"),
            ("string", b"\x02\xff", "no UTF-8"),
            ("long", b"\xff" * 12, "more than ten bytes"),
            ("boolean", b"\x07", "a boolean of 7"),
            (["null", "int"], number(5), "no member 5"),
            ({"type": "enum", "name": "N", "symbols": ["a"]}, number(-1), "no symbol -1"),
            ("double", b"1234", "history is cut"),
        ],
    )
    def test_bytes_that_are_no_datum(self, kind, datum, message):
        """
        Sizes that are not there and values that are none are refused at their event's byte.
        """
        head = schema(jobid=kind)

        with pytest.raises(ParseError, match=message) as error:
            read(head + b"\x00\x00" + datum)

        assert error.value.where == f"x.jhist, byte {len(head)}"

    @pytest.mark.parametrize("kind", ["float", "double", "bytes", {"type": "map", "values": "int"},
                                      {"type": "array", "items": {"type": "string"}}])  # fmt: skip
    def test_other_types_in_our_fields(self, kind):
        """
        A field of another type than ours is read, and refused by its name.
        """
        with pytest.raises(ParseError, match=r"jobid is no|jobid"):
            read(schema(jobid=kind) + b"\x00\x00" + bytes(8))

    def test_unknown_fields_are_skipped(self):
        """
        Fields of newer versions, and other orders of fields, do not matter.
        """
        extra = {"type": "map", "values": ["null", "double"]}
        head = schema(later=extra, launchTime="long", jobid="string")
        event = number(2) + text("a") + number(0) + text("b") + number(1) + bytes(8) + number(0)

        with pytest.raises(ParseError, match="no event tells JOB_SUBMITTED"):
            read(head + b"\x00\x00" + event + number(5) + text("job_1_0002"))

    def test_blocks_with_sizes(self):
        """
        Blocks may be preceded by their size in bytes.
        """
        head = schema(jobid={"type": "array", "items": "int"})

        with pytest.raises(ParseError, match="jobid is no text: a list"):
            read(head + b"\x00\x00" + number(-2) + number(2) + b"\x02\x02" + number(0))

    def test_endless_event(self):
        """
        An event of many megabytes is refused before all of it is in memory.
        """
        taken = []

        def pieces():
            yield schema(jobid="string") + b"\x00\x00" + number(2**60)
            for _ in range(1000):
                taken.append(1)
                yield bytes(1 << 20)

        with pytest.raises(ParseError, match="an event of more than"):
            read_job(pieces(), "x")
        assert len(taken) < 20

    @given(st.binary(max_size=300))
    def test_noise(self, noise):
        """
        Noise behind a real header is read or refused.
        """
        with suppress(ParseError):
            assert isinstance(read(HEAD + noise), JobTrace)

    @given(st.integers(0, 10**6), st.sampled_from(sorted(BINARY)))
    def test_every_cut_is_noticed(self, at, name):
        """
        A binary history that ends early is refused, wherever it was cut.
        """
        whole = BINARY[name]

        with pytest.raises(ParseError, match=r"x\.jhist"):
            read(whole[: at % len(whole)])

    @given(st.integers(0, 10**6), st.integers(1, 255))
    def test_damaged_header(self, at, bits):
        """
        A damaged header is read or refused.
        """
        data = bytearray(BINARY["wordcount"])
        data[at % len(HEAD)] ^= bits

        with suppress(ParseError):
            assert isinstance(read(bytes(data)), JobTrace)


@pytest.mark.parametrize("form", ["json", "binary"])
@pytest.mark.parametrize(("waiting", "limit"), [(0, 2000), (1 << 26, 6000)])
def test_attempts_take_little_memory(form, waiting, limit):
    """
    Attempts alike share the names of their counters: five hundred more take less than 2 kB each.

    Before so many bytes of counters wait that their numbers are made at once, it is more.
    """

    def peak(tasks):
        whole = grown("wordcount", tasks)
        pieces = (binary(whole) if form == "binary" else whole).splitlines(keepends=True)
        read_job(pieces, "x")  # what is made once per process is there
        tracemalloc.start()
        read_job(pieces, "x")
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    with patch.object(jobhistory_counters, "_LARGEST_WAITING", waiting):
        assert peak(920) - peak(420) < 500 * limit
