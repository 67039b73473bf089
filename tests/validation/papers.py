"""
The tables that three papers print, recomputed from their own numbers, and the page made of them.

    [Lv]   MR. Prophet, Eq. (6), Tables I-III      docs/models/prophet.md, section 7
    [Kim]  vet, Tables 1-3                         docs/models/vet.md, section 6
    [Hung] SPN-GC, Eqs. (1)-(14), Tables I and II  docs/models/spn-gc.md, sections 2 to 6

`papers/` holds the tables as printed, and `claims.csv`: what each paper says of its results, and
what its own tables say to that.  `contradictions` computes the latter again.

    python -m tests.validation.papers       writes the tables of docs/papers.md anew
"""

import csv
import math

from collections import Counter
from functools import cache
from itertools import pairwise, product
from pathlib import Path

from harness.scoring import i_accu

DATA = Path(__file__).parent / "papers"
PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
NAMES = {"prophet": "MR. Prophet", "vet": "vet", "spn-gc": "SPN-GC"}
PROPHET_TABLES = {
    "I": "prophet_table1_job",
    "II": "prophet_table2_map_task",
    "III": "prophet_table3_reduce_task",
}
VET_TABLES = {"2": "vet_table2_varying_map_slots", "3": "vet_table3_starfish_optimised"}
STEP = 0.1  # percent, of the printed indicators
ROUNDING = 1e-9  # of floating-point numbers


@cache
def rows(name):
    """
    Rows of a table of `papers/`, each cell as text.
    """
    return list(csv.DictReader((DATA / f"{name}.csv").read_text().splitlines(), strict=True))


# MR. Prophet: a printed time stands for all times that are rounded to it.


def times(row):
    """
    The measured, Prophet's and What-If's seconds of a row, and half a unit of their last digit.
    """
    printed = [row[f"{source}_s"] for source in ("actual", "prophet", "whatif")]
    digits = max(len(text.partition(".")[2]) for text in printed)
    return *map(float, printed), 0.5 * 10.0**-digits


def indicator(row):
    """
    Eq. (6) in percent, from the printed times.
    """
    actual, prophet, whatif, _ = times(row)
    value = i_accu(actual, prophet, whatif)["i_accu_percent"]
    return 0.0 if abs(value) < ROUNDING else value


def accuracy(row):
    """
    100 % less the relative error of Prophet, in percent.
    """
    actual, prophet, _, _ = times(row)
    return 100 - 100 * abs(prophet - actual) / actual


def possible_indicators(actual_s, prophet_s, whatif_s, half_s):
    """
    Least and largest Eq. (6), in percent, over all times that are rounded to these.

    Between the places where a prediction equals the measured time the indicator is monotone in
    each of the three, so the ends and these places are all that need be looked at.
    """
    predictions = [s + d for s in (prophet_s, whatif_s) for d in (-half_s, half_s)]
    inner = [s for s in predictions if abs(s - actual_s) < half_s]
    values = []
    for actual in (actual_s - half_s, actual_s + half_s, *inner):
        choices = [
            (s - half_s, s + half_s, min(max(actual, s - half_s), s + half_s))
            for s in (prophet_s, whatif_s)
        ]
        values += [i_accu(actual, *pair)["i_accu_percent"] for pair in product(*choices)]
    return min(values), max(values)


def compare_indicator(row):
    """
    How the printed indicator compares with Eq. (6), and the id of its slip ('' for none).

    The paper prints N where Eq. (6) is not above 0.
    """
    computed, printed = indicator(row), row["printed_i_accu_percent"]
    actual, prophet, whatif, half_s = times(row)
    low, high = possible_indicators(actual, prophet, whatif, half_s)
    if printed == "N":
        agrees = computed <= 0
    else:
        value = float(printed)
        agrees = abs(value - computed) <= STEP / 2 + ROUNDING
        if not agrees and 0 <= computed - value < STEP - ROUNDING:
            return "agrees when cut, not rounded", "PT1"
        if not agrees and low - STEP / 2 <= value <= high + STEP / 2:
            return "within the rounding of the printed times", "PT2"
    if agrees:
        return "agrees", ""
    signed = 100 * (whatif - prophet) / actual
    if f"{math.floor(signed / STEP) * STEP:.1f}" == printed:
        return "differs", "PT3"
    right = f"{computed:.2f}"
    if printed in {right[:i] + right[i + 1 :] for i in range(len(right))}:
        return "differs", "PT4"
    return "differs", "PT5"


