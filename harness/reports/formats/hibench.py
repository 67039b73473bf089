"""
The lines of HiBench's ``hibench.report``: scripts that read those read these.

A line for each done trial, in the order in which they ended.  Columns and arithmetic are those of
HiBench's ``gen_report`` (its ``bin/functions/workload_functions.sh``): what is divided is cut to a
whole number.  The duration is that of the client, from its start to its end, as HiBench takes it.
Dates and times are in UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from harness.records.trial import WorkloadSpec
from harness.reports.data import ReportData

_FORMAT = "{:<12} {:<10} {:<8} {:<20} {:<20} {:<20} {:<20}"
_HEAD = (
    "Type", "Date", "Time", "Input_data_size", "Duration(s)", "Throughput(bytes/s)",
    "Throughput/node",
)  # fmt: skip
_CLIENT = "client_s"
DFSIO_MODE = "read"  # where an experiment does not say it


def render_hibench(results: ReportData) -> str:
    """Write the header, and a line for each done trial whose client was timed."""
    done = [
        each_trial
        for each_trial in results.trials
        if each_trial.state == "done" and _CLIENT in each_trial.harness_s
    ]
    lines = [_FORMAT.format(*_HEAD)]
    for record in sorted(done, key=lambda record: (record.finished_s, record.trial.id)):
        workload = record.trial.cell.workload
        # Nothing of a job that sleeps; of a test of HDFS what it moves.
        size = 0 if workload.name == "sleep" else workload.input_bytes
        if workload.name not in ("sleep", "dfsio") and record.input_bytes is not None:
            size = record.input_bytes
        duration = Fraction(int(1000 * record.harness_s[_CLIENT]), 1000)
        rate = int(size / duration) if duration else 0
        ended = datetime.fromtimestamp(int(record.finished_s), UTC)
        # Three decimals, and no 0 before the point: so ``bc`` writes them.
        seconds = f"{float(duration):.3f}"
        lines.append(
            _FORMAT.format(
                hibench_name(workload),
                ended.strftime("%Y-%m-%d"),
                ended.strftime("%H:%M:%S"),
                size,
                seconds.removeprefix("0") if seconds != "0.000" else "0",
                rate,
                rate // record.trial.cell.cluster.workers,
            )
        )
    return "\n".join(lines) + "\n"


def hibench_name(workload: WorkloadSpec) -> str:
    """
    Name of a workload as HiBench writes it; of one that HiBench lacks, in the same manner.

    >>> [hibench_name(WorkloadSpec(name=n, input_bytes=1)) for n in ("wordcount", "gpu-kmeans")]
    ['HadoopWordcount', 'HadoopGpuKmeans']
    """
    if workload.name == "dfsio":
        return f"HadoopDfsioe-{workload.parameters.get('mode', DFSIO_MODE)}"
    return "Hadoop" + "".join(word.capitalize() for word in workload.name.split("-"))
