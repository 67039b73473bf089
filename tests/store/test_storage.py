"""
Tests for `harness.observe.storage`: files that are opened, written and read in one way.
"""

import errno
import fcntl
import gzip
import hashlib
import json
import os
import re
import socket

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.errors import DataError, MachineError, SpecError
from harness.base.records.trace import JobTrace, TaskAttempt
from harness.base.records.trial import SCHEMA_VERSION, Record
from harness.observe.storage import files, opener, tables
from harness.observe.storage.files import (
    MAKE_ROOM,
    check_name,
    exclusive_lock,
    folders,
    free_bytes,
    json_bytes,
    os_error_as_machine_error,
    refuse_special,
    remove_tree,
    write_file,
)
from harness.observe.storage.opener import Opener

PLAIN = "restore it from a copy: a run consists of plain files and folders"
NEWER = (
    "use the harness that wrote it or a later one (git pull; make setup),"
    " or another folder with --results-dir"
)


def parts_of(error):
    """
    The three parts of an error.
    """
    return (error.what, error.where, error.fix)


def refused(path, number, name=None, *, is_long=False):
    """
    The error that a refusal *number* of the operating system at *path* becomes.
    """
    with (
        pytest.raises(MachineError) as caught,
        os_error_as_machine_error(path, is_long=is_long),
    ):
        raise OSError(number, os.strerror(number), name)
    return caught.value


class TestNames:
    @pytest.mark.parametrize("name", ["a", "_", "9", "a.b-c_d@e+f=g", "Z" * 150])
    def test_safe_ones_are_given_back(self, name):
        """
        Up to 150 characters.
        """
        assert check_name(name, "it") == name

    @pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a/b", "a\n", "é", "Z" * 151])
    def test_unsafe_ones_are_named(self, name):
        """
        In the words of whoever asks, and with what is allowed.
        """
        with pytest.raises(DataError, match=" cannot name a thing in the results") as caught:
            check_name(name, "a thing")
        assert caught.value.where == "harness.core.store"
        assert caught.value.fix == (
            "use letters, digits and _ . @ + = -, starting with a letter, digit or _"
        )


class TestMachineErrors:
    def test_what_the_system_refuses_has_a_fix(self, tmp_path):
        """
        By what it is: a wrong path, a full disk, no right to write, a link, a file in the way.
        """
        ours = "choose a folder that you may write with --results-dir, with a copy of the run if it"
        fixes = {
            errno.ENOENT: "check the path: nothing is there",
            errno.EDQUOT: MAKE_ROOM,
            errno.ENOSPC: "free some space there, and start the same command again: it resumes",
            errno.ENOMEM: (
                "end other programs, or lower cluster.workers; then start the same command again"
            ),
            errno.EROFS: ours,
            errno.EACCES: ours,
            errno.EPERM: ours,
            errno.ELOOP: "restore it from a copy: results have no links",
            errno.ENOTDIR: (
                "there is a file where a folder is needed: move it, or use --results-dir"
            ),
            errno.EIO: "check this disk, or use another with --results-dir",
        }

        for number, fix in fixes.items():
            said = refused(tmp_path, number).fix
            assert said.startswith(fix) if fix == ours else said == fix

    def test_says_where_it_was(self, tmp_path):
        """
        The file that the system named, or else what was worked on; in small letters.
        """
        error = refused(tmp_path, errno.EACCES, "/a/file")

        assert (error.what, error.where) == ("permission denied", "/a/file")
        assert refused(tmp_path, errno.EACCES).where == str(tmp_path)

    def test_a_full_disk_says_how_much_is_free(self, tmp_path, monkeypatch):
        """
        Only such a one.
        """
        monkeypatch.setattr(files, "free_bytes", lambda path: 3 * 2**20 * (path == tmp_path))

        assert refused(tmp_path, errno.ENOSPC).what == "no space left on device (3 MiB free)"
        assert refused(tmp_path, errno.EDQUOT).what == "disk quota exceeded"

    def test_an_error_without_a_number_keeps_its_text(self, tmp_path):
        """
        As a library of Python may raise it.
        """
        with pytest.raises(MachineError) as caught, os_error_as_machine_error(tmp_path):
            raise OSError("Strange Thing")

        assert parts_of(caught.value) == (
            "strange thing",
            str(tmp_path),
            "check this disk, or use another with --results-dir",
        )

    def test_of_long_work_only_what_a_machine_lacks_is_one(self, tmp_path):
        """
        Whatever else it was is left to be seen as a bug.
        """
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EIO):
            assert refused(tmp_path, number, is_long=True).where == str(tmp_path)
        with (
            pytest.raises(PermissionError),
            os_error_as_machine_error(tmp_path, is_long=True),
        ):
            raise PermissionError(errno.EACCES, "Permission denied")


