"""
Tables of results that unpack to more than any machine has, or are not what they say.
"""

import io
import json
import os
import subprocess
import sys

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import DataError
from harness.records.trace import TASK_COUNTER, JobTrace
from harness.store import pages, parquet, tables
from harness.store.files import read_file
from tests.hostile.hunt import time_limit

MIB = 2**20
TEXTS = ("job_id", "attempt_id", "scope", "name")
SCHEMA = pa.schema([*((name, pa.string()) for name in TEXTS), ("value", pa.int64())])
JOB = JobTrace(
    job_id="job_1_0001", name="a", user="b", state="SUCCEEDED", submit_s=1.0, launch_s=2.0,
    finish_s=9.0, num_maps=0, num_reduces=0, attempts=(), counters={f"{TASK_COUNTER}.A": 1},
)  # fmt: skip

PLAIN = {"use_dictionary": False, "write_statistics": False}
DELTA = {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}}

# Reads the table that it is told, in a process that may not take the machine down with it.
READ = """
import json, resource, sys
from pathlib import Path
from harness.errors import DataError
from harness.store import parquet, tables
from tests.hostile.hunt import bound_memory

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

parquet._pyarrow()
bound_memory()
for path in map(Path, sys.argv[1:]):
    before = peak()
    try:
        said = f"{sum(1 for _ in parquet.read_table(path, tables._COUNTERS, '', 5_000_000))} rows"
    except DataError as error:
        said = error.what
    print(json.dumps([said, peak() - before]))
"""


def table(rows=3, text="x", **columns):
    """
    Counters, as the store would write them.
    """
    same = pa.array([text] * rows)
    values = dict.fromkeys(TEXTS, same) | {"value": pa.array(range(rows))} | columns
    return pa.table(values, schema=SCHEMA.with_metadata({"schema_version": "1"}))


def written(content, **options):
    """
    A table in Parquet form.
    """
    sink = io.BytesIO()
    pq.write_table(content, sink, **{"compression": "zstd"} | options)
    return sink.getvalue()


def footer(data):
    """
    What the end of a Parquet file says of it.
    """
    return pq.ParquetFile(pa.BufferReader(data)).metadata


def repeated(data, times):
    """
    The same file with a footer that tells of its rows so many *times*: only the footer grows.
    """
    whole, one, sink = footer(data), footer(data), io.BytesIO()
    for _ in range(times - 1):
        whole.append_row_groups(one)
    whole.write_metadata_file(sink)
    new = sink.getvalue()
    return data[: -_ending(data)] + new[-_ending(new) :]


def _ending(data):
    return int.from_bytes(data[-8:-4], "little") + 8


def counters(path, data):
    """
    Rows of *data* as a table of counters.
    """
    path.write_bytes(data)
    return list(parquet.read_table(path, tables._COUNTERS))


class TestBombs:
    def test_small_files_of_gigabytes(self, tmp_path):
        """
        Pages that unpack to gigabytes, texts that a million cells repeat, rows without end: each
        is refused in the memory that an honest table takes.  So is a footer that contradicts
        itself, at which pyarrow ends the process of whoever asks it for a column.
        """
        bombs = {
            "pages": repeated(written(table(1, "x" * 20 * MIB), **PLAIN), 60),
            "texts": repeated(written(table(512, "x" * 2**16)), 40),
            "rows": repeated(written(table(100_000, value=pa.repeat(pa.scalar(1), 100_000))), 60),
            # Counts of values by level, (0, 3), become (3,): a column has two levels.
            "levels": written(table()).replace(b"\x19\x26\0\6\0", b"\x19\x16\x86\0\0"),
        }
        for name, data in bombs.items():
            (tmp_path / name).write_bytes(data)
            assert len(data) < 50_000
        argv = [sys.executable, "-c", READ, *(str(tmp_path / name) for name in bombs)]

        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=60)

        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [said.partition(": ")[2] for said, _ in found] == [
            "it unpacks to 520 MiB or more, beyond any run",
            "its texts have 2684354560 characters, more than any run",
            "it has 6000000 rows, more than any run",
            "Definition level histogram size mismatch, size: 1, expected: 2",
        ]
        assert max(grown for _, grown in found) < 100 * MIB

    def test_a_sparse_file(self, tmp_path):
        """
        A file of a terabyte without content, as an archive of a few bytes holds it, is not read.
        """
        path = tmp_path / "manifest.json"
        path.touch()
        os.truncate(path, 2**40)

        with pytest.raises(DataError, match="has more than 1 GiB"):
            read_file(path, "")

    def test_a_footer_of_megabytes(self, tmp_path):
        """
        What a footer makes up, column after column, takes a thousand times its bytes.
        """
        much = table().replace_schema_metadata({"schema_version": "1", "x": "x" * MIB})

        with pytest.raises(DataError, match="its footer has"):
            counters(tmp_path / "x.parquet", written(much))

    def test_more_columns_than_ours(self, tmp_path):
        """
        Lists in the footer are as long as those of our tables at most.
        """
        wide = pa.table({f"c{n}": pa.array([1]) for n in range(pages.MOST_IN_LIST + 1)})

        with pytest.raises(DataError, match="is not a table"):
            counters(tmp_path / "x.parquet", written(wide))


