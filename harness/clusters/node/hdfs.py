"""
HDFS and the daemons' web services, from a node: one operation per process.

    node.pyz hdfs SERVICES OPERATION ARGUMENT...

    SERVICES is a JSON object: where services answer, {"nn", "rm", "jhs"} as "host:port", the "user"
    in whose name requests are made, and perhaps the file with the cluster's "secret".
    OPERATION is a method of `Client`; its arguments are paths, or a service and a path of a URL.

Status 0; 1 and one line of JSON, {"error", "status"}, on standard error otherwise.
"""

import hmac
import http.client
import json
import os
import sys
import time

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import quote, urlencode, urlsplit

from .transport import answers, patient

PROOF = "X-Harness-Proof"
_CHUNK = 2**20
_NAMENODE_LIMIT_S = 19.0  # by then its supervisor knows whether it hangs
_DATANODE_LOOK_S = 15.0  # one that says nothing may wait for its disk, or hang


def main(arguments: List[str]) -> None:
    """Do one operation."""
    services, operation = arguments[:2]
    reason = ""
    status = 0
    try:
        getattr(Client(json.loads(services)), operation)(*arguments[2:])
        sys.stdout.flush()
    except WebError as error:
        reason = str(error)
        status = error.status
    except BrokenPipeError:  # the reader has enough
        sys.stderr.close()
        raise SystemExit(1) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    if reason:
        sys.stderr.write(json.dumps({"error": reason, "status": status}) + "\n")
        raise SystemExit(1)


class Client:
    """Each operation is a method; answers go to standard output."""

    def __init__(self, services: Dict[str, str]) -> None:
        self.services = services
        self.secret = services.get("secret", "")

    def list(self, hdfs_path: str) -> None:
        """Print the entries of a folder, each a line {"name", "bytes", "folder"}."""
        listed = read_json(self.request("GET", hdfs_path, "LISTSTATUS"))
        for entry in listed["FileStatuses"]["FileStatus"]:
            json_line = {
                "name": entry["pathSuffix"] or hdfs_path.rpartition("/")[2],
                "bytes": entry["length"],
                "folder": entry["type"] == "DIRECTORY",
            }
            print(json.dumps(json_line))

    def read(self, *paths: str) -> None:
        """Copy files to standard output, each behind a line {"path", "bytes"}."""
        output = sys.stdout.buffer
        chunk = memoryview(bytearray(_CHUNK))
        for hdfs_path in paths:
            status = read_json(self.request("GET", hdfs_path, "GETFILESTATUS"))["FileStatus"]
            if status["type"] != "FILE":
                raise WebError(f"{hdfs_path} is a folder", 400)
            missing = status["length"]
            output.write(json.dumps({"path": hdfs_path, "bytes": missing}).encode() + b"\n")
            output.flush()
            if missing:
                response = self.transfer(self.request("GET", hdfs_path, "OPEN"), "GET")
                size = response.readinto(chunk)
                while size:
                    output.write(chunk[:size])
                    missing -= size
                    size = response.readinto(chunk)
                output.flush()
            if missing:
                raise WebError(f"{hdfs_path} ends {missing} bytes early")

    def write(self, hdfs_path: str) -> None:
        """Make a file of standard input, in the place of an older one."""
        response = self.request("PUT", hdfs_path, "CREATE", overwrite="true")
        chunks = iter(lambda: sys.stdin.buffer.read(_CHUNK), b"")
        self.transfer(response, "PUT", chunks).read()

    def delete(self, hdfs_path: str) -> None:
        """Remove a file or a folder; one that is not there is no error."""
        read_json(self.request("DELETE", hdfs_path, "DELETE", recursive="true"))

    def make(self, hdfs_path: str) -> None:
        """Make a folder, with those above it."""
        read_json(self.request("PUT", hdfs_path, "MKDIRS"))

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder."""
        if not read_json(self.request("PUT", source, "RENAME", destination=target))["boolean"]:
            raise WebError(f"{source} cannot become {target}", 409)

    def get(self, service: str, url_path: str, method: str = "GET", body: Any = None) -> None:
        """Print what a daemon answers."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        reply = send(self.services[service], method, url_path, body, self.secret, headers=headers)
        content = reply.read()
        if reply.status not in (200, 202):
            raise WebError(content.decode(errors="replace")[:500] or reply.reason, reply.status)
        sys.stdout.buffer.write(content)

    def put(self, service: str, url_path: str) -> None:
        """Send standard input to a daemon as JSON, and print its answer."""
        self.get(service, url_path, "PUT", sys.stdin.buffer.read())

    def request(
        self, method: str, hdfs_path: str, operation: str, **parameters: str
    ) -> http.client.HTTPResponse:
        """Send a request to the NameNode; a refusal becomes `WebError`."""
        if not hdfs_path.startswith("/"):
            raise WebError(f"{hdfs_path} is not an absolute path", 400)
        query = urlencode(dict(parameters, **{"op": operation, "user.name": self.services["user"]}))
        url_path = f"/webhdfs/v1{quote(hdfs_path)}?{query}"
        address = self.services["nn"]
        limit_s = _NAMENODE_LIMIT_S
        return checked(send(address, method, url_path, secret=self.secret, timeout_s=limit_s))

    def transfer(
        self, response: http.client.HTTPResponse, method: str, body: Any = None
    ) -> http.client.HTTPResponse:
        """Send or get content: the NameNode's *response* names the DataNode."""
        target = urlsplit(response.headers["Location"])
        response.read()
        headers = {"Content-Type": "application/octet-stream"} if body is not None else {}
        hdfs_path = f"{target.path}?{target.query}"
        look_s = _DATANODE_LOOK_S
        return checked(
            send(
                target.netloc, method, hdfs_path, body, self.secret, headers=headers, look_s=look_s
            )
        )


