"""
Tests for `harness.clusters.existing.discovery` on small web services.
"""

import http.server
import json
import socket
import threading
import time

from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from harness.base.errors import ClusterError
from harness.clusters import archives
from harness.clusters.existing import discovery
from harness.clusters.existing.discovery import copy_logs, get_json
from harness.clusters.node import transport

# Threads of a server end when they like, and leave their sockets to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ID = "container_1700000000000_0001_01_000002"
HERE = f"/ws/v1/node/containers/{ID}/logs"
GATHERED = "/ws/v1/history"


class Service(http.server.BaseHTTPRequestHandler):
    """
    Answers what its *pages* have, 404 for all else.
    """

    def log_message(self, *arguments):
        """
        Be quiet.
        """

    def do_GET(self):
        self.paths.append(urlsplit(self.path).path)
        content = self.pages.get(urlsplit(self.path).path)
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")


@pytest.fixture
def serve():
    """
    A function that serves pages and gives the address and the paths of requests.
    """
    running = []

    def start(pages):
        handler = type("Handler", (Service,), {"pages": pages, "paths": []})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        running.append(server)
        return f"127.0.0.1:{server.server_port}", handler.paths

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def listing(*names, root="containerLogsInfo"):
    """
    What a service lists of a container's logs; of one alone it makes no list.
    """
    files = [{"fileName": name, "fileSize": "1"} for name in names]
    info = {"containerLogInfo": files[0] if len(files) == 1 else files} if files else {}
    whole = {"containerLogsInfo": info}
    return json.dumps(whole if root == "containerLogsInfo" else {root: whole}).encode()


def wrapped(content, length=None):
    """
    A log as a service writes it.
    """
    size = len(content) if length is None else length
    head = f"Container: {ID} on worker1\nLogType:syslog\nLogLength:{size}\nLogContents:\n"
    return head.encode() + content + b"\nEnd of LogType:syslog\n*****\n"


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


def trickle(server, start=OK, piece=b" "):
    """
    Answer one request, piece by piece, until the other side has enough.
    """
    connection, _ = server.accept()
    with connection, suppress(OSError):
        connection.recv(2**16)
        connection.sendall(start)
        while True:
            connection.sendall(piece)
            time.sleep(0.02)


def answer_once(server, answer):
    """
    Send the bytes *answer* to whoever asks first.
    """
    connection, _ = server.accept()
    with connection:
        connection.recv(2**16)
        connection.sendall(answer)


def copied(folder):
    """
    Content of what was copied, by its path.
    """
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


