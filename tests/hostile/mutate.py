"""
Damage to real files: bytes flipped, lines moved, values replaced by what nobody should send.

`mutate` is deterministic: the same bytes, the same partner and the same seed give the same answer.
"""

from __future__ import annotations

import json

from collections.abc import Callable
from random import Random
from typing import Any

Change = Callable[[bytes, bytes, Random], bytes]

BIDI = "\u202eevil\u2066\u200f\u200e\u061c"
SCRIPT = "</script><script>alert(1)</script>"

# What a text may hold that steers something: paths, terminals, markup, templates, YAML, XML, CSV.
TEXTS = (
    "", " ", "\0", "a\0b", "../../etc/x", "..", ".", "/etc/passwd", "a/../../b", "C:\\x", "~root",
    "\x1b[2J\x1b]0;title\x07", "\x9b31m", BIDI, "\r\nX", "a\nb", "\ud800", "\udfff\ud800", "\ufeff",
    SCRIPT, "<img src=x onerror=alert(1)>", "{{ 7*7 }}", "{% x %}", "]]>", "-->", "&amp;&a;",
    "$(id)", "`id`", "; rm -rf x", "%n%s", "=1+1", "|a|b|", "$\\frac{a}", "'\"", "\\", "é\u0301",
    "!!python/object:os.system x", "&a [*a, *a]", "*a", "<<", "? x", "NaN", "null", "true", "-0",
    "x" * 200, "\U0001f600" * 9, "١٢", "1_000", "0x10", "1e999", "-1", "9" * 30, "1" * 5000,
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, -1, 1, 2, 0.5, -0.0, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**18,
    10**30, 10**400, 1e-320, 5e-324, 1e15, 1e100, 1e200, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"), True, False, None,
)  # fmt: skip
_DEEP = 100_000
TOKENS = (
    *(text.encode("utf-8", "surrogatepass") for text in TEXTS),
    *(json.dumps(number).encode() for number in NUMBERS),
    b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b'"\\ud800"', b"[", b"]", b"{", b"}", b'"', b":",
    b",", b"\t", b"\x0c", b"\x85", b"[[[[[[[[", b'{"a":' * 20, b"<", b">", b"</configuration>",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"<![CDATA[", b"&#0;", b"&#xD800;", b"---\n", b"...\n",
    b"- " * 30, b"? " * 30, b"&a ", b"!!binary ", b"!<x> ", b"%YAML 9.9\n", b"|\n", b">-\n",
)  # fmt: skip
_LARGE = (
    b"[" * _DEEP, b'{"a":' * _DEEP, b"]" * _DEEP, b"<a>" * _DEEP, b"9" * _DEEP, b"\0" * _DEEP,
    b"x" * _DEEP, b" " * _DEEP, b"\n" * 20_000, b"- [" * 10_000, b"a: b\n" * 10_000,
    b"- a\n" * 10_000,
)  # fmt: skip


def mutate(data: bytes, other: bytes, random: Random) -> bytes:
    """*data*, changed in one to four places; *other* is a file of the same kind to splice with."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        data = random.choices(_CHANGES, _WEIGHTS)[0](data, other, random)
    return data


def _flip(data: bytes, _: bytes, random: Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(random.choice((1, 1, 2, 8))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _span(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 2, 7, 40, 300)))


def _cut_out(data: bytes, _: bytes, random: Random) -> bytes:
    start, end = _span(data, random)
    return data[:start] + data[end:]


def _double(data: bytes, _: bytes, random: Random) -> bytes:
    start, end = _span(data, random)
    return data[:end] + data[start:end] * random.choice((1, 1, 3, 50)) + data[end:]


def _end_early(data: bytes, _: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _splice(data: bytes, other: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    there = random.randrange(len(other) + 1)
    if random.random() < 0.5:
        return data[:at] + other[there:]
    return data[:at] + other[there : there + random.choice((20, 200, 2000))] + data[at:]


def _lines(data: bytes, _: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    one = random.randrange(len(lines))
    two = random.randrange(len(lines))
    kind = random.randrange(5)
    if kind == 0:
        lines[one], lines[two] = lines[two], lines[one]
    elif kind == 1:
        del lines[one]
    elif kind == 2:
        lines.insert(two, lines[one])
    elif kind == 3:
        lines[one] = lines[one].rstrip(b"\r\n")
    else:
        lines[one] = lines[one].lstrip(b" ")
    return b"".join(lines)


def _insert(data: bytes, _: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(TOKENS) + data[at:]


def _insert_large(data: bytes, _: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(_LARGE) + data[at:]


def _replace_word(data: bytes, _: bytes, random: Random) -> bytes:
    """Put a token in the place of a word, a number or a name."""
    start = end = random.randrange(len(data) + 1)
    while start and _in_word(data[start - 1]):
        start -= 1
    while end < len(data) and _in_word(data[end]):
        end += 1
    return data[:start] + random.choice(TOKENS) + data[end:]


def _in_word(byte: int) -> bool:
    return byte in b"._-+" or chr(byte).isalnum()


def _endings(data: bytes, _: bytes, random: Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return b"\xef\xbb\xbf" + data
    if kind == 1:
        return data.replace(b"\n", b"\r\n")
    if kind == 2:
        return data.replace(b"\n", b"\r")
    return data.decode("utf-8", "replace").encode("utf-16")


def _json_value(data: bytes, _: bytes, random: Random) -> bytes:
    """Change one value of a JSON text, or of one of its lines; other texts get a token."""
    try:
        if data.startswith((b"{\n", b"[\n")):
            return json.dumps(changed(json.loads(data), random), indent=2).encode()
        lines = data.splitlines(keepends=True)
        at = random.randrange(len(lines)) if lines else 0
        lines[at] = json.dumps(changed(json.loads(lines[at]), random)).encode() + b"\n"
        return b"".join(lines)
    except (ValueError, RecursionError, IndexError):
        return _replace_word(data, b"", random)


def changed(value: Any, random: Random) -> Any:
    """*value*, a tree as JSON makes it, with one node replaced, doubled, renamed or removed."""
    if not value or not isinstance(value, dict | list) or random.random() < 0.05:
        return _odd_value(value, random)
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = random.choice(keys)
    kind = random.random()
    if kind < 0.08:
        return _without(value, key)
    if kind < 0.16 and isinstance(value, dict):
        return {**value, random.choice(TEXTS): value[key]}
    if kind < 0.16:
        return [*value, value[key]]
    changed_here = dict(value) if isinstance(value, dict) else list(value)
    changed_here[key] = changed(value[key], random)
    return changed_here


def _without(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if k != key}
    return [*value[:key], *value[key + 1 :]]


def _odd_value(value: Any, random: Random) -> Any:
    """Return something else in the place of a leaf, more often than not of its own type."""
    kind = random.random()
    if isinstance(value, str) and kind < 0.6:
        return random.choice(TEXTS)
    if isinstance(value, int | float) and kind < 0.7:
        return random.choice(NUMBERS)
    nested: Any = value
    for _ in range(random.choice((1, 3, 30, 300))):
        nested = [nested] if random.random() < 0.5 else {"a": nested}
    return random.choice((nested, [], {}, random.choice(TEXTS), random.choice(NUMBERS)))


_CHANGES: tuple[Change, ...] = (
    _flip, _cut_out, _double, _end_early, _splice, _lines, _insert, _insert_large, _replace_word,
    _endings, _json_value,
)  # fmt: skip
_WEIGHTS = (10, 8, 8, 4, 6, 10, 12, 0.5, 20, 1, 20)
