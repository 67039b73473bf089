"""
Sizes and durations as people write them, and back.

Records hold bytes and seconds only; this module alone reads and writes other units.
"""

from __future__ import annotations

import math
import re

MIB = 2**20

_SIZE = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_TIME = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str | int) -> int:
    """
    Bytes that *text* names; a bare number is bytes.

    >>> parse_bytes("32 MiB"), parse_bytes("1.5 kB"), parse_bytes(7)
    (33554432, 1500, 7)

    Raises ``ValueError`` for anything else, with the units that exist.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        size: float = text
    else:
        match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
        if match is None or match[2].lower() not in _SIZE:
            complaint = "is not a size: write 32 MiB, 200 MB or a number of bytes"
            raise ValueError(f"{text!r:.80} {complaint}")
        size = float(match[1]) * _SIZE[match[2].lower()]
    if not 0 <= size < math.inf or size != int(size):
        raise ValueError(f"{text!r:.80} is not a whole number of bytes")
    return int(size)


def parse_rate(text: str) -> int:
    """
    Bytes per second that *text* names: a size, or a number of bits, per second.

    >>> parse_rate("20 MiB/s"), parse_rate("100 Mbit/s"), parse_rate("1.5 kB/s")
    (20971520, 12500000, 1500)

    Raises ``ValueError`` for anything else; a bare number may mean bits or bytes, and is refused.
    """
    complaint = f"{text!r:.80} is not a rate: write 20 MiB/s or 100 Mbit/s"
    match = _NUMBER.fullmatch(text.strip().removesuffix("/s")) if isinstance(text, str) else None
    if match is None or not text.strip().endswith("/s") or not match[2]:
        raise ValueError(complaint)
    unit = match[2].lower()
    bits = float(match[1]) * _BITS.get(unit, 8 * _SIZE.get(unit, 0))
    if not 8 <= bits < 2**63:
        raise ValueError(complaint)
    return round(bits / 8)


def parse_duration(text: str) -> float:
    """
    Seconds that *text* names.

    >>> parse_duration("5 min"), parse_duration("250 ms"), parse_duration("2 s")
    (300.0, 0.25, 2.0)

    Raises ``ValueError`` for anything else; a bare number may mean seconds or minutes: refused.
    """
    match = _NUMBER.fullmatch(text)
    if match and not match[2] and len(text) < 20:
        raise ValueError(f"'{match[1]}' has no unit; write {match[1]} s or {match[1]} min")
    if match is None or match[2] not in _TIME:
        raise ValueError(f"{text!r:.80} is not a duration: write 90 s, 5 min, 2 h or 250 ms")
    return float(match[1]) * _TIME[match[2]]


def format_bytes(size: float) -> str:
    """
    Size for people, in binary units.

    >>> format_bytes(33554432), format_bytes(1500), format_bytes(12)
    ('32 MiB', '1.46 KiB', '12 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            return f"{size:.3g} {unit}" if abs(size) < 999.5 else f"{size:.0f} {unit}"
        size /= 1024
    raise AssertionError("the last unit always answers")


def format_rate(bytes_per_s: float) -> str:
    """
    Rate of a disk for people, in binary units.

    >>> format_rate(20971520)
    '20 MiB/s'
    """
    return f"{format_bytes(bytes_per_s)}/s"


def format_bit_rate(bytes_per_s: float) -> str:
    """
    Rate of a network for people, in decimal units of bits.

    >>> format_bit_rate(12_500_000), format_bit_rate(125e6), format_bit_rate(12_345_678)
    ('100 Mbit/s', '1 Gbit/s', '98.8 Mbit/s')
    """
    bits = 8 * bytes_per_s
    unit = "bit"
    for larger in ("kbit", "Mbit", "Gbit"):
        if abs(bits) < 999.5:
            break
        bits = bits / 1000
        unit = larger
    return f"{bits:.3g} {unit}/s" if abs(bits) < 999.5 else f"{bits:.0f} {unit}/s"


def format_duration(seconds: float) -> str:
    """
    Duration for people.

    >>> format_duration(0.0421), format_duration(12.34), format_duration(754), format_duration(7300)
    ('42 ms', '12.3 s', '12 min 34 s', '2 h 01 min')
    """
    if abs(seconds) < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if abs(seconds) < 99.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def about(seconds: float) -> str:
    """
    A duration that is only estimated, for people: no finer than it can be known.

    >>> about(0), about(34), about(89.9), about(364), about(4000), about(7300)
    ('no time', 'about 30 s', 'about 90 s', 'about 6 min', 'about 1 h 05 min', 'about 2 h')
    """
    if seconds <= 0:
        return "no time"
    if seconds < 95:
        return f"about {max(10, round(seconds, -1)):.0f} s"
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"about {minutes} min"
    minutes = 5 * round(minutes / 5)
    rest = f" {minutes % 60:02d} min" if minutes % 60 else ""
    return f"about {minutes // 60} h{rest}"
