"""
The documentation, held against the code: links lead somewhere, examples are read, names exist.
"""

import re

from pathlib import Path

from harness import errors
from harness.cli import COMMANDS
from harness.cli.list import KINDS
from harness.experiment.file import read_experiment

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("bench/*.md")])


def links(pattern):
    """
    Page and match of every link on the pages that is as *pattern* says.
    """
    for page in PAGES:
        for match in re.findall(pattern, page.read_text(encoding="utf-8")):
            yield page, match


def test_links_lead_somewhere():
    """
    Every relative link of a page names a file of the project.
    """
    relative = links(r"\]\((?!https?://|#)([^)#\s]+)")

    assert [(page.name, to) for page, to in relative if not (page.parent / to).exists()] == []


def headings(page):
    """
    The anchors of a page, as GitHub makes them of its headings.
    """
    lines = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_links_lead_to_headings():
    """
    What stands behind the # of a link is a heading of the page that it names.
    """
    dead = [
        f"{page.name}: {to}#{heading}"
        for page, (to, heading) in links(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)")
        if heading not in headings(page.parent / to if to else page)
    ]

    assert dead == []


def test_reference_has_every_variable():
    """
    A variable that the code reads is one that a user can find; our scripts set the last one.
    """
    reference = (PROJECT / "docs" / "reference.md").read_text(encoding="utf-8")
    code = "".join(p.read_text(encoding="utf-8") for p in PROJECT.glob("harness/**/*.py"))

    read = set(re.findall(r"(?<![A-Z_])HARNESS_[A-Z_]*[A-Z]", code)) - {"HARNESS_PYTHON"}

    assert {name for name in read if name not in reference} == set()


def test_experiment_of_the_guide_is_read():
    """
    Who types it in gets what the text beside it says: sixteen cells.
    """
    guide = (PROJECT / "docs" / "guide.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)

    experiment = read_experiment(text, "guide.md")

    axes = [*experiment.configuration.values(), experiment.workloads[0].input_bytes]
    cells = 1
    for axis in axes:
        cells *= len(axis)
    assert (cells, cells * experiment.repeat) == (16, 48)


def test_reference_has_every_command():
    """
    A command, or a kind that is listed, that is not in the reference does not exist for its reader.
    """
    reference = (PROJECT / "docs" / "reference.md").read_text(encoding="utf-8")
    names = [*COMMANDS, *KINDS]

    assert [n for n in names if not re.search(rf"`(harness )?(list )?{n}\b", reference)] == []


def test_reference_has_every_exit_status():
    """
    The statuses of the errors are those of the table.
    """
    reference = (PROJECT / "docs" / "reference.md").read_text(encoding="utf-8")
    kinds = [k for k in vars(errors).values() if isinstance(k, type)]

    listed = {int(status) for status in re.findall(r"^\| (\d+)", reference, re.MULTILINE)}

    assert {k.exit_status for k in kinds if issubclass(k, errors.HarnessError)} <= listed
