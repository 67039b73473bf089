"""
Time stamps of an authority (RFC 3161): one is asked for over HTTP, and verified without a network.

Stamped are the 64 digits themselves, as text, by SHA-512, or by SHA-256 where the authority takes
no other: whoever has them can check a stamp by other tools (`openssl ts -verify`), too.
"""

from __future__ import annotations

import re
import socket
import time
import urllib.request

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError

from harness.base.errors import DataError, EvidenceError, MachineError, SpecError
from harness.base.extras import extra
from harness.base.text import excerpt
from harness.clusters.host import time_limit
from harness.core.store.stamps import Refusal, as_response, imprints, read_refusal

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampRequest, TimeStampResponse

_SCHEMES = ("http://", "https://")
_EXTRA = "anchors"
_LIMIT_S = 30.0
_MOST_BYTES = 2**17
_PAGE_LIMIT_S = 2.0  # of an error
_MOST_OF_PAGE = 2000
_FIX = "ask another authority, or try again"
_HASHES = ("SHA512", "SHA256")  # an authority may take one of them alone


class Stamp(NamedTuple):
    """When an authority, by the *name* in its stamp (RFC 4514), has seen what it stamped."""

    stamped_at: datetime
    name: str


def ask_authority(url: str, digest: str) -> bytes:
    """
    Answer of the authority at *url* to the text *digest*, 64 hexadecimal digits.

    `SpecError`: the one is no address, or the other no digest; `MachineError`: it gave no stamp;
    `EvidenceError`: it gave another than it was asked for.
    """
    if not url.startswith(_SCHEMES):
        raise SpecError(f"'{excerpt(url)}' is no address", where="URL", fix="write http://...")
    if not re.fullmatch("[0-9a-f]{64}", digest, re.ASCII):
        what = f"'{excerpt(digest)}' is no SHA-256"
        fix = "write 64 hexadecimal digits, as sha256sum prints them"
        raise SpecError(what, where="DIGEST", fix=fix)
    with extra(_EXTRA):
        from rfc3161_client import TimestampRequestBuilder
        from rfc3161_client.base import HashAlgorithm

    builder = TimestampRequestBuilder().data(digest.encode())
    refusals = list[Refusal]()
    end_s = time.monotonic() + _LIMIT_S
    for hash_name in _HASHES:
        request = builder.hash_algorithm(HashAlgorithm[hash_name]).build()
        answer = _post(url, request.as_bytes(), end_s - time.monotonic())
        refusal = read_refusal(answer)
        if refusal is None:
            _require_own(answer, digest, request, url)
            return answer
        refusals.append(refusal)
    # The first one says what is wrong, unless that was the hash alone.
    refusal = next((each for each in refusals if not each.is_of_algorithm), refusals[0])
    reason = refusal.says or "it says nothing"
    what = f"the authority gives no stamp (status {refusal.status}): {reason}"
    fix = f"ask one that takes {' or '.join(_HASHES)}" if refusal.is_of_algorithm else _FIX
    raise MachineError(what, where=url, fix=fix)


def _post(url: str, query: bytes, limit_s: float) -> bytes:
    """What the service at *url* answers to *query*; `MachineError`: nothing, or not in time."""
    request = urllib.request.Request(  # noqa: S310 (of the schemes above)
        url, data=query, headers={"Content-Type": "application/timestamp-query"}
    )
    end_s = time.monotonic() + limit_s
    connected = list[socket.socket]()
    opener = urllib.request.build_opener(_Http(connected), _Https(connected))
    try:
        with (
            time_limit(limit_s, partial(_hang_up, connected)),
            opener.open(request, timeout=limit_s) as response,
        ):
            answer: bytes = response.read(_MOST_BYTES + 1)
            if time.monotonic() >= end_s:  # what was cut off looks like an end
                raise TimeoutError(f"no whole answer within {_LIMIT_S:g} s")
    except HTTPError as error:
        what = f"no stamp: status {error.code}: {_said(error, connected)}"
        raise MachineError(what, where=url, fix=_FIX) from error
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise MachineError(f"no stamp: {excerpt(reason, 200)}", where=url, fix=_FIX) from error
    finally:
        for connection in connected:
            connection.close()
    return answer


def _said(error: HTTPError, connected: list[socket.socket]) -> str:
    """What a page of an error says, in one line; its reason, where there is no page."""
    page = b""
    hang_up = partial(_hang_up, connected)
    with error, suppress(OSError, ValueError, HTTPException), time_limit(_PAGE_LIMIT_S, hang_up):
        page = error.read(_MOST_OF_PAGE)
    return excerpt(page, 200) or excerpt(error.reason, 200)


def _require_own(answer: bytes, digest: str, request: TimeStampRequest, where: str) -> None:
    """`EvidenceError` where the *answer* is no stamp, or none of *digest* to this *request*."""
    response = _decoded(answer, where)
    info = response.tst_info
    if info.message_imprint.message not in imprints(digest) or info.nonce != request.nonce:
        what = "this is a time stamp of something else than it was asked for"
        raise EvidenceError(what, where=where, fix=_FIX)


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


