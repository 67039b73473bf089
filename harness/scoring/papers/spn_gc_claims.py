"""What the paper on SPN-GC says of its model and its results, held against what it prints."""

from __future__ import annotations

from harness.scoring.papers.records import Claim, judged, unchecked
from harness.scoring.papers.spn_gc import counts, equations, longest, untabled

_PAPER = "spn-gc"
_MAPS = 4  # M_ref of Table I
_PHASES = {"of the job": 2, "of each map": 5, "of each reduce": 2}
_KMEANS_MILLIONS = (0.5, 1, 2, 3, 4, 5, 6, 7)  # points of Figure 2; Figure 3 has 8 too
_VIDEO_S = range(30, 301, 30)


def claims() -> list[Claim]:
    """Every claim of the paper that what it prints could decide."""
    return [*_on_notations(), *_on_net(), _on_experiments(), *_unchecked()]


def _on_notations() -> list[Claim]:
    missing = untabled()
    return [
        judged(
            _PAPER,
            "section II.C, Tables I and II",
            "the tables hold the major notations",
            against=[f"{len(missing)} of {len(equations())} symbols of (5)-(14) stand in neither"]
            if missing
            else [],
            erratum="ST2",
        ),
        judged(
            _PAPER,
            "section II.B, A_j",
            "the share of local input is random, for each map",
            against=["it is defined as replicas / data nodes: one constant for all maps"],
            erratum="S04",
        ),
    ]


def _on_net() -> list[Claim]:
    phases = sum(_PHASES.values())
    places, transitions = counts(3, 2)
    simulated = f"simulated map part with the {_MAPS} maps of Table I"
    parts = (
        (f"{simulated}, five equal phases", longest(_MAPS, 5)),
        (f"{simulated}, all time in one phase", longest(_MAPS, 1)),
    )
    return [
        judged(
            _PAPER,
            "(2), section II",
            "nine phases make 5M + 2R + 2 transitions",
            against=[] if phases == 9 else [f"{phases} phases"],
            support=", ".join(f"{count} phases {of}" for of, count in _PHASES.items())
            + f"; M = 3, R = 2: {places} places, {transitions} transitions",
            erratum="S23",
        ),
        judged(
            _PAPER,
            "section III.A",
            "the estimate is the total of the phases' means, and the mean of 2000 simulations",
            against=[f"{what}: {ratio:.2f} times the sum of its means" for what, ratio in parts],
        ),
    ]


def _on_experiments() -> Claim:
    inputs = {
        "video, Figure 1": len(_VIDEO_S),
        "K-means, Figure 2": len(_KMEANS_MILLIONS),
        "K-means, Figure 3": len({*_KMEANS_MILLIONS, 8}),
    }
    return judged(
        _PAPER,
        "section III.A",
        "each program is fed with ten input sizes",
        against=[f"{program}: {count}" for program, count in inputs.items() if count != 10],
        erratum="S25",
    )


def _unchecked() -> list[Claim]:
    return [
        unchecked(
            _PAPER,
            "abstract, section IV, Figures 1 and 2",
            "the error is within 10 %",
            "figures without printed numbers; once it is the range, once the average",
            erratum="S25",
        ),
        unchecked(
            _PAPER,
            "section IV",
            "the model was compared with three applications",
            "two are shown; matrix multiplication is left out",
            erratum="S25",
        ),
        unchecked(
            _PAPER,
            "section III.B, Figure 3",
            "the time cost ratio falls to about 0.7 % (time of the model / time of the job)",
            "neither time is printed; whether the test job counts is not said",
        ),
        unchecked(
            _PAPER,
            "section III, PIPE2",
            "the net obeys the rules of stochastic Petri nets",
            "its arcs are not listed; docs/models/spn-gc.md derives two nets that do",
            erratum="S23",
        ),
        unchecked(
            _PAPER,
            "section III.A",
            "disk and memory speed were measured",
            "with 100 blocks of 1000 bytes, which measures the page cache",
            erratum="S27",
        ),
    ]
