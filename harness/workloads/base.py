"""
The contract of a workload: what to generate, submit and read back, as data.

Nothing here runs anything.  `harness.run` executes the commands, and feeds the bytes of input
and output files to `sample` and `verdict`, which together prove the output right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.records.trial import WorkloadSpec

INPUT_TOLERANCE = 0.01  # an input may differ from the size that was asked for by so much of it


@dataclass(frozen=True, slots=True)
class JobCommand:
    """
    A MapReduce client to run: main class, arguments before which -D properties are put.

    *jar* names that of our jars which holds the class (`JOBS`, `GPU`); none: it is Hadoop's.  One
    client may run several jobs, one after the other, as iterative workloads do; its log names them.
    """

    main_class: str
    arguments: tuple[str, ...]
    program: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    jar: str = ""

    def argv(self, properties: Mapping[str, str]) -> tuple[str, ...]:
        """Arguments of the client: program, all -D (the command's own win), then the rest."""
        merged = {**properties, **self.properties}
        head = (self.program,) if self.program else ()
        options = tuple(f"-D{key}={value}" for key, value in merged.items())
        return (*head, *options, *self.arguments)


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of a generated input: its name in the input folder, and its bytes (within 1 %)."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class InputPlan:
    """
    The input that a workload needs: content key, files.

    Equal keys mean equal content.  No file is larger than a block, so each is one split.
    """

    key: str
    files: tuple[InputFile, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(f.bytes for f in self.files)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Is the output right?  *reason* says what is wrong, *facts* what was compared."""

    right: bool
    reason: str = ""
    facts: Mapping[str, int | str] = field(default_factory=dict)


File = tuple[str, Iterable[bytes]]
Value = str | int | float

JOBS, GPU = "harness-jobs.jar", "harness-gpu.jar"


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    A further argument of a workload, what it means (one line), and what it may be.

    A value is of the kind of *default*: one of *choices* where there are any, a number from *least*
    to *most*.
    """

    default: Value
    meaning: str
    least: float = float("-inf")
    most: float = float("inf")
    choices: tuple[str, ...] = ()


class Workload(Protocol):
    """
    One workload.

    `uses_combiner` says whether its job sets a combiner class (models ask).  `parameters` are its
    arguments beside input and seed, `scales` HiBench's names of input sizes in bytes.  `sample`
    folds over the input as it lies in the file system and keeps what `verdict` needs
    (JSON-serialisable: it is cached with the input); its `records`, where it has them, are those
    that each job of a trial reads.

    A trial is one job, or several of one kind: what models are told of holds for each of them.
    """

    name: str
    uses_combiner: bool
    description: str
    parameters: Mapping[str, Parameter]
    scales: Mapping[str, int]

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """Properties that its jobs set themselves, whatever the configuration says."""
        ...

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """Jobs of one trial; `None`: as many as it takes, up to a limit."""
        ...

    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Files of the input of *spec*."""
        ...

    def generate(self, spec: WorkloadSpec, block_bytes: int, uri: str) -> JobCommand:
        """Return the job that writes the input under *uri*."""
        ...

    def sample(self, spec: WorkloadSpec, files: Iterable[File]) -> dict[str, Any]:
        """Return what `verdict` needs to know of the input."""
        ...

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """Jobs of one trial, in order; the trial's configuration is added by the caller."""
        ...

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:
        """Folder whose ``part-*`` files `verdict` reads, in order of their names."""
        ...

    def verdict(
        self, spec: WorkloadSpec, outputs: Iterable[File], sample: Mapping[str, Any]
    ) -> Verdict:
        """Compare the output files with what is known of the input."""
        ...


class SingleJob:
    """What holds for a workload of one job that leaves the configuration to the experiment."""

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:  # noqa: ARG002 - it sets none
        """Nothing: the configuration is the experiment's."""
        return {}

    def jobs(self, spec: WorkloadSpec) -> int | None:  # noqa: ARG002 - always one
        """One."""
        return 1

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:  # noqa: ARG002 - one folder
        """Folder that the job was given."""
        return output_uri
