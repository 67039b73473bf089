"""
The contracts of models and workloads, for `harness check` and the tests of our own.

A model is asked about a made-up profile, which has every statistic that there is.
"""

from __future__ import annotations

import json

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

from harness.base.errors import HarnessError
from harness.base.records.prediction import Cluster, JobConfig, JobInput, Prediction
from harness.base.records.profile import Profile, Statistic
from harness.base.records.statistics import Kind, rows_of
from harness.base.records.trial import WorkloadSpec
from harness.base.units import MIB
from harness.clusters.workloads.base import INPUT_TOLERANCE, Workload
from harness.clusters.workloads.resolved import ModelInputs, ResolvedCell
from harness.core.evaluate.predict import predict_cell
from harness.models import Model

_IN = "hdfs://m/in"
_OUT = "hdfs://m/out"


def example_profile() -> Profile:
    """
    Give the made-up profile: what its file has, and all that is alike for each row of the table.

    tests/contracts/profiles.py writes the file.
    """
    text = (
        files("harness.core.evaluate").joinpath("example-profile.json").read_text(encoding="utf-8")
    )
    profile = Profile.model_validate_json(text)
    statistics = dict[str, Statistic]()
    for kind in ("dataflow", "task time"):
        statistics |= made_up_rows(kind)
    changes = {
        "statistics": statistics | dict(profile.statistics),
        "costs": made_up_rows("job cost") | dict(profile.costs),
    }
    return profile.model_copy(update=changes)


def made_up_rows(kind: Kind) -> dict[str, Statistic]:
    """A statistic for each row of one *kind*: a time is 10 ns of a byte or a record, a share 1."""
    statistics = dict[str, Statistic]()
    for row in rows_of(kind):
        value = 1e-8 if row.unit.startswith("s") else 1.0
        statistic = Statistic(value=value, count=1, spread=0.0, source="made up")
        is_alike = kind == "job cost" and row.side != "both"
        names = row.names[:1] if is_alike else row.names
        statistics |= dict.fromkeys(names, statistic)
    return statistics


def first_complaint(model: Model) -> str:
    """Say why *model* has no answer to the first of all questions; nothing: it has one."""
    try:
        model.predict(example_profile(), *made_up_inputs()[0])
    except HarnessError as error:
        return error.what
    return ""


def made_up_inputs() -> list[ModelInputs]:
    """What a model is asked about: of two numbers of reduces and two buffers, six of maps."""
    cluster = Cluster(
        num_nodes=2, map_slots_per_node=2, reduce_slots_per_node=2, map_slots=4, reduce_slots=4
    )
    inputs = list[ModelInputs]()
    for reduces, buffer_mb, maps in product((1, 6), (16, 256), (1, 2, 4, 8, 40, 80)):
        config = JobConfig(num_reduces=reduces, sort_buffer_mb=buffer_mb)
        sizes = {"input_bytes": maps * 32 * MIB, "num_files": maps, "num_splits": maps}
        inputs.append((config, cluster, JobInput(**sizes, split_bytes=32.0 * MIB)))
    return inputs


def model_complaints(model: Model) -> Iterator[str]:
    """Say what of its contract *model* does not keep; nothing: it keeps all of it."""
    profile = example_profile()
    cells = made_up_inputs()

    def ask(questions: Iterable[ModelInputs]) -> list[Times]:
        return [times_of(model.predict(profile, *inputs)) for inputs in questions]

    try:
        answers = ask(cells)
        yield from answer_complaints(answers, ask(reversed(cells))[::-1])
        pairs = [*zip(answers[::2], answers[1::2], strict=True)]
        if any(map(is_shorter, pairs)):
            yield "twice the input takes less time"
    except HarnessError as error:
        yield error.what


def cell_complaints(
    model: Model, profile: Profile, cell: ResolvedCell
) -> tuple[Prediction, list[str]]:
    """What *model* predicts of a real *cell* by a real *profile*, and what is wrong with that."""
    prediction = predict_cell(model, cell, {profile.workload: profile})
    try:
        answers = [times_of(model.predict(profile, *cell.model_inputs)) for _ in range(2)]
        complaints = [*answer_complaints(answers[:1], answers[1:])]
    except HarnessError as error:
        complaints = [error.what]
    return prediction, complaints or [f"no {name} is known" for name in prediction.not_applicable]


