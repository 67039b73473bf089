"""HiBench's lines: a trial each, for scripts that read those of HiBench."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from harness.base.documents.document import Document
from harness.base.records.trial import TrialRecord, WorkloadSpec

DFSIO_MODE = "read"  # where an experiment does not say it
# Input and jobs are HiBench's: always, or with `hibench: true`.
HIBENCH_WORKLOADS = {"terasort": ("true", "false"), "wordcount": ("true",), "sort": ("true",)}
_LINE = "{:<12} {:<10} {:<8} {:<20} {:<20} {:<20} {:<20}"
_HEAD = (
    "Type",
    "Date",
    "Time",
    "Input_data_size",
    "Duration(s)",
    "Throughput(bytes/s)",
    "Throughput/node",
)


def render_hibench(document: Document) -> str:
    """
    Write lines in the form of HiBench's ``hibench.report``: scripts that read those read these.

    There is one for each done trial whose client was timed, in the order in which they ended.
    Columns and arithmetic are those of HiBench's ``gen_report`` (its
    ``bin/functions/workload_functions.sh``): what is divided is cut to a whole number.  The
    duration is that of the client, from its start to its end.  Dates and times are in UTC.
    """
    done = [
        record
        for record in document.trials
        if record.state == "done" and "client_s" in record.harness_s
    ]
    done.sort(key=lambda record: (record.finished_s, record.trial.id))
    return "\n".join([_LINE.format(*_HEAD), *map(_trial_line, done)]) + "\n"


def _trial_line(record: TrialRecord) -> str:
    workload = record.trial.cell.workload
    duration_s = Fraction(int(1000 * record.harness_s["client_s"]), 1000)
    size_bytes = _input_bytes(record)
    rate = int(size_bytes / duration_s) if duration_s else 0
    node_rate = rate // record.trial.cell.cluster.workers
    ended = datetime.fromtimestamp(int(record.finished_s), UTC)
    date = f"{ended:%Y-%m-%d}"
    time = f"{ended:%H:%M:%S}"
    # Three decimals, and no 0 before the point: so ``bc`` writes them.
    seconds = f"{float(duration_s):.3f}"
    seconds = seconds.removeprefix("0") if seconds != "0.000" else "0"
    return _LINE.format(hibench_name(workload), date, time, size_bytes, seconds, rate, node_rate)


def _input_bytes(record: TrialRecord) -> int:
    """What the job read, as HiBench counts it: nothing of a sleep, of a test of HDFS its files."""
    workload = record.trial.cell.workload
    if workload.name == "sleep":
        return 0
    if workload.name == "dfsio" or record.input_bytes is None:
        return workload.input_bytes
    return record.input_bytes


def hibench_name(workload: WorkloadSpec) -> str:
    """
    HiBench's type of a workload whose input and jobs are HiBench's; of others a name of our own.

    >>> [hibench_name(WorkloadSpec(name=n, input_bytes=1)) for n in ("terasort", "gpu-kmeans")]
    ['HadoopTerasort', 'HarnessGpuKmeans']
    """
    words = "".join(word.capitalize() for word in workload.name.split("-"))
    if workload.name == "dfsio":
        words += f"-{workload.parameters.get('mode', DFSIO_MODE)}"
    form = workload.parameters.get("hibench", "false")
    return f"{'Hadoop' if form in HIBENCH_WORKLOADS.get(workload.name, ()) else 'Harness'}{words}"
