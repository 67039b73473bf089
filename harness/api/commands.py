"""What commands do, as functions: `harness.open`, `harness.runs`, `harness.compare`, and so on."""

from __future__ import annotations

import warnings

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.api.run import Run
from harness.base.errors import HarnessError, SpecError
from harness.base.text import excerpt
from harness.core.evaluate.basis import basis_of_run
from harness.core.evaluate.changes import (
    Change,
    Side,
    changes,
    differences,
    sensitivities,
    sentence,
)
from harness.core.evaluate.flow import Evaluation
from harness.core.evaluate.sensitivity import Sensitivity
from harness.core.run.preflight import known_names
from harness.core.store import Store
from harness.models import require_models
from harness.past.container_logs import ContainerLogs
from harness.past.imports import backtest as try_models
from harness.past.imports import import_jobs
from harness.tuning.optimizers import OPTIMIZERS
from harness.tuning.proposals import changed_basis, nearest_model, proposals, says

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["backtest", "compare", "import_histories", "open", "runs", "tune"]


class Comparison(NamedTuple):
    """
    What changed between two runs; `harness.compare` gives it.

    *verdict* is a sentence.  *changes* has a row for each number that both runs have, with its
    interval and verdict; *differences* what the runs say of themselves.  *would_show* has, for each
    workload, the smallest change of its job times that would have shown.  *missing* says what was
    not compared.
    """

    verdict: str
    changes: DataFrame
    differences: DataFrame
    would_show: list[Sensitivity]
    missing: list[str]


class Import(NamedTuple):
    """
    A run that was made of past jobs; `harness.import_histories` gives it.

    *families* has a row for each family of jobs, *notes* are on them; *left_out* has the reason for
    each file that could not be used.
    """

    run: Run
    families: DataFrame
    notes: list[str]
    left_out: dict[str, str]


class Tuned(NamedTuple):
    """
    Settings of a job that models propose; `harness.tune` gives them.

    *says* is what the best comes to, and how far off its judge was here, in a sentence.
    *properties* are those of the best proposal, none where nothing is expected to be faster than
    the job's own.  *proposals* has a row for each, the best first, as the model *judge* prices
    them; *base* says which job that is, *refused* which optimizers have nothing to choose.
    """

    says: str
    properties: dict[str, str]
    proposals: DataFrame
    base: str
    judge: str
    refused: list[str]


def open(run: str | Path, results_dir: str | Path = "results") -> Run:  # noqa: A001
    """
    Open a run: its folder, that of its experiment (the newest one), of an analysis, or its id.

    An id, or its first characters, is looked up under *results_dir*.  A bundle of one run, packed
    or not, is that run.  `DataError` (of `harness.base.errors`) says what there is where none is
    meant, or several are.
    """
    return Run(Evaluation.of(Store(Path(results_dir)).find(str(run))))


def runs(results_dir: str | Path = "results") -> list[Run]:
    """
    All runs below *results_dir*, each before its analyses.

    Those that were measured, the oldest first, then imported ones and those of bundles.  Each has
    its `id`, `path`, `experiment` and `verdict`.  One that cannot be opened is left out, and a
    warning names it with the reason.
    """
    found = list[Run]()
    store = Store(Path(results_dir))
    for stored in (*store.all_runs(), *store.imports(), *store.bundled_runs()):
        for run in (stored, *stored.analyses()):
            try:
                found.append(Run(Evaluation.of(run)))
            except HarnessError as error:
                warnings.warn(f"{run.path} is left out: {excerpt(error.what, 300)}", stacklevel=2)
    return found


def compare(
    base: str | Path | Run, other: str | Path | Run, results_dir: str | Path = "results"
) -> Comparison:
    """
    Say what changed from run *base* to run *other*, as `harness compare` does.

    Runs are opened, or named as for `harness.open`: imported histories and bundles of one run, too.
    `SpecError`: they share no cell; `DataError`: one is not finished.
    """
    import pandas as pd

    first = _evaluation(base, results_dir)
    second = _evaluation(other, results_dir)
    place = first.run.path.resolve()
    if place == second.run.path.resolve():
        raise SpecError("a run is compared with itself", where=str(place), fix="name another one")
    base_side = Side(first)
    other_side = Side(second)
    changed = changes(base_side, other_side)
    apart = differences(base_side, other_side)
    return Comparison(
        verdict=sentence(base_side, other_side, changed),
        changes=pd.DataFrame(changed, columns=[*Change._fields]),
        differences=pd.DataFrame(apart, columns=["what", "base", "other"]),
        would_show=sensitivities(base_side, other_side, changed),
        missing=[*base_side.missing, *other_side.missing],
    )


