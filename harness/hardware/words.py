"""Costs as people read them: MB/s, microseconds a record, and a sentence about a machine or two."""

from __future__ import annotations

import math

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base.documents.wording import UNKNOWN, by_number, count, listing, number
from harness.base.records.hardware import MachineCosts
from harness.base.records.statistics import IN_PROFILES, MACHINE_COSTS
from harness.core.evaluate.judge import Judge
from harness.hardware.rows import REFERENCE_BYTES, UNSURE, CostPair, CostRow, groups_of, rows_of

if TYPE_CHECKING:
    from harness.hardware.calibrate import CheckedCost

_MB = 1e6
NOT_SCORED = "how far off predictions by it are is not known: nothing was scored here"

# What a machine does with bytes, and how fast that is, in the order of a sentence.
_RATES = {
    "hdfs_read_s_per_byte": ("HDFS reads", "reads HDFS"),
    "hdfs_write_s_per_byte": ("HDFS writes", "writes HDFS"),
    "hdfs_copy_s_per_byte": ("HDFS sends copies", "sends copies of HDFS"),
    "local_write_s_per_byte": ("local disk writes", "writes its local disk"),
    "merge_s_per_byte": ("local disk merges", "merges on its local disk"),
    "network_s_per_byte": ("network copies", "copies over its network"),
}
_COMPUTING = "computing"
_MOST = 4  # differences in one sentence


def label(names: Sequence[str]) -> str:
    """
    The *names* of a group in short: what follows the same beginning stands in braces.

    >>> label(["hdfs_read_s_per_byte", "hdfs_read_s_per_record", "computing"])
    'hdfs_read_s_per_{byte,record} computing'
    """
    endings = dict[str, list[str]]()
    for name in names:
        head, separator, ending = name.partition("_per_")
        endings.setdefault(head + separator, []).append(ending)
    texts = [
        f"{head}{{{','.join(tails)}}}" if len(tails) > 1 else head + tails[0]
        for head, tails in endings.items()
    ]
    return " ".join(texts)


def _unit(row_names: Sequence[str], unit: str) -> str:
    """In which unit people read a cost: by its own, a group by what its members are of."""
    if len(row_names) > 1:
        names = " ".join(row_names)
        return "MB/s" if "_byte" in names else "µs/record" if "_record" in names else "ms"
    (name,) = row_names
    by_unit = {"s/B": "MB/s", "s/record": "µs/record", "": "times typical"}
    if name.endswith(("_per_file", "_per_segment")):
        return "ms"
    return by_unit.get(unit, unit)


def _converted(value: float, unit: str, *, is_group: bool) -> float:
    """A cost in SI units, or the seconds of a reference task, in *unit* for people."""
    records = REFERENCE_BYTES / 100
    if unit == "MB/s":
        per_byte = value / REFERENCE_BYTES if is_group else value
        return 1 / per_byte / _MB if per_byte else math.inf
    if unit == "µs/record":
        return 1e6 * (value / records if is_group else value)
    return 1e3 * value if unit == "ms" else value


def readable(value: float, names: Sequence[str], unit: str) -> str:
    """
    A cost of these *names* with its unit for people; *unit* is that of the record.

    >>> readable(1e-8, ["hdfs_read_s_per_byte"], "s/B")
    '100 MB/s'
    """
    shown = _unit(names, unit)
    converted = _converted(value, shown, is_group=len(names) > 1)
    return "no limit seen" if math.isinf(converted) else f"{number(converted)} {shown}"


def interval_text(row: CostRow) -> str:
    """The 90 % interval of a cost in its unit for people, the smaller end first."""
    if row.low is None or row.high is None:
        return "not known"
    shown = _unit(row.names, row.unit)
    ends = [_converted(end, shown, is_group=row.is_group) for end in (row.low, row.high)]
    low, high = sorted(ends)
    return f"more than {number(low)}" if math.isinf(high) else f"{number(low)} to {number(high)}"


def micro_text(row: CostRow) -> str:
    """What a measurement without a job says, marked where jobs contradict it; else nothing."""
    if row.micro is None:
        return ""
    text = readable(row.micro, row.names, row.unit)
    return f"{text} !" if row.agree is False else text


def ratio_text(pair: CostPair) -> str:
    """
    How many times as dear a cost is, with its interval, or as much of it as is known.

    >>> ratio_text(CostPair(("a",), 1.0, 3.0, "s", 3.0, 2.0, 4.5, "differs"))
    '3.00 (2.00 to 4.50)'
    """
    ratio = UNKNOWN if pair.ratio is None else number(pair.ratio)
    if pair.low is not None and pair.high is not None:
        return f"{ratio} ({number(pair.low)} to {number(pair.high)})"
    if pair.low is not None:
        return f"{ratio} (at least {number(pair.low)})"
    return ratio if pair.high is None else f"{ratio} (at most {number(pair.high)})"


def _meaning(name: str) -> str:
    rows = MACHINE_COSTS if name in MACHINE_COSTS else IN_PROFILES
    return rows[name].text if name in rows else name


