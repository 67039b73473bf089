"""
JSON from a file: no deeper than anything of ours, and no number that nobody could have measured.

What passes can be walked down, written again, added and squared without a look at each value.
"""

from __future__ import annotations

import json

from typing import Any, NoReturn

DEEPEST = 32
LARGEST = 1e100  # of a real number: sums and products of a few of them are still finite
_LARGEST_WHOLE = 2**64  # whole numbers are sizes, counts and counters


def read_json(text: bytes | str, *, bounded: bool = True) -> Any:
    """
    Value of a JSON *text*; ``ValueError`` in plain words for anything else.

    *bounded* numbers are finite and of a size that occurs.
    """
    hooks: dict[str, Any] = (
        {"parse_int": _whole, "parse_float": _real, "parse_constant": _refuse} if bounded else {}
    )
    try:
        value = json.loads(text, **hooks)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not _shallow(value, DEEPEST):
        raise ValueError("nested too deeply")
    return value


def _shallow(value: Any, deepest: int) -> bool:
    level = [value]
    for _ in range(deepest + 1):
        level = [
            below
            for each in level
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return False


def _whole(text: str) -> int:
    number = int(text) if len(text) <= 21 else _refuse(text)
    return number if abs(number) <= _LARGEST_WHOLE else _refuse(text)


def _real(text: str) -> float:
    number = float(text)
    return number if abs(number) <= LARGEST else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:30]} is beyond any that is measured")
