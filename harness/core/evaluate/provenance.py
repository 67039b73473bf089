"""What a prediction was made with, and whether it was made before what it is compared with."""

from __future__ import annotations

import re
import sys

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from harness.base.hadoop.properties import SEAL as SEAL_PROPERTY
from harness.base.records.trial import TrialRecord
from harness.clusters.workloads import resolved
from harness.core.evaluate import predict
from harness.core.evaluate.own_code import kept_own
from harness.core.evaluate.own_model import OwnModel
from harness.core.experiment.model import Experiment
from harness.core.store import RawLogs, Run
from harness.core.store.evidence import Chain
from harness.core.store.seal import SEAL
from harness.models import Model, find

# What a model runs of these packages is hashed with it.
_PACKAGES = (
    "harness.models.",
    "harness.models.sim.",
    "harness.base.stats.",
    "harness.base.hadoop.",
)
_CONF = re.compile(r"job-[0-9]{1,6}-conf\.xml")
_MOST_CONF_BYTES = 2**26
_SEALED_BY = re.compile(
    rf"<name>{re.escape(SEAL_PROPERTY)}</name><value>([0-9a-f]{{64}})<".encode()
)


@cache
def model_code(name: str) -> str:
    """SHA-256 of the sources that a model runs: its own, and what makes its inputs; or ``""``."""
    model = find(name)
    if model is None:
        return ""
    modules = [type(model).__module__, predict.__name__, resolved.__name__]
    digest = sha256()
    for module in modules:  # which grows meanwhile
        for value in vars(sys.modules[module]).values():
            is_module = isinstance(value, ModuleType)
            used_module = str(getattr(value, "__name__" if is_module else "__module__", ""))
            if used_module.startswith(_PACKAGES) and used_module not in modules:
                modules.append(used_module)
    for module in sorted(modules):
        digest.update(Path(sys.modules[module].__file__ or "").read_bytes())
    return digest.hexdigest()


def blind_refusals(run: Run, done: Iterable[TrialRecord]) -> list[str]:
    """
    Why predictions may have been made after scored trials of *done*; none: they were made before.

    Of those the chain has the seal before the trials, and each of their jobs names it.
    """
    if run.measured is not run:
        return ["it is an analysis: its predictions were sealed after the measurement"]
    stored = [line.name for line in Chain(run.opener).lines().values()]
    if SEAL not in stored:
        return ["no seal was noted while it was measured" if stored else "it has no evidence"]
    measured_before = stored[: stored.index(SEAL)]
    seal = run.seal.sha256()
    refusals = []
    for record in done:
        if record.trial.profiling:
            continue
        trial_id = record.trial.id
        if f"trials/{trial_id}" in measured_before:
            refusals.append(f"trial {trial_id} was measured before the predictions were sealed")
        for name, sha256_of_seal in named_seals(run.raw(trial_id)).items():
            if sha256_of_seal != seal:
                refusals.append(f"trials/{trial_id}/raw/{name} does not name the seal")
    return refusals


def named_seals(raw: RawLogs) -> dict[str, str]:
    """SHA-256 of the seal that each job of a trial was given, by its file of *raw*; or ``""``."""
    named = {}
    for name in filter(_CONF.fullmatch, raw.names()):
        with raw.open(name) as conf:
            matched = _SEALED_BY.search(conf.read(_MOST_CONF_BYTES))
        named[name] = matched[1].decode() if matched else ""
    return named


def asked_model(experiment: Experiment, name: str) -> tuple[str | Model, str]:
    """Give the model of this *name*, and the SHA-256 of its code: a user's own is started."""
    code = experiment.predict.code.get(name)
    if code is None:
        return name, model_code(name)
    return OwnModel(kept_own(code)), code.sha256