class Times(NamedTuple):
    """Seconds of a job as a model gives them: its body, the whole job, or both."""

    body_s: float | None
    job_s: float | None


def times_of(prediction: Prediction) -> Times:
    """Times of one job in what a model gave."""
    return Times(prediction.body_s, prediction.job_s)


def answer_complaints(answers: Sequence[Times], repeated: Sequence[Times]) -> Iterator[str]:
    """Say what is wrong with *answers*, which are *repeated* answers to the same questions."""
    if any(0 in answer or answer == (None, None) for answer in answers):
        yield "a job takes 0 s"
    if any(answer.job_s is not None and answer.job_s < (answer.body_s or 0) for answer in answers):
        yield "a whole job, job_s, takes less time than its body, body_s"
    if repeated != answers:
        yield "the same question gets two answers: predict keeps something, or draws numbers"


def is_shorter(pair: tuple[Times, Times]) -> bool:
    """Whether the second of a *pair* of answers is of less time than the first."""
    return any(
        first_s is not None and second_s is not None and second_s < (1 - 1e-9) * first_s
        for first_s, second_s in zip(*pair, strict=True)
    )


def own_workload_complaints(workload: Workload, spec: WorkloadSpec) -> Iterator[str]:
    """Say what of its contract a user's *workload* does not keep, its own slips among it."""
    try:
        yield from workload_complaints(workload, spec, *workload.example())
    except HarnessError as error:
        yield error.what


def workload_complaints(
    workload: Workload, spec: WorkloadSpec, files: Mapping[str, bytes], output: bytes
) -> Iterator[str]:
    """Say what of its contract *workload* does not keep; *output* is the right one of *files*."""
    yield from command_complaints(workload, spec)
    chunks_of_files = ((name, [data]) for name, data in files.items())
    # As it is stored: it is cached with the input.
    sample = json.loads(json.dumps(workload.sample(spec, chunks_of_files)))
    if complaint := _verdict(workload, spec, [output], sample):
        yield f"complaint refuses the right output: {complaint}"
    for description, parts in wrong_outputs(output).items():
        if not _verdict(workload, spec, parts, sample):
            yield f"complaint passes {description}"


def command_complaints(workload: Workload, spec: WorkloadSpec) -> Iterator[str]:
    """Say what is wrong with the input that *workload* plans, and with its commands."""
    block_bytes = max(MIB, spec.input_bytes // 4)
    workload.jobs(spec)  # what they return is looked at, wherever they are called
    workload.properties(spec)
    plan = workload.plan_input(spec, block_bytes)
    jobs = workload.submit(spec, _IN, _OUT)
    if (plan, jobs) != (workload.plan_input(spec, block_bytes), workload.submit(spec, _IN, _OUT)):
        yield "plan_input and submit give something else each time"
    is_right_size = abs(plan.bytes - spec.input_bytes) <= INPUT_TOLERANCE * spec.input_bytes
    if not is_right_size or not all(0 < size <= block_bytes for size in plan.sizes):
        yield f"plan_input does not plan {spec.input_bytes} bytes in files of 1 to {block_bytes}"
    twice = spec.model_copy(update={"input_bytes": 2 * spec.input_bytes})
    key_of_twice = workload.plan_input(twice, block_bytes).key
    if key_of_twice == plan.key or not plan.key.replace("-", "").isalnum():
        yield f"the key {plan.key!r} is that of another input, too, or not of letters, digits, -"
    if _IN not in jobs[0].arguments or not any(_OUT in argument for argument in jobs[-1].arguments):
        yield "submit does not hand on the input and the output that it is given"


def wrong_outputs(output: bytes) -> dict[str, list[bytes]]:
    """Give parts of outputs that are not the right one, by what is wrong with them."""
    middle = len(output) // 2
    changed = bytearray(output)
    changed[middle] ^= 1
    return {
        "no output": [],
        "an empty output": [b""],
        "half of the output": [output[:middle]],
        "an output whose end is repeated": [output + output[-100:]],
        "an output that begins in its middle": [output[middle:] + output[:50]],
        "zeros": [bytes(len(output))],
        "an output with one bit changed": [bytes(changed)],
    }


def _verdict(workload: Workload, spec: WorkloadSpec, parts: Iterable[bytes], sample: Any) -> str:
    named = ((f"part-r-{number:05d}", [part]) for number, part in enumerate(parts))
    return workload.verdict(spec, named, sample)