class WebError(Exception):
    """A service refuses, with an HTTP status; 0 where it does not answer as HTTP."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


def send(
    address: str,
    method: str,
    url_path: str,
    body: Any = None,
    secret: str = "",
    *,
    headers: Optional[Dict[str, str]] = None,
    timeout_s: float = 60.0,
    look_s: float = 60.0,
) -> http.client.HTTPResponse:
    """
    Send one request to ``host:port``, which proves that we have the *secret*, a file's line.

    The reply is not read, and the secret itself is not sent: others may read what crosses networks.

    It may be silent for *timeout_s*; after *look_s* it is asked beside, and has to answer then.

    `OSError` where the connection fails, `WebError` where no HTTP comes back.  A DataNode that
    takes no more of a file answers before it hangs up: that refusal is returned.
    """
    sent = dict(headers or {}, Connection="close")
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    try:
        try:
            connection.connect()
            waiting = patient(connection.sock, timeout_s)
            waiting.look_s = look_s
            waiting.still_there = partial(answers, address)
            connection.sock = waiting
            if secret:
                value = Path(secret).read_text().strip().partition(": ")[2]
                caller = connection.sock.getsockname()
                sent["Host"] = address
                sent[PROOF] = proof(value, method, address, url_path, caller)
            connection.request(method, url_path, body, sent)
        except (BrokenPipeError, ConnectionResetError) as error:
            if body is None:
                raise
            with suppress(OSError, http.client.HTTPException):  # the answer may be lost, too
                response = connection.getresponse()
                if response.status >= 400:
                    return response
            raise WebError(f"{address} has hung up while it was sent a file") from error
        return connection.getresponse()
    except http.client.HTTPException as error:
        connection.close()
        raise WebError(f"{type(error).__name__}: {error}") from error
    except OSError:
        connection.close()
        raise


def proof(secret: str, method: str, host: str, url_path: str, caller: Tuple[str, int]) -> str:
    """
    Prove to *host* that this request comes from who has the *secret*: once, and for ten minutes.

    It is good on the connection from *caller*, an address and a port, alone.

    ``TIME NONCE CODE``, as `mapreduce.harness.fence.Proofs` reads it.
    """
    moment = str(int(time.time() * 1000))
    nonce = os.urandom(16).hex()
    text = f"{method}\n{host}\n{url_path}\n{caller[0]}:{caller[1]}\n{moment}\n{nonce}"
    code = hmac.new(secret.encode(), text.encode(), "sha256").hexdigest()
    return f"{moment} {nonce} {code}"


def checked(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    """The reply, unless it is a refusal: that raises `WebError` with Hadoop's own message."""
    if response.status < 400:
        return response
    content = response.read()
    try:
        reason = json.loads(content.decode())["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        reason = content.decode(errors="replace")[:500] or response.reason
    raise WebError(reason.partition("\n")[0], response.status)


def read_json(response: http.client.HTTPResponse) -> Any:
    """Body of a reply as JSON."""
    return json.loads(response.read().decode())