class TestLock:
    def test_says_who_has_it(self, tmp_path):
        """
        And how to end that, without loss.
        """
        path = tmp_path / "new" / "lock"
        with exclusive_lock(path, "the run"):
            owner = json.loads(path.read_text())
            with pytest.raises(MachineError) as caught, exclusive_lock(path, "the run"):
                pass

        assert owner["pid"] == os.getpid()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", owner["since"])
        assert parts_of(caught.value) == (
            f"the run is in use by process {os.getpid()} since {owner['since']}",
            str(path),
            f"wait for it to end, or end it: kill {os.getpid()}  (what is finished is kept)",
        )

    @pytest.mark.parametrize("text", ["", "{", '{"pid": 1, "since": "x"}', '{"pid": 012}'])
    def test_a_text_that_names_nobody_is_not_believed(self, tmp_path, text):
        """
        Process 1 is not to be killed either.
        """
        path = tmp_path / "lock"
        path.write_text(text)
        with path.open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(MachineError) as caught, exclusive_lock(path, "it"):
                pass

        assert caught.value.what == "it is in use by another harness"
        assert caught.value.fix == "wait for it to end"

    def test_the_text_of_a_longer_one_is_replaced(self, tmp_path):
        """
        Whole, and what was in the file does not matter.
        """
        path = tmp_path / "lock"
        path.write_text("x" * 500)

        with exclusive_lock(path, "it"):
            assert json.loads(path.read_text()).keys() == {"pid", "since"}
        with exclusive_lock(path, "it"):
            pass

    def test_is_no_link(self, tmp_path):
        """
        What is behind one is not emptied.
        """
        (tmp_path / "precious").write_text("text")
        (tmp_path / "lock").symlink_to(tmp_path / "precious")

        with pytest.raises(MachineError) as caught, exclusive_lock(tmp_path / "lock", "it"):
            pass
        assert caught.value.fix == "restore it from a copy: results have no links"
        assert (tmp_path / "precious").read_text() == "text"


