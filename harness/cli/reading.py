"""Commands that read a run: made again, predicted, scored, reported; and how each is given one."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from harness.cli.console import print_json, show_table, show_text
from harness.cli.steps import choice_option, json_option, open_session, source_argument
from harness.errors import SpecError
from harness.text import excerpt, printable

if TYPE_CHECKING:
    from harness.evaluate.flow import Evaluation
    from harness.experiment.model import Experiment
    from harness.records.profile import Profile
    from harness.store import Run

_MOST_DIFFERENCES = 20  # shown to people; --json has all


def open_evaluation(
    name: str, results_dir: Path, overrides: tuple[str, ...] = (), *, asks: bool = False
) -> Evaluation:
    """
    Open the run *name*, and show which it is: an id, first characters, a folder, or a file.

    Of an experiment file it is the newest run that measured the same, or the analysis of it that
    asked the same; for who *asks*, the run although the file has other models.
    """
    from harness.evaluate.flow import Evaluation
    from harness.store import Store

    if name.endswith((".yaml", ".yml")) or Path(name).is_file():
        evaluation = open_session(name, results_dir, overrides).evaluation(asks=asks)
    elif overrides:
        what = f"{name} is a stored run, and --set changes an experiment file"
        fix = "harness predict RUN --models A,B --profile-on KEY=VALUE asks anew"
        raise SpecError(what, where="--set", fix=fix)
    else:
        evaluation = Evaluation.of(Store(results_dir).find(name))
    show_text(f"run: {evaluation.run.path}")
    return evaluation


run_argument = partial(source_argument, metavar="RUN", open_source=open_evaluation)


@click.command("collect")
@run_argument
def collect(evaluation: Evaluation) -> None:
    """
    Make the trace tables of RUN again from its raw logs.

    \b
    Example:
        harness collect experiments/quick.yaml
    """
    from harness.run.traces import remake_trace

    run = evaluation.run.measured
    with run.lock():
        count = sum(remake_trace(run, record) for record in run.trials().values())
    show_text(f"trace tables of {count} trials made")


@click.command("profile")
@run_argument
@json_option
def profile(evaluation: Evaluation, as_json: bool) -> None:
    """
    Fit one profile per workload on the profiling trials of RUN; show those that are sealed already.

    \b
    Example:
        harness profile experiments/quick.yaml
        harness profile 20261121T0323
    """
    if evaluation.run.seal.exists():
        profiles = evaluation.run.read_profiles()
    else:
        with evaluation.run.lock():
            profiles = evaluation.profile()
    if as_json:
        print_json({"profiles": [*profiles.values()]})
        return
    rows = []
    for workload, fitted in profiles.items():
        for name, statistic in {**fitted.statistics, **fitted.costs, **fitted.frame}.items():
            shared = f"assumed: a share of one sum with {', '.join(statistic.group)}"
            source = shared if statistic.group else statistic.source
            value = f"{statistic.value:.4g}"
            spread = f"{statistic.spread:.2g}"
            rows.append((workload, name, value, spread, statistic.count, source))
    show_table(("workload", "statistic", "value", "spread", "count", "source"), rows)


@click.command("predict")
@partial(run_argument, open_source=partial(open_evaluation, asks=True))
@click.option("--models", metavar="A,B", help="The models, in the place of the run's.")
@click.option(
    "--profile-on",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="The cells that feed profiles, such as 'input=16 MiB,96 MiB'; repeatable.",
)
@click.option("--from", "origin", metavar="RUN", help="Take the profiles of this run...")
@click.option(
    "--hardware",
    nargs=2,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="A B",
    help="...which ran on the machine of A, for that of B (harness calibrate).",
)
@click.option("--strict", is_flag=True, help="Refuse costs that were measured on another machine.")
@json_option
def predict(
    evaluation: Evaluation,
    models: str | None,
    profile_on: tuple[str, ...],
    origin: str | None,
    hardware: tuple[Path, Path] | None,
    strict: bool,
    as_json: bool,
) -> None:
    """
    Predict every scored cell of RUN with every model, and seal the predictions; no job is run.

    The first time, these are the predictions of the run.  Afterwards, or with other models, they
    are an analysis of it: profiles, predictions, scores and a report in a folder beside its others,
    marked as sealed after the measurement.

    \b
    Example:
        harness predict experiments/quick.yaml
        harness predict results/quick/20261121T032309Z-4f26 --models whatif,ernest
        harness predict 20261121T0323 --profile-on 'input=16 MiB,48 MiB' --json
        harness predict 20261122T0411 --from 20261121T0323 --hardware plain.json slow.json
    """
    from harness.evaluate.reporting import REPORT_FILES
    from harness.run.asking import analyse, asked_anew

    run = evaluation.run
    experiment = evaluation.experiment
    if models or profile_on:
        experiment = asked_anew(run, models or "", profile_on)
    files = list[Path]()
    verdict = ""
    profiles = None
    if bool(origin) != bool(hardware):
        raise click.UsageError("--from RUN and --hardware A B go together")
    if origin and hardware:
        experiment, profiles = _moved(evaluation, experiment, origin, hardware, strict=strict)
    if run.seal.exists() or experiment.predict != run.experiment().predict:
        with analyse(run, experiment, profiles) as (analysis, document):
            verdict = document.headline
            predictions = analysis.predictions
        folder = analysis.run.path.with_name(analysis.run.id.lstrip("."))
        files = [folder / name for name in REPORT_FILES.values()]
    else:
        with run.lock():
            predictions = evaluation.predict()
    if as_json:
        print_json({"predictions": predictions, "verdict": verdict, "files": files})
        return
    sizes = {key: cell.workload.input_bytes for key, cell in evaluation.cells.items()}
    times = ("body_s", "job_s", "published_s", "map_task_s", "reduce_task_s")
    rows = []
    for prediction in sorted(predictions, key=lambda each: (sizes[each.cell], each.cell)):
        seconds = (getattr(prediction, name) for name in times)
        texts = ("not applicable" if value is None else f"{value:.2f}" for value in seconds)
        rows.append((evaluation.labels[prediction.cell], prediction.model, *texts))
    columns = ("body, s", "job, s", "as published, s", "map task, s", "reduce task, s")
    show_table(("cell", "model", *columns), rows)
    if files:
        click.echo(f"{printable(verdict)}\n")
        show_text(f"analysis, sealed after the measurement: {files[0].parent}")
        show_text(f"report: {files[0]}")


def _moved(
    evaluation: Evaluation,
    experiment: Experiment,
    origin: str,
    hardware: tuple[Path, Path],
    *,
    strict: bool,
) -> tuple[Experiment, dict[str, Profile]]:
    """*experiment* without profiling cells, and the profiles of another run for its machine."""
    from harness.errors import EvidenceError
    from harness.evaluate.transfer import profiles_for
    from harness.store import Store

    results_dir = evaluation.run.measured.path.parent.parent
    source = Store(results_dir).find(origin)
    cells = evaluation.cells.values()
    profiles, others = profiles_for(source, hardware, cells)
    for other in others:
        show_text(f"warning: its costs were measured on another machine: {other}")
    if others and strict:
        what = f"costs of another machine: {'; '.join(others)}"
        fix = f"harness calibrate measures those of this one; {hardware[1]} is of another"
        raise EvidenceError(what, where=str(hardware[1]), fix=fix)
    changes = {"source": source.id, "hardware": tuple(map(str, hardware)), "profile_on": {}}
    predict = experiment.predict.model_copy(update=changes)
    return experiment.model_copy(update={"predict": predict}), profiles


@click.command("score")
@run_argument
@click.option("--strict", is_flag=True, help="Refuse a run that is not blind.")
@json_option
def score(evaluation: Evaluation, strict: bool, as_json: bool) -> None:
    """
    Score the sealed predictions of RUN, each beside the noise of its cell.

    What was changed, removed or added since it was measured or sealed is named: exit status 7.

    \b
    Example:
        harness score experiments/quick.yaml
        harness score 20261121T0323 --strict
    """
    from harness.reports import REPORTS
    from harness.reports.sections import make_document

    with evaluation.run.lock():
        scores = evaluation.score(strict=strict)
    if as_json:
        print_json(scores.model_dump(mode="json"))
        return
    click.echo(REPORTS["terminal"].render(make_document(evaluation.report_data())))


@click.command("report")
@run_argument
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the files there; nothing is written into the run.",
)
@json_option
def report(evaluation: Evaluation, into: Path | None, as_json: bool) -> None:
    """
    Write report.html, report.md and report.json of RUN.

    \b
    Example:
        harness report experiments/quick.yaml
        harness report 20261121T0323 --into /tmp/report --json
    """
    with nullcontext() if into else evaluation.run.lock():
        paths, _ = evaluation.report(into)
    if as_json:
        print_json({"files": paths})
        return
    for path in paths:
        click.echo(path)


def open_result(
    name: str, results_dir: Path, overrides: tuple[str, ...] = ()
) -> Evaluation | tuple[Path, Path, tuple[str, ...]]:
    """Open the run *name*, or give the folder of a bundle with what it may be measured by."""
    if (Path(name) / "SHA256SUMS").is_file():
        return Path(name), results_dir, overrides
    return open_evaluation(name, results_dir, overrides)


@click.command("reproduce")
@partial(source_argument, metavar="RUN|BUNDLE", open_source=open_result)
@choice_option(
    "--from",
    "given",
    choices=["raw", "trace", "profiles", "predictions"],
    text="What is taken as it is stored; all that follows is made again.",
)
@click.option("--measure", "is_measured", is_flag=True, help="Measure a BUNDLE's experiment again.")
@json_option
def reproduce(
    source: Evaluation | tuple[Path, Path, tuple[str, ...]],
    given: str,
    is_measured: bool,
    as_json: bool,
) -> int:
    """
    Make the results of RUN again, and compare them with what is stored.

    The present code makes traces, profiles, predictions and scores in a scratch folder; RUN stays
    as it is.  Needs neither Hadoop nor Java.  Of a BUNDLE, what its evidence allows is made again,
    and its tables and its claim; with --measure its experiment runs on a cluster of yours (--set
    changes it), and the answer says which conclusions carry over.  Exit status 1: something
    differs, or does not hold; 7: it cannot be read, or was tampered with.

    \b
    Example:
        harness reproduce results/quick/20261121T032309Z-4f26
        harness reproduce results/quick/20261121T032309Z-4f26 --from profiles --json
        harness reproduce bundle --measure --set cluster.provider=docker
    """
    from harness.run.reproduce import reproduce as reproduce_stages

    if isinstance(source, tuple) and is_measured:
        return _measure_again(*source, as_json=as_json)
    if is_measured or (isinstance(source, tuple) and source[2]):
        raise click.UsageError("--measure is for a BUNDLE, and --set of a BUNDLE for --measure")
    with TemporaryDirectory(prefix="harness-reproduce-") as folder:
        if isinstance(source, tuple):
            from harness.publish.compare import reproduce_bundle

            stages = list(reproduce_bundle(source[0], Path(folder), given))
        else:
            stages = list(reproduce_stages(source.run, Path(folder), given))
    differs = [each for _, several in stages for each in several if not each.is_equal]
    if as_json:
        documents = [
            {
                "stage": stage,
                "equal": all(each.is_equal for each in several),
                "by": "1e-9" if several else "bytes",
                "differs": [each._asdict() for each in several if not each.is_equal],
            }
            for stage, several in stages
        ]
        print_json({"stages": documents})
        return int(bool(differs))
    for stage, several in stages:
        count = sum(not each.is_equal for each in several)
        equal = f"equal to 1e-9 ({len(several)} values differ beyond it)" if several else "equal"
        click.echo(f"{stage}: {count} values differ" if count else f"{stage}: {equal}")
    if differs:
        columns = ("model", "name", "stored", "made again", "relative difference")
        show_table(columns, differs[:_MOST_DIFFERENCES])
    return int(bool(differs))


def _measure_again(
    bundle: Path, results_dir: Path, overrides: tuple[str, ...], *, as_json: bool
) -> int:
    """Measure the experiments of *bundle* once more, and say which conclusions carry over."""
    from harness.cli.steps import measure
    from harness.publish.compare import replicate

    def measure_run(run: Run) -> Evaluation:
        from harness.evaluate.flow import Evaluation

        given = (*run.read_manifest().overrides, *overrides, "predict.order=blind")
        session = open_session(run.path / "experiment.yaml", results_dir, given)
        evaluation = Evaluation.of(measure(session)[0])
        with evaluation.run.lock():
            evaluation.score()
            evaluation.report()
        return evaluation

    replication = replicate(bundle, measure_run)
    if as_json:
        print_json(replication.model_dump(mode="json"))
    else:
        pairs = [
            (excerpt(name), *map(excerpt, pair)) for name, pair in replication.differences.items()
        ]
        show_table(("what differs", "published", "here"), pairs)
        columns = ("conclusion", "published", "measured again", "outcome")
        show_table(
            columns,
            [
                (conclusion.what, *[*vars(conclusion).values()][2:])
                for conclusion in replication.conclusions
            ],
        )
        for outcome in ("holds", "does not hold", "undecided"):
            count = sum(conclusion.outcome == outcome for conclusion in replication.conclusions)
            click.echo(f"{outcome}: {count} of {len(replication.conclusions)} conclusions")
        show_text(f"record: {bundle}/replications/{replication.runs[0]}/replication.json")
    return int(any(conclusion.outcome == "does not hold" for conclusion in replication.conclusions))
