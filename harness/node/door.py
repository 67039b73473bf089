"""
HDFS and the daemons' web services from the inside: one operation per process.

    python -I -S door.py SERVICES OPERATION ARGUMENT...

    SERVICES is a JSON object: where services answer, {"nn", "rm", "jhs"} as "host:port", and the
    "user" in whose name they are asked.

    list PATH             {"name", "bytes", "folder"} per line
    read PATH...          for each file a line {"path", "bytes"}, then that many bytes
    write PATH            standard input becomes the file (an old one goes)
    delete PATH           with all that is in it
    make PATH             a folder, with those above it
    rename FROM TO
    get SERVICE URLPATH   what the daemon answers
    put SERVICE URLPATH   sends standard input as JSON

Status 0; 1 and one line of JSON, {"error", "status"}, on standard error otherwise.
"""

from __future__ import annotations

import http.client
import json
import sys

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

CHUNK = 2**20
TIMEOUT_S = 60.0
SERVICES: dict[str, str] = {}


class RefusedError(Exception):
    """The cluster says no, with an HTTP status (0: it does not answer)."""

    def __init__(self, what: str, status: int = 0) -> None:
        super().__init__(what)
        self.status = status


def main() -> None:
    """Do what the arguments say."""
    services, operation, *arguments = sys.argv[1:]
    try:
        SERVICES.update(json.loads(services))
        OPERATIONS[operation](*arguments)
        sys.stdout.flush()
    except RefusedError as error:
        fail(str(error), error.status)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has enough
        raise SystemExit(1) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        fail(f"{type(error).__name__}: {error}", 0)


def fail(what: str, status: int) -> None:
    """End with the reason."""
    sys.stderr.write(json.dumps({"error": what, "status": status}) + "\n")
    raise SystemExit(1)


def list_folder(path: str) -> None:
    """Print the entries of a folder."""
    listed = json_of(ask("GET", path, "LISTSTATUS"))["FileStatuses"]["FileStatus"]
    for entry in listed:
        line = {
            "name": entry["pathSuffix"] or path.rpartition("/")[2],
            "bytes": entry["length"],
            "folder": entry["type"] == "DIRECTORY",
        }
        sys.stdout.write(json.dumps(line) + "\n")


def read(*paths: str) -> None:
    """Copy files to standard output, each behind a line that says its length."""
    out = sys.stdout.buffer
    for path in paths:
        status = json_of(ask("GET", path, "GETFILESTATUS"))["FileStatus"]
        if status["type"] != "FILE":
            raise RefusedError(f"{path} is a folder", 400)
        out.write(json.dumps({"path": path, "bytes": status["length"]}).encode() + b"\n")
        left = status["length"]
        if left:
            reply = follow(ask("GET", path, "OPEN"), "GET", None)
            left -= copy(reply, out)
        if left:
            raise RefusedError(f"{path} ends {left} bytes early", 0)


def copy(reply: http.client.HTTPResponse, out: Any) -> int:
    """Copy a reply's body; answers its bytes."""
    buffer, total = memoryview(bytearray(CHUNK)), 0
    out.flush()
    raw = out.raw
    while size := reply.readinto(buffer):
        sent = 0
        while sent < size:
            sent += raw.write(buffer[sent:size])
        total += size
    return total


def write(path: str) -> None:
    """Make a file of standard input."""
    reply = ask("PUT", path, "CREATE", overwrite="true")
    follow(reply, "PUT", chunks(sys.stdin.buffer)).read()


def chunks(stream: Any) -> Iterator[bytes]:
    """Pieces of *stream* as they come."""
    while piece := stream.read(CHUNK):
        yield piece


def delete(path: str) -> None:
    """Remove a file or a folder; one that is not there is no error."""
    json_of(ask("DELETE", path, "DELETE", recursive="true"))


def make(path: str) -> None:
    """Make a folder."""
    json_of(ask("PUT", path, "MKDIRS"))


def rename(source: str, target: str) -> None:
    """Move a file or folder."""
    if not json_of(ask("PUT", source, "RENAME", destination=target))["boolean"]:
        raise RefusedError(f"{source} cannot become {target}", 409)


def get(service: str, path: str) -> None:
    """Print what a daemon answers."""
    answer(service, "GET", path, None)


def put(service: str, path: str) -> None:
    """Send JSON to a daemon and print its answer."""
    answer(service, "PUT", path, sys.stdin.buffer.read())


def answer(service: str, method: str, path: str, body: bytes | None) -> None:
    """One request to a web service."""
    connection = http.client.HTTPConnection(SERVICES[service], timeout=TIMEOUT_S)
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    content = reply.read()
    if reply.status not in (200, 202):
        raise RefusedError(content.decode(errors="replace")[:500] or reply.reason, reply.status)
    sys.stdout.buffer.write(content)


def ask(method: str, path: str, operation: str, **parameters: str) -> http.client.HTTPResponse:
    """Ask the NameNode; a refusal becomes `RefusedError` with Hadoop's own message."""
    if not path.startswith("/"):
        raise RefusedError(f"{path} is not an absolute path", 400)
    query = urlencode({"op": operation, "user.name": SERVICES["user"], **parameters})
    connection = http.client.HTTPConnection(SERVICES["nn"], timeout=TIMEOUT_S)
    connection.request(method, f"/webhdfs/v1{quote(path)}?{query}")
    return checked(connection.getresponse())


def follow(reply: http.client.HTTPResponse, method: str, body: Any) -> http.client.HTTPResponse:
    """Go to the DataNode that the NameNode names."""
    place = urlsplit(reply.headers["Location"])
    reply.read()
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT_S)
    headers = {"Content-Type": "application/octet-stream"} if body is not None else {}
    try:
        connection.request(method, f"{place.path}?{place.query}", body, headers)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise hung_up(connection, place.netloc) from error
    return checked(connection.getresponse())


def hung_up(connection: http.client.HTTPConnection, address: str) -> RefusedError:
    """Why a DataNode took no more of what we were sending: it answers before it hangs up."""
    try:
        checked(connection.getresponse())
    except RefusedError as refused:
        return refused
    except (OSError, http.client.HTTPException):
        pass  # its answer was lost with the connection
    return RefusedError(f"{address} has hung up while it was sent a file")


def checked(reply: http.client.HTTPResponse) -> http.client.HTTPResponse:
    """The reply, unless it is a refusal."""
    if reply.status < 400:
        return reply
    content = reply.read()
    try:
        what = json.loads(content)["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        what = content.decode(errors="replace")[:500] or reply.reason
    raise RefusedError(what.partition("\n")[0], reply.status)


def json_of(reply: http.client.HTTPResponse) -> Any:
    """Body of a reply as JSON."""
    return json.loads(reply.read())


OPERATIONS: dict[str, Callable[..., None]] = {
    "list": list_folder, "read": read, "write": write, "delete": delete, "make": make,
    "rename": rename, "get": get, "put": put,
}  # fmt: skip


if __name__ == "__main__":
    main()
