"""What the paper on MR. Prophet says of its results, held against its Tables I-III."""

from __future__ import annotations

import math

from collections.abc import Callable, Sequence
from itertools import pairwise

from harness.scoring.papers.prophet import FILES, Row, check, rests, rows
from harness.scoring.papers.records import Claim, Outcome, judged, unchecked

_PAPER = "prophet"
_SPLIT_MIB, _NODE_CORES, _NODE_GIB, _WORKERS = 128, 16, 32, 15


def claims() -> list[Claim]:
    """Every claim of the paper on its tables, in the order of the tables."""
    return [*_on_jobs(), *_on_maps(), *_on_reduces(), *_on_sums(), *_unchecked()]


def _of(table: str, *jobs: str) -> list[Row]:
    return [row for row in rows(table) if not jobs or row.job in jobs]


def _list(found: Sequence[Row], value: Callable[[Row], str]) -> list[str]:
    return [f"{row.name} {value(row)}" for row in found]


def _accuracy(row: Row) -> str:
    return f"{row.accuracy:.1f} %"


def _i_accu(row: Row) -> str:
    return f"{row.i_accu:.2f} %"


def _span(found: Sequence[Row], value: Callable[[Row], float]) -> str:
    values = [value(row) for row in found]
    return f"{min(values):.1f} to {max(values):.1f} %"


def _on_jobs() -> list[Claim]:
    jobs, large = _of("I"), [r for r in _of("I", "wordcount") if float(r.input_gb) >= 10]
    others = _of("I", "terasort", "pagerank")
    return [
        judged(
            _PAPER,
            "abstract, conclusion, text on Table I",
            "the accuracy of predicted job times is above 94 %",
            against=_list([r for r in jobs if r.accuracy <= 94], _accuracy),
            erratum="P26",
        ),
        judged(
            _PAPER,
            "text on Table I",
            "Prophet is better than What-If for every job (I_accu above 0)",
            against=_list([r for r in jobs if r.i_accu <= 0], _i_accu),
            support=f"I_accu {_span(jobs, lambda r: r.i_accu)} in {len(jobs)} rows",
        ),
        judged(
            _PAPER,
            "text on Table I",
            "I_accu of WordCount is above 10 % from 10 GB on",
            against=_list(
                [r for r in large if r.i_accu <= 10],
                lambda r: f"{_i_accu(r)} (and the printed {r.indicator} is not above 10)",
            ),
            erratum="P25",
        ),
        judged(
            _PAPER,
            "text on Table I",
            "I_accu of TeraSort and PageRank is below 10 %",
            against=_list([r for r in others if r.i_accu >= 10], _i_accu),
            support=f"{_span(others, lambda r: r.i_accu)} in {len(others)} rows",
        ),
        _overestimates(),
    ]


def _overestimates() -> Claim:
    under = {t: [r for r in rows(t) if r.whatif_s <= r.actual_s] for t in FILES}
    return judged(
        _PAPER,
        "text on Table I",
        "all times that What-If predicts are above the measured ones",
        against=[
            f"Table {t}: {row.name} {row.whatif_s:g} s for {row.actual_s:g} s"
            for t, found in under.items()
            for row in found
        ],
        erratum="P29",
    )


def _on_maps() -> list[Claim]:
    words, others = _of("II", "wordcount"), _of("II", "terasort", "pagerank")
    low = [row for row in words if row.i_accu <= 10]
    return [
        judged(
            _PAPER,
            "text on Table II",
            "I_accu of WordCount's map tasks is always above 10 %",
            against=_list(low, lambda r: f"{_i_accu(r)} (printed: {r.indicator})"),
            erratum=" ".join(check(row).slip for row in low),
        ),
        judged(
            _PAPER,
            "text on Table II",
            "the accuracy of WordCount's map tasks is above 96 %",
            against=_list([r for r in words if r.accuracy <= 96], _accuracy),
            erratum="P27",
        ),
        judged(
            _PAPER,
            "text on Table II",
            "map tasks of TeraSort and PageRank are not predicted well, no better than by What-If",
            against=_list([r for r in others if r.i_accu > 0], _i_accu),
            support=f"I_accu {_span(others, lambda r: r.i_accu)}, accuracy"
            f" {_span(others, lambda r: r.accuracy)}",
        ),
        judged(
            _PAPER,
            "text on Table II",
            "a map task's predicted time does not depend on the input of the job",
            against=[job for job in sorted({r.job for r in rows("II")}) if _predictions(job) > 1],
            support="one predicted time for each application and model",
        ),
    ]


