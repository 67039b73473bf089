"""
Numbers and names as people read them.

A number is never given more digits than its noise supports: it ends where the first digit of its
noise stands, or one place later where that digit is 1.
"""

from __future__ import annotations

import math
import re

from collections.abc import Sequence
from datetime import UTC, datetime

from harness.base.text import printable

UNKNOWN = "\u2013"  # a dash
QUANTITIES = {
    "body_s": "body",
    "attempts_s": "whole attempts",
    "job_s": "job",
    "published_s": "as published",
    "frame_s": "frame",
    "each_job_s": "one job of several",
    "makespan_s": "makespan",
    "map_task_s": "map task",
    "map_main_s": "map: main",
    "map_tail_s": "map: tail",
    "reduce_task_s": "reduce task",
    "shuffle_s": "reduce: shuffle",
    "sort_s": "reduce: sort",
    "reduce_rest_s": "reduce: rest",
}
# Of each model: without the frame, with it, and what the paper's own formula says.
JOB_TIMES = ("body_s", "job_s", "published_s")
# The two on which verdicts are, where one of them is drawn.
TIMES = {"job_s": "job time", "body_s": "body"}


def one_line(text: object, longest: int | None = None) -> str:
    """*text* printable in one line, cut to *longest* characters with an ellipsis in its middle."""
    line = " ".join(printable(text).split())
    if longest is None or len(line) <= longest:
        return line
    return f"{line[: longest - longest // 2 - 1]}…{line[len(line) - longest // 2 :]}"


def aligned(rows: Sequence[Sequence[str]], align: str) -> list[str]:
    """
    Rows as lines of equal length; *align* has a letter for each column, `r` for numbers.

    >>> aligned([("name", "s"), ("sort", "12")], "lr")
    ['name   s', 'sort  12']
    """
    columns = []
    for letter, texts in zip(align, zip(*rows, strict=True), strict=True):
        width = max(map(len, texts))
        pad = str.rjust if letter == "r" else str.ljust
        columns.append([pad(text, width) for text in texts])
    return list(map("  ".join, zip(*columns, strict=True)))


def decimals(noise: float, most_places: int = 3) -> int:
    """
    Decimals that a number with this noise supports.

    >>> decimals(3.0), decimals(0.3), decimals(0.13), decimals(0.0), decimals(25.0)
    (0, 1, 2, 3, 0)
    """
    if not math.isfinite(noise) or noise <= 0:
        return most_places
    exponent = math.floor(math.log10(noise))
    if exponent < -most_places:  # ten to a power far below is 0
        return most_places
    return min(most_places, max(0, -exponent + (noise / 10.0**exponent < 2)))


def number(value: float | None, noise: float | None = None, *, most: int = 3) -> str:
    """
    Write a number to the place that its noise supports; three digits where that is not known.

    >>> number(38.123, 1.3), number(38.123, 4.0), number(0.01234), number(1234.5)
    ('38.1', '38', '0.0123', '1234')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if noise is None:
        places = 0 if value == 0 else min(12, max(0, 2 - math.floor(math.log10(abs(value)))))
    else:
        places = decimals(noise, most)
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def percent(value: float | None, noise: float | None = None, *, signed: bool = False) -> str:
    """
    Write a share as a percentage: one decimal below 10 % if its noise is below 1 %.

    >>> percent(0.0961, 0.02), percent(0.0961, 0.004), percent(-0.002, 0.03)
    ('10 %', '9.6 %', '0 %')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    coarse = abs(value) / 10 if noise is None else noise
    text = f"{100 * value:.{int(coarse < 0.01 and abs(value) < 0.1)}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return f"+{text} %" if signed and float(text) > 0 else f"{text} %"


def floor_percent(floor: float | None) -> str:
    """
    Write a noise floor: the spread of a few repeats has hardly more than one digit.

    >>> floor_percent(0.0273), floor_percent(0.0042)
    ('3 %', '0.4 %')
    """
    return percent(floor, floor)


def share_with_interval(
    value: float, low: float | None, high: float | None, label: str = ""
) -> str:
    """
    Write a share with its interval; *label* names the interval.

    >>> share_with_interval(0.1, 0.08, 0.11), share_with_interval(0.1, None, None)
    ('10 % (8 to 11 %)', '10 %')
    """
    noise = None if low is None or high is None else (high - low) / 2 or None
    if noise is None:
        return percent(value)
    start = percent(low, noise).removesuffix(" %")
    return f"{percent(value, noise)} ({label}{start} to {percent(high, noise)})"


def seconds(value: float | None, noise: float | None = None) -> str:
    """
    Seconds with their unit.

    >>> seconds(38.123, 1.3)
    '38.1 s'
    """
    text = number(value, noise)
    return text if text == UNKNOWN else f"{text} s"


def listing(names: Sequence[str], last: str = "and", *, most: int | None = None) -> str:
    """
    Names in a sentence: the first *most*, and how many others there are.

    >>> listing(["a", "b", "c"]), listing(["a", "b", "c"], most=1)
    ('a, b and c', 'a and 2 more')
    """
    listed = list(names[:most])
    if hidden := len(names) - len(listed):
        listed.append(f"{hidden} more")
    *head, tail = listed
    return f"{', '.join(head)} {last} {tail}" if head else tail


def natural(name: str) -> list[str | int]:
    """
    Sort key by which worker2 comes before worker10.

    >>> sorted(["worker10", "worker2"], key=natural)
    ['worker2', 'worker10']
    """
    parts: list[str | int] = [*re.split(r"([0-9]{1,18})", name)]  # text and digits by turns
    parts[1::2] = map(int, parts[1::2])
    return parts


def count(amount: int, noun: str) -> str:
    """
    *amount* with its noun in singular or plural.

    >>> count(1, "cell"), count(3, "cell")
    ('1 cell', '3 cells')
    """
    return f"{amount} {by_number(amount, noun, f'{noun}s')}"


def by_number(amount: int, singular: str, plural: str) -> str:
    """
    The *singular* of a verb or noun for one, its *plural* for any other *amount*.

    >>> by_number(1, "lies", "lie"), by_number(0, "lies", "lie")
    ('lies', 'lie')
    """
    return singular if amount == 1 else plural


def moment(epoch_s: float) -> str:
    """
    Write a point in time, in UTC.

    >>> moment(1767225600.0)
    '2026-01-01 00:00:00 UTC'
    """
    try:
        return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return str(epoch_s)


def typographic(text: str) -> str:
    r"""
    *text* with a real minus sign before numbers, and its units kept beside their numbers.

    >>> ascii(typographic("-8 % of 3 s"))
    "'\\u22128\\xa0% of 3\\xa0s'"
    """
    if " " not in text and "-" not in text:  # most numbers
        return text
    text = re.sub(r"(?<![\w.)])-(?=\d)", "\u2212", text)
    text = re.sub(r"(?<=\d) to (?=\d)", "\u00a0to\u00a0", text)
    return re.sub(r"(?<=\d) (?=(?:%|s|min|h|MiB|GiB|KiB|points)(?![\w]))", "\u00a0", text)
