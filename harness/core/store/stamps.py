"""
What a time stamp (RFC 3161) says, read without a library: of which text it is, when, and by whom.

Nothing here is verified: whoever can write a file can write such a stamp, too, but for the
signature, and that is for `harness anchor check RUN --certificate FILE`.  What is read shows that
an answer is about this seal at all, also where no library for stamps is installed.
"""

from __future__ import annotations

import base64
import hashlib
import re

from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from harness.base.text import excerpt, read_json

# Object identifiers as they stand in DER: a signed document, what a stamp is, parts of names.
_SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")
_STAMP = bytes.fromhex("060b2a864886f70d0109100104")
_COMMON_NAME = bytes.fromhex("0603550403")
_ORGANIZATION = bytes.fromhex("060355040a")

_SEQUENCE = 0x30
_SET = 0x31
_INTEGER = 0x02
_BITS = 0x03
_OBJECT = 0x06
_MOMENT = 0x18
_FIRST = 0xA0  # the first field that may be left out: content, certificates, the authority's name
_DIRECTORY_NAME = 0xA4
_ADDRESS_NAMES = (0x81, 0x82, 0x86)  # mail, host, URL
_TEXTS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}

_BAD_ALGORITHM = 0x80  # the first of the reasons for which a stamp is refused
_MOST_NAME = 100


class Stamp(NamedTuple):
    """
    What a stamp says: the *imprint* of what was stamped, the moment, and the authority's *name*.

    The name is its common name and organization, or its address, as the stamp has it or else the
    signer's certificate in it; empty: neither is there.
    """

    imprint: bytes
    stamped_at: datetime
    name: str


class Refusal(NamedTuple):
    """That an authority gives no stamp, by its number, its own words and for its *algorithm*."""

    status: int
    says: str
    is_of_algorithm: bool


class _Element(NamedTuple):
    """One element of DER: where it begins, where its content does, and where that ends."""

    tag: int
    start: int
    content: int
    end: int


def imprints(digest: str) -> tuple[bytes, ...]:
    """
    What a stamp that is about *digest*, 64 digits, may have stamped.

    That is the digits as a text, by SHA-512, SHA-256 or SHA-384, or the file of that SHA-256.
    """
    text = digest.encode()
    of_text = tuple(hashlib.new(name, text).digest() for name in ("sha512", "sha256", "sha384"))
    return (*of_text, bytes.fromhex(digest))


def stamp_in(printed: bytes) -> bytes:
    """Bytes of the stamp that was *printed*, plain, in base64 or JSON; empty: there is none."""
    text: object = printed
    with suppress(ValueError):
        document = read_json(printed)
        text = document.get("stamp") if isinstance(document, dict) else printed
    decoded = b""
    if isinstance(text, str | bytes):
        with suppress(ValueError):  # it is no base64
            decoded = base64.b64decode(text, validate=False)
    stamps = [data for data in (printed, decoded) if data[:1] == b"0" and _STAMP in data]
    return stamps[0] if stamps else b""


def read_stamp(data: bytes) -> Stamp:
    """What the stamp *data* says; `ValueError`: it is none."""
    token = _token(data)
    signed = _signed_data(data, token)
    kind, wrapped = _expected(data, signed[0], _OBJECT, _FIRST)
    if data[kind.start : kind.end] != _STAMP:
        raise ValueError("it is signed, and no time stamp")
    (octets,) = _parts(data, wrapped)
    (info,) = _parts(data, octets)
    fields = _parts(data, info)
    _, _, imprint, _, moment, *others = fields
    _, hashed = _parts(data, imprint)
    name = ""
    for field in others:
        if field.tag == _FIRST:
            (general_name,) = _parts(data, field)
            name = _name(data, general_name)
    with suppress(ValueError):  # the stamp can be read without it
        name = name or _signer(data, signed)
    return Stamp(data[hashed.content : hashed.end], _moment(data, moment), name)


def read_refusal(data: bytes) -> Refusal | None:
    """Why an authority gives no stamp in its answer *data*; `None`: it does, or this is none."""
    try:
        status_info, *token = _parts(data, _whole(data))
        status, *others = _parts(data, status_info)
        said_texts = [
            text for part in others if part.tag == _SEQUENCE for text in _parts(data, part)
        ]
    except ValueError:
        return None
    if status.tag != _INTEGER or token:
        return None
    texts = [data[text.content : text.end] for text in said_texts]
    bits = b"".join(data[part.content : part.end] for part in others if part.tag == _BITS)
    return Refusal(
        status=int.from_bytes(data[status.content : status.end], "big"),
        says=excerpt(b" ".join(texts), 200),
        is_of_algorithm=len(bits) > 1 and bool(bits[1] & _BAD_ALGORITHM),
    )


