"""
What others answer or hand over: web services, SSH servers, nights, costs of machines, own models.
"""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from paramiko.packet import Packetizer
from pydantic import ValidationError

from harness.base.errors import DataError, HarnessError, ModelError, SpecError
from harness.base.records.hardware import Cost, MachineCosts
from harness.catalog.places import list_sources
from harness.cli.entry import _invoke
from harness.clusters.existing import discovery
from harness.clusters.ssh import connection
from harness.core.evaluate.own_code import _find_class
from harness.core.evaluate.own_model import _Answer, _field_complaint, plain_answer
from harness.hardware.transfer import drawn_costs, read_hardware
from harness.nightly.alarms import Judge, few_nights, judged
from harness.nightly.columns import read_csv
from harness.nightly.history import HISTORY, History
from harness.nightly.power import first_week
from tests.evaluate.test_alarms import nights
from tests.hostile import numbers
from tests.hostile.hunt import Target
from tests.hostile.mutate import mutate
from tests.hostile.witnesses import JSON, either, replacing

NAMES = (
    "web-nodes", "web-job", "web-hdfs", "web-log", "http", "ssh", "history.jsonl", "nights.csv",
    "hardware.json", "own-model", "own-answer",
)  # fmt: skip
_JOB = "job_1795224441974_0003"
_CONTAINER = "container_1700000000000_0001_01_000002"


class Server:
    """Answers every request on a port of this machine with the same bytes."""

    def __init__(self) -> None:
        """Begin to listen."""
        self.answer = b""
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._socket.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            peer, _ = self._socket.accept()
            with peer, contextlib.suppress(OSError):
                peer.settimeout(2)
                peer.recv(2**16)
                peer.sendall(self.answer)
                peer.shutdown(socket.SHUT_WR)


