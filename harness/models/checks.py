"""
Inputs of the models: numbers inside their range, or a `ModelError` that names the field.

A dataclass of inputs declares each field with its default and its range (`number_field`,
`count_field`, `flag_field`); `read_fields` checks all of them.
"""

from __future__ import annotations

import math
import reprlib

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, field, fields
from numbers import Integral, Real
from typing import Any, TypeAlias

from harness.base.errors import MissingStatistic, ModelError
from harness.base.records.profile import Profile

# What equations compute with: one number, or an array with one per configuration.  NumPy's
# arithmetic takes both alike, and there is no other type that both have.
Numbers: TypeAlias = Any
Counts: TypeAlias = Any  # whole numbers, in arrays as floats
Flags: TypeAlias = Any

# Whole numbers up to here are exact in 64-bit floats, and so is the floor of their quotients.
LARGEST_COUNT = 2**53


def check_number(
    name: str,
    value: Any,
    *,
    where: str,
    low: float = 0.0,
    high: float = math.inf,
    above: bool = False,
) -> float:
    """*value* as a float, if it is a finite number in [low, high], or in (low, high] if *above*."""
    number = _finite_float(value)
    if number is None or not low <= number <= high or (above and number == low):
        opening = "(" if above else "["
        wanted = f"a finite number in {opening}{low:g}, {high:g}{')' if high == math.inf else ']'}"
        raise range_error(name, value, wanted, where)
    return number


def check_count(
    name: str, value: Any, *, where: str, low: float = 0, high: float = math.inf
) -> int:
    """*value* as an int, if it is a whole number (3.0 is one) in [low, high]."""
    number = _finite_float(value)
    if number is None or number < low or not (isinstance(value, Integral) or number.is_integer()):
        wanted = "a whole number" if low == -math.inf else f"a whole number from {low:g} on"
        raise range_error(name, value, wanted, where)
    if int(value) > high:
        raise range_error(name, value, f"at most {high}", where)
    return int(value)


def check_flag(name: str, value: Any, *, where: str) -> bool:
    """*value*, if it is true or false."""
    if not isinstance(value, bool):
        raise range_error(name, value, "true or false", where)
    return value


def number_field(default: Any = MISSING, *, switch: str | None = None, **limits: Any) -> Any:
    """Field of a number; one with a *switch* of the configuration is used only where it is on."""
    metadata = {"check": check_number, "limits": limits, "switch": switch}
    return field(default=default, metadata=metadata)


def count_field(default: Any = MISSING, **limits: Any) -> Any:
    """Field of a whole number."""
    return field(default=default, metadata={"check": check_count, "limits": limits})


def flag_field() -> Any:
    """Field of a flag that is off unless given."""
    return field(default=False, metadata={"check": check_flag, "limits": {}})


def read_fields(part: Any, values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """
    Values of the fields of the dataclass *part* that have a range: those given, else defaults.

    ``ModelError`` names the first that is missing or out of its range.
    """
    checked = {}
    for input_field in fields(part):
        if "check" not in input_field.metadata:
            continue
        name = input_field.name
        value = values.get(name, input_field.default)
        if value is MISSING:
            raise ModelError(f"{name} is missing", where=where)
        if value is not input_field.default:
            check = input_field.metadata["check"]
            value = check(name, value, where=where, **input_field.metadata["limits"])
        checked[name] = value
    return checked


def require_statistics(
    needed: frozenset[str], available: Iterable[str], profile: Profile, model: str
) -> None:
    """``MissingStatistic`` where *available* names of the *profile* lack some that are *needed*."""
    if lacking := needed.difference(available):
        raise MissingStatistic(*sorted(lacking), model=model, workload=profile.workload)


def range_error(name: str, value: Any, wanted: str, where: str) -> ModelError:
    """Error for a field whose value is not what is *wanted*."""
    return ModelError(f"{name} = {reprlib.repr(value)} is not {wanted}", where=where)


def not_finite_error(where: str) -> ModelError:
    """Error for inputs whose answer is infinite or not a number."""
    return ModelError("the numbers are so large that the answer is not finite", where=where)


def nan_if_infinite(values: Numbers) -> Numbers:
    """
    Return *values* with NaN instead of infinity.

    Before a floor or a ceiling: an infinite count may vanish in a minimum, NaN never does.
    """
    return values + (values - values)


def _finite_float(value: Any) -> float | None:
    """*value* as a finite float; `None` for anything else, also for an int beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
