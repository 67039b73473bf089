"""What options ask of a run that was measured: other models, or other trials for the profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.base.errors import SpecError
from harness.base.records.trial import Code
from harness.core.evaluate.own_code import OwnCode, kept_own, read_own
from harness.core.experiment.file import read_experiment
from harness.core.experiment.model import Experiment, Predict
from harness.core.run.asking import beside, with_models
from harness.core.run.preflight import known_names
from harness.core.store import Run
from harness.core.store.run import EXPERIMENT

# Where a run was moved from is known by its experiment: in a published one names stand for the
# paths, and what was typed is no longer a list.
_OF_TRANSFERS = ("predict.from=", "predict.hardware=")


def asked_anew(
    run: Run, models: str, profile_on: Sequence[str], added: Sequence[str] = ()
) -> Experiment:
    """
    The experiment of *run* with other *models* and *profile_on*, as options write them.

    The models *added* are asked beside those.  Checked as a file with these values: `SpecError` has
    all that is wrong.
    """
    experiment = run.experiment()
    if added:
        asked = models.split(",") if models else beside(experiment, added)
        models = ",".join(dict.fromkeys((*asked, *added)))
    if experiment.was_imported:  # no file has its cells
        if profile_on:
            what = "which jobs feed its profiles was fixed when the run was imported"
            fix = "harness import --profile-share makes another run of the same histories"
            raise SpecError(what, where="--profile-on", fix=fix)
        return with_models(experiment, models.split(","))
    names = models or ",".join(experiment.predict.models)
    kept = run.measured.read_manifest().overrides
    overrides = [text for text in kept if not text.startswith(_OF_TRANSFERS)]
    overrides.append(f"predict.models=[{names}]")
    if profile_on and experiment.predict.is_auto:
        overrides.append("predict.profile_on={}")
    for text in profile_on:
        axis, _, values = text.rpartition("=")
        overrides.append(f"predict.profile_on.{axis}=[{values.strip('[]')}]")
    predict = read_predict(run, models.split(","), names, overrides, narrows=not profile_on)
    codes = experiment.predict.code | predict.code
    changes: dict[str, Any] = {
        "code": {name: code for name, code in codes.items() if name in predict.models},
        "source": "",  # its own trials make the profiles, whoever lent them before
        "hardware": (),
    }
    if not profile_on:
        for name in ("profile_on", "cells", "source", "hardware"):
            changes[name] = getattr(experiment.predict, name)
    predict = predict.model_copy(update=changes)
    return experiment.model_copy(update={"predict": predict})


def read_predict(
    run: Run, given: Sequence[str], names: str, overrides: Sequence[str], *, narrows: bool
) -> Predict:
    """
    Read what the file of *run* predicts with these *overrides*, of which *names* are the models.

    A path that was *given* in the option is the user's; what the run names runs only where it is
    known here.
    """
    experiment = run.experiment()
    measured = run.measured
    model_codes = experiment.predict.code
    workload_codes = [workload.code for workload in experiment.workloads if workload.code]
    by_path = {
        f"{code.file}:{code.class_name}": code for code in (*model_codes.values(), *workload_codes)
    }
    unnamed = Code(file="a file", class_name="of its experiment", sha256="0" * 64)

    def find(path: str, _is_option: bool) -> OwnCode:
        return read_own(path) if path in given else kept_own(by_path.get(Path(path).name, unnamed))

    all_names = known_names(find)
    stored_models = model_codes.keys() & set(names.split(","))
    all_names = replace(all_names, models=[*all_names.models, *stored_models])
    path = measured.path / EXPERIMENT
    text = measured.opener.read(path, "name an experiment file").decode()
    return read_experiment(text, str(path), overrides, known=all_names, narrows=narrows).predict