def as_response(data: bytes) -> bytes:
    """
    The stamp *data* as libraries want it: within a response, its certificates in the order of DER.

    Some authorities put several certificates in an order of their own.  That order is signed by
    nobody: what is signed, and by whom, stays as it is.  `ValueError`: it is no stamp.
    """
    token = _token(data)
    sorted_data = bytearray(data)
    for part in _signed_data(data, token):
        if part.tag == _FIRST:
            certificates = sorted(data[each.start : each.end] for each in _parts(data, part))
            sorted_data[part.content : part.end] = b"".join(certificates)
    if token.start:
        return bytes(sorted_data)
    content = bytes([_SEQUENCE, 3, _INTEGER, 1, 0]) + sorted_data  # it is granted
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    head = bytes([len(content)]) if len(content) < 0x80 else bytes([0x80 | len(length)]) + length
    return bytes([_SEQUENCE]) + head + content


def _token(data: bytes) -> _Element:
    """The signed document in the answer *data* of an authority, or all of it."""
    whole = _whole(data)
    first, *others = _parts(data, whole)
    if first.tag == _OBJECT:
        return whole
    if len(others) != 1:
        raise ValueError("it has no stamp")
    return others[0]


def _signed_data(data: bytes, token: _Element) -> list[_Element]:
    """Parts of what is signed, and by whom."""
    kind, wrapped = _expected(data, token, _OBJECT, _FIRST)
    if data[kind.start : kind.end] != _SIGNED_DATA:
        raise ValueError("it is not signed")
    (signed,) = _parts(data, wrapped)
    _, _, content, *others = _parts(data, signed)
    if content.tag != _SEQUENCE:
        raise ValueError("it has no content")
    return [content, *others]


def _signer(data: bytes, signed: list[_Element]) -> str:
    """Whose the certificate is that the signature names, among those that lie beside it."""
    *others, signers = signed
    signer, *_ = _parts(data, signers)
    _, sought, *_ = _parts(data, signer)
    for certificate in (
        each for part in others if part.tag == _FIRST for each in _parts(data, part)
    ):
        signed_part, *_ = _parts(data, certificate)
        fields = [
            field for field in _parts(data, signed_part) if field.tag != _FIRST
        ]  # its version
        serial, _, issuer, _, subject, *_ = fields
        held = data[issuer.start : issuer.end] + data[serial.start : serial.end]
        if data[sought.content : sought.end] == held:
            return _name_of_parts(data, subject)
    return ""


def _expected(data: bytes, element: _Element, *tags: int) -> list[_Element]:
    """Parts of *element*; `ValueError`: they have not these *tags*."""
    parts = _parts(data, element)
    if tuple(part.tag for part in parts) != tags:
        raise ValueError("it is built otherwise")
    return parts


def _whole(data: bytes) -> _Element:
    """All of *data* as one element."""
    (whole,) = _elements(data, 0, len(data))
    if whole.tag != _SEQUENCE:
        raise ValueError("it is no sequence")
    return whole


def _parts(data: bytes, element: _Element) -> list[_Element]:
    """Elements that *element* consists of."""
    return _elements(data, element.content, element.end)


def _elements(data: bytes, start: int, end: int) -> list[_Element]:
    """Elements from *start* to *end*, one behind the other."""
    found = list[_Element]()
    while start < end:
        head = data[start : start + 2]
        if len(head) < 2 or head[0] & 0x1F == 0x1F or head[1] in (0x80, 0xFF):
            raise ValueError("it is not in DER")
        content = start + 2
        length = head[1]
        if length > 0x80:
            content += length & 0x7F
            length = int.from_bytes(data[start + 2 : content], "big")
        if content + length > end:
            raise ValueError("it is cut off")
        found.append(_Element(head[0], start, content, content + length))
        start = content + length
    return found


def _moment(data: bytes, element: _Element) -> datetime:
    """A moment of *data*, which is one of UTC."""
    text = data[element.content : element.end].decode("ascii")
    match = re.fullmatch(r"(\d{14})(?:\.(\d{1,6})\d{0,9})?Z", text, re.ASCII)
    if element.tag != _MOMENT or match is None:
        raise ValueError("its moment cannot be read")
    second = datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return second.replace(microsecond=int((match[2] or "").ljust(6, "0")))


def _name(data: bytes, general_name: _Element) -> str:
    """A name as a reader takes it, or an address."""
    if general_name.tag in _ADDRESS_NAMES:
        return readable(data[general_name.content : general_name.end].decode("ascii"))
    if general_name.tag != _DIRECTORY_NAME:
        return ""
    (names,) = _parts(data, general_name)
    return _name_of_parts(data, names)


def _name_of_parts(data: bytes, names: _Element) -> str:
    """A name of its parts as a reader takes it: common name and organization."""
    texts = dict[bytes, str]()
    for name_set in _parts(data, names):
        for pair in _parts(data, name_set):
            kind, value = _parts(data, pair)
            encoding = _TEXTS.get(value.tag, "ascii")
            text = data[value.content : value.end].decode(encoding)
            texts.setdefault(data[kind.start : kind.end], readable(text))
    common_name = texts.get(_COMMON_NAME, "")
    organization = texts.get(_ORGANIZATION, "")
    if common_name and organization and organization != common_name:
        return readable(f"{common_name} ({organization})")
    return common_name or organization


def readable(name: str) -> str:
    """*name* in one printable line that is no path, of at most 100 characters."""
    return excerpt(name.replace("/", " "), _MOST_NAME)
