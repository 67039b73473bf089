"""
Names that are not for the public: which they are, that none is left, and that no word is lost.
"""

import gzip
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.pseudonyms.names import Pseudonyms
from harness.publish.evidence import copy_run
from tests.parsing.histories import binary
from tests.parsing.test_ltrace import chunk, header, span, text
from tests.publish.planted import (
    DOMAIN,
    HISTORY,
    HOSTS,
    PATHS,
    PLANTED,
    SECRETS,
    SHORT,
    USERS,
    found_in,
    missing_in,
    planted_run,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """
    The run with a thousand names; not to be changed.
    """
    return planted_run(tmp_path_factory.mktemp("results"))


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """
    Its secrets are values of variables of ours, a line each or several.
    """
    for number, value in enumerate(SECRETS[1:]):
        monkeypatch.setenv(f"PLANTED_{number}_TOKEN", value)
    monkeypatch.setenv("PLANTED_KEYS", f"{SECRETS[0]}\n{SECRETS[1]}\n")


def knowing(**names):
    """
    Pseudonyms of names of each kind, of a run with no files.
    """
    pseudonyms = Pseudonyms()
    for kind, several in names.items():
        for name in several:
            pseudonyms._collect_names(kind, name)
    pseudonyms._number_names()
    pseudonyms._compile()
    return pseudonyms


@pytest.mark.process
@pytest.mark.parametrize("level", ["scores", "traces", "raw"])
def test_a_thousand_names_are_in_no_file_of_the_copy(run, tmp_path, level):
    """
    Nor a part of one: as text, XML, JSON or URL, in logs, histories, tables, recordings, and names
    of files, which a search of its own reads.
    """
    pseudonyms = Pseudonyms.of([run], level=level)
    copy_run(run, tmp_path / "runs" / run.id, level, pseudonyms)

    assert [found_in(tmp_path), [*pseudonyms.found_in(tmp_path)]] == [[], []]


def test_all_of_them_are_in_the_run(run):
    """
    Where the same search finds them.
    """
    assert [len(set(PLANTED)), missing_in(run.path)] == [1001, set()]
    assert {mark for _, mark in found_in(run.path)} >= {"acme", "team-x", "s3cr3t", "fd12:"}


@pytest.mark.process
def test_the_same_name_has_the_same_pseudonym_each_time(run):
    """
    Whatever the order in which sets are walked; `dn1` and `dn1.example.org` share their number.
    """
    first, second = (Pseudonyms.of([run]).originals for _ in range(2))

    assert [*first.items()] == [*second.items()]
    numbers = {host: first[host] for host in (SHORT[7], HOSTS[7])}
    assert numbers == {SHORT[7]: "host-008", HOSTS[7]: "host-008.example"}


def test_kinds_are_kept_by_choice(run):
    """
    Hosts with their addresses, and nothing else.
    """
    pseudonyms = Pseudonyms.of([run], keep=("hosts",), level="scores")

    text = pseudonyms.text(f"{HOSTS[0]} [10.0.3.77] {USERS[0]} {PATHS[1]}/x")
    assert re.fullmatch(rf"{HOSTS[0]} \[10\.0\.3\.77\] user-\d+ /path-\d+", text)


@pytest.mark.parametrize(
    "kept",
    [
        "yarn.node-attribute.fs-store and dfs.data.dir",
        "NodeManager, namenode, datanode, node_modules",
        "org.apache.hadoop.mapred.node.Data$data",
        "hadoop.root.logger=INFO,console; root:x:0:0",
        '{"node": 1, "data": {"batch": 2}}',
        "batches, debatch, batch.size",
    ],
)
def test_words_are_no_names(kept):
    """
    A host `node`, a user `data` and a queue `batch` are replaced where they stand alone.
    """
    pseudonyms = knowing(host=["node"], user=["data", "root"], queue=["root.batch"])

    assert pseudonyms.text(kept) == kept
    assert (
        pseudonyms.text("node:8041 by data in root.batch") == "host-1:8041 by user-1 in root.batch"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("at 10.1.2.3:8020.", "at 192.0.2.1:8020."),
        ("BP-17-10.1.2.3-1764", "BP-17-192.0.2.1-1764"),
        (r"lost\n10.1.2.3\n", r"lost\n192.0.2.1\n"),
        ("%2F10.1.2.3%2F", "%2F192.0.2.1%2F"),
        ("::ffff:10.1.2.3", "::ffff:192.0.2.1"),
        ("[fe80::1%eth0]:50010", "[2001:db8::1%eth0]:50010"),
        ("hw 52:54:00:12:34:56 up", "hw 00:00:5e:00:00:01 up"),
        ("mailto:o.p@acme.example.com>", "mailto:mail-1@example.org>"),
    ],
)
def test_addresses_are_replaced(before, after):
    """
    By those that documentation uses; those stay that are so already.
    """
    pseudonyms = Pseudonyms()

    assert [pseudonyms.text(before), pseudonyms.text(after)] == [after, after]


