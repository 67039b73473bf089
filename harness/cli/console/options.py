"""
Options and arguments that commands share, and how a command is given the run that one names.

One name is for one thing everywhere: ``--model`` and ``--workload`` repeatable, ``--models`` for
those that stand in the place of a run's, ``-o`` for what is
written, ``--set`` for keys of the experiment, ``--setting`` for those of a job, ``--from`` for the
run whose profiles are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import SpecError
from harness.base.units import parse_duration
from harness.cli.console import completion
from harness.cli.console.present import Note, show
from harness.cli.console.talk import Progress

if TYPE_CHECKING:
    from harness.core.evaluate.flow import Evaluation
    from harness.core.run.session import Session

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PICTURES = (".svg", ".pdf", ".png")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
file_option = partial(click.option, type=click.Path(path_type=Path, dir_okay=False))
folder_option = partial(click.option, type=click.Path(path_type=Path, file_okay=False))
results_option = folder_option(
    "--results-dir",
    default=Path("results"),
    envvar="HARNESS_RESULTS_DIR",
    help="Folder of all results.",
)
catalog_option = folder_option(
    "--catalog",
    "folder",
    default=Path("catalog"),
    help="Folder of the catalog.",
)
rules_option = click.option(
    "--rules",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Families by name and regular expression (YAML); a catalog has its own in rules.yaml.",
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="A.B=C",
    shell_complete=completion.experiment_keys,
    help="Override one value of the file; repeatable.",
)
setting_option = partial(
    click.option,
    "--setting",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=completion.settings,
)


def choice_option(*names: str, choices: Sequence[str], text: str) -> Decorator:
    """Option that is one of *choices*, the first one by default; *text* is its help."""
    return click.option(*names, type=click.Choice(choices), default=choices[0], help=text)


def _names(
    _context: click.Context, _option: click.Parameter, texts: Sequence[str]
) -> tuple[str, ...]:
    """Names of an option that is repeatable, and takes several with commas between them."""
    names = ",".join(texts).split(",")
    return tuple(name.strip() for name in names if name.strip())


_names_option = partial(click.option, multiple=True, callback=_names)
model_option = partial(
    _names_option, "--model", "models", metavar="MODEL", shell_complete=completion.models
)
models_option = partial(
    _names_option, "--models", "models", metavar="MODEL,...", shell_complete=completion.models
)
added_option = partial(
    _names_option, "--model", "added", metavar="MODEL", shell_complete=completion.models
)
workloads_option = partial(
    _names_option,
    "--workload",
    "workloads",
    metavar="WORKLOAD",
    shell_complete=completion.workloads,
)


def _one_name(context: click.Context, option: click.Parameter, texts: Sequence[str]) -> str | None:
    """The one name that may be given; an error of the command line where there are several."""
    names = _names(context, option, texts)
    if len(names) > 1:
        raise click.BadParameter(f"one at a time, and there are {len(names)}: {', '.join(names)}")
    return names[0] if names else None


workload_option = click.option(
    "--workload",
    multiple=True,
    callback=_one_name,
    metavar="WORKLOAD",
    shell_complete=completion.workloads,
    help="The workload, where the run has several.",
)


def outputs_option(text: str, *endings: str) -> Decorator:
    """
    Option ``-o``, repeatable: the ending of a file says what is written into it.

    The command is given ``outputs``, the files by their *endings*; *text* is the option's help.
    """

    def by_ending(
        _context: click.Context, _option: click.Parameter, files: Sequence[Path]
    ) -> dict[str, Path]:
        outputs = dict[str, Path]()
        for file in files:
            ending = next((text for text in endings if file.name.endswith(text)), None)
            if ending is None:
                kinds = ", ".join(endings)
                what = f"nothing is written to a file that ends in '{file.suffix}'"
                raise click.BadParameter(f"{what}. Choose from {kinds}")
            if ending in outputs:
                raise click.BadParameter(f"two files end in '{ending}', and one is written")
            outputs[ending] = file
        return outputs

    return file_option(
        "-o", "--output", "outputs", multiple=True, callback=by_ending, metavar="FILE", help=text
    )


def chosen_results() -> Path:
    """Give the folder of results of the command that runs."""
    folder: Path = click.get_current_context().params["results_dir"]
    return folder


def open_session(file: str | Path, results_dir: Path, overrides: tuple[str, ...] = ()) -> Session:
    """Open the session of an experiment file; `SpecError` where the file cannot be read."""
    from harness.core.run.experiment_file import read_experiment_file
    from harness.core.run.session import Session

    text = read_experiment_file(Path(file))
    context = click.get_current_context(silent=True)
    transfer = context.obj if context else None  # given by the entry, which knows all features
    return Session(text, str(file), results_dir, overrides, Progress(), transfer=transfer)


def open_evaluation(
    name: str, results_dir: Path, overrides: tuple[str, ...] = (), *, asks: bool = False
) -> Evaluation:
    """
    Open the run *name*, and show which it is: an id, first characters, a folder, or a file.

    Of an experiment file it is the newest run that measured the same, or the analysis of it that
    asked the same; for who *asks*, the run although the file has other models.
    """
    from harness.core.evaluate.flow import Evaluation
    from harness.core.store import Store
    from harness.core.store.packed import is_bundle
    from harness.observe.storage.files import is_path

    is_file = is_path(name) and Path(name).is_file() and not is_bundle(Path(name))
    if is_file or name.endswith((".yaml", ".yml")):
        evaluation = open_session(name, results_dir, overrides).evaluation(asks=asks)
    elif overrides:
        what = f"{name} is a stored run, and --set changes an experiment file"
        fix = "harness predict RUN --models A,B --profile-on KEY=VALUE asks anew"
        raise SpecError(what, where="--set", fix=fix)
    else:
        evaluation = Evaluation.of(Store(results_dir).find(name))
    show(Note(f"run: {evaluation.run.place}"))
    return evaluation


def source_argument(
    function: Callable[..., Any], *, metavar: str, open_source: Callable[..., Any]
) -> Callable[..., Any]:
    """Add a source, --results-dir and --set; the command is given what *open_source* opens."""
    complete = completion.runs if metavar.startswith("RUN") else completion.experiments

    @click.argument("source", metavar=metavar, type=click.Path(), shell_complete=complete)
    @results_option
    @set_option
    @wraps(function)
    def command(source: str, results_dir: Path, overrides: tuple[str, ...], **options: Any) -> Any:
        return function(open_source(source, results_dir, overrides), **options)

    return command


experiment_arguments = partial(source_argument, metavar="FILE", open_source=open_session)
run_argument = partial(source_argument, metavar="RUN", open_source=open_evaluation)


def duration_s(text: str) -> float:
    """Seconds of the duration that an option has; an error of the command line where it is none."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