def import_histories(
    *sources: str | Path,
    into: str | Path,
    profile_share: float = 0.5,
    profile_until: datetime | None = None,
    logs: str | None = None,
    anonymise: bool = False,
) -> Import:
    """
    Make a run at the folder *into* of jobs that have run before, as `harness import` does.

    *sources* are folders of job histories, done trees or runs.  The first *profile_share* of the
    jobs of each family feed its profile, or those submitted before *profile_until* (UTC, unless it
    has a zone).  *logs* are those of the tasks: a folder, a file of many, or the address of a
    history server; not where jobs are stored without names (*anonymise*).  `DataError`: nothing can
    be used.
    """
    import pandas as pd

    if logs and anonymise:
        what = "logs of tasks name hosts and paths"
        raise SpecError(what, where="anonymise", fix="leave logs out")
    until_s = None
    if profile_until is not None:
        zone = profile_until.tzinfo or UTC
        until_s = profile_until.replace(tzinfo=zone).timestamp()
    with TemporaryDirectory(prefix="harness-logs-") as scratch:
        imported = import_jobs(
            sources,
            Path(into),
            share=profile_share,
            until_s=until_s,
            logs=ContainerLogs(logs, Path(scratch)) if logs else None,
            command="harness.import_histories(...)",
            anonymiser=_anonymiser if anonymise else None,
        )
    return Import(
        run=Run(Evaluation.of(imported.run)),
        families=pd.DataFrame(imported.families),
        notes=imported.notes,
        left_out=imported.left_out,
    )


def backtest(
    run: str | Path | Run, models: Iterable[str] = (), results_dir: str | Path = "results"
) -> Run:
    """
    Profile, predict and score an imported *run*, as `harness backtest` does; give it.

    *models* are all, unless they are named.  Where others are sealed already, what is given is an
    analysis of the run.  `DataError`: no later job can be scored.
    """
    stored = _evaluation(run, results_dir).run
    earlier = {analysis.path for analysis in stored.analyses()}
    try_models(stored, tuple(models))
    made = [analysis for analysis in stored.analyses() if analysis.path not in earlier]
    return Run(Evaluation.of(made[-1] if made else stored))


def tune(
    run: str | Path | Run,
    workload: str = "",
    *,
    settings: Mapping[str, Any] | None = None,
    models: Sequence[str] = (),
    optimizers: Sequence[str] = (),
    judge: str = "",
    evaluations: int = 0,
    seed: int = 1,
    results_dir: str | Path = "results",
) -> Tuned:
    """
    Choose settings for the largest scored cell of *workload* in *run*, as `harness tune` does.

    *settings* change that cell first: `{"input": "10 GiB"}`.  *models* choose by their predictions
    (the *judge*, unless they are named), and the *judge*, by default the run's nearest, prices all
    choices.  *evaluations* and *seed* are of the search.  No job is run.  `SpecError` names a model
    or an optimizer that is none.
    """
    import pandas as pd

    require_models([*models, *filter(None, [judge])], "harness.tune")
    unknown = [name for name in optimizers if name not in OPTIMIZERS]
    if unknown:
        what = f"there is no optimizer '{excerpt(unknown[0])}'"
        raise SpecError(what, where="harness.tune", fix=f"choose from {', '.join(OPTIMIZERS)}")
    basis = basis_of_run(_evaluation(run, results_dir), workload)
    if settings:
        changed = [f"{name}={value}" for name, value in settings.items()]
        basis = changed_basis(basis, changed, known_names())
    chosen_judge = judge or nearest_model(basis)
    proposed, refused = proposals(
        basis,
        optimizers or [*OPTIMIZERS],
        models or [chosen_judge],
        chosen_judge,
        None,
        evaluations=evaluations,
        seed=seed,
    )
    known_judge = basis.judge(chosen_judge)
    rows = [proposal.document(basis.profile, known_judge) for proposal in proposed]
    is_faster = (rows[0]["saved"] or 0.0) > 0
    return Tuned(
        says=says(proposed[0], basis, known_judge),
        properties=dict(rows[0]["properties"]) if is_faster else {},
        proposals=pd.DataFrame(rows),
        base=basis.note,
        judge=chosen_judge,
        refused=refused,
    )


def _evaluation(run: str | Path | Run, results_dir: str | Path) -> Evaluation:
    """The evaluation of a *run* that was opened, or is named."""
    return run.evaluation if isinstance(run, Run) else open(run, results_dir).evaluation


def _anonymiser(files: Iterable[bytes], names: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """What replaces names in *files*, and those of jobs by *names*."""
    from harness.pseudonyms.names import Pseudonyms

    return Pseudonyms.of_files(files, names).data
