"""
The contract of a workload: what to generate, submit and read back, as data.

`harness.core.run` executes the commands, and feeds the bytes of input and output files to `sample`
and `verdict`, which together prove the output right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from harness.base.errors import JobError, SpecError
from harness.base.hadoop.properties import whole
from harness.base.installed import see
from harness.base.records.trace import TASK_COUNTER, JobTrace
from harness.base.records.trial import WorkloadSpec
from harness.base.text import nearest_name
from harness.base.units import MIB

INPUT_TOLERANCE = 0.01  # an input may differ from the size that was asked for by so much of it
MOST_FILES = 100_000  # of one input: a NameNode on one machine holds them, and a plan lists them

SMALL_INPUT_BYTES = 256 * MIB  # which a client writes sooner than a job starts

SIZES = ("tiny", "small", "large", "huge", "gigantic", "bigdata")
EXAMPLES = "org.apache.hadoop.examples.ExampleDriver"
PACKAGE = "mapreduce.harness.jobs"
JOBS = "harness-jobs.jar"
GPU = "harness-gpu.jar"
_PACKAGES = {JOBS: PACKAGE, GPU: "mapreduce.harness.gpu"}

File = tuple[str, Iterable[bytes]]  # name and chunks
Sample = Mapping[str, Any]
Value = str | int | float


@dataclass(frozen=True, slots=True)
class JobCommand:
    """
    A MapReduce client to run: main class, arguments before which -D properties are put.

    *jar* names that of our jars which has the class (`JOBS`, `GPU`); none: it is Hadoop's.  One
    client may run several jobs, one after the other, as iterative workloads do; its log names them.
    """

    main_class: str
    arguments: tuple[str, ...]
    program: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    jar: str = ""

    def argv(self, properties: Mapping[str, str], conf: str = "") -> tuple[str, ...]:
        """
        Arguments of the client: program, all -D (the command's own win), then the rest.

        *conf* is a file of further properties, which stand in no list of processes.
        """
        merged = {**properties, **self.properties}
        options = (f"-D{name}={setting}" for name, setting in merged.items())
        conf_option = ("-conf", conf) if conf else ()
        program = (self.program,) if self.program else ()
        return (*program, *conf_option, *options, *self.arguments)


def job_of_ours(
    main: str, *places: str, properties: Mapping[str, Value], jar: str = JOBS
) -> JobCommand:
    """Return the client *main* of one of our jars."""
    texts = {name: str(setting) for name, setting in properties.items()}
    return JobCommand(f"{_PACKAGES[jar]}.{main}", places, properties=texts, jar=jar)


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of a generated input: its name in the input folder, and its bytes (within 1 %)."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class InputPlan:
    """
    The input that a workload needs: content key, bytes of each file, and the job that writes them.

    Equal keys mean equal content.  No file is larger than a block, so each is one split.  The
    arguments of *generator* lack the last one, the folder.
    """

    key: str
    sizes: Sequence[int]
    generator: JobCommand

    @property
    def files(self) -> list[InputFile]:
        """The files, named as the maps of a job without reduces name them."""
        return [InputFile(f"part-m-{number:05d}", size) for number, size in enumerate(self.sizes)]

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    A further argument of a workload, what it means (one line), and what it may be.

    A value is of the kind of *default*: one of *choices* where there are any, a number from *least*
    to *most*, a multiple of *step*.
    """

    default: Value
    meaning: str
    least: float = float("-inf")
    most: float = float("inf")
    choices: tuple[str, ...] = ()
    step: int = 1

    def complaint(self, value: Value) -> str:
        """What is wrong with *value*, or nothing; a whole number may stand for a fraction."""
        if self.choices:
            return "" if value in self.choices else f"it must be one of {', '.join(self.choices)}"
        if isinstance(self.default, str):
            return "" if isinstance(value, str) else "it must be a text"
        kinds = (int,) if isinstance(self.default, int) else (int, float)
        if not isinstance(value, kinds):
            return "it must be a whole number" if kinds == (int,) else "it must be a number"
        if not self.least <= float(value) <= self.most:
            return f"it must be from {self.least:g} to {self.most:g}"
        uneven = self.step > 1 and value % self.step
        return f"it must be a multiple of {self.step}" if uneven else ""


HIBENCH = Parameter("false", "input and jobs as in HiBench", choices=("false", "true"))


def has_hibench_form(spec: WorkloadSpec) -> bool:
    """Whether *spec* asks for HiBench's input and jobs."""
    return spec.parameters.get("hibench") == "true"


class Workload(ABC):
    """
    One workload: unless it says otherwise, of one job that leaves the configuration as it is.

    `main_class` is that of its client in our *jar*, where it has no `submit` of its own.
    `uses_combiner` says whether its job sets a combiner class (models ask).  `parameters` are its
    arguments beside input and seed, `sizes` the bytes of HiBench's input sizes (`SIZES`).
    `unlike_hibench` says what is other in HiBench's workload of that kind; empty: it is the same,
    with the parameters of `as_hibench` where it is asked for.

    A trial is one job, or several.  They are of one kind, and what a model predicts holds for each
    of them; where they are not (`jobs_alike`), no model is asked.  Where each reads what the one
    before wrote (`jobs_chained`), models are asked about the later ones with that as their input.
    """

    name: str
    description: str
    main_class: str
    jar = JOBS
    uses_combiner = False
    jobs_alike = True
    jobs_chained = False
    libraries: ClassVar[tuple[str, ...]] = ()  # of the extra `clusters`, which prove its output
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    sizes: Sequence[float] = ()
    unlike_hibench = "HiBench has no such workload"
    as_hibench: ClassVar[Mapping[str, Value]] = {}

    @cached_property
    def scales(self) -> dict[str, int]:
        """HiBench's names of input sizes, with the bytes of each."""
        return dict(zip(SIZES, map(int, self.sizes), strict=bool(self.sizes)))

    def arguments(self, spec: WorkloadSpec) -> dict[str, Any]:
        """
        Value of every parameter: that of *spec*, or its default.

        Raises `SpecError` for a parameter that is unknown, of another kind, or out of its range.
        """
        fixed = self.as_hibench if has_hibench_form(spec) else {}
        for name, argument in spec.parameters.items():
            if name not in {*self.parameters, "hibench"}:
                raise self._unknown_parameter_error(spec, name)
            parameter = self.parameters.get(name, HIBENCH)
            if name == "hibench" and argument == "true" and self.unlike_hibench:
                raise SpecError(
                    f"{spec.name} cannot run as in HiBench: {self.unlike_hibench}",
                    where=f"workload {spec.name!r}, hibench",
                    fix="remove it" + see("hibench.md", "names the settings that come nearest"),
                )
            complaint = parameter.complaint(argument)
            if argument != fixed.get(name, argument):
                complaint = complaint or f"that of HiBench is {fixed[name]}"
            if complaint:
                raise SpecError(
                    f"{name} of {spec.name} is {shown(str(argument))}: {complaint}",
                    where=f"workload {spec.name!r}, {name}",
                    fix=f"write, for example, {name}: {fixed.get(name, parameter.default)}",
                )
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        return {**defaults, **fixed, **spec.parameters}

    def _unknown_parameter_error(self, spec: WorkloadSpec, name: str) -> SpecError:
        """Error for a parameter that the workload does not have, with the one that was meant."""
        if nearest := nearest_name(name, self.parameters):
            fix = f"did you mean {nearest}?"
        elif self.parameters:
            fix = f"remove it: its parameters are {', '.join(self.parameters)}"
        else:
            fix = "remove it: input and seed are all it takes"
        return SpecError(
            f"{spec.name} has no parameter {shown(name)}", where=f"workload {spec.name!r}", fix=fix
        )

    def properties(self, spec: WorkloadSpec) -> Mapping[str, str]:
        """Properties that its jobs set themselves, whatever the configuration says."""
        return {}

    def configured(self, configuration: Mapping[str, str]) -> Workload:
        """Give the workload of jobs with this *configuration*: it is the same for all."""
        return self

    def resized(self, spec: WorkloadSpec, before: WorkloadSpec) -> WorkloadSpec:
        """*spec*, asked for with another input than *before*, with what follows from its size."""
        return spec

    def output_copies(self, properties: Mapping[str, str]) -> int:
        """How many copies HDFS keeps of what its jobs write with all these *properties*."""
        return whole("dfs.replication", properties["dfs.replication"])

    def jobs(self, spec: WorkloadSpec) -> int | None:
        """Jobs of one trial; `None`: as many as it takes, up to a limit."""
        return 1

    @abstractmethod
    def plan_input(self, spec: WorkloadSpec, block_bytes: int) -> InputPlan:
        """Files of the input of *spec*, none larger than a block, and the job that writes them."""

    def generate(self, spec: WorkloadSpec, block_bytes: int, input_uri: str) -> JobCommand:
        """Return the job that writes the input under *input_uri*."""
        generator = self.plan_input(spec, block_bytes).generator
        return replace(generator, arguments=(*generator.arguments, input_uri))

    @abstractmethod
    def sample(self, spec: WorkloadSpec, input_files: Iterable[File]) -> dict[str, Any]:
        """
        Fold over the input as it is in the file system, and return what `verdict` needs of it.

        The result is JSON-serialisable: it is cached with the input.  Its `records`, where it has
        them, are those that each job of a trial reads.  Raises `JobError` for a damaged input.
        """

    def client_properties(self, spec: WorkloadSpec) -> dict[str, Any]:
        """Properties by which its client of our jar gets its arguments."""
        return {}

    def submit(self, spec: WorkloadSpec, input_uri: str, output_uri: str) -> tuple[JobCommand, ...]:
        """Jobs of one trial, in order; the trial's configuration is added by the caller."""
        properties = self.client_properties(spec)
        places = (input_uri, output_uri)
        return (job_of_ours(self.main_class, *places, properties=properties, jar=self.jar),)

    def outputs(self, spec: WorkloadSpec, output_uri: str) -> str:
        """Folder whose ``part-*`` files `verdict` reads, in order of their names."""
        return output_uri

    def verdict(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """What is wrong with the output files, or nothing; what cannot be read is wrong."""
        try:
            return self.complaint(spec, outputs, sample)
        except JobError as error:
            return error.what

    def example(self) -> tuple[dict[str, bytes], bytes]:
        """Small files of an input and the right output, on which `harness check` tries it."""
        raise NotImplementedError("write example(): files of an input, and the right output")

    @abstractmethod
    def complaint(self, spec: WorkloadSpec, outputs: Iterable[File], sample: Sample) -> str:
        """What is wrong with the output, or nothing; `JobError` where it cannot be read."""


def unbalanced(trace: JobTrace, *, uses_combiner: bool, input_records: int | None) -> str:
    """
    Say which counters of a job do not add up, rule by rule, or nothing.

    *input_records* is the number of records in the input files, `None` where nobody counted them.
    Each rule holds for every job whose attempts all ran once.  A job without reduces has the first
    rule only.
    """
    if f"{TASK_COUNTER}.MAP_INPUT_RECORDS" not in trace.counters:
        return "the job's counters lack MAP_INPUT_RECORDS"

    def count(name: str) -> int:
        # Hadoop leaves out counters that nothing touched.
        return trace.counters.get(f"{TASK_COUNTER}.{name}", 0)

    rules: list[tuple[str, int, str]] = []  # counter, its value by the rule, what that value is
    if input_records is not None:
        rules.append(("MAP_INPUT_RECORDS", input_records, "records of the input"))
    if trace.num_reduces:
        map_output = count("MAP_OUTPUT_RECORDS")
        combine_input = count("COMBINE_INPUT_RECORDS")
        if uses_combiner:
            least = max(combine_input, map_output)  # each spill combines
            rules.append(("COMBINE_INPUT_RECORDS", least, "MAP_OUTPUT_RECORDS, or more"))
        else:
            counters = ("COMBINE_INPUT_RECORDS", "COMBINE_OUTPUT_RECORDS")
            rules += [(counter, 0, "a job without a combiner") for counter in counters]
        # Exact also where a merge of three or more spills combines again: what the spills put out
        # is then put in a second time by the merge, and drops out of the difference.
        remaining = map_output - (combine_input - count("COMBINE_OUTPUT_RECORDS"))
        fetches = trace.num_maps * trace.num_reduces  # empty segments are fetched, too
        written = count("MAP_OUTPUT_MATERIALIZED_BYTES")
        rules += [
            ("REDUCE_INPUT_RECORDS", remaining, "map output records less combined ones"),
            ("SHUFFLED_MAPS", fetches, "maps x reduces"),
            ("REDUCE_SHUFFLE_BYTES", written, "MAP_OUTPUT_MATERIALIZED_BYTES"),
            ("FAILED_SHUFFLE", 0, "a job without repeated fetches"),
        ]
    return "; ".join(
        f"{name} is {count(name)}, not {expected} ({meaning})"
        for name, expected, meaning in rules
        if count(name) != expected
    )


def block_count(spec: WorkloadSpec, size: int, block_size: int) -> int:
    """Blocks, and so files, of an input of this size; `SpecError` where they are too many."""
    count = -(-size // block_size)
    if count > MOST_FILES:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes has {count} blocks, more than {MOST_FILES}",
            where=f"{spec.name}, input",
            fix="ask for less input, or for larger blocks (cluster.site.dfs.blocksize)",
        )
    return count


def check_block(spec: WorkloadSpec, block_bytes: int, record_bytes: int) -> None:
    """Raise `SpecError` where a block does not hold a record."""
    if block_bytes < record_bytes:
        raise SpecError(
            f"a block of {block_bytes} bytes does not hold a record of {record_bytes} bytes",
            where=f"{spec.name}, dfs.blocksize",
            fix="use larger blocks (cluster.site.dfs.blocksize), or smaller records",
        )


def check_size(spec: WorkloadSpec, planned_bytes: int, size_units: str, enough_bytes: int) -> None:
    """Raise `SpecError` where an input of *size_units* is not within 1 % of the size asked."""
    if abs(planned_bytes - spec.input_bytes) * 100 > spec.input_bytes:
        raise SpecError(
            f"an input of {spec.input_bytes} bytes is not within 1 % of {size_units}",
            where=f"{spec.name}, input",
            fix=f"ask for {planned_bytes} bytes, or for {enough_bytes} bytes or more",
        )


def bad_input_error(workload: str, what: str) -> JobError:
    """Error for an input that is not what its generator writes."""
    return JobError(
        what,
        where=f"input of {workload}, as its generator left it",
        fix="remove this input, so that it is generated again",
    )


def even_sizes(total: int, parts: int) -> list[int]:
    """
    Split *total* into *parts* that differ by one at most.

    >>> even_sizes(11, 3)
    [4, 4, 3]
    """
    least_size, larger_parts = divmod(total, parts)
    return [least_size + (part_number < larger_parts) for part_number in range(parts)]


def shown(value: str | bytes) -> str:
    """
    Quote *value* for a message: ASCII without control characters, at most 60 characters of it.

    >>> shown("word" + chr(27)) == ascii("word" + chr(27))
    True
    """
    value_text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return ascii(value_text if len(value_text) <= 60 else value_text[:57] + "...")
