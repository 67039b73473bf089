"""Inputs of the models: numbers inside their range, or a `ModelError` that names the field."""

from __future__ import annotations

import math
import reprlib

from numbers import Integral, Real
from typing import Any

from harness.errors import ModelError


def check_number(
    name: str,
    value: Any,
    *,
    where: str,
    low: float = 0.0,
    high: float = math.inf,
    above: bool = False,
) -> float:
    """
    *value* as a float, if it is a finite number in [low, high], or in (low, high] if *above*.

    ``ModelError`` otherwise, NaN and infinities included.
    """
    number = _finite_float(value)
    if number is None or not low <= number <= high or (above and number == low):
        opening = "(" if above else "["
        wanted = f"a finite number in {opening}{low:g}, {high:g}{')' if high == math.inf else ']'}"
        raise range_error(name, value, wanted, where)
    return number


def check_count(name: str, value: Any, *, where: str, low: float = 0) -> int:
    """*value* as an int, if it is a whole number (3.0 is one) of at least *low*."""
    number = _finite_float(value)
    if number is None or number < low or not (isinstance(value, Integral) or number.is_integer()):
        wanted = "a whole number" if low == -math.inf else f"a whole number from {low:g} on"
        raise range_error(name, value, wanted, where)
    return int(value)


def check_flag(name: str, value: Any, *, where: str) -> bool:
    """*value*, if it is true or false."""
    if not isinstance(value, bool):
        raise range_error(name, value, "true or false", where)
    return value


def range_error(name: str, value: Any, wanted: str, where: str) -> ModelError:
    """Error for a field whose value is not what is *wanted*."""
    return ModelError(f"{name} = {reprlib.repr(value)} is not {wanted}", where=where)


def _finite_float(value: Any) -> float | None:
    """*value* as a finite float; `None` for anything else, also for an int beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