@pytest.mark.parametrize(
    "kept",
    [
        "127.0.0.1:8020 0.0.0.0:9870 255.255.255.0 ::1 ::",
        "198.18.0.1 and 198.19.255.9 of our namespaces",
        "lib/netty-3.5.0.1.jar netty-3.5.0.1-tests.jar 3.5.0.1-SNAPSHOT 17.0.8.1+1",
        "2026-11-25 21:02:30,177 took 0:00:12",
        "std::vector Foo::bar 1.2.3 1.2.3.4.5",
        "300.1.2.3 is none",
        "JobTokenIdentifier@68bbe345",
        "</td></tr> text/plain a/b/c km/h */ x/y.z //",
        "/usr/lib/jvm/java-17-openjdk-amd64/bin/java /proc/self/stat /bin/bash /dev/null",
        "hdfs://master:8020/harness/input/teragen-ad8786515ed78b6a/part-m-00000:0+16777200",
        "http://www.w3.org/2000/svg https://w3id.org/ro/crate/1.1/context",
        "${HOME}/share/hadoop $PWD/tmp/x (a)/b/c",
    ],
)
def test_what_is_everybodys_stays(kept):
    """
    Loopback, netmasks, our own networks, versions, moments, systems' folders, tags, URLs.
    """
    assert Pseudonyms().text(kept) == kept


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/home/jdoe/secret/x.jar:/home/jdoe/y.jar", "/path-1:/path-2"),
        ("<a>/data1/acme/nodes/worker1/local</a>", "<a>/path-1/nodes/worker1/local</a>"),
        ("file:///data1/acme,file:/data1/acme", "file:///path-1,file:/path-1"),
        ("hdfs://nn:8020/acme/_SUCCESS", "hdfs://nn:8020/path-1"),
        ("-i ~/.ssh/id_acme", "-i /path-1"),
        ("2>/var/acme/application_1_2/container_1_2_01_1/stdout.",
         "2>/path-1/application_1_2/container_1_2_01_1/stdout."),
    ],
)  # fmt: skip
def test_paths_are_replaced_down_to_what_is_everybodys(before, after):
    """
    The same path has the same pseudonym, and that stays.
    """
    pseudonyms = Pseudonyms()

    assert [pseudonyms.text(before), pseudonyms.text(after)] == [after, after]


def test_a_rate_in_a_command_is_no_folder():
    """
    A limit of nodes stays, a folder beside it does not.
    """
    limits = "{disk: 10 MiB/s, network: 100 Mbit/s}"
    command = json.dumps({"command": f"harness all mine/acme --set 'cluster.node={limits}'"})
    pseudonyms = Pseudonyms.of_files([command.encode()], {})

    assert pseudonyms.text(f"{limits} mine/acme") == f"{limits} /path-1"
    tight = json.dumps({"command": "harness all FILE --set cluster.node.disk=10MiB/s"})
    assert not Pseudonyms.of_files([tight.encode()], {}).originals


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)",
        "=cmd|calc!A0",
        r"a.*(b|c)+\d",
        r"\input{x}",
        "x" * 250,
        "ünï-cödé",
    ],
)
def test_hostile_names_are_texts(name):
    """
    Markup, formulas, patterns, LaTeX: replaced as they are, in logs and in JSON.
    """
    pseudonyms = knowing(user=[name])

    written = pseudonyms.data(json.dumps({"x": f"by {name}."}).encode())
    assert json.loads(written) == {"x": "by user-1."}
    assert pseudonyms.data(f"by {name}, too".encode()) == b"by user-1, too"