def http(body: bytes) -> bytes:
    """An answer with *body*."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def service_targets(folder: Path) -> Iterator[Target]:
    """All of them."""
    server = Server()
    yield from _web(server, folder)
    yield _ssh()
    yield _history(folder)
    yield _csv(folder)
    yield _hardware(folder)
    yield from _own_models()


def _web(server: Server, folder: Path) -> Iterator[Target]:
    """Answers of a cluster that is not ours."""
    errors = (HarnessError,)

    def target(
        name: str, corpus: tuple[Any, ...], act: Callable[[], object], *, is_whole: bool = False
    ) -> Target:
        texts = tuple(
            each if isinstance(each, bytes) else json.dumps(each).encode() for each in corpus
        )

        def read(data: bytes) -> object:
            server.answer = data if is_whole else http(data)
            return act()

        return Target(name, texts, read, errors, change=JSON)

    node = {"nodeHostName": "w", "nodeHTTPAddress": server.address, "availMemoryMB": 4096,
            "usedMemoryMB": 0, "totalResource": {"resourceInformations": {"resourceInformation": [
                {"name": "yarn.io/gpu", "value": 1}]}}}  # fmt: skip
    info = {"clusterInfo": {"hadoopVersion": "3.5.0", "haState": "ACTIVE"}}
    beans = {"beans": [{"State": "active", "VmVersion": "17", "SystemProperties": [
        {"key": "java.runtime.version", "value": "17.0.1"}], "Version": "6.1"}]}  # fmt: skip

    def of_cluster() -> object:
        found = discovery.running_nodes(server.address)
        discovery.servers(found)
        _ = [discovery.gpus(each) for each in found]
        discovery.namenode_state(server.address)
        return discovery.ran_on(server.address, "3.5.0")

    yield target("web-nodes", ({"nodes": {"node": [node]}}, info, beans), of_cluster)
    attempt = {"id": "attempt_1795224441974_0003_m_000000_0", "type": "MAP", "state": "SUCCEEDED",
               "startTime": 1795224441974, "finishTime": 1795224449974, "elapsedMapTime": 9,
               "nodeHttpAddress": "w:8042", "assignedContainerId": _CONTAINER,
               "shuffleFinishTime": 1, "mergeFinishTime": 2}  # fmt: skip
    counters = {
        "counterGroup": [
            {
                "counterGroupName": "g",
                "counter": [
                    {
                        "name": "c",
                        "totalCounterValue": 1,
                        "mapCounterValue": 1,
                        "reduceCounterValue": 0,
                    }
                ],
            }
        ]
    }
    job = {
        "job": {"id": _JOB, "name": "n", "state": "SUCCEEDED", "submitTime": 1795224441974,
                "startTime": 1795224442974, "finishTime": 1795224459974, "mapsTotal": 1,
                "reducesTotal": 0, "uberized": False},
        "jobs": {"job": [{"id": _JOB}]},
        "jobCounters": counters,
        "tasks": {"task": [{"id": "task_1795224441974_0003_m_000000", "type": "MAP"}]},
        "taskAttempts": {"taskAttempt": [attempt]},
        "conf": {"property": [{"name": "mapreduce.job.reduces", "value": "0"}]},
        "apps": {"app": [{"id": "application_1_0001", "applicationType": "SPARK"}]},
    }  # fmt: skip

    def of_job() -> object:
        left_out: list[tuple[str, str]] = []
        found = list_sources(f"http://{server.address}", lambda *what: left_out.append(what))
        for _, source in zip(range(2), found, strict=False):
            source.read_trace()
            source.read_wanted()
        return left_out

    yield target("web-job", (job,), of_job)
    status = {"pathSuffix": f"{_JOB}-1-u-n-2.jhist", "type": "FILE", "length": 9,
              "modificationTime": 1795224441974}  # fmt: skip
    listed = {"FileStatuses": {"FileStatus": [status, status | {"pathSuffix": f"{_JOB}_conf.xml"}]}}

    def of_hdfs() -> object:
        place = f"webhdfs://{server.address}/history"
        return [
            each.label
            for _, each in zip(range(3), list_sources(place, print_nothing), strict=False)
        ]

    yield target("web-hdfs", (listed,), of_hdfs)
    log = f"Container: {_CONTAINER}\nLogType:syslog\nLogLength:5\nLogContents:\nline\n\nEnd\n"

    def of_log() -> object:
        discovery._copy_log(server.address, "/x", folder / "log")
        return None

    yield target("web-log", (log.encode(),), of_log)

    def of_http() -> object:
        return discovery.get_json(server.address, "/x", 1.0)

    refusal = (
        b'HTTP/1.1 403 No\r\nContent-Length: 44\r\n\r\n{"RemoteException": {"message": "not you"}}'
    )
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    moved = b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    yield target("http", (http(b'{"a": 1}'), refusal, chunked, moved), of_http, is_whole=True)


def print_nothing(*_: str) -> None:
    """Leave out what is left out."""


def _ssh() -> Target:
    """The greeting and the first packet of an SSH server."""
    server = Server()
    names = b"curve25519-sha256", b"ssh-ed25519", b"aes128-ctr", b"hmac-sha2-256", b"none"
    lists = (0, 1, 2, 2, 3, 3, 4, 4)
    body = b"\x14" + bytes(16)
    body += b"".join(len(names[n]).to_bytes(4, "big") + names[n] for n in lists)
    body += bytes(13)
    padding = 8 - (len(body) + 5) % 8 + 8
    packet = (len(body) + padding + 1).to_bytes(4, "big") + bytes([padding]) + body + bytes(padding)

    def read(data: bytes) -> object:
        server.answer = data
        # Of each handshake a timer is left, which would wait for 15 s.
        with (
            patch.object(connection, "BANNER_S", 0.3),
            patch.object(Packetizer, "start_handshake", lambda *_: None),
        ):
            return connection.fetch_key("127.0.0.1", server.port, "ssh-ed25519")

    corpus = (b"SSH-2.0-OpenSSH_9.2\r\n" + packet, b"hello\r\nSSH-2.0-x\r\n" + packet + packet)
    return Target("ssh", corpus, read, (HarnessError,))


def _history(folder: Path) -> Target:
    """Nights, each with the hash of the night before, which somebody has made anew."""
    place = folder / "nightly"
    history = History(place)
    for night in nights(count=7):
        history.append(night)
    whole = history.path.read_bytes()

    def read(data: bytes) -> object:
        history.path.write_bytes(_linked(data))
        return history.entries()

    def go_on(entries: Any) -> None:
        judged(entries)
        first_week(entries)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            _invoke(["nightly", "judge", str(place / HISTORY)])
            _invoke(["nightly", "doctor", str(place / HISTORY)])

    return Target(
        "history.jsonl", (whole,), read, (DataError,), go_on, (HarnessError,), every=1000,
        change=JSON, limit_s=30.0,
    )  # fmt: skip


def _linked(data: bytes) -> bytes:
    """Lines with the hashes of those before them, where they can be read."""
    import hashlib

    lines = []
    previous = ""
    for line in data.splitlines():
        try:
            document = json.loads(line)
            document["previous"] = previous
            text = json.dumps(document).encode()
        except (ValueError, TypeError, RecursionError):
            text = line
        lines.append(text + b"\n")
        previous = hashlib.sha256(lines[-1]).hexdigest()
    return b"".join(lines)


def _csv(folder: Path) -> Target:
    """Columns of nights, from whatever program."""
    path = folder / "nights.csv"
    rows = [f"2026-01-{day:02},{10 + day % 3},{0.5 + day / 100},abc" for day in range(1, 29)]
    plain = "\n".join(["time,job,other,commit", *rows, ""]).encode()
    otava = plain.replace(b",", b";").replace(b"2026-01-", b"2026.01.")
    path.write_bytes(plain)

    def read() -> object:
        return read_csv(path, separate=False)

    def go_on(tables: Any) -> None:
        for table in tables:
            Judge(table).judge()
        few_nights(tables[0], "x")

    change = either(mutate, numbers.in_text)
    return Target(
        "nights.csv", (plain, otava), replacing(path, read), (DataError,), go_on, (HarnessError,),
        every=5, change=change, limit_s=6.0,
    )  # fmt: skip


def _hardware(folder: Path) -> Target:
    """What a machine costs."""
    path = folder / "hardware.json"
    without = {str(unit): 1.0 + unit / 100 for unit in range(5)}
    cost = Cost(value=1.5e-8, unit="s/byte", source="fit", low=1e-8, high=2e-8, without=without)
    costs = {"map_cpu_s_per_byte": cost, "hdfs_write_s_per_byte": cost}
    document = MachineCosts(measured_s=1.0, spent_s=60.0, costs=costs).model_dump(mode="json")
    whole = json.dumps({"schema_version": 14, **document}, indent=1).encode()
    path.write_bytes(whole)

    def go_on(costs: Any) -> None:
        assert isinstance(costs, MachineCosts)
        drawn_costs(costs, np.random.default_rng(1))
        path.write_text(costs.model_dump_json())
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            _invoke(["hardware", "show", str(path)])
            _invoke(["hardware", "compare", str(path), str(path)])

    reading = replacing(path, lambda: read_hardware(path))
    return Target(
        "hardware.json", (whole,), reading, (DataError,), go_on, (HarnessError,), every=4,
        change=JSON,
    )  # fmt: skip


def _own_models() -> Iterator[Target]:
    """Files of a user's own models, which are not run; and what such a model answers."""
    source = b"""\
class Mine:
    name = "mine"
    required = {"map_s_per_record"}

    def predict(self, profile, configuration, cluster, job_input):
        return {"job_s": 1.0}
"""

    def read(data: bytes) -> object:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise SpecError("no UTF-8 text") from error
        return _find_class(text, "mine.py", "Mine")

    def go_on(found: Any) -> None:
        found.require_predict()

    yield Target("own-model", (source,), read, (SpecError,), go_on, (HarnessError,))
    answer = json.dumps({"job_s": 12.5, "body_s": 10, "measurable": {"map_main_s": 1.5}}).encode()

    def read_answer(data: bytes) -> object:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelError("no JSON") from error
        try:
            return _Answer.model_validate_json(json.dumps(plain_answer(value)), strict=True)
        except ValidationError as error:
            raise ModelError(_field_complaint(error)[:500]) from error  # as `slip` has it

    yield Target("own-answer", (answer,), read_answer, (HarnessError,), change=JSON)
