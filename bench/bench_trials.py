"""
Ten repeats of a TeraSort of 200 MB: their spread, and the harness's own time per trial.

Each trial is brought to reference speed by a correction that was fitted on the nine others.  The
harness's own time runs from the application master's exit to the start of the next trial's client.
"""

import statistics
import tempfile

from itertools import pairwise
from pathlib import Path

from harness.base.stats.spread import coefficient_of_variation
from harness.core.evaluate.flow import Evaluation
from harness.core.run.session import Session
from harness.observe.profiling import fit_speed
from tests.run.fakes import RecordingConsole

FILE = Path(__file__).parent / "terasort.yaml"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = Session(FILE.read_text(), str(FILE), Path(folder), (), RecordingConsole())
        run, failed = session.measure()
        print(f"failed trials: {failed}")
        evaluation = session.evaluation(run)
        spread(evaluation)
        own_time(evaluation)


def spread(evaluation: Evaluation) -> None:
    jobs = [job for record in evaluation.done.values() for job in evaluation.observe(record)]
    raw = [job.trace.job_s for job in jobs]
    corrected = []
    for number, job in enumerate(jobs):
        speed = fit_speed(jobs[:number] + jobs[number + 1 :])
        assert job.rate is not None
        corrected.append(speed.at_reference(job.trace.job_s, job.rate))
    for name, times in (("raw", raw), ("at reference speed", corrected)):
        print(
            f"spread {name}: {coefficient_of_variation(times):.1%} of {len(times)} repeats,"
            f" mean {statistics.mean(times):.2f} s"
        )
    print(f"correction on all ten: {fit_speed(jobs)}")
    print("job_s, rate:", ", ".join(f"{j.trace.job_s:.2f} {j.rate:.0f}" for j in jobs))


def own_time(evaluation: Evaluation) -> None:
    records = sorted(evaluation.done.values(), key=lambda r: r.started_s)
    gaps = []
    for record, following in pairwise(records):
        spent = (record.harness_s[k] for k in ("prepare_s", "client_s", "verify_s", "am_exit_s"))
        gone_s = record.started_s + sum(spent)
        gaps.append(following.started_s + following.harness_s["prepare_s"] - gone_s)
    shown = f"{min(gaps):.2f} to {max(gaps):.2f}"
    print(f"own time beyond the master's exit: median {statistics.median(gaps):.2f} s, {shown}")
    lingers = [r.harness_s["am_exit_s"] + r.harness_s["verify_s"] for r in records]
    print(f"from the client's end to the master's exit: median {statistics.median(lingers):.2f} s")


if __name__ == "__main__":
    main()
