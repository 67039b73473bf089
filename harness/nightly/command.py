"""``harness nightly``: a night of an experiment, and what the nights so far say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import DataError
from harness.base.text import printable
from harness.cli.console import completion
from harness.cli.console.command import FirstByDefault, group
from harness.cli.console.options import json_option, results_option, set_option
from harness.cli.console.present import Note, Part, Rows, present
from harness.cli.console.talk import Progress

if TYPE_CHECKING:
    from harness.base.documents.document import Document
    from harness.core.run.session import Transfer
    from harness.nightly.history import History
    from harness.nightly.records import Alarm, Night


@group("nightly", cls=FirstByDefault, subcommand_metavar="FILE | COMMAND [ARGS]...")
def nightly() -> None:
    """
    Measure a night: `harness nightly FILE`, made for cron and CI; and judge the nights so far.

    Each night is a run in another order; it adds a line to results/NAME/nightly/history.jsonl.
    What seems to have moved is measured again at once.  Exit status 1: an alarm is open.

    \b
    Example:
        harness nightly experiments/nightly.yaml
        harness nightly judge results/nightly/nightly/history.jsonl
        harness nightly accept 1f2e3d4c --reason "new disks"
    """


history_argument = click.argument(
    "history",
    type=click.Path(path_type=Path),
    default=Path("results"),
    envvar="HARNESS_RESULTS_DIR",
)


@nightly.command("night", hidden=True)
@click.argument("file", type=click.Path(), shell_complete=completion.experiments)
@results_option
@set_option
@json_option
@click.pass_obj
def measure(
    transfer: Transfer,
    file: str,
    results_dir: Path,
    overrides: tuple[str, ...],
    as_json: bool,
) -> int:
    """
    Measure a night of FILE, or go on with one that was interrupted.

    \b
    Example:
        harness nightly experiments/nightly.yaml --json
    """
    from harness.base.documents.junit import junit_xml
    from harness.core.reports import REPORTS
    from harness.core.run.experiment_file import read_experiment_file
    from harness.nightly import page as pages
    from harness.nightly.alarms import current
    from harness.nightly.measure import measure_night, tell
    from harness.nightly.power import first_week
    from harness.nightly.records import Night
    from harness.observe.storage.files import write_file

    text = read_experiment_file(Path(file))
    line, history, failed, command = measure_night(
        text, file, results_dir, overrides, Progress(), transfer=transfer
    )
    alarms, notes = current(entries := history.entries())
    notes += first_week(entries)
    nights = [entry for entry in entries if isinstance(entry, Night)]
    name = history.folder.parent.name
    document = pages.nightly_document(name, nights, alarms, notes)
    outputs = {  # for people, and figures for other programs
        "nightly.html": REPORTS["html"].render(document),
        "summary.md": REPORTS["markdown"].render(document),
        "junit.xml": junit_xml(pages.junit_suites(nights, alarms)),
        "metrics.prom": pages.open_metrics(name, nights, alarms),
        "otava.csv": pages.otava_csv(nights),
    }
    for file_name, content in outputs.items():
        write_file(history.folder / file_name, content.encode(), history.folder)
    tell(command, line.alarms)
    answer = {"night": line, "alarms": alarms, "notes": notes, "outputs": history.folder}
    page = f"page: {history.folder / 'nightly.html'}"
    present(answer, shown_page(document, [*line.lacks, *notes, page]), as_json=as_json)
    if any(alarm.state in pages.ACTIVE for alarm in alarms):
        return 1
    return 6 if failed else 0


@nightly.command("judge")
@click.argument("history", type=click.Path(path_type=Path))
@click.option("--each", "separate", is_flag=True, help="Every column of a CSV file by itself.")
@json_option
def judge(history: Path, separate: bool, as_json: bool) -> int:
    """
    Replay the detector night by night: on a history, or on a CSV file of columns time,NAME...

    Nights are counted from 1.  Exit status 1: there are alarms; 7: the data cannot be judged.

    \b
    Example:
        harness nightly judge results/nightly/nightly/history.jsonl
        harness nightly judge nights.csv --each --json
    """
    from harness.nightly.alarms import Judge, few_nights, judged
    from harness.nightly.columns import read_csv
    from harness.nightly.power import first_week
    from harness.nightly.records import Alarm, Night

    alarms = list[Alarm]()
    notes = list[str]()
    nights = list[Night]()
    if history.suffix == ".jsonl" or history.is_dir():
        entries = open_history(history).entries()
        alarms, notes = judged(entries)
        notes += first_week(entries)
        nights += [entry for entry in entries if isinstance(entry, Night)]
        night_count = len(nights)
    else:
        tables = read_csv(history, separate=separate)
        night_count = len(tables[0].numbers)
        for table in tables:
            alarms += Judge(table).judge()
            notes += table.notes
        notes += few_nights(tables[0], str(history))
    answer = {"nights": night_count, "alarms": alarms, "notes": notes}
    present(answer, shown_replay(night_count, nights, alarms, notes), as_json=as_json)
    return int(any(alarm.state not in ("accepted", "gone") for alarm in alarms))


def shown_replay(
    night_count: int, nights: Sequence[Night], alarms: Sequence[Alarm], notes: Sequence[str]
) -> Iterator[Part]:
    """How many nights there are, and what the detector says of them."""
    from harness.base.documents.wording import count
    from harness.nightly.page import nightly_document

    yield Note(count(night_count, "night"))
    yield from shown_page(nightly_document("", nights, alarms), notes)


@nightly.command("accept")
@click.argument("alarm")
@history_argument
@click.option("--reason", required=True, help="Why the change is as it should be.")
@json_option
def accept(alarm: str, history: Path, reason: str, as_json: bool) -> None:
    """
    Accept what ALARM is about, by its id or the first characters: the baseline moves.

    \b
    Example:
        harness nightly accept 1f2e3d4c --reason "new disks"
    """
    from harness.nightly.measure import accept as accept_alarm

    chosen = open_history(history)
    accept_alarm(chosen, alarm, printable(reason))
    note = Note(f"accepted; the next night, or harness nightly judge {chosen.path}, says so")
    present({"alarm": alarm, "history": chosen.path}, [note], as_json=as_json)


@nightly.command("bisect")
@click.argument("alarm")
@history_argument
@json_option
def bisect(alarm: str, history: Path, as_json: bool) -> None:
    """
    Name the commit that ALARM is about, whose cause is code; starts no cluster.

    Between the last night before it and its first, `git bisect run` reproduces the baseline night
    in a work tree of its own.

    \b
    Example:
        harness nightly bisect 1f2e3d4c
    """
    from harness.nightly.measure import find_commit

    commit, subject = find_commit(open_history(history), alarm)
    present({"commit": commit, "subject": subject}, [f"{commit} {subject}"], as_json=as_json)


@nightly.command("doctor")
@history_argument
@json_option
def doctor(history: Path, as_json: bool) -> None:
    """
    Say how small a shift HISTORY shows, from where its variance comes, and what would help.

    \b
    Example:
        harness nightly doctor
        harness nightly doctor results/nightly/nightly/history.jsonl --json
    """
    from harness.nightly.power import diagnose

    chosen = open_history(history)
    power = diagnose(chosen.entries(), str(chosen.path))
    present(power, shown_power(power), as_json=as_json)


def shown_power(power: Mapping[str, Any]) -> Iterator[Part]:
    """From where the variance comes, the shifts that are seen, and what would help."""
    for rows in (power["variance"], power["shifts"], power["helps"]):
        if rows:
            yield Rows([*rows[0]], [[*map(str, row.values())] for row in rows])
    for note in (power["false_alarms"], *power["notes"]):
        yield Note(note)


def open_history(path: Path) -> History:
    """Open the history at *path*: its file, a folder around it, or that of all results."""
    from harness.nightly.history import FOLDER, HISTORY, History

    places = [path / HISTORY, path / FOLDER / HISTORY, *path.glob(f"*/{FOLDER}/{HISTORY}")]
    places = [path] if path.name == HISTORY else places
    histories = sorted(place.absolute() for place in places if place.is_file())
    if len(histories) == 1:
        return History(histories[0].parent)
    what = f"{len(histories) or 'no'} histories of nights are here"
    named = f"name one of {', '.join(map(str, histories[:6]))}"
    fix = named if histories else "harness nightly FILE begins one"
    raise DataError(what, where=str(path.absolute()), fix=fix)


def shown_page(page: Document, notes: Sequence[str]) -> Iterator[Part]:
    """The alarms of a *page*, if there are any, and what is to be said beside them."""
    overview = page.overview
    yield "no alarm" if overview is None else Rows(overview.columns, overview.texts())
    for note in notes:
        yield Note(note)
