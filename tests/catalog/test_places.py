"""
Histories where they lie: in HDFS over its REST interface, and as a history server answers.
"""

import gzip
import http.server
import json
import threading

from contextlib import suppress
from functools import partial
from random import Random
from urllib.parse import urlsplit

import pytest

from harness.base.errors import ClusterError, SpecError
from harness.catalog import places
from harness.catalog.applications import Applications
from harness.catalog.catalog import Catalog
from harness.catalog.places import list_sources
from harness.catalog.sources import read_jobs
from harness.past.fill import fill
from tests.catalog.made import put, words
from tests.fake_webhdfs import FakeWebHdfs, status
from tests.parsing.histories import DATA

# A job and all that a history server of Hadoop 3.5 answers for it (tests/live/test_existing.py).
SERVED = json.loads(gzip.decompress((DATA / "served.json.gz").read_bytes()))
# What no server says, and what names the place.
UNSAID = {"map_function_s", "map_merge_s", "map_cpu_s", "reduce_cpu_s"}
OF_PLACE = {"source", "source_key", "configuration"}


class Server(http.server.BaseHTTPRequestHandler):
    """
    Answers what its *pages* have, 404 for all else.
    """

    def log_message(self, *arguments):
        """
        Be quiet.
        """

    def do_GET(self):
        content = json.dumps(self.pages.get(urlsplit(self.path).path)).encode()
        self.send_response(404 if content == b"null" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Hdfs(FakeWebHdfs):
    """
    With folders; those named `closed` are.
    """

    def listed(self, folder):
        start = folder.rstrip("/") + "/"
        below = {path.removeprefix(start) for path in self.files if path.startswith(start)}
        if folder.endswith("closed"):
            return self.refuse(403, "Permission denied: user=somebody")
        if not below:
            return self.refuse(404, f"File {folder} does not exist.")
        folders = {path.partition("/")[0] for path in below if "/" in path}
        entries = [status(name, len(self.files[start + name])) for name in below if "/" not in name]
        entries += [{"pathSuffix": name, "length": 0, "type": "DIRECTORY"} for name in folders]
        return self.answer(200, json.dumps({"FileStatuses": {"FileStatus": entries}}).encode())


@pytest.fixture
def serve():
    """
    Start a server of this class with these attributes; its address.
    """
    running = []

    def start(kind, **attributes):
        handler = type("Handler", (kind,), attributes)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        running.append(server)
        return f"127.0.0.1:{server.server_port}"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def hdfs(serve, tmp_path):
    """
    A done tree in HDFS, and its address: two jobs, one of them with its configuration.
    """
    put(tmp_path / "done", 1, conf=words())
    put(tmp_path / "done", 1002)
    files = {f"/{path.relative_to(tmp_path)}": path.read_bytes()
             for path in (tmp_path / "done").rglob("*") if path.is_file()}  # fmt: skip
    address = serve(Hdfs, files=files, cut=0)
    return files, f"webhdfs://{address}/done"


def row_of(place):
    """
    The row of the only job at *place*.
    """
    (source,) = list_sources(place, None)
    (row,) = read_jobs([source])
    return row


def assert_equal(served, read):
    """
    Two rows of a job: what its server does not say is left out, and 1.0 may be written as 1.
    """
    settings, expected = (
        [text.removesuffix(".0") for text in row["properties"]] for row in (served, read)
    )
    assert settings == expected
    for name in read.keys() - UNSAID - OF_PLACE - {"properties"}:
        assert served[name] == pytest.approx(read[name], abs=1e-3), name


def add(tmp_path, place):
    """
    Add the histories at *place* to the catalog: added, incomplete, known, left out.
    """
    filled = fill(Catalog(tmp_path / "catalog"), [place], 1, lambda _: None)
    return filled.added, filled.incomplete, filled.known, filled.left_out_files


def test_a_served_job_is_the_one_of_its_history(serve, tmp_path):
    """
    But for what the server does not say.
    """
    for name in ("history.jhist", "conf.xml"):
        (tmp_path / f"{SERVED['job']}_{name}").write_text(SERVED[name])

    served = row_of(f"http://{serve(Server, pages=SERVED['pages'])}")
    read = row_of(tmp_path)

    assert {served[name] for name in UNSAID} == {None}
    assert_equal(served, read)
    assert served["source"].endswith(f"/jobs/{SERVED['job']}")


def test_a_known_job_is_not_asked_for_and_a_history_completes_it(serve, tmp_path):
    """
    The server's first, then its files, then the server's once more.
    """
    server = f"http://{serve(Server, pages=SERVED['pages'])}/"
    assert add(tmp_path, server)[0] == 1
    for name in ("history.jhist", "conf.xml"):
        (tmp_path / f"{SERVED['job']}_{name}").write_text(SERVED[name])

    assert add(tmp_path, tmp_path) == (1, 0, 0, 0)
    assert add(tmp_path, server) == (0, 0, 1, 0)
    assert Catalog(tmp_path / "catalog").read_job(SERVED["job"])["map_cpu_s"] is not None


@pytest.mark.parametrize(
    ("page", "answer", "reason"),
    [
        ("", {"job": {"id": "x", "submitTime": "now"}}, "no moments of the job"),
        ("", {"job": {"submitTime": 2**60, "finishTime": 2**61}}, "no moments of the job"),
        ("", {"job": []}, "no moments of the job"),
        ("/tasks", None, "status 404"),
    ],
)
def test_an_answer_that_cannot_be_used_is_left_out(serve, page, answer, reason):
    """
    With its address, and the reason.
    """
    pages = SERVED["pages"] | {f"/ws/v1/history/mapreduce/jobs/{SERVED['job']}{page}": answer}
    (left_out,) = read_jobs(list_sources(f"http://{serve(Server, pages=pages)}", None))

    assert reason in left_out[1]
    assert SERVED["job"] in left_out[0]


def test_names_of_an_answer_that_climb_are_not_asked_for(serve):
    """
    Of jobs, and of tasks.
    """
    pages = {"/ws/v1/history/mapreduce/jobs": {"jobs": {"job": [{"id": "../../conf"}, {"id": 1}]}}}
    assert list(list_sources(f"http://{serve(Server, pages=pages)}", None)) == []

    tasks = f"/ws/v1/history/mapreduce/jobs/{SERVED['job']}/tasks"
    pages = SERVED["pages"] | {tasks: {"tasks": {"task": [{"id": "../conf"}]}}}
    assert row_of(f"http://{serve(Server, pages=pages)}")["map_task_s"] is None


def test_hdfs_has_what_a_disk_has(hdfs, tmp_path):
    """
    Jobs that are known from there are known here.
    """
    _, place = hdfs
    assert add(tmp_path, place) == (2, 1, 0, 0)
    assert add(tmp_path, tmp_path / "done") == (0, 0, 2, 0)


def test_what_cannot_be_read_in_hdfs_is_named_and_the_rest_goes_on(hdfs, tmp_path):
    """
    A folder that is closed, a history that is damaged; no name leads elsewhere.
    """
    files, place = hdfs
    name, text = next((name, text) for name, text in files.items() if name.endswith(".jhist"))
    files |= {"/done/closed/job_1_0003.jhist": b"", "/done/../job_1_0004.jhist": b"",
              name: text[:-20_000]}  # fmt: skip
    left_out = []
    rows = read_jobs(list_sources(place, lambda *each: left_out.append(each)))

    assert left_out == [("hdfs:/done/closed", left_out[0][1])]
    assert "Permission denied: user=somebody" in left_out[0][1]
    assert [type(row) for row in rows].count(tuple) == 1
    assert len(rows) == 2


def test_a_folder_that_is_not_there(hdfs):
    """
    Hadoop's own words.
    """
    _, place = hdfs
    with pytest.raises(ClusterError, match=r"status 404, File /none does not exist\."):
        list(list_sources(place.replace("/done", "/none"), None))


def test_a_file_that_is_too_large_is_not_read(hdfs):
    """
    Nor kept.
    """
    _, place = hdfs
    (*_, source) = list_sources(place, None)
    open_source = partial(source.open, source.history)
    with open_source(2**30) as stream:
        assert stream.read(8) == b"Avro-Jso"
    with pytest.raises(Exception, match="more than the 1000 B that are read"), open_source(1000):
        pass


@pytest.mark.parametrize(
    "place", ["http:/x", "http://", "webhdfs:/x", "hdfs://other:8020/x", "http://a b:1/"]
)
def test_what_is_no_address_is_refused(place):
    """
    With the forms that are some.
    """
    with pytest.raises(SpecError, match="is no address of histories"):
        list(list_sources(place, None))


JUNK = [
    None, True, -1, 0, 1.5, float("inf"), 2**53, 10**30, "", "x" * 5000, "\x1b[31m", "\ud800",
    "../x", [], {}, [[]], [{}], {"job": [1]},
]  # fmt: skip


def places_in(value, path=()):
    """
    The path of each value in a JSON document.
    """
    if path:
        yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, below in items:
            yield from places_in(below, (*path, key))


def changed(value, path, junk):
    """
    The document with *junk* at *path*.
    """
    if not path:
        return junk
    copied = value.copy()
    copied[path[0]] = changed(value[path[0]], path[1:], junk)
    return copied


@pytest.mark.process
def test_whatever_a_server_answers_is_a_job_or_a_reason(tmp_path, monkeypatch):
    """
    Any value in the place of any other; all jobs that remain can be stored.
    """
    random, paths = Random(1), [*places_in(SERVED["pages"])]
    pages, rows = {}, []

    def get_json(address, url_path):
        if url_path not in pages:
            raise ClusterError("status 404", where=address)
        return pages[url_path]

    monkeypatch.setattr(places, "get_json", get_json)
    for _ in range(1500):
        pages = changed(SERVED["pages"], random.choice(paths), random.choice(JUNK))
        with suppress(ClusterError):
            rows += read_jobs(list_sources("http://history:19888", None))

    jobs = [row for row in rows if isinstance(row, dict)]
    assert 0 < len(jobs) < len(rows)
    catalog = Catalog(tmp_path / "catalog")
    with catalog.lock():
        catalog.write(jobs)
    assert len(catalog.table()) == len(jobs)


def test_applications_that_are_no_jobs_are_counted_where_they_are_seen(serve, hdfs):
    """
    Among the files of HDFS, by a ResourceManager; a history server knows of none.
    """
    files, place = hdfs
    files |= {
        "/done/tez/history.txt.appattempt_7_0001_000001": b"",
        "/done/spark/application_8_0001": b'{"Event":"SparkListenerLogStart"}',
        "/done/spark/application_8_0002": b"a log",
    }
    apps = [{"id": f"application_7_{number}", "applicationType": "TEZ"} for number in range(30)]
    manager = serve(Server, pages={"/ws/v1/cluster/apps": {"apps": {"app": apps}}})
    found = []
    counted = []
    for source in (place, f"http://{manager}", f"http://{serve(Server, pages=SERVED['pages'])}"):
        applications = Applications()
        found.append(len([*list_sources(source, None, applications)]))
        counts = applications.counted().items()
        counted.append({kind: entry["count"] for kind, entry in counts})

    assert found == [2, 0, 1]
    assert counted == [{"Spark": 1, "Tez": 1}, {"Tez": 30}, {}]
    with pytest.raises(ClusterError, match=r"mapreduce/jobs"):
        list(list_sources(f"http://{serve(Server, pages={})}", None))