def prophet_rows(number, *jobs):
    """
    Rows of Table *number*, of some jobs where named.
    """
    return [row for row in rows(PROPHET_TABLES[number]) if not jobs or row["job"] in jobs]


def label(row):
    """
    How claims call a row.
    """
    return f"{row['job']} {row['input_gb']} GB"


def remainders():
    """
    By row: seconds of What-If's job less its map and reduce task, and how far rounding moves that.
    """
    tables = zip(*(prophet_rows(number) for number in PROPHET_TABLES), strict=True)
    for row_group in tables:
        job, map_task, reduce_task = (times(row) for row in row_group)
        yield (
            label(row_group[0]),
            job[2] - map_task[2] - reduce_task[2],
            sum(row[3] for row in (job, map_task, reduce_task)),
        )


# vet: the mean of ratios, bounded by means and standard deviations.


def mean_ratio_bound(pr_mean_s, pr_std_s, ei_mean_s, ei_std_s):
    """
    Least and largest mean of PR/EI to second order, for any correlation of PR and EI.

    E[PR/EI] = (mean PR / mean EI) (1 + v(EI)^2 - r v(PR) v(EI)), with v the coefficients of
    variation and the correlation r from 1 to -1.
    """
    ratio, own = pr_mean_s / ei_mean_s, (ei_std_s / ei_mean_s) ** 2
    mixed = pr_std_s / pr_mean_s * ei_std_s / ei_mean_s
    return ratio * (1 + own - mixed), ratio * (1 + own + mixed)


def vet_numbers(row):
    """
    Means and standard deviations of PR and EI in seconds, and the printed vet_job.
    """
    names = ("pr_mean_s", "pr_std_s", "ei_mean_s", "ei_std_s", "printed_vet_job")
    return tuple(float(row[name]) for name in names)


def is_possible_vet(row):
    """
    Whether the printed vet_job lies within the bound.
    """
    *moments, vet_job = vet_numbers(row)
    low, high = mean_ratio_bound(*moments)
    return low <= vet_job <= high


# SPN-GC: symbols, counts, and what a fork makes of a sum of means.


def net_counts(num_maps, num_reduces):
    """
    Places and transitions of the net, Eqs. (1) and (2).
    """
    return 5 * num_maps + 3 * num_reduces + 2, 5 * num_maps + 2 * num_reduces + 2


def symbols_without_table():
    """
    Symbols of Eqs. (5) to (14) that stand in neither table.
    """
    tabled = {row["notation"] or row["parameter"] for row in rows("spn_gc_table1_system")}
    tabled |= {row["notation"] for row in rows("spn_gc_table2_application")}
    return [row["symbol"] for row in rows("spn_gc_symbols") if row["symbol"] not in tabled]


def longest_branch(branches, stages):
    """
    Expected longest of parallel chains of exponential delays, in means of a chain.
    """
    from scipy import integrate, stats

    chain = stats.gamma(stages, scale=1 / stages)
    return integrate.quad(lambda t: 1 - chain.cdf(t) ** branches, 0, chain.isf(1e-12))[0]


# What the papers claim.


def spread(values):
    """
    The range of some values in words.
    """
    return f"{min(values):.3f} to {max(values):.3f}"


