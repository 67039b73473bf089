"""
The documentation, held against the code: links lead somewhere, examples are read, names exist.
"""

import re

from pathlib import Path

import pytest

from harness import errors
from harness.cli import COMMANDS
from harness.cli.list import KINDS
from harness.experiment.file import read_experiment

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("bench/*.md")])


def name_of(path):
    """
    Give parametrised tests the path inside the project.
    """
    return str(path.relative_to(PROJECT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    """
    Every relative link of a page names a file of the project.
    """
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


def headings(page):
    """
    The anchors of a page, as GitHub makes them of its headings.
    """
    lines = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_headings(page):
    """
    What stands behind the # of a link is a heading of the page that it names.
    """
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", text)

    lost = [(to, at) for to, at in links if at not in headings(page.parent / to if to else page)]

    assert lost == []


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
    Who types it in gets what the text beside it says: twelve cells.
    """
    guide = (PROJECT / "docs" / "guide.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)

    experiment = read_experiment(text, "guide.md")

    axes = [*experiment.configuration.values(), experiment.workloads[0].input_bytes]
    cells = 1
    for axis in axes:
        cells *= len(axis)
    assert (cells, cells * experiment.repeat) == (12, 36)


@pytest.mark.parametrize("name", [*COMMANDS, *KINDS])
def test_reference_has_every_command(name):
    """
    A command or a kind of thing that is not in the reference does not exist for its reader.
    """
    reference = (PROJECT / "docs" / "reference.md").read_text(encoding="utf-8")

    assert re.search(rf"`(harness )?(list )?{name}\b", reference)


def test_reference_has_every_exit_status():
    """
    The statuses of the errors are those of the table.
    """
    reference = (PROJECT / "docs" / "reference.md").read_text(encoding="utf-8")
    kinds = [k for k in vars(errors).values() if isinstance(k, type)]

    listed = {int(status) for status in re.findall(r"^\| (\d+)", reference, re.MULTILINE)}

    assert {k.exit_status for k in kinds if issubclass(k, errors.HarnessError)} <= listed
