"""
What the functions of a user's workload return, against the contract of workloads.

Python lets a function return anything; what the harness then does with it would fail far from the
line that is wrong.
"""

from __future__ import annotations

import json

from collections.abc import Callable, Mapping, Sequence
from reprlib import Repr
from typing import Any

from harness.clusters.workloads.base import InputPlan, JobCommand, Parameter, Workload

_JOBS = 'jobs are expected, as (JobCommand(EXAMPLES, (input_uri, output_uri), "wordmean"),)'
_EXAMPLE = 'a pair is expected, of files and the right output: {"part-m-00000": b"..."}, b"..."'
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def return_complaint(function: str, answer: Any) -> str:
    """Say what is wrong with the *answer* of a workload's *function*, or nothing."""
    check = _CHECKS.get(function)
    wanted = check(answer) if check else ""
    return f"{function} returns {_shown(answer)}: {wanted}" if wanted else ""


def attribute_complaint(workload: Workload) -> str:
    """Say what is wrong with the attributes of a user's *workload*, or nothing."""
    uses_combiner: Any = workload.uses_combiner
    parameters: Any = workload.parameters
    if type(workload).submit is Workload.submit and not hasattr(workload, "main_class"):
        return f"it has neither submit nor main_class, and so no job: {_JOBS} of submit"
    if not isinstance(uses_combiner, bool):
        return f"uses_combiner is {_shown(uses_combiner)}: True or False is expected"
    is_right = isinstance(parameters, Mapping) and all(
        isinstance(name, str) and isinstance(parameter, Parameter)
        for name, parameter in parameters.items()
    )
    if not is_right:
        wanted = 'a dictionary is expected, as {"text": Parameter("zipf", "kind of text")}'
        return f"parameters is {_shown(parameters)}: {wanted}"
    return ""


def _shown(answer: Any) -> str:
    """Give the *answer*, shortened, with its type where that does not show."""
    text = _SHORT.repr(answer)
    if answer is None or isinstance(answer, bool | int | float | str | bytes):
        return f"{text}, no return is reached" if answer is None else text
    return f"{text}, a {type(answer).__name__}"


def _of_plan_input(answer: Any) -> str:
    if not isinstance(answer, InputPlan):
        return "an InputPlan is expected, as plan_text gives one"
    is_right = isinstance(answer.sizes, Sequence) and all(map(_is_count, answer.sizes))
    return "" if is_right else "its sizes are to be whole bytes of each file"


def _of_submit(answer: Any) -> str:
    if isinstance(answer, JobCommand):
        return f"that is one job, and {_JOBS}; the last comma makes it a tuple"
    is_sequence = isinstance(answer, tuple | list)
    if not is_sequence or not all(isinstance(job, JobCommand) for job in answer):
        is_command = is_sequence and answer and all(isinstance(word, str) for word in answer)
        return f"that is a command's words, and {_JOBS}" if is_command else _JOBS
    if not answer:
        return f"that is no job, and {_JOBS}"
    for job in answer:
        if complaint := _of_job(job):
            return complaint
    return ""


def _of_job(job: JobCommand) -> str:
    """What is wrong with one job."""
    arguments = job.arguments
    if not isinstance(arguments, tuple | list) or not all(isinstance(a, str) for a in arguments):
        return f"the arguments of a job are texts in a tuple, and these are {_shown(arguments)}"
    return _of_properties(job.properties)


def _of_properties(answer: Any) -> str:
    if not isinstance(answer, Mapping):
        return 'properties are expected as a dictionary of texts, {"mapreduce.job.reduces": "1"}'
    for name, value in answer.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f'a property is a text, as "1", and {_shown(name)} is {_shown(value)}'
    return ""


def _of_sample(answer: Any) -> str:
    wanted = "a dictionary is expected, of texts and numbers, as it is stored as JSON"
    if not isinstance(answer, Mapping):
        return wanted
    try:
        json.dumps(dict(answer), allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"{wanted}: {error}"
    return ""


def _of_complaint(answer: Any) -> str:
    if isinstance(answer, str):
        return ""
    return 'a text is expected, of what is wrong with the output, and "" where nothing is'


def _of_jobs(answer: Any) -> str:
    if answer is None or (_is_count(answer) and answer >= 1):
        return ""
    return "a number of jobs is expected, or None for as many as it takes"


def _of_example(answer: Any) -> str:
    if not isinstance(answer, tuple) or len(answer) != 2:
        return _EXAMPLE
    files, output = answer
    if not isinstance(files, Mapping) or not all(
        isinstance(data, bytes) for data in files.values()
    ):
        return _EXAMPLE
    return "" if files and isinstance(output, bytes) and output else _EXAMPLE


def _is_count(answer: Any) -> bool:
    return isinstance(answer, int) and not isinstance(answer, bool)


_CHECKS: dict[str, Callable[[Any], str]] = {
    "plan_input": _of_plan_input,
    "submit": _of_submit,
    "properties": _of_properties,
    "sample": _of_sample,
    "complaint": _of_complaint,
    "jobs": _of_jobs,
    "example": _of_example,
}