class TestCopy:
    def test_of_the_node_on_which_it_ran(self, serve, tmp_path):
        """
        The log alone, whatever bytes are in it, without what the service writes around it.
        """
        log = b"LogContents:\n\x1b[2J LogLength:1\n\xff"
        idle_address, unused = serve({})
        address, _ = serve({HERE: listing("syslog"), f"{HERE}/syslog": wrapped(log)})
        managers = [("worker2", idle_address), ("worker1", address)]
        copy_logs({ID: "worker1"}, managers, idle_address, tmp_path)

        assert copied(tmp_path) == {f"worker1/{ID}/syslog": log}
        assert unused == []

    def test_of_the_history_server_where_the_node_has_none(self, serve, tmp_path):
        """
        A cluster that gathers its logs keeps none on its nodes.
        """
        node, _ = serve({HERE: listing()})
        history, _ = serve(
            {
                f"{GATHERED}/containers/{ID}/logs": listing("a", "b", root="containerLogsInfoes"),
                f"{GATHERED}/containerlogs/{ID}/a": wrapped(b"1"),
                f"{GATHERED}/containerlogs/{ID}/b": wrapped(b""),
            }
        )
        copy_logs({ID: "w"}, [("w", node)], history, tmp_path)

        assert copied(tmp_path) == {f"w/{ID}/a": b"1", f"w/{ID}/b": b""}

    @pytest.mark.process
    def test_a_node_that_trickles_is_given_up(self, tmp_path, monkeypatch):
        """
        Each byte comes in time, the whole listing does not: an error with the address, and neither
        another source nor another container is tried.
        """
        monkeypatch.setattr(transport, "START_S", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            thread = threading.Thread(target=trickle, args=[server])
            thread.start()
            with pytest.raises(archives.RefusedArchiveError, match=r"B have come in 0\.") as caught:
                copy_logs({ID: "w"}, [("w", address)], "127.0.0.1:1", tmp_path)
            thread.join()

        assert caught.value.where == f"http://{address}{HERE}"

    @pytest.mark.process
    @pytest.mark.parametrize(
        "start",
        [
            b"HTTP/1.1 200 OK\r\nX-Slow: ",
            b"HTTP/1.1 500 No\r\nContent-Length: 10000\r\n\r\n",
            b"",
        ],
        ids=["headers", "a refusal", "continue"],
    )
    def test_a_service_that_trickles_elsewhere_is_given_up(self, start, tmp_path, monkeypatch):
        """
        In its headers, in a refusal, or by telling to go on for ever.
        """
        monkeypatch.setattr(transport, "START_S", 0.3)
        piece = b"x" if start else b"HTTP/1.1 100 Continue\r\n\r\n"
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            thread = threading.Thread(target=trickle, args=[server, start, piece])
            thread.start()
            with pytest.raises(
                archives.RefusedArchiveError, match=r"beyond the limit of 0\.3\d* s"
            ):
                copy_logs({ID: "w"}, [("w", address)], "127.0.0.1:1", tmp_path)
            thread.join()

    def test_names_that_climb_are_left(self, serve, tmp_path):
        """
        Neither a file, nor a container, nor a host leaves the folder.
        """
        names = ("../../x", "/etc/passwd", "-rf", "a/b", "syslog")
        address, _ = serve({HERE: listing(*names), f"{HERE}/syslog": wrapped(b"1")})
        second_id = ID[:-1] + "9"
        wanted = {second_id: "..", "../../c": "w", ID: "w"}
        copy_logs(wanted, [("w", address)], address, tmp_path / "into")

        assert copied(tmp_path) == {f"into/w/{ID}/syslog": b"1"}

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (wrapped(b"1234", length=4000), "a log ends"),
            (wrapped(b"1", length=2**40), "too long"),
            (b"no header at all\n" * 100, "without its length"),
            (b"x" * 10, "without its length"),
        ],
    )
    def test_a_malformed_log_is_refused(self, serve, tmp_path, answer, reason):
        """
        Nothing is read without an end, and no short log is taken for a whole one.
        """
        address, _ = serve({HERE: listing("syslog"), f"{HERE}/syslog": answer})

        with pytest.raises(ClusterError, match=reason):
            copy_logs({ID: "w"}, [("w", address)], address, tmp_path)

    def test_an_unknown_container_has_no_logs(self, serve, tmp_path):
        """
        The logs of the others are copied.
        """
        address, _ = serve({HERE: listing("syslog"), f"{HERE}/syslog": wrapped(b"1")})
        unknown = "container_1700000000000_0001_01_000009"
        copy_logs({unknown: "w", ID: "w"}, [("w", address)], address, tmp_path)

        assert list(copied(tmp_path)) == [f"w/{ID}/syslog"]


class TestJson:
    @pytest.mark.parametrize("pages", [{}, {"/x": b"<html>"}, {"/x": b"\xff"}])
    def test_no_answer_is_an_error_with_the_address(self, serve, pages):
        """
        Whatever comes instead.
        """
        address, _ = serve(pages)

        with pytest.raises(ClusterError, match=address) as caught:
            get_json(address, "/x")
        assert caught.value.where == f"http://{address}/x"

    def test_nobody_listens(self):
        """
        The error has the system's reason.
        """
        with pytest.raises(ClusterError, match="Connection refused"):
            get_json("127.0.0.1:1", "/x")

    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-9223372036854770\r\n",
            b"HTTP/1.1 307 T\r\nLocation: \xff\r\n\r\n",
            b"HTTP/1.1 307 T\r\nLocation: http://[x]/\r\n\r\n",
            b"HTTP/1.1 307 T\r\nLocation: p://[\r\n\r\n",
        ],
        ids=["a size", "bytes", "an address", "half an address"],
    )
    def test_a_malformed_answer_is_none(self, answer):
        """
        Sizes of pieces below 0, and places that are no addresses.
        """
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            thread = threading.Thread(target=answer_once, args=[server, answer])
            thread.start()
            with pytest.raises(ClusterError, match=f"no answer from {address}"):
                get_json(address, "/x")
            thread.join()

    def test_an_answer_without_end_is_refused(self, serve, monkeypatch):
        """
        Its size is an error.
        """
        monkeypatch.setattr(discovery, "MOST_JSON", 10)
        address, _ = serve({"/x": b"[" + b"1," * 100 + b"1]"})

        with pytest.raises(ClusterError, match="more than 10 bytes"):
            get_json(address, "/x")


def test_servers_with_invalid_addresses_are_left_out():
    """
    Requests would go to them.
    """
    nodes = [
        {"nodeHostName": "w", "nodeHTTPAddress": "w:8042"},
        {"nodeHostName": "w", "nodeHTTPAddress": "w:8042/../x"},
        {"nodeHostName": "../w", "nodeHTTPAddress": "w:8042"},
        {},
    ]

    assert discovery.servers(nodes) == [("w", "w:8042")]