class TestFiles:
    def test_a_file_appears_whole_and_leaves_nothing(self, tmp_path):
        """
        In folders that need not be there.
        """
        write_file(tmp_path / "a/b/file", b"data", tmp_path / "c/scratch")

        assert (tmp_path / "a/b/file").read_bytes() == b"data"
        assert list((tmp_path / "c/scratch").iterdir()) == []

    def test_what_is_there_stays_where_writing_fails(self, tmp_path, monkeypatch):
        """
        And the half of the new file is gone.
        """
        write_file(tmp_path / "file", b"old", tmp_path / "scratch")

        def full(_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(MachineError) as caught:
            write_file(tmp_path / "file", b"new", tmp_path / "scratch")
        assert caught.value.where == str(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == b"old"
        assert list((tmp_path / "scratch").iterdir()) == []

    def test_a_special_file_is_named(self, tmp_path):
        """
        A file, a folder and nothing are none.
        """
        (tmp_path / "file").write_text("")
        for name in ("file", "none", "."):
            refuse_special(tmp_path / name)

        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SpecError) as caught:
            refuse_special(tmp_path / "pipe")
        assert parts_of(caught.value) == (
            "this is no plain file",
            str(tmp_path / "pipe"),
            "name a file: what is there would be replaced by it",
        )

    def test_equal_values_give_equal_bytes(self):
        """
        Sorted, ended by a newline, in one line where that is asked for; no NaN.
        """
        assert json_bytes({"b": 1, "a": [2]}) == b'{\n  "a": [\n    2\n  ],\n  "b": 1\n}\n'
        assert json_bytes({"b": 1, "a": [2]}, indent=None) == b'{"a": [2], "b": 1}\n'
        with pytest.raises(ValueError, match="not JSON compliant"):
            json_bytes({"a": float("nan")})

    def test_folders_are_sorted_and_are_folders(self, tmp_path):
        """
        Where there is nothing, or a file, there are none.
        """
        for name in ("b", "a", "c"):
            (tmp_path / name).mkdir()
        (tmp_path / "file").write_text("")

        assert [path.name for path in folders(tmp_path)] == ["a", "b", "c"]
        assert folders(tmp_path / "file") == folders(tmp_path / "none") == []

    def test_a_tree_that_is_gone_is_removed(self, tmp_path):
        """
        With all that is below it.
        """
        (tmp_path / "a/b").mkdir(parents=True)
        (tmp_path / "a/b/file").write_text("")

        remove_tree(tmp_path / "a")
        remove_tree(tmp_path / "a")
        assert not (tmp_path / "a").exists()

    def test_room_is_that_of_the_nearest_folder(self, tmp_path, monkeypatch):
        """
        What is to be written need not be there; a relative path leads from here.
        """
        seen = []

        def usage(path):
            seen.append(Path(path).absolute())
            return type("Usage", (), {"free": 7, "total": 9, "used": 2})

        monkeypatch.setattr("shutil.disk_usage", usage)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a").mkdir()

        assert [free_bytes(path) for path in (tmp_path / "a/b/c", Path("none"))] == [7, 7]
        assert seen == [tmp_path / "a", tmp_path]


class Pair(Record):
    """
    A record for these tests.
    """

    number: int
    name: str = ""


@pytest.fixture
def root(tmp_path):
    """
    An opener of an empty folder.
    """
    (tmp_path / "root").mkdir()
    return Opener(tmp_path / "root")


def put(root, name, data):
    """
    Write a file below the root of an opener; give its path.
    """
    path = root.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


class TestOpener:
    def test_a_missing_file_has_the_fix_of_whoever_reads(self, root):
        """
        It may know a command that makes it.
        """
        with pytest.raises(DataError) as caught:
            root.read(root.root / "a/b.json", "make it")
        path = root.root / "a/b.json"
        assert parts_of(caught.value) == ("b.json is missing", str(path), "make it")

    def test_a_link_on_the_way_is_named(self, root, tmp_path):
        """
        Not what it leads to, nor what is beyond it.
        """
        put(root, "a/b/file", b"")
        (root.root / "a/link").symlink_to(root.root / "a/b")

        with pytest.raises(DataError) as caught:
            root.read(root.root / "a/link/file", "fix")
        path = root.root / "a/link/file"
        assert parts_of(caught.value) == (
            "link is not a plain file or folder",
            str(path),
            PLAIN,
        )

    def test_no_way_leads_up(self, root, tmp_path):
        """
        Even to where it came from.
        """
        put(root, "a/file", b"x")

        with pytest.raises(DataError, match=r"^\.\. is not a plain file or folder"):
            root.read(root.root / "a/../a/file", "fix")

    @pytest.mark.parametrize("kind", ["folder", "pipe", "socket"])
    def test_what_is_no_file_is_named(self, root, kind, monkeypatch):
        """
        A folder, a pipe and a socket.
        """
        monkeypatch.chdir(root.root)
        with closing(socket.socket(socket.AF_UNIX)) as server:
            make = {"folder": os.mkdir, "pipe": os.mkfifo, "socket": server.bind}
            make[kind]("it")

            with pytest.raises(DataError, match=r"^it is not a plain file or folder"):
                root.read(root.root / "it", "fix")

    def test_a_link_leads_into_the_base_of_a_run_of_links(self, root, tmp_path):
        """
        Where the plain file is opened by the same name; what is missing there is missing.
        """
        put(root, "a/file", b"real")
        linked = tmp_path / "linked"
        linked.mkdir()
        (linked / "a").symlink_to(root.root / "a")
        again = Opener(linked, root.root)

        assert again.read(linked / "a/file", "fix") == b"real"
        with pytest.raises(DataError, match=r"^none is missing"):
            again.read(linked / "a/none", "fix")
        with pytest.raises(DataError, match=r"^b is missing"):
            again.read(linked / "b", "fix")

    def test_a_file_has_a_most(self, root):
        """
        Which it may have, and no byte more.
        """
        path = put(root, "file", b"x" * 2048)

        with root.open(path, "fix", 2048) as stream:
            assert len(stream.read()) == 2048
        with pytest.raises(DataError):
            root.open(path, "fix", 2047)
        with pytest.raises(DataError) as caught:
            root.open(path, "fix", 1024)
        assert caught.value.what == (
            "file has 2 KiB, and 1 KiB are the most that is read of such a file"
        )
        assert (caught.value.where, caught.value.fix) == (str(path), "fix")

    def test_a_packed_file_is_the_file(self, root):
        """
        Read, hashed, found and listed under its own name; where both are there the plain one
        counts.
        """
        path = root.root / "b.json"
        put(root, "b.json.gz", gzip.compress(b"packed"))
        put(root, "a.json", b"plain")

        assert root.exists(path)
        assert not root.exists(root.root / "c.json")
        assert root.read(path, "fix") == b"packed"
        assert root.sha256(path) == hashlib.sha256(b"packed").hexdigest()
        assert {found.name for found in root.glob("*.json")} == {"a.json", "b.json"}
        put(root, "b.json", b"plain")
        assert root.read(path, "fix") == b"plain"

    def test_a_packed_file_may_be_damaged_or_too_large(self, root, monkeypatch):
        """
        The error names it with its ending.
        """
        packed = put(root, "a.json.gz", gzip.compress(b"x" * 100))
        path = root.root / "a.json"
        monkeypatch.setattr(opener, "MOST_WHOLE_BYTES", 100)
        assert root.read(path, "fix") == b"x" * 100

        monkeypatch.setattr(opener, "MOST_WHOLE_BYTES", 99)
        with pytest.raises(DataError) as caught:
            root.read(path, "fix")
        assert parts_of(caught.value) == ("it unpacks to more than 99 B", str(packed), "fix")
        monkeypatch.undo()
        for data in (packed.read_bytes()[:-2], b"\x1f\x8b" + b"x" * 30, b"no gzip"):
            packed.write_bytes(data)
            with pytest.raises(DataError, match=r"^it is damaged: ") as caught:
                root.read(path, "fix")
            assert (caught.value.where, caught.value.fix) == (str(packed), "fix")

    def test_names_and_hashes_are_of_all_below(self, root):
        """
        By their way from the folder; a link among the files has a name, one to a folder is refused.
        """
        put(root, "t/a", b"1")
        put(root, "t/b/c", b"2")

        assert root.hashes(root.root / "t") == {
            "a": hashlib.sha256(b"1").hexdigest(),
            "b/c": hashlib.sha256(b"2").hexdigest(),
        }
        (root.root / "t/b/link").symlink_to("c")
        assert set(root.names(root.root / "t")) == {"a", "b/c", "b/link"}
        (root.root / "t/d").symlink_to("b")
        with pytest.raises(DataError) as caught:
            list(root.names(root.root / "t"))
        path = root.root / "t/d"
        assert parts_of(caught.value) == ("d is not a plain file or folder", str(path), PLAIN)

    def test_nothing_is_written_where_one_file_is_not_plain(self, root):
        """
        However deep it lies.
        """
        put(root, "a/b/file", b"")
        root.require_plain()

        os.mkfifo(root.root / "a/b/pipe")
        with pytest.raises(DataError, match=r"^pipe is not a plain file or folder") as caught:
            root.require_plain()
        assert caught.value.where == str(root.root / "a/b/pipe")

    def test_a_copy_is_new(self, root, tmp_path):
        """
        Nothing is written over.
        """
        path = put(root, "file", b"data")

        root.copy(path, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == b"data"
        with pytest.raises(FileExistsError):
            root.copy(path, tmp_path / "copy")


def document(**fields):
    """
    JSON with the version of today, unless another is given.
    """
    return json.dumps({"schema_version": SCHEMA_VERSION, **fields}).encode()


class TestRecords:
    def refusal(self, root, data, record_type=Pair):
        """
        The error about a file with *data*.
        """
        path = put(root, "pair.json", data)
        with pytest.raises(DataError) as caught:
            root.read_record(record_type, path, "fix")
        assert caught.value.where == str(path)
        return caught.value

    def test_come_back(self, root):
        """
        Of this version and of every older one.
        """
        for version in range(1, SCHEMA_VERSION + 1):
            path = put(root, "pair.json", document(number=1, name="é", schema_version=version))
            assert root.read_record(Pair, path, "fix") == Pair(number=1, name="é")

    def test_come_back_line_by_line(self, root):
        """
        A bad line is named with its number.
        """
        path = put(root, "pairs.jsonl", document(number=1) + b"\n" + document(number=2) + b"\n")
        assert list(root.read_lines(Pair, path, "fix")) == [Pair(number=1), Pair(number=2)]

        put(root, "pairs.jsonl", document(number=1) + b"\n" + document(number="x"))
        with pytest.raises(DataError, match=r"^number: ") as caught:
            list(root.read_lines(Pair, path, "fix"))
        assert (caught.value.where, caught.value.fix) == (f"{path}:2", "fix")

    @pytest.mark.parametrize("data", [b"[1]", b"1", b'"a"', b"null"])
    def test_are_objects(self, root, data):
        """
        No other value is one.
        """
        error = self.refusal(root, data)
        assert (error.what, error.fix) == ("pair.json is not a JSON object", "fix")

    @pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
    def test_are_json(self, root, data):
        """
        Whatever it is instead.
        """
        error = self.refusal(root, data)
        assert error.what.startswith("pair.json is not JSON: ")
        assert error.fix == "fix"

    @pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True])
    def test_have_a_version(self, root, version):
        """
        A whole number from 1.
        """
        error = self.refusal(root, document(number=1, schema_version=version))

        assert error.what == f"schema_version {version!r} is not a version"
        assert error.fix == "this file was not written by the harness: restore it from a copy"

    def test_of_a_newer_harness_name_it(self, root):
        """
        By the manifest, where that can be read.
        """
        newer = SCHEMA_VERSION + 1
        what = f"schema_version {newer} is newer than {SCHEMA_VERSION}, the last one known here"

        error = self.refusal(root, document(schema_version=newer))
        assert (error.what, error.fix) == (f"written by a newer harness: {what}", NEWER)
        for manifest in (b"{", b"[]", b"{}", b"\xff"):
            put(root, "manifest.json", manifest)
            error = self.refusal(root, document(schema_version=newer))
            assert error.what == f"written by a newer harness: {what}"
        put(root, "manifest.json", b'{"harness": "7.1"}')
        error = self.refusal(root, document(schema_version=newer))
        assert error.what == f"written by a newer harness (7.1): {what}"

    def test_a_field_that_is_not_known_is_newer(self, root):
        """
        In a file of this version; an older one with such a field is damaged.
        """
        error = self.refusal(root, document(number=1, z=1, b=2))
        what = "written by a newer harness: the field 'b' is not known here"
        assert (error.what, error.fix) == (what, NEWER)

        error = self.refusal(root, document(number=1, z=1, schema_version=1))
        assert error.what == (
            "z: extra inputs are not permitted"
            f" (schema_version 1, and {SCHEMA_VERSION} is written now)"
        )
        assert error.fix == "fix"

    def test_a_bad_field_is_named_by_its_way(self, root):
        """
        Through lists and mappings; in one inside that is not known, too.
        """

        class Whole(Record):
            parts: dict[str, tuple[Pair, ...]]

        error = self.refusal(root, document(parts={"a": [{"number": 1}, {"number": None}]}), Whole)
        assert error.what == "parts.a.1.number: input should be a valid integer"
        error = self.refusal(root, document(parts={"a": [{"number": 1, "x": 1}]}), Whole)
        assert error.what == (
            "written by a newer harness: the field 'parts.a.0.x' is not known here"
        )


