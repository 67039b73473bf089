"""The jobs of a family that have run before: there is nothing to generate, submit or check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from harness.base.errors import JobError
from harness.base.records.trial import WorkloadSpec
from harness.clusters.workloads.base import (
    MOST_FILES,
    File,
    InputPlan,
    JobCommand,
    Parameter,
    Sample,
    Workload,
    even_sizes,
)

COMBINER = "mapreduce.job.combine.class"


class PastJobs(Workload):
    """
    Jobs known by their histories alone, of whichever family.

    Their input is what their maps read, split as evenly as the number of maps allows.
    """

    name = "history"
    description = "Jobs that have run, from their histories"
    main_class = ""
    parameters: ClassVar = {"maps": Parameter(1, "maps of the job", 1, MOST_FILES)}

    def __init__(self, configuration: Mapping[str, str]) -> None:
        """Know of a job with *configuration* whether it sets a combiner."""
        self.uses_combiner = bool(configuration.get(COMBINER, "").strip())

    def configured(self, configuration: Mapping[str, str]) -> Workload:
        """Give the jobs with this *configuration*, which says whether they combine."""
        return PastJobs(configuration)

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """One file for each map; whatever the blocks of the input were, no history says."""
        sizes = even_sizes(spec.input_bytes, self.arguments(spec)["maps"])
        return InputPlan("history", sizes, JobCommand("", ()))

    def resized(self, spec: WorkloadSpec, before: WorkloadSpec) -> WorkloadSpec:
        """More input has more splits, of the size that they had, unless their number is changed."""
        maps = spec.parameters.get("maps")
        if maps != before.parameters["maps"]:
            return spec
        growth = spec.input_bytes / before.input_bytes
        resized_maps = max(1, round(int(maps) * growth))
        return spec.model_copy(update={"parameters": spec.parameters | {"maps": resized_maps}})

    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """Raise `JobError`: nobody has the input."""
        raise JobError("the input of a job that has run is not there", where=spec.name)

    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """Say that nothing was proved."""
        return "the output of a job that has run is not there"
