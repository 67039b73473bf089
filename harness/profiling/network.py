"""The rate at which a node takes in map output, from the copies of all its reduces together."""

from __future__ import annotations

import math

from collections.abc import Sequence

from harness.profiling.dataflow import Pair, pooled
from harness.profiling.observation import Observation
from harness.profiling.spans import covered
from harness.records.profile import SpeedCorrection, Statistic
from harness.records.task_times import ReduceTimes


def network_statistics(
    observations: Sequence[Observation], speed: SpeedCorrection
) -> dict[str, Statistic]:
    """
    `network_bps`: bytes sent to a node's reduces / time in which one or more were on their way.

    Bytes per second at reference speed under the jobs' own load, so it is no more than what the
    network can do.  From spans where any job has them, else from logs; absent where nobody copied.
    """
    told = [(o, _copied(o)) for o in observations]
    spans = any(r.source == "spans" for _, reduces in told for r in reduces)
    source = "spans" if spans else "logs"
    rates = [
        (host, pair)
        for o, reduces in told
        for host, pair in _by_host(o, [r for r in reduces if r.source == source], speed)
    ]
    if not rates:
        return {}
    what = f"{source}: bytes sent to a node / time in which some were on their way"
    return {"network_bps": pooled(rates, f"{what}, over {len(rates)} nodes of jobs")}


def _copied(observation: Observation) -> list[ReduceTimes]:
    """Reduces that succeeded and copied something."""
    done = {a.attempt_id for a in observation.trace.succeeded("reduce")}
    reduces = (t for t in observation.inside if isinstance(t, ReduceTimes) and t.segments)
    return [t for t in reduces if t.attempt_id in done]


def _by_host(
    observation: Observation, reduces: Sequence[ReduceTimes], speed: SpeedCorrection
) -> list[tuple[str, Pair]]:
    rate = observation.rate
    factor = speed.at_reference(1.0, rate) if rate else 1.0
    found = []
    for host in sorted({r.host for r in reduces}):
        segments = [s for r in reduces if r.host == host for s in r.segments]
        busy = covered([(s.start_s, s.finish_s) for s in segments], (-math.inf, math.inf))
        if busy > 0:
            found.append((host, (float(sum(s.sent_bytes for s in segments)), busy * factor)))
    return found