def attempt(number=0, **fields):
    """
    An attempt of a map.
    """
    values = {"attempt_id": f"a_{number}", "task_id": f"t_{number}", "kind": "map"}
    values |= {"state": "succeeded", "start_s": 1.0, "finish_s": 2.0, "host": "worker1"}
    return TaskAttempt(**{**values, **fields})


def job(number=0, *attempts):
    """
    A trace of a job.
    """
    return JobTrace(
        f"job_{number}", "n", "u", "SUCCEEDED", 0.0, 0.5, 3.0, len(attempts), 0, attempts
    )


COLUMNS = {"name": str, "count": int, "seconds": float, "is_last": bool, "rest": float | None}
ROWS = [
    {"name": "a", "count": 1, "seconds": 0.1, "is_last": False, "rest": None},
    {"name": "b", "count": -(2**62), "seconds": 1 / 3, "is_last": True, "rest": 2.5},
    {"name": "a", "count": 2**62, "seconds": -0.0, "is_last": False, "rest": None},
]


class TestTables:
    @pytest.mark.parametrize("at_once", [1, 2, 3, 100])
    def test_rows_come_back_in_their_order(self, root, monkeypatch, at_once):
        """
        In whatever parts they were written.
        """
        monkeypatch.setattr(tables, "AT_ONCE", at_once)
        path = root.root / "t.parquet"

        tables.write_table(path, COLUMNS, iter(ROWS))

        assert list(tables.read_table(root, path, COLUMNS)) == ROWS
        parts = list(tables.read_columns(root, path, COLUMNS))
        assert [len(part[0]) for part in parts] == [len(ROWS[at : at + at_once]) for at in
                                                    range(0, len(ROWS), at_once)]  # fmt: skip

    def test_a_table_without_rows_is_a_table(self, root):
        """
        With its columns.
        """
        path = root.root / "t.parquet"
        tables.write_table(path, COLUMNS, [])

        assert list(tables.read_table(root, path, COLUMNS)) == []
        with pytest.raises(DataError, match="its columns are not name"):
            list(tables.read_table(root, path, {**COLUMNS, "more": int}))

    def test_numbers_without_a_gap_are_arrays(self, root):
        """
        What has a gap, and texts, are lists; equal texts are one object.
        """
        path = root.root / "t.parquet"
        tables.write_table(path, COLUMNS, ROWS)

        ((names, counts, seconds, _, rests),) = tables.read_columns(root, path, COLUMNS)
        assert names[0] is names[2]
        assert (counts.dtype.name, seconds.dtype.name) == ("int64", "float64")
        assert rests == [None, 2.5, None]

    @pytest.mark.parametrize(
        ("column", "value"),
        [("name", 1), ("count", "x"), ("count", 2**63), ("seconds", "x")],
    )
    def test_a_value_that_does_not_fit_is_refused(self, root, column, value):
        """
        With the table, and where to look.
        """
        path = root.root / "t.parquet"

        with pytest.raises(DataError) as caught:
            tables.write_table(path, COLUMNS, [{**ROWS[0], column: value}])
        assert caught.value.what.startswith("a value does not fit its column in t.parquet: ")
        assert caught.value.where == str(path)
        assert caught.value.fix == (
            "the log it comes from is damaged: look at the trial's raw folder"
        )

    @pytest.mark.parametrize(
        ("columns", "words"),
        [
            ({**COLUMNS, "count": float}, "count is not a column of double"),
            ({**COLUMNS, "name": int}, "name is not a column of int64"),
            ({**COLUMNS, "rest": float}, "a value of rest is missing"),
            ({"count": int, **COLUMNS}, "its columns are not count, name, seconds"),
            ({**COLUMNS, "more": int}, "its columns are not name, count, seconds, is_last, rest"),
        ],
    )
    def test_other_columns_are_refused(self, root, columns, words):
        """
        Another type, another order, a gap where none may be, one too few.
        """
        path = root.root / "t.parquet"
        tables.write_table(path, COLUMNS, ROWS)

        with pytest.raises(DataError) as caught:
            list(tables.read_table(root, path, columns))
        assert caught.value.what.startswith(f"t.parquet is not a table: {words}")
        assert caught.value.where == str(path)
        assert caught.value.fix == "make it again from the raw logs: harness collect FILE"

    def test_a_column_more_is_of_a_newer_harness(self, root):
        """
        The first of them is named.
        """
        path = root.root / "t.parquet"
        tables.write_table(path, COLUMNS, ROWS)

        with pytest.raises(DataError) as caught:
            list(tables.read_table(root, path, {"name": str, "seconds": float}))
        assert caught.value.what == (
            "written by a newer harness: the column 'count' is not known here"
        )

    def test_a_file_that_is_no_table_is_named(self, root):
        """
        Empty, cut, or something else.
        """
        path = root.root / "t.parquet"
        tables.write_table(path, COLUMNS, ROWS)
        whole = path.read_bytes()
        for data in (b"", whole[:-9], b"text"):
            path.write_bytes(data)
            with pytest.raises(DataError, match=r"^t\.parquet is not a table: "):
                list(tables.read_table(root, path, COLUMNS))