def _predictions(job: str) -> int:
    return len({(row.prophet_s, row.whatif_s) for row in _of("II", job)})


def _on_reduces() -> list[Claim]:
    steps = [
        (small, large)
        for job in ("wordcount", "terasort", "pagerank")
        for small, large in pairwise(_of("III", job))
    ]
    falling = [(small, large) for small, large in steps if large.i_accu < small.i_accu]
    smallest = rows("III")[0]
    return [
        judged(
            _PAPER,
            "text on Table III",
            "the larger the input, the higher I_accu of the reduce tasks, for all three jobs",
            against=[
                f"{small.job} {small.input_gb} to {large.input_gb} GB:"
                f" {_i_accu(small)} to {_i_accu(large)}"
                for small, large in falling
            ],
        ),
        judged(
            _PAPER,
            "text on Table III",
            "reduce tasks of WordCount with 2 GB are not predicted better than by What-If",
            against=_list([smallest] if smallest.i_accu > 0 else [], _i_accu),
            support=f"I_accu {_i_accu(smallest)}",
        ),
    ]


def _on_sums() -> list[Claim]:
    short = [rest for rest in rests() if "What-If" in rest.too_short]
    maps = math.ceil(float(rows("I")[0].input_gb) * 1024 / _SPLIT_MIB)
    totals = (_WORKERS * _NODE_CORES, _WORKERS * _NODE_GIB)
    return [
        judged(
            _PAPER,
            "sections I and VI, Tables I-III",
            "What-If adds up times one after the other, without overlap",
            against=[
                f"{rest.name}: job {-rest.whatif_s:.1f} s shorter than a map and a reduce task"
                for rest in short
            ],
            erratum="PT6",
        ),
        judged(
            _PAPER,
            "section V.A",
            "15 workers of 16 cores and 32 GB offer 240 cores and 480 GB, 240 tasks at once",
            against=[] if totals == (240, 480) else [f"{totals[0]} cores, {totals[1]} GB"],
            support=f"{totals[0]} cores, {totals[1]} GB, 2 GB a task",
        ),
        judged(
            _PAPER,
            "text on Table III",
            "WordCount with 2 GB has 16 map tasks, which one machine runs at once",
            against=[] if maps == _NODE_CORES else [f"{maps} splits of {_SPLIT_MIB} MB"],
            support=f"{maps} splits of {_SPLIT_MIB} MB, {_NODE_CORES} cores",
        ),
        _cells(),
    ]


def _cells() -> Claim:
    checked = [(table, check(row)) for table in FILES for row in rows(table)]
    return judged(
        _PAPER,
        "(6), Tables I-III",
        "the printed I_accu are those of the printed times",
        against=[
            f"Table {table}: {c.row} printed {c.printed}, by (6) {c.recomputed:.2f}"
            for table, c in checked
            if c.outcome is Outcome.DIFFERS
        ],
        erratum=" ".join(sorted({c.slip for _, c in checked if c.outcome is Outcome.DIFFERS})),
    )


def _unchecked() -> list[Claim]:
    return [
        unchecked(
            _PAPER,
            "text on Tables I and II",
            "TeraSort and PageRank have over 100 reduce tasks; over 200 reduce tasks",
            "said in two ways, and no table has the number of reduce tasks",
            erratum="P28",
        ),
        unchecked(
            _PAPER,
            "Figure 5",
            "map tasks of all split sizes from 64 to 224 MB: What-If is too slow, by a growing gap",
            "a figure without printed numbers",
        ),
        unchecked(
            _PAPER,
            "section III",
            "LTrace is lightweight, unlike profilers that cost 5 to 30 %",
            "its own cost is measured nowhere",
        ),
    ]