class TestPages:
    @pytest.mark.parametrize(
        "content",
        [
            table(),
            table(90_000, name=[f"counter {n}" for n in range(90_000)]),
            table(3, name=[None, "ä" * 300, ""]),
            table(1, "\x80" * MIB),
        ],
        ids=["few", "two kinds of page", "null", "large"],
    )
    def test_adds_up_to_what_the_writer_counted(self, content):
        """
        For an honest file the bytes that it unpacks to are those that its footer gives.
        """
        data = written(content)
        group = footer(data).row_group(0)
        columns = [group.column(n) for n in range(group.num_columns)]

        # The footer counts headers, too: they are as large in a packed column.
        view = memoryview(data)
        held = [list(pages.column_pages(view, c)) for c in pages.read_footer(view).columns]
        sizes = [sum(page.unpacked - page.packed for page in found) for found in held]

        assert sizes == [c.total_uncompressed_size - c.total_compressed_size for c in columns]

    def test_are_read_as_they_were_written(self, tmp_path):
        """
        Equal texts are one object, however many rows they stand in.
        """
        rows = counters(tmp_path / "x.parquet", written(table(3, "a counter")))

        assert rows == table(3, "a counter").to_pylist()
        assert len({id(row["name"]) for row in rows}) == 1

    @pytest.mark.parametrize(
        ("data", "what"),
        [
            (written(table(), compression="gzip"), "not as it is written here"),
            (written(table(), **DELTA), "a page is not as it is written here"),
            (written(table()).replace(b"-cpp-arrow", b"-mr-arrow3"), "another program"),
            (written(table())[:4] + b"\0" * 40 + written(table())[44:], "has no header"),
            (written(table())[:5] + b"\xff" * 4 + written(table())[9:], "has no header"),
            (b"\0" * 9, "is not a table"),
            (b"", "is not a table"),
        ],
        ids=["gzip", "delta", "other", "zeros", "endless", "none", "empty"],
    )  # fmt: skip
    def test_of_another_kind_are_refused(self, tmp_path, data, what):
        """
        What the store does not write has other ways to grow: it is not tried.
        """
        with pytest.raises(DataError, match=what):
            counters(tmp_path / "x.parquet", data)

    def test_groups_must_make_up_the_rows(self, tmp_path):
        """
        A footer that tells of fewer rows than its groups hold is not believed.
        """
        data = written(table(3))
        # Rows of the file stand before its groups: field 3, a number of 64 bits.
        at = data.index(b"\x16\x06\x19", len(data) - _ending(data))
        lie = data[:at] + b"\x16\x04\x19" + data[at + 3 :]

        with pytest.raises(DataError, match="do not make up its rows"):
            counters(tmp_path / "x.parquet", lie)


HONEST = [
    written(table()),
    written(table(5, name=["a", None, "b" * 300, "", "c"])),
    written(table(2000, name=[f"counter {n}" for n in range(2000)])),
]


def damaged(random):
    """
    An honest file with some bytes of its headers or its footer replaced by what steers a reader.
    """
    changed = bytearray(random.choice(HONEST))
    ends = _ending(changed)
    for _ in range(random.choice((1, 1, 2, 5))):
        first = 4 if random.random() < 0.3 else len(changed) - ends
        value = random.choice((random.randrange(256), 0, 0xFF, 0x80, 0x19, 0x1C, 0xF9))
        changed[random.randrange(first, len(changed))] = value
    return bytes(changed)


@pytest.mark.parametrize("count", [100, pytest.param(40_000, marks=pytest.mark.long)])
def test_damaged_headers_are_read_or_refused(tmp_path, count):
    """
    Whatever a header or a footer claims, the answer is rows or the documented error, at once.
    """
    found = set()
    for number in range(count):
        with time_limit():
            try:
                counters(tmp_path / "x.parquet", damaged(Random(f"headers {number}")))
                found.add("rows")
            except DataError as error:
                found.add("error" if len(str(error)) < 1000 else "endless error")

    assert found == {"rows", "error"}


class TestWriting:
    @pytest.mark.parametrize("limit", ["_MOST_BYTES", "_MOST_TEXT_OF_ROW", "_MOST_COUNTERS"])
    def test_what_could_not_be_read_again_is_not_written(self, tmp_path, monkeypatch, limit):
        """
        A table beyond the limits of reading is told of while its log is at hand.
        """
        module = tables if limit == "_MOST_COUNTERS" else parquet
        monkeypatch.setattr(module, limit, 0)
        monkeypatch.setattr(parquet, "MOST_ROWS", 0)

        with pytest.raises(DataError, match=r"(more than|beyond) any run"):
            tables.write_traces(tmp_path, [JOB])

        assert [p.name for p in tmp_path.glob("*.parquet")] in ([], ["attempts.parquet"])