def _decoded(answer: bytes, where: str) -> TimeStampResponse:
    """The stamp *answer* as the library has it; `EvidenceError`: it is none."""
    with extra(_EXTRA):
        from rfc3161_client import decode_timestamp_response

    try:
        response = decode_timestamp_response(as_response(answer))
        _ = response.tst_info
    except (ValueError, LookupError) as error:
        what = f"this is no time stamp: {excerpt(error, 200)}"
        fix = f"{_FIX}; one that answers in DER, as RFC 3161 says"
        raise EvidenceError(what, where=where, fix=fix) from error
    return response


def read_stamp(answer: bytes, where: str) -> Stamp:
    """What *answer* says, which is not verified; `EvidenceError`: it is no stamp."""
    info = _decoded(answer, where).tst_info
    try:
        return Stamp(info.gen_time, "" if info.name is None else _plain_name(info.name.value))
    except (ValueError, LookupError) as error:  # of a kind of name that the library does not know
        what = f"this time stamp cannot be read: {excerpt(error, 200)}"
        raise EvidenceError(what, where=where, fix=_FIX) from error


def _plain_name(name: Any) -> str:
    """A name of a certificate or a stamp as text: one with parts by RFC 4514."""
    return str(name.rfc4514_string() if hasattr(name, "rfc4514_string") else name)


def _is_of_content(error: BaseException) -> bool:
    """Whether a library says by *error* that it cannot read something; some of them panic."""
    return isinstance(error, ValueError | LookupError) or type(error).__name__ == "PanicException"


def read_certificates(files: Iterable[bytes]) -> list[Certificate]:
    """Certificates in *files*, each once; `DataError`: in one of them there is none."""
    with extra(_EXTRA):
        from cryptography import x509

    found = list[x509.Certificate]()
    try:
        for pem in files:
            found += x509.load_pem_x509_certificates(pem)
    except BaseException as error:
        if not _is_of_content(error):
            raise
        what = f"there is no certificate that can be read: {excerpt(error, 200)}"
        fix = "name a file in PEM, which begins with -----BEGIN CERTIFICATE-----"
        raise DataError(what, where="--certificate", fix=fix) from error
    return [*dict.fromkeys(found)]


def verify_stamp(answer: bytes, digest: str, roots: Sequence[bytes], where: str) -> Stamp:
    """
    Stamp in *answer*, which is of the text *digest* by an authority below the certificates *roots*.

    `EvidenceError`: it is of another text, of another authority, or its certificate had expired.
    `DataError`: *roots* are no certificates.
    """
    certificates = read_certificates(roots)
    stamp = read_stamp(answer, where)
    response = _decoded(answer, where)
    imprint = response.tst_info.message_imprint.message
    if imprint not in imprints(digest):
        what = "the stamp does not hold: it is of something else than these digits"
        fix = f"it is not about {digest}: nobody has stamped what the run says"
        raise EvidenceError(what, where=where, fix=fix)
    with extra(_EXTRA):
        from rfc3161_client import VerificationError, VerifierBuilder

    try:
        builder = VerifierBuilder()
        for certificate in certificates:
            builder = builder.add_root_certificate(certificate)
        builder.build().verify(response, imprint)
    except BaseException as error:
        if not (isinstance(error, VerificationError) or _is_of_content(error)):
            raise
        what = f"the stamp does not hold: {excerpt(error, 200)}"
        raise EvidenceError(what, where=where, fix=_fix_for(certificates, response)) from error
    return stamp


def _fix_for(certificates: Sequence[Certificate], response: TimeStampResponse) -> str:
    """What to do where a stamp does not hold by these *certificates*."""
    subjects = [_subject(certificate) for certificate in certificates]
    if not any(_is_root(certificate) for certificate in certificates):
        wanted = "--certificate is the root of the authority, not its signing certificate"
        return f"{wanted} or one between: {', '.join(subjects)} is none"
    issuers = set[str]()
    with suppress(ValueError, LookupError):
        issuers = {excerpt(_plain_name(info.issuer)) for info in response.signed_data.signer_infos}
    fix = f"--certificate is of {', '.join(subjects)}"
    return f"{fix}; the signer's is by {', '.join(sorted(issuers)) or 'nobody'}: give its root"


def _subject(certificate: Certificate) -> str:
    """Whose a certificate is, as far as its name can be read."""
    try:
        return excerpt(_plain_name(certificate.subject))
    except (ValueError, LookupError):
        return "somebody whose name cannot be read"


def _is_root(certificate: Certificate) -> bool:
    """Whether a certificate is one that signs others, and itself."""
    from cryptography import x509

    try:
        limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except (ValueError, LookupError, x509.ExtensionNotFound):
        return False
    return limits.ca and certificate.subject == certificate.issuer
