"""What the paper on vet says of its results, held against its Tables 1-3."""

from __future__ import annotations

import math

from collections.abc import Sequence

from harness.scoring.papers.records import Claim, Outcome, judged, unchecked
from harness.scoring.papers.vet import Row, check, configurations, rows

_PAPER = "vet"
_TAIL_INDEX = 1.3  # as the text reads Figure 9
_TASKS = 4 * 1024 // 64  # of a job by section 5.1: 4 GB of input in blocks of 64 MB


def claims() -> list[Claim]:
    """Every claim of the paper that numbers could decide."""
    return [*_on_table1(), *_on_table2(), *_on_table3(), _on_tail(), *_unchecked()]


def _on_table1() -> list[Claim]:
    table = {job: (cluster, slots) for job, cluster, slots, _ in configurations()}
    (disk, disk_slots), (flash, flash_slots) = table["Job6"], table["Job7"]
    differ = disk_slots != flash_slots
    off = [
        f"{job} on {cluster} has {slots:g}"
        for job, (cluster, slots) in table.items()
        if cluster.startswith("C2") and slots != 6
    ]
    return [
        judged(
            _PAPER,
            "Figure 13 and its text",
            "Job6 and Job7 are a hard disk and a solid-state disk, all else equal",
            against=[f"{disk} with {disk_slots:g} map slots against {flash} with {flash_slots:g}"]
            if differ
            else [],
            erratum="V11",
        ),
        judged(
            _PAPER,
            "section 5.1",
            "C2H and C2S run with 6 map slots",
            against=off,
            erratum="V11",
        ),
    ]


def _on_table2() -> list[Claim]:
    found = rows("2")
    first, last = found[0], found[-1]
    rise, growth = last.ei_mean_s / first.ei_mean_s, last.pr_mean_s / first.pr_mean_s
    ratios = [r.pr_std_s / r.ei_std_s for r in found]
    return [
        _constant(first, last, rise),
        judged(
            _PAPER,
            "section 5.4, Table 2",
            "the map slots change EI far less than PR",
            against=[] if rise < growth else [f"EI {rise:.2f}-fold, PR {growth:.2f}-fold"],
            support=f"EI {rise:.2f}-fold, PR {growth:.2f}-fold from {first.job} to {last.job}",
        ),
        _outside_span(
            "standard deviations of EI are 0.211 to 0.79 s",
            (0.211, 0.79),
            [r.ei_std_s for r in found],
            "V10",
        ),
        _outside_span(
            "standard deviations of PR are 2.143 to 6.147 s",
            (2.143, 6.147),
            [r.pr_std_s for r in found],
        ),
        judged(
            _PAPER,
            "section 5.4, Table 2",
            "EI deviates much less than PR",
            against=[f"{r.job}: {r.ei_std_s:g} s" for r in found if r.ei_std_s >= r.pr_std_s],
            support=f"{min(ratios):.0f} to {max(ratios):.0f} times less",
        ),
        _outside_span(
            "vet_job goes from 2.407 to 7.19",
            (2.407, 7.19),
            [r.vet_job for r in found],
        ),
    ]


def _constant(first: Row, last: Row, rise: float) -> Claim:
    """EI is no constant where it grows by more than chance would have it grow."""
    error = math.hypot(first.ei_std_s, last.ei_std_s) / math.sqrt(_TASKS)
    sigmas = (last.ei_mean_s - first.ei_mean_s) / error
    figure = (
        f"it rises from {first.ei_mean_s:.3f} to {last.ei_mean_s:.3f} s ({100 * (rise - 1):.0f} %),"
        f" {sigmas:.1f} standard errors of {_TASKS} tasks (4 GB in blocks of 64 MB)"
    )
    return judged(
        _PAPER,
        "section 5.4, Table 2",
        "EI remains constant from 1 to 4 map slots",
        against=[figure] if sigmas > 3 else [],
        support=figure,
    )


def _outside_span(
    text: str, said: tuple[float, float], values: Sequence[float], erratum: str = ""
) -> Claim:
    low, high = min(values), max(values)
    against = [] if (low, high) == said else [f"the table has {low:.3f} to {high:.3f}"]
    support = f"the table has {low:.3f} to {high:.3f}"
    where = "section 5.4, Table 2"
    return judged(_PAPER, where, text, against=against, support=support, erratum=erratum)


def _on_table3() -> list[Claim]:
    found, peer = rows("3"), next(r for r in rows("2") if r.job == "Job2")
    away = {r.job: abs(r.ei_mean_s / peer.ei_mean_s - 1) for r in found}
    return [
        judged(
            _PAPER,
            "section 5.5, Table 3",
            "PR of jobs tuned by Starfish varies widely, from 3.819 to 6.335 s",
            against=[] if _pr_span(found) == (3.819, 6.335) else [f"{_pr_span(found)} s"],
            support=f"{_pr_span(found)[1] / _pr_span(found)[0]:.2f}-fold",
        ),
        judged(
            _PAPER,
            "section 5.5, Tables 2 and 3",
            "their EI is constant and like that of Job2",
            against=[
                f"{job}: {100 * share:.0f} % off" for job, share in away.items() if share > 0.1
            ],
            support=f"within {100 * max(away.values()):.1f} % of its {peer.ei_mean_s:.3f} s",
        ),
        judged(
            _PAPER,
            "section 4.4, Tables 2 and 3",
            "the printed vet_job is the mean of PR/EI over the tasks of the job",
            against=[
                f"{r.job}: {r.vet_job:.3f} printed, {r.bound[0]:.2f} to {r.bound[1]:.2f} possible"
                for table in ("2", "3")
                for r in rows(table)
                if check(r).outcome is Outcome.DIFFERS
            ],
            erratum="V09",
        ),
    ]


def _pr_span(found: Sequence[Row]) -> tuple[float, float]:
    values = [r.pr_mean_s for r in found]
    return min(values), max(values)


def _on_tail() -> Claim:
    inverse = 1 / _TAIL_INDEX
    figure = f"as printed it estimates 1/alpha: 1.3 means alpha = {inverse:.2f}, an infinite mean"
    return judged(
        _PAPER,
        "section 5.3, Hill estimator",
        "the estimator as printed gives a tail index of 1.3: finite mean, infinite variance",
        against=[figure] if inverse <= 1 else [],
        erratum="V01",
    )


def _unchecked() -> list[Claim]:
    lost = "raw times are not published"
    return [
        unchecked(
            _PAPER,
            "Figure 14",
            "vet_task goes with the time of the map task: correlations 0.94, 0.96, 0.96, 0.93",
            lost,
        ),
        unchecked(
            _PAPER,
            "section 4.4, Figure 6",
            "vet_task of two runs of one configuration has one distribution (p = 0.6068)",
            lost,
        ),
        unchecked(_PAPER, "section 5.3", "about 85 % of the records take nearly equal times", lost),
        unchecked(_PAPER, "Figure 7", "profiling costs 4 to 7 %, on average 5.3 %", lost),
        unchecked(
            _PAPER,
            "Figure 13",
            "vet_task is mostly about 1.3 on a solid-state disk, and 1.9 or more on a hard disk",
            lost,
        ),
        unchecked(
            _PAPER,
            "section 5.3, Figures 8 and 11",
            "TeraSort and WordCount have the same distribution of record times",
            "figures without printed numbers",
        ),
    ]