class TestTraces:
    def write(self, root, *traces):
        """
        Write traces below the root; give the folder.
        """
        folder = root.root / "trace"
        folder.mkdir(exist_ok=True)
        tables.write_traces(folder, traces)
        return folder

    def test_each_job_has_its_own_attempts_and_counters(self, root):
        """
        However many jobs there are, in their order.
        """
        first = replace(
            job(0, attempt(0, counters={"a": 1, "b": 2}), attempt(1)),
            counters={"c": 3},
            map_counters={"c": 4},
            reduce_counters={"d": 5},
        )
        second = replace(job(1, attempt(0, counters={"a": 6})), map_counters={"c": 7})
        folder = self.write(root, second, first, job(2))

        assert tables.read_traces(root, folder) == (second, first, job(2))

    def test_jobs_alone_have_neither(self, root):
        """
        And no table is opened for them.
        """
        folder = self.write(root, replace(job(0, attempt(0)), counters={"c": 3}))
        (folder / "attempts.parquet").unlink()
        (folder / "counters.parquet").unlink()

        bare = replace(job(0, attempt(0)), attempts=())
        assert tables.read_traces(root, folder, whole=False) == (bare,)

    def test_a_field_that_is_not_known_is_newer(self, root):
        """
        The first by its name.
        """
        folder = self.write(root, job(0))
        path = folder / "job.json"
        stored = json.loads(path.read_text())
        stored["jobs"][0] |= {"zz": 1, "mm": 1}
        path.write_text(json.dumps(stored))

        with pytest.raises(DataError) as caught:
            tables.read_traces(root, folder)
        assert caught.value.what == "written by a newer harness: the field 'mm' is not known here"
        assert caught.value.where == str(path)

    @pytest.mark.parametrize("jobs", [None, 1, {}, [1], [{"job_id": "j"}]])
    def test_jobs_that_are_none_are_refused(self, root, jobs):
        """
        With the command that makes them again.
        """
        folder = self.write(root, job(0))
        (folder / "job.json").write_bytes(document(jobs=jobs))

        with pytest.raises(DataError) as caught:
            tables.read_traces(root, folder)
        assert caught.value.where == str(folder / "job.json")
        assert caught.value.fix == "make it again from the raw logs: harness collect FILE"

    def test_attempts_are_read_in_parts(self, root, monkeypatch):
        """
        Each part has the columns by their names.
        """
        monkeypatch.setattr(tables, "AT_ONCE", 2)
        folder = self.write(root, job(0, *(attempt(number) for number in range(3))))

        parts = list(tables.read_parts(root, folder, "attempts"))
        assert [list(part["attempt_id"]) for part in parts] == [["a_0", "a_1"], ["a_2"]]
        assert [list(part["job_id"]) for part in parts] == [["job_0"] * 2, ["job_0"]]
        assert list(tables.read_parts(root, folder, "spans")) == []
