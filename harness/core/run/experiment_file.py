"""An experiment file: its text is read and checked, with everything that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from harness.base.errors import SpecError
from harness.base.hadoop.slots import refusals
from harness.base.installed import example
from harness.base.records.trial import ClusterSpec
from harness.base.text import nearest_name
from harness.clusters import PROVIDERS, tracing_of
from harness.clusters.adjust import unsupported_limits
from harness.clusters.workloads.resolved import ResolvedCell
from harness.core.evaluate.own_code import OwnCode, read_own
from harness.core.evaluate.resolved import resolve_cells
from harness.core.experiment.cover import choose_cells
from harness.core.experiment.file import concealed_text, places, read_experiment
from harness.core.experiment.grid import expand
from harness.core.experiment.model import Experiment
from harness.core.run import Console
from harness.core.run.estimate import times_by_rule
from harness.core.run.plan import refuse_cells, refuse_inputs
from harness.core.run.preflight import known_names
from harness.core.run.secrets import user_secrets

_NAME_ANOTHER = f"name an experiment file, such as {example()}"
_IS_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True)
class ExperimentFile:
    """An experiment *text* read from *source*, with the *overrides* of its values."""

    text: str
    source: str
    overrides: tuple[str, ...]
    console: Console

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment, with the tracing that its provider gives; `SpecError` has all errors."""
        names = replace(known_names(self._read_own), note=self._note)
        experiment = read_experiment(self.text, self.source, self.overrides, known=names)
        cells = [*resolve_cells(expand(experiment)).values()]
        refuse_cells(cells, cluster_refusals, self.source, self.text)
        refuse_inputs(cells, self.source, self.text)
        if experiment.predict.is_auto:
            experiment = self._with_profiling_cells(experiment, cells)
        experiment = experiment.asking(experiment.question)
        provider = experiment.cluster.provider
        tracing = tracing_of(PROVIDERS[provider], experiment.tracing)
        if tracing == experiment.tracing:
            return experiment
        mode = experiment.tracing.mode
        self.console.say(
            f"warning: trace: {mode} needs the tracer on the nodes, and provider {provider} puts"
            " nothing there: trace: logs is used, and what needs more is not applicable"
        )
        return experiment.model_copy(update={"tracing": tracing})

    @cached_property
    def cells(self) -> Mapping[str, ResolvedCell]:
        """All cells of the experiment, by id."""
        return resolve_cells(expand(self.experiment))

    def _with_profiling_cells(
        self, experiment: Experiment, cells: Sequence[ResolvedCell]
    ) -> Experiment:
        """*experiment* with those of its *cells* that ``profile_on: auto`` chooses."""
        try:
            chosen = choose_cells(experiment, cells, times_by_rule(cells, experiment.warmup))
        except SpecError as error:
            place = places(self.text, self.source).get("profile_on", self.source)
            raise SpecError(error.what, where=place, fix=error.fix) from error
        return experiment.with_cells(chosen)

    def concealed(self) -> str:
        """Text of the file with digests in the place of secrets."""
        return concealed_text(self.text, self.source, user_secrets())

    def _note(self, text: str) -> None:
        self.console.say(f"note: {text}")

    def _read_own(self, path: str, is_option: bool) -> OwnCode:  # noqa: FBT001
        """Read a user's code, whose path is relative to the file, or in an option to here."""
        return read_own(path, Path() if is_option else Path(self.source).parent)


def cluster_refusals(cluster: ClusterSpec, properties: Mapping[str, str]) -> list[str]:
    """Why a *cluster* cannot run jobs with *properties*; empty: it can."""
    # Limits that the provider cannot set are refused: nothing is ignored silently.
    provider = PROVIDERS[cluster.provider]
    unlimited = unsupported_limits(cluster, provider.limitable)
    return [*refusals(cluster, properties, sets_site=provider.sets_site), *unlimited]


def read_experiment_file(path: Path) -> str:
    """Text of an experiment file; `SpecError` where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text"
        fix = f"save it as UTF-8 text, or {_NAME_ANOTHER}"
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            fix = meant_file(path) if isinstance(error, _IS_NO_FILE) else _NAME_ANOTHER
        what = f"the experiment file cannot be read: {reason}"
        raise SpecError(what, where=str(path.absolute()), fix=fix) from error


def meant_file(path: Path) -> str:
    """Advice which experiment file may be meant by *path*."""
    candidates: dict[str, Path] = {}
    for folder in (path, path.parent, Path("experiments")):
        with suppress(OSError):
            files = sorted(folder.glob("*.yaml"))
            candidates |= {file.stem: file for file in files if file != path}
    is_run = path.is_dir() and "experiment" in candidates
    nearest = "experiment" if is_run else nearest_name(path.stem, candidates)
    if nearest:
        return f"did you mean {candidates[nearest]}?"
    return _NAME_ANOTHER