def prophet_contradictions():
    """
    For each claim on MR. Prophet's tables, the figures that contradict it.
    """
    words, others = prophet_rows("II", "wordcount"), prophet_rows("II", "terasort", "pagerank")
    table1 = prophet_rows("I")
    predictions = Counter((r["job"], r["prophet_s"], r["whatif_s"]) for r in prophet_rows("II"))
    yield "is above 94 %", [f"{label(r)} {accuracy(r):.1f} %" for r in table1 if accuracy(r) <= 94]
    yield (
        "Prophet is better than What-If for every job",
        [label(r) for r in table1 if indicator(r) <= 0],
    )
    yield (
        "I_accu of WordCount is above 10 %",
        [
            f"{label(r)} {indicator(r):.2f} %"
            f" (and the printed {r['printed_i_accu_percent']} is not above 10)"
            for r in prophet_rows("I", "wordcount")
            if float(r["input_gb"]) >= 10 and indicator(r) <= 10
        ],
    )
    yield (
        "I_accu of TeraSort and PageRank is below 10 %",
        [label(r) for r in prophet_rows("I", "terasort", "pagerank") if indicator(r) >= 10],
    )
    yield (
        "all times that What-If predicts",
        [
            f"Table {number}: {label(r)} {times(r)[2]:g} s for {times(r)[0]:g} s"
            for number in PROPHET_TABLES
            for r in prophet_rows(number)
            if times(r)[2] <= times(r)[0]
        ],
    )
    yield (
        "I_accu of WordCount's map tasks",
        [
            f"{label(r)} {indicator(r):.2f} % (printed: {r['printed_i_accu_percent']})"
            for r in words
            if indicator(r) <= 10
        ],
    )
    yield (
        "the accuracy of WordCount's map tasks",
        [f"{label(r)} {accuracy(r):.1f} %" for r in words if accuracy(r) <= 96],
    )
    yield "are not predicted well", [label(r) for r in others if indicator(r) > 0]
    yield (
        "does not depend on the input",
        [job for job, count in Counter(job for job, *_ in predictions).items() if count > 1],
    )
    yield (
        "the larger the input",
        [
            f"{small['job']} {small['input_gb']} to {large['input_gb']} GB:"
            f" {indicator(small):.2f} % to {indicator(large):.2f} %"
            for job in ("wordcount", "terasort", "pagerank")
            for small, large in pairwise(prophet_rows("III", job))
            if indicator(large) < indicator(small)
        ],
    )
    yield (
        "reduce tasks of WordCount with 2 GB",
        [label(r) for r in prophet_rows("III")[:1] if indicator(r) > 0],
    )
    yield (
        "What-If adds up times",
        [
            f"{name}: job {-rest_s:.1f} s shorter than a map and a reduce task"
            for name, rest_s, uncertain_s in remainders()
            if rest_s < -uncertain_s - ROUNDING
        ],
    )
    yield "offer 240 cores", [] if (15 * 16, 15 * 32) == (240, 480) else ["other totals"]
    yield "has 16 map tasks", [] if math.ceil(2 * 1024 / 128) == 16 else ["other splits"]
    yield (
        "the printed I_accu are those",
        [
            f"Table {number}: {label(r)} printed {r['printed_i_accu_percent']},"
            f" by (6) {indicator(r):.2f}"
            for number in PROPHET_TABLES
            for r in prophet_rows(number)
            if compare_indicator(r)[0] == "differs"
        ],
    )


def vet_contradictions():
    """
    For each claim on vet's tables, the figures that contradict it.
    """
    slots = {r["job"]: (r["cluster"], r["map_slots"]) for r in rows("vet_table1_configurations")}
    table2, table3 = (rows(name) for name in VET_TABLES.values())
    pr, pr_std, ei, ei_std, vet_job = zip(*map(vet_numbers, table2), strict=True)
    tasks = 4 * 1024 // 64  # 4 GB of input in blocks of 64 MB
    standard_error = math.hypot(ei_std[0], ei_std[-1]) / math.sqrt(tasks)
    sigmas = (ei[-1] - ei[0]) / standard_error
    yield (
        "all else equal",
        [
            (
                f"{slots['Job6'][0]} with {slots['Job6'][1]} map slots"
                f" against {slots['Job7'][0]} with {slots['Job7'][1]}"
            )
        ]
        * (slots["Job6"][1] != slots["Job7"][1]),
    )
    yield (
        "run with 6 map slots",
        [
            f"{job} on {cluster} has {count}"
            for job, (cluster, count) in slots.items()
            if cluster.startswith("C2") and count != "6"
        ],
    )
    yield (
        "EI remains constant",
        [
            (
                f"it rises from {ei[0]:.3f} to {ei[-1]:.3f} s ({100 * (ei[-1] / ei[0] - 1):.0f} %),"
                f" {sigmas:.1f} standard errors of {tasks} tasks (4 GB in blocks of 64 MB)"
            )
        ]
        * (sigmas > 3),
    )
    yield "far less than PR", [] if ei[-1] / ei[0] < pr[-1] / pr[0] else ["not less"]
    for text, values, stated in (
        ("standard deviations of EI are", ei_std, (0.211, 0.79)),
        ("standard deviations of PR are", pr_std, (2.143, 6.147)),
        ("vet_job goes from", vet_job, (2.407, 7.19)),
    ):
        differs = (min(values), max(values)) != stated
        yield text, [f"the table has {spread(values)}"] * differs
    yield (
        "EI deviates much less",
        [r["job"] for r, own, other in zip(table2, ei_std, pr_std, strict=True) if own >= other],
    )
    tuned = [vet_numbers(r)[0] for r in table3]
    yield "varies widely", [] if (min(tuned), max(tuned)) == (3.819, 6.335) else [spread(tuned)]
    yield (
        "their EI is constant",
        [r["job"] for r in table3 if abs(vet_numbers(r)[2] / ei[1] - 1) > 0.1],
    )
    impossible = []
    for row in (*table2, *table3):
        low, high = mean_ratio_bound(*vet_numbers(row)[:4])
        if not is_possible_vet(row):
            impossible.append(
                f"{row['job']}: {row['printed_vet_job']} printed, {low:.2f} to {high:.2f} possible"
            )
    yield "is the mean of PR/EI", impossible
    yield (
        "tail index of 1.3",
        [f"as printed it estimates 1/alpha: 1.3 means alpha = {1 / 1.3:.2f}, an infinite mean"],
    )