def subject(pair: CostPair) -> str:
    """What a cost is spent on, as the subject of a sentence."""
    for name, (words, _) in _RATES.items():
        if name in pair.names:
            return f"its {words}"
    if pair.names == (_COMPUTING,):
        return "its processor computes"
    texts = [_meaning(name) for name in pair.names]
    return f"{texts[0]} ({pair.names[0]}) is" if len(texts) == 1 else f"{label(pair.names)} is"


def difference(pair: CostPair) -> str:
    """
    How far two machines differ in a cost, as a clause.

    >>> costs = ("local_write_s_per_byte",)
    >>> difference(CostPair(costs, 1.0, 3.0, "s/B", 3.0, 2.0, 4.5, "differs"))
    'its local disk writes 3.00 times as slow (2.00 to 4.50)'
    """
    is_slower = (pair.low or 0.0) > 1
    adverb = "slow" if is_slower else "fast"
    ends = (pair.low, pair.high) if is_slower else (_inverse(pair.high), _inverse(pair.low))
    ratio = pair.ratio if is_slower else _inverse(pair.ratio)
    least, most = ends
    known = f"at least {number(least)}" if most is None else f"{number(least)} to {number(most)}"
    if ratio is None:
        return f"{subject(pair)} {known} times as {adverb}"
    return f"{subject(pair)} {number(ratio)} times as {adverb} ({known})"


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def pair_says(names: Sequence[str], pairs: Sequence[CostPair], rests_on: str) -> str:
    """What *pairs* of the second of two machines beside the first come to, in one sentence."""
    differing = [pair for pair in pairs if pair.verdict == "differs"]
    unknown = [pair for pair in pairs if pair.verdict == "cannot tell"]
    differing.sort(key=_size_of_difference, reverse=True)
    clauses = [difference(pair) for pair in differing[:_MOST]]
    if len(differing) > _MOST:
        further = len(differing) - _MOST
        clauses.append(
            f"{count(further, 'further cost')} {by_number(further, 'differs', 'differ')}"
        )
    text = f"{names[1]} beside {names[0]}: "
    text += listing(clauses) if clauses else "no cost differs beyond its interval"
    within = len(pairs) - len(differing) - len(unknown)
    if within and clauses:
        text += f", {'the rest' if not unknown else count(within, 'cost')} within noise"
    if unknown:
        text += f"; {count(len(unknown), 'cost')} cannot be told"
        text += f": less than a factor of {UNSURE:g} would not show"
    return f"{text}; {rests_on}; {NOT_SCORED}"


def _size_of_difference(pair: CostPair) -> tuple[bool, float]:
    """By which differences are told in turn: those of rates first, then the larger ones."""
    is_rate = any(name in _RATES or name == _COMPUTING for name in pair.names)
    return is_rate, abs(math.log(pair.ratio)) if pair.ratio else math.inf


def machine_says(machine: MachineCosts) -> str:
    """What a *machine* does in a second, what that rests on, and how far off it is."""
    groups = groups_of([machine])
    by_name = {name: row for row in rows_of(machine, groups) for name in row.names}
    clauses = []
    told = set[str]()
    jobs = 0
    for name, (_, words) in _RATES.items():
        row = by_name.get(name)
        if row is not None and row.name not in told:
            told.add(row.name)
            clauses.append(f"{words} at {readable(row.value, row.names, row.unit)}")
            jobs = max(jobs, row.trials)
    if _COMPUTING in by_name:
        clauses.append(f"computes {number(by_name[_COMPUTING].value)} times as long as is typical")
    text = f"the machine {listing(clauses)}" if clauses else "no rate of the machine is known"
    if told and not jobs:
        text += ", all of that measured without a job"
    return f"{text}; {rests_on(machine)}; {NOT_SCORED}"


def check_says(costs: Sequence[CheckedCost]) -> str:
    """Which of the *costs* of a file hold here, in one sentence."""
    moved = [cost for cost in costs if cost.verdict == "moved"]
    clauses = [f"{cost.cost} is {number(_times(cost))} times what it was" for cost in moved]
    text = listing(clauses) if clauses else "no cost has moved"
    holding = sum(cost.verdict == "holds" for cost in costs)
    text += f", {count(holding, 'cost')} {by_number(holding, 'holds', 'hold')}"
    if unknown := len(costs) - len(moved) - holding:
        text += f", of {unknown} too few jobs were measured to tell"
    return f"{text}; it rests on 2 jobs, one of each kind; {NOT_SCORED}"


def _times(cost: CheckedCost) -> float:
    return cost.now / cost.from_file if cost.from_file else math.inf


def moved_says(files: Sequence[str], source: str, judges: Sequence[Judge]) -> str:
    """
    What predictions by profiles of the run *source* are, moved by two *files*: one sentence.

    *judges* are its models, each over all workloads that it was scored on there.  How far off they
    are here is what follows it: a verdict, or that nothing was scored yet.
    """
    known = [judge for judge in judges if judge.error is not None]
    text = f"profiles of {source}, for the machine of {files[1]} in the place of {files[0]}"
    if known:
        nearest = min(known, key=lambda judge: judge.error or 0.0)
        there = nearest.clause.replace(" here", " there")
        text += f"; {there}"
    return text


def rests_on(machine: MachineCosts) -> str:
    """What the costs of *machine* rest on."""
    return f"it rests on {count(len(machine.chosen), 'job')} in {machine.spent_s:.0f} s"
