"""Files of many logs, as Hadoop 3.5 wrote them from recorded ones: each gives those logs again."""

import gzip
import io
import re
import struct

from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.observe.parsing.aggregated import read_ifile, read_text, read_tfile, reader_of
from harness.observe.parsing.java_objects import JavaObject, read_object

LOGS = Path(__file__).parents[1] / "run/data/logs"
MASTER = "container_1795351731993_0010_01_000001"
PLAIN = {
    (path.parent.name, path.name): path.read_bytes() for path in sorted(LOGS.glob("plain/*/*"))
}
TEXT = (LOGS / "yarn-logs.txt").read_bytes()
FILES = {f"{path.parent.name}-{path.name[:7]}": path.read_bytes() for path in LOGS.glob("?file/*")}


def logs_in(data):
    """The logs of tasks in a file of many, by container and name."""
    file = io.BytesIO(data)
    reader = reader_of(file)
    file.seek(0)
    logs = defaultdict(bytes)
    for container, name, piece in reader(file, "x"):
        if container != MASTER:
            logs[container, name] += piece
    return dict(logs)


def lines_of(log):
    """Lines of a log, without blank ones: the command ends each log by one."""
    return [line for line in log.splitlines() if line]


class TestRecorded:
    """What Hadoop's own writers made of the logs of two nodes."""

    @pytest.mark.parametrize("form", ["tfile", "ifile"])
    def test_files_of_nodes(self, form):
        """
        One is compressed and the other is not; each has the logs of its node, byte by byte.
        """
        nodes = [logs_in(FILES[f"{form}-worker{number}"]) for number in (1, 2)]

        assert [len(logs) for logs in nodes] == [1, 2]
        assert nodes[0] | nodes[1] == PLAIN

    def test_text(self):
        """
        What yarn logs prints of them all.
        """
        logs = logs_in(TEXT)

        assert {key: lines_of(log) for key, log in logs.items()} == {
            key: lines_of(log) for key, log in PLAIN.items()
        }

    def test_text_of_hadoop_2(self):
        """
        It names a container once, and its logs in other words; 2.2 ends none of them.
        """
        text = re.sub(rb"LogAggregationType: \w+\n", b"", TEXT)
        text = text.replace(b"LogContents:", b"Log Contents:").replace(b"LogType:", b"LogType: ")
        text = re.sub(rb"LogLastModifiedTime:", b"Log Upload Time:", text)
        text = re.sub(rb"\n(End of LogType|\*{20}).*", b"", text)
        named = set()

        def once(header):
            """Only the first header of a container."""
            return header[0] if not (header[1] in named or named.add(header[1])) else b""

        text = re.sub(rb"Container: (\S+) on .*\n=+\n", once, text)

        logs = logs_in(b"WARNING: YARN_OPTS has been replaced\n" + text)

        assert {key: lines_of(log) for key, log in logs.items()} == {
            key: lines_of(log) for key, log in PLAIN.items()
        }

    def test_other_files(self):
        """
        Histories, logs and archives are none.
        """
        for data in (b"", b"Avro-Json\n", next(iter(PLAIN.values())), gzip.compress(TEXT)):
            assert reader_of(io.BytesIO(data)) is None


class TestDamage:
    """What is cut, changed or foreign is refused, and costs no memory."""

    @pytest.mark.parametrize("name", sorted(FILES))
    def test_cut(self, name):
        """
        A file that ends early has no index.
        """
        data = FILES[name]
        read = read_tfile if name.startswith("tfile") else read_ifile
        for size in range(0, len(data), 101):
            with pytest.raises(ParseError, match="damaged file of aggregated logs"):
                list(read(io.BytesIO(data[:size]), "x"))

    def test_text_without_a_container(self):
        """
        It is refused with what to give.
        """
        with pytest.raises(ParseError, match="yarn logs -applicationId"):
            list(read_text(io.BytesIO(b"LogType:syslog\nLogContents:\nx\n"), "x"))

    def test_compression_that_is_not_read(self):
        """
        It is named.
        """
        data = FILES["tfile-worker2"].replace(b"index\x04none", b"index\x04lzo9")

        with pytest.raises(ParseError, match="compressed by lzo9"):
            list(read_tfile(io.BytesIO(data), "x"))

    @given(data=st.binary(max_size=80))
    def test_any_object(self, data):
        """
        Whatever follows the first bytes is read as an object, or is `ValueError`.
        """
        with suppress(ValueError):
            read_object(b"\xac\xed\x00\x05" + data)

    def test_deep_objects(self):
        """
        Objects within objects exhaust no stack.
        """
        one = b"\x73\x72\x00\x01a" + bytes(8) + b"\x02\x00\x01L\x00\x01f\x74\x00\x01b\x78\x70"

        with pytest.raises(ValueError, match="deep"):
            read_object(b"\xac\xed\x00\x05" + one * 1000)

    def test_places_outside_of_the_file(self):
        """
        An index that promises more than there is promises nothing.
        """
        sizes = struct.pack(">qq", 2577, 2577)  # as stored, and whole
        data = FILES["ifile-worker1"].replace(sizes, struct.pack(">qq", 2**40, 2**40))

        with pytest.raises(ParseError, match="a block outside of the file"):
            list(read_ifile(io.BytesIO(data), "x"))


def test_object_of_the_index():
    """
    An index has fields by name, maps and lists as what they hold.
    """
    data = FILES["ifile-worker1"]
    index = read_object(data[data.index(b"\xac\xed\x00\x05") :])

    assert isinstance(index, JavaObject)
    assert (index.fields["version"], index.fields["compressName"]) == (1, "none")
    assert index.fields["nodeId"] == "worker1:45454"
    assert index.fields["acls"].more[1:] == ["MODIFY_APP", "root", "VIEW_APP", "root"]
