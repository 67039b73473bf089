"""Laws of what was planned: the experiment, its grid and seed, and what they were run by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from harness.base.errors import EvidenceError, SpecError
from harness.base.records.trial import Trial
from harness.base.text import excerpt
from harness.clusters import PROVIDERS, tracing_of
from harness.core.evaluate.laws.measured import Measured
from harness.core.experiment.document import Document
from harness.core.experiment.file import FORMAT, read_experiment
from harness.core.experiment.model import Experiment
from harness.core.store.run import EXPERIMENT, Run, measured_part

# In the place of a user's own, which nobody has here: models change nothing of what is measured.
_OTHER_MODELS = ("question=how far is it off?", "predict.models=[whatif, ernest]")
# What is asked of the trials, and is no part of what was measured.
_ASKED_OF_TRIALS = ("predict.", "question", "nightly", "name=")
_ORDER = "predict.order="
_OLDER_FORMATS = frozenset(map(str, range(1, FORMAT)))


def plan_of_grid(measured: Measured) -> Iterator[str]:
    """Planned are the trials of the grid, those of drawn cells, and those added by a look."""
    if measured.asked_plan is None:
        return
    experiment = measured.experiment
    by_rule = Counter(map(_role, measured.asked_plan))
    planned = Counter(_role(trial) for trial in measured.plan if not trial.look)
    for missing in (by_rule - planned).elements():
        yield f"the grid has a trial that the plan has not: {missing}"
    for added in (planned - by_rule).elements():
        yield f"the plan has a trial that the grid has not: {added}"
    if not (experiment.is_until_decided or experiment.fastest):
        for trial in measured.plan:
            if trial.look:
                yield f"trial {trial.id} was added, and the experiment asks for no additions"


def _role(trial: Trial) -> str:
    """What a trial is in a plan, whatever its versions are."""
    return f"cell {trial.cell.id}, repetition {trial.repetition}, use {trial.use}"


def order_of_seed(measured: Measured) -> Iterator[str]:
    """Trials are planned in the order that the seed gives, and those that a look added behind."""
    added_count = 0
    for trial in measured.plan:
        if trial.look:
            added_count += 1
        elif added_count:
            yield f"trial {trial.id} of the grid is planned behind one that was added"
            return
    if measured.asked_plan is None or measured.has_other_ids:
        return
    by_seed = [*map(_role, measured.asked_plan)]
    planned = [_role(trial) for trial in measured.plan if not trial.look]
    if sorted(by_seed) != sorted(planned):
        return  # as another law says
    for number, (wanted, found) in enumerate(zip(by_seed, planned, strict=True), 1):
        if wanted != found:
            yield f"number {number} of the plan is {found}, and by the seed it is {wanted}"


def trial_of_plan(measured: Measured) -> Iterator[str]:
    """Every trial that ran is one of the plan, or warmed a cluster for one."""
    cells = {trial.cell.id for trial in measured.plan}
    planned = {trial.id for trial in measured.plan}
    for trial_id in measured.run.trial_ids():
        if trial_id not in planned:
            yield f"trial {trial_id} is not planned"
    for record in measured.attempts:
        if record.trial.cell.id not in cells:
            yield f"trial {record.trial.id} is of cell {record.trial.cell.id}, which is not planned"


def file_of_experiment(measured: Measured) -> Iterator[str]:
    """The file of the experiment, with what was set beside it, asks for what the manifest says."""
    try:
        written = written_experiment(measured)
    except SpecError as error:
        if not _is_excused(measured):
            yield f"{EXPERIMENT} was read before anything ran, and cannot be now: {error.what}"
        return
    if written is None:
        return
    asked = _asked(measured.experiment)
    for key, value in _asked(written).items():
        if asked.get(key) != value:
            yield (
                f"{key} is {excerpt(value)} in {EXPERIMENT}, and {excerpt(asked.get(key))} in the"
                " manifest"
            )


def _is_excused(measured: Measured) -> bool:
    """Whether a file is of an older format, or names workloads whose classes nobody has here."""
    if not measured.run.opener.exists(measured.run.path / EXPERIMENT):
        return False
    try:
        contents = Document(_text_of_file(measured), EXPERIMENT).data
    except SpecError:
        return False
    written_format = contents.get("schema") if isinstance(contents, dict) else None
    if written_format in _OLDER_FORMATS:
        return True
    has_own = any(spec.code is not None for spec in measured.experiment.workloads)
    return has_own and written_format == str(FORMAT)


def require_same_file(run: Run) -> None:
    """`EvidenceError` where the file of a *run*'s experiment asks for another measurement."""
    for what in file_of_experiment(Measured(run.measured)):
        fix = "get the bundle again: nothing of this run can be believed"
        raise EvidenceError(what, where=str(run.path), fix=fix)


def written_experiment(measured: Measured) -> Experiment | None:
    """
    What the file asks to be measured; `None`: its trials were asked for by no file.

    `SpecError`: it is not there, or it or what was set beside it cannot be read.
    """
    run = measured.run
    if measured.was_imported or measured.is_chosen_meanwhile:
        return None
    if not run.opener.exists(run.path / EXPERIMENT):
        raise SpecError("it is not there")
    text = _text_of_file(measured)
    overrides = measured.manifest.overrides
    first_error = None
    for tried in (
        overrides,
        (*overrides, *_OTHER_MODELS),
        (*filter(_is_of_measurement, overrides), *_OTHER_MODELS),
    ):
        try:
            return read_experiment(text, EXPERIMENT, tried, narrows=False)
        except SpecError as error:
            first_error = first_error or error
    assert first_error is not None
    raise first_error


def _text_of_file(measured: Measured) -> str:
    """The text of the experiment's file, which is there."""
    run = measured.run
    data = run.opener.read(run.path / EXPERIMENT, "restore it from a copy of the run")
    return data.decode("utf-8", "replace")


def _is_of_measurement(override: str) -> bool:
    """Whether an *override* may change what is measured."""
    return override.startswith(_ORDER) or not override.startswith(_ASKED_OF_TRIALS)


def _asked(experiment: Experiment) -> dict[str, Any]:
    """What *experiment* asks to be measured, but for what a file does not say."""
    given = tracing_of(PROVIDERS[experiment.cluster.provider], experiment.tracing)
    part = measured_part(experiment.model_copy(update={"tracing": given}))
    if experiment.cluster.node.gpus_found:
        part["cluster"]["node"].pop("gpus")  # as many as there are
    return part


def versions_of_manifest(measured: Measured) -> Iterator[str]:
    """Every trial ran by the versions of the manifest, where all nodes have the same ones."""
    manifest = measured.manifest
    if manifest.versions is None or measured.experiment.cluster.provider == "existing":
        return
    stated = manifest.versions.model_dump()
    for component, value in stated.items():
        if isinstance(manifest.nodes.get(component), dict):
            continue  # each node has its own
        for record in measured.measured_here:
            found = getattr(record.versions, component)
            if found != value:
                yield (
                    f"trial {record.trial.id} has {component} {excerpt(found)}, and the manifest"
                    f" {excerpt(value)}"
                )