def spn_gc_contradictions():
    """
    For each claim of the paper on SPN-GC, the figures that contradict it.
    """
    missing, symbols = symbols_without_table(), rows("spn_gc_symbols")
    yield (
        "the major notations",
        [f"{len(missing)} of {len(symbols)} symbols of (5)-(14) stand in neither"],
    )
    yield (
        "share of local input",
        ["it is defined as replicas / data nodes: one constant for all maps"],
    )
    yield "nine phases", [] if net_counts(3, 2) == (23, 21) and 2 + 5 + 2 == 9 else ["others"]
    yield (
        "the mean of 2000 simulations",
        [
            f"simulated map part with the 4 maps of Table I, {text}:"
            f" {longest_branch(4, stages):.2f} times the sum of its means"
            for stages, text in ((5, "five equal phases"), (1, "all time in one phase"))
        ],
    )
    sizes = {"video, Figure 1": 10, "K-means, Figure 2": 8, "K-means, Figure 3": 9}
    yield "ten input sizes", [f"{name}: {count}" for name, count in sizes.items() if count != 10]


def contradictions():
    """
    (paper, words of the claim, figures against it) for every claim that the tables can decide.
    """
    for paper, claims in (
        ("prophet", prophet_contradictions()),
        ("vet", vet_contradictions()),
        ("spn-gc", spn_gc_contradictions()),
    ):
        for words, figures in claims:
            yield paper, words, figures


# The page.


def cell_counts():
    """
    How many printed cells compare in which way, and the ids of the slips among them.
    """
    compared = [compare_indicator(r) for number in PROPHET_TABLES for r in prophet_rows(number)]
    compared += [
        ("within the bound", "") if is_possible_vet(r) else ("differs", "V09")
        for name in VET_TABLES.values()
        for r in rows(name)
    ]
    return [
        (outcome, count, ", ".join(sorted({slip for o, slip in compared if o == outcome} - {""})))
        for outcome, count in Counter(outcome for outcome, _ in compared).items()
    ]


def made_tables():
    """
    The tables of the page, by the name that its markers give them.
    """
    claims = rows("claims")
    verdicts = Counter(claim["verdict"] for claim in claims)
    undecided = verdicts["cannot be checked"]
    return {
        "cells": ["| printed cells | compare so | slips |", "|---|---|---|"]
        + [f"| {count} | {outcome} | {slips} |" for outcome, count, slips in cell_counts()],
        "verdicts": [
            (
                f"Of {len(claims)} claims, {verdicts['holds']} hold, {verdicts['contradicted']} are"
                " contradicted by what the papers themselves print, and"
                f" {undecided} cannot be checked, because the numbers behind them"
                " are not printed."
            )
        ],
        "claims": ["| claim | the paper's own figures | id |", "|---|---|---|"]
        + [
            f"| {NAMES[claim['paper']]}: {claim['claim']} | {claim['figures']}"
            f" | {claim['erratum']} |"
            for claim in claims
            if claim["verdict"] == "contradicted"
        ],
    }


def page(text):
    """
    The page with its tables made anew.
    """
    for name, lines in made_tables().items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, _, tail = rest.partition("<!-- end -->")
        text = f"{head}<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- end -->{tail}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
