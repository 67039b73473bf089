"""
`harness ask` over a grid of 10,000 points of What-If: all at once, beside one by one, in turn.

A TeraSort of 10 GiB on 16 workers, by a made-up profile: what counts is how long the answers take,
from settings to rows.  The loop asks for a part of the grid, in pieces below those that are asked
at once.  Rates are points per second of the core.
"""

import time

from harness.base.records.profile import FRAME, Profile, Statistic
from harness.base.records.trial import Cell, ClusterSpec, WorkloadSpec
from harness.base.units import MIB
from harness.core.evaluate.basis import Basis
from harness.core.evaluate.resolved import resolve_cell
from harness.core.run.preflight import known_names
from harness.models.whatif.inputs import COSTS
from harness.tuning.ask import MANY, answers, questions

ROUNDS, LOOPED = 5, 400
GRID = (
    f"mapreduce.job.reduces={','.join(map(str, range(1, 101)))}",
    f"mapreduce.task.io.sort.mb={','.join(map(str, range(20, 220, 2)))}",
)


def main() -> None:
    values = {"input_record_bytes": 100.0}, {n: 1e-7 if "record" in n else 1e-8 for n in COSTS}
    statistics, costs, frame = (
        {
            name: Statistic(value=value, count=1, spread=0.0, source="made up")
            for name, value in part
        }
        for part in (*(each.items() for each in values), dict.fromkeys(FRAME, 0.5).items())
    )
    workload = WorkloadSpec(name="terasort", input_bytes=10 * 1024 * MIB)
    base = Cell(cluster=ClusterSpec(workers=16), workload=workload)
    profile = Profile(workload="terasort", statistics=statistics, costs=costs, frame=frame)
    basis, rates = Basis(resolve_cell(base), "made up", profile), {"at once": [], "one by one": []}
    for _ in range(ROUNDS):
        started = time.process_time()
        requests = questions(basis.resolved, (), GRID, known_names())
        at_once = list(answers("whatif", requests, basis))
        rates["at once"].append(len(requests) / (time.process_time() - started))
        some = [requests[0], *requests[1 :: len(requests) // LOOPED]]
        started, looped = time.process_time(), []
        for place in range(1, len(some), MANY - 2):
            piece = [requests[0], *some[place : place + MANY - 2]]
            looped += list(answers("whatif", piece, basis))[1:]
        rates["one by one"].append(len(looped) / (time.process_time() - started))
    for how, each in rates.items():
        middle = sorted(each)[ROUNDS // 2]
        print(f"{how}: median {middle:,.0f} points a second ({min(each):,.0f} to {max(each):,.0f})")
    by_name = {row["cell"]: row["job_s"] for row in at_once}
    worst = max(abs(by_name[row["cell"]] / row["job_s"] - 1) for row in looped)
    print(f"{len(requests) - 1:,} points; largest difference {worst:.1e} of {len(looped)} points")


if __name__ == "__main__":
    main()
