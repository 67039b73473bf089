"""
Time stamps of an authority (RFC 3161): one is asked for over HTTP, and verified without a network.

Stamped are the 64 digits themselves, as text: whoever has them can check a stamp by other tools
(`openssl ts -verify`), too.
"""

from __future__ import annotations

import base64
import urllib.request

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from harness.base.errors import DataError, EvidenceError, MachineError, SpecError
from harness.base.extras import extra
from harness.base.text import excerpt

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
    try:
        with urllib.request.urlopen(request, timeout=_LIMIT_S) as response:  # noqa: S310
            answer: bytes = response.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise MachineError(f"no stamp: {excerpt(reason, 200)}", where=url, fix=_FIX) from error
    read_stamp(answer, url)
    return answer


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
    except ValueError as error:
        what = f"there is no certificate that can be read: {excerpt(error, 200)}"
        fix = "name a file in PEM, which begins with -----BEGIN CERTIFICATE-----"
        raise DataError(what, where="--certificate", fix=fix) from error
    try:
        builder.build().verify_message(decode_timestamp_response(answer), digest.encode())
    except (VerificationError, ValueError) as error:
        what = f"the stamp does not hold: {excerpt(error, 200)}"
        fix = "it is of another seal or another authority: give that one's certificate"
        raise EvidenceError(what, where=where, fix=fix) from error
    return stamp
