"""The names that an experiment file may use here, and what is known of them."""

from __future__ import annotations

from harness.errors import SpecError
from harness.experiment.file import KnownNames
from harness.hadoop.names import objection
from harness.models import MODELS
from harness.providers import PROVIDERS
from harness.records.trial import WorkloadSpec
from harness.workloads import WORKLOADS
from harness.workloads.shape import arguments


def known_names() -> KnownNames:
    """Everything that this harness knows by name."""
    return KnownNames(
        workloads=tuple(WORKLOADS),
        models=tuple(MODELS),
        providers=tuple(PROVIDERS),
        parameters={name: tuple(w.parameters) for name, w in WORKLOADS.items()},
        scales={name: w.scales for name, w in WORKLOADS.items()},
        refusal=refusal,
        objection=objection,
        extra_fields={name: p.extra_fields for name, p in PROVIDERS.items()},
        required_fields={name: p.required_fields for name, p in PROVIDERS.items()},
        gpus=lambda provider, workers: PROVIDERS[provider].gpus_per_node(workers),
    )


def refusal(workload: str, name: str, value: str | float) -> tuple[str, str] | None:
    """
    Say what is wrong with an argument of a workload, and what to write; `None`: nothing.

    Nothing is said of names that are not known: the reader of the file does that.
    """
    if workload not in WORKLOADS or name not in WORKLOADS[workload].parameters:
        return None
    spec = WorkloadSpec(name=workload, input_bytes=1, parameters={name: value})
    try:
        arguments(spec, WORKLOADS[workload].parameters)
    except SpecError as error:
        return error.what, error.fix
    return None