@given(st.text(st.sampled_from('a1.:/@-_ \n"\\<>{}%=~ü'), max_size=40))
def test_a_second_time_changes_nothing(text):
    """
    Whatever is published can be published again; JSON stays JSON.
    """
    pseudonyms = knowing(host=["a1.a.a", "1a-1"], user=["aa"])
    once = pseudonyms.data(json.dumps({"x": text}).encode())

    assert pseudonyms.data(once) == once
    assert json.loads(once).keys() == {"x"}


def plant(folder, name, data):
    """
    A file of a bundle.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "place", ["text", "name", "log", "table", "footer", "history", "recording", "url", "pdf"]
)
def test_what_is_left_is_found(tmp_path, place):
    """
    Wherever a name stands in a bundle, its file is named.
    """
    host, sink = "acme-host-of-somebody-17", pa.BufferOutputStream()
    # What was there in parts is not there a second time once it is packed.
    texts = ["acme-host", "-of-some", "body-17", *[host] * (place == "table")] * 9
    slots = (span(32, 2000, 3000), text(b"/" * 30 + host[:10].encode()), text(host[10:].encode()))
    table = pa.table({"text": texts}, metadata={"by": host} if place == "footer" else None)
    pq.write_table(table, sink, compression="zstd", write_statistics=False)
    content = {
        "log": gzip.compress(f"x {host}:8041".encode()),
        "table": sink.getvalue().to_pybytes(),
        "footer": sink.getvalue().to_pybytes(),
        "history": gzip.compress(binary(HISTORY.replace(b"pzw1", host.encode()))),
        "recording": gzip.compress(header() + chunk(1, b"main", *slots)),
        "url": f"x%2F{host}%2F".encode(),
        "pdf": b"%PDF-1.7\n\xff\xfe\x00" + host.encode() + b"\x00",
    }.get(place, host.encode())
    name = {"log": "x.gz", "history": "x.jhist.gz", "recording": "x.spans.gz"}.get(place, "x")
    plant(
        tmp_path,
        f"runs/{host if place == 'name' else 'r'}/{name}",
        content if place != "name" else b"",
    )
    plant(tmp_path, "README.md", b"nothing of anybody")

    remains = [*knowing(host=[host]).found_in(tmp_path)]
    assert {what.partition(" ")[0] for _, what in remains} == {"the"}
    assert {file for file, _ in remains} == {f"runs/{host if place == 'name' else 'r'}/{name}"}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (f"--password {SECRETS[3]}", "the value of PLANTED_2_TOKEN"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "a private key"),
        ("the word is sesame here", "the value of PLANTED_WORD_KEY"),
    ],
)
def test_secrets_are_found(tmp_path, monkeypatch, content, what):
    """
    By the name of their variable, never by their value.
    """
    monkeypatch.setenv("PLANTED_WORD_KEY", "sesame")
    monkeypatch.setenv("PLANTED_PLAIN_KEY", "password")
    plant(tmp_path, "log.txt", content.encode())

    found = {(name, kind.rpartition(": ")[2]) for name, kind in Pseudonyms().found_in(tmp_path)}
    assert ("log.txt", what) in found


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b"x", mtime=0),
        b"PK\x03\x04rest",
        b"PAR1 and no table",
        b"Avro-Binary\n{}\nx",
        b"Avro-Binary\n" + HISTORY.splitlines()[1] + b"\n\xff\xff\xff\xff\xff",
    ],
)
def test_what_nobody_can_look_into_is_refused(data):
    """
    Packed files among logs, and damaged ones.
    """
    with pytest.raises(DataError):
        Pseudonyms().data(data)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"x"]),
        pa.array([["x"]]),
        pa.array([{"a": "x"}]),
        pa.array(["x"]).dictionary_encode(),
        pa.array([None], pa.null()),
    ],
)
def test_columns_of_other_types_are_refused(column):
    """
    A text could lie in them where nothing looks.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": column}), sink)

    with pytest.raises(DataError, match="a column or a number of rows that no table has"):
        Pseudonyms().data(sink.getvalue().to_pybytes())


def test_a_domain_is_a_name_too():
    """
    Of hosts that are known by their whole names.
    """
    assert knowing(host=[HOSTS[0]]).text(f"search {DOMAIN};") == "search example;"
