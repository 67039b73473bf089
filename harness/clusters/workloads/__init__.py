"""What to generate, submit and check, as commands; pure."""

from __future__ import annotations

from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import Workload, has_hibench_form
from harness.clusters.workloads.dfsio import Dfsio
from harness.clusters.workloads.gpu import GpuMatmul, GpuSbs
from harness.clusters.workloads.gpu_kmeans import GpuKMeans
from harness.clusters.workloads.kmeans import KMeans, MahoutKMeans
from harness.clusters.workloads.pagerank import PageRank, PegasusPageRank
from harness.clusters.workloads.shuffle import Shuffle
from harness.clusters.workloads.sleep import Sleep
from harness.clusters.workloads.sort import Sort
from harness.clusters.workloads.terasort import TeraSort
from harness.clusters.workloads.wordcount import WordCount

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        WordCount(),
        TeraSort(),
        Sort(),
        Shuffle(),
        Dfsio(),
        Sleep(),
        PageRank(),
        KMeans(),
        GpuKMeans(),
        GpuSbs(),
        GpuMatmul(),
    )
}
_HIBENCH_FORMS: dict[str, Workload] = {"pagerank": PegasusPageRank(), "kmeans": MahoutKMeans()}


def workload_for(spec: WorkloadSpec) -> Workload:
    """Return the workload of *spec*: another one where HiBench's jobs are others than ours."""
    forms = _HIBENCH_FORMS if has_hibench_form(spec) else {}
    return forms.get(spec.name, WORKLOADS[spec.name])
