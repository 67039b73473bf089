"""
Time stamps of an authority (RFC 3161): one is asked for over HTTP, and verified without a network.

Stamped are the 64 digits themselves, as text: whoever has them can check a stamp by other tools
(`openssl ts -verify`), too.
"""

from __future__ import annotations

import base64
import socket
import time
import urllib.request

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple

from harness.base.errors import DataError, EvidenceError, MachineError, SpecError
from harness.base.extras import extra
from harness.base.text import excerpt
from harness.clusters.host import time_limit

_SCHEMES = ("http://", "https://")
_EXTRA = "anchors"
_LIMIT_S = 30.0
_MOST_BYTES = 2**17
_FIX = "ask another authority, or try again: the run goes on without"


class Stamp(NamedTuple):
    """When an authority, by the *name* in its stamp, has seen what it stamped."""

    stamped_at: datetime
    name: str


def ask_authority(url: str, digest: str) -> bytes:
    """Answer of the authority at *url* to the text *digest*; `MachineError`: it gave none."""
    with extra(_EXTRA):
        from rfc3161_client import TimestampRequestBuilder

    if not url.startswith(_SCHEMES):
        raise SpecError(f"'{excerpt(url)}' is no address", where="URL", fix="write http://...")
    request = urllib.request.Request(  # noqa: S310 (of the schemes above)
        url,
        data=TimestampRequestBuilder().data(digest.encode()).build().as_bytes(),
        headers={"Content-Type": "application/timestamp-query"},
    )
    asked_s = time.monotonic()
    connected = list[socket.socket]()
    opener = urllib.request.build_opener(_Http(connected), _Https(connected))
    try:
        with (
            time_limit(_LIMIT_S, partial(_hang_up, connected)),
            opener.open(request, timeout=_LIMIT_S) as response,
        ):
            answer: bytes = response.read(_MOST_BYTES + 1)
            if time.monotonic() - asked_s >= _LIMIT_S:  # what was cut off looks like an end
                raise TimeoutError(f"no whole answer within {_LIMIT_S:g} s")
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise MachineError(f"no stamp: {excerpt(reason, 200)}", where=url, fix=_FIX) from error
    finally:
        for connection in connected:
            connection.close()
    read_stamp(answer, url)
    return answer


class _Http(urllib.request.HTTPHandler):
    """Opens addresses by connections that can be ended, whatever they wait for."""

    def __init__(self, connected: list[socket.socket]) -> None:
        super().__init__()
        self._connected = connected

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open an address without encryption."""
        return self.do_open(_noting(HTTPConnection, self._connected), req)


class _Https(urllib.request.HTTPSHandler):
    """The same with encryption."""

    def __init__(self, connected: list[socket.socket]) -> None:
        super().__init__()
        self._connected = connected

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open an address with encryption."""
        return self.do_open(_noting(HTTPSConnection, self._connected), req)


def _noting(
    connection_type: type[HTTPConnection], connected: list[socket.socket]
) -> Callable[..., HTTPConnection]:
    """Give what makes connections of a type, and notes each of their sockets."""

    def connect(*arguments: Any, **options: Any) -> socket.socket:
        connection = socket.create_connection(*arguments, **options)
        connected.append(connection.dup())  # encryption takes the other one over
        return connection

    def make(*arguments: Any, **options: Any) -> HTTPConnection:
        connection = connection_type(*arguments, **options)
        vars(connection)["_create_connection"] = connect
        return connection

    return make


def _hang_up(connected: list[socket.socket]) -> None:
    """End connections: an authority may send a byte now and then for ever."""
    for connection in connected:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def is_stamp(printed: bytes) -> bytes:
    """Bytes of the stamp that a command *printed* in base64; nothing, where it printed another."""
    with extra(_EXTRA):
        from rfc3161_client import decode_timestamp_response

    try:
        answer = base64.b64decode(printed, validate=False)
        decode_timestamp_response(answer)
    except ValueError:
        return b""
    return answer


def read_stamp(answer: bytes, where: str) -> Stamp:
    """What *answer* says, which is not verified; `EvidenceError`: it is no stamp."""
    with extra(_EXTRA):
        from rfc3161_client import decode_timestamp_response

    try:
        response = decode_timestamp_response(answer)
        info = response.tst_info
        name = "" if info.name is None else str(info.name)
        return Stamp(info.gen_time, name)
    except ValueError as error:
        what = f"this is no time stamp: {excerpt(error, 200)}"
        raise EvidenceError(what, where=where, fix=_FIX) from error


def _is_of_content(error: BaseException) -> bool:
    """Whether a library says by *error* that it cannot read something; some of them panic."""
    return isinstance(error, ValueError | LookupError) or type(error).__name__ == "PanicException"


def verify_stamp(answer: bytes, digest: str, roots: Sequence[bytes], where: str) -> Stamp:
    """
    Stamp in *answer*, which is of the text *digest* by an authority below the certificates *roots*.

    `EvidenceError`: it is of another text, of another authority, or its certificate had expired.
    `DataError`: *roots* are no certificates.
    """
    with extra(_EXTRA):
        from cryptography import x509
        from rfc3161_client import VerificationError, VerifierBuilder, decode_timestamp_response

    stamp = read_stamp(answer, where)
    builder = VerifierBuilder()
    try:
        for pem in roots:
            for certificate in x509.load_pem_x509_certificates(pem):
                builder = builder.add_root_certificate(certificate)
    except BaseException as error:
        if not _is_of_content(error):
            raise
        what = f"there is no certificate that can be read: {excerpt(error, 200)}"
        fix = "name a file in PEM, which begins with -----BEGIN CERTIFICATE-----"
        raise DataError(what, where="--certificate", fix=fix) from error
    try:
        builder.build().verify_message(decode_timestamp_response(answer), digest.encode())
    except BaseException as error:
        if not (isinstance(error, VerificationError) or _is_of_content(error)):
            raise
        what = f"the stamp does not hold: {excerpt(error, 200)}"
        fix = "it is of another seal or another authority: give that one's certificate"
        raise EvidenceError(what, where=where, fix=fix) from error
    return stamp
