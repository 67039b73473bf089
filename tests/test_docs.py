"""
The documentation, held against the code: links lead somewhere, examples are read, names exist.
"""

import re

from pathlib import Path

from harness.base import errors
from harness.cli import COMMANDS
from harness.cli.commands.list import KINDS
from harness.core.experiment.file import read_experiment

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md"), *PROJECT.glob("bench/*.md")])
MOST_WORDS = 60  # of a bullet or a row of a table: more is not taken in at a glance
BULLET = re.compile(r"\s*(?:[-*]|\d+\.) ")
# What is not held to it: blocks of code, tables that a script writes between two comments, the
# sentences of published bundles, and two sections of the design.
CODE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
MADE = re.compile(r"<!-- \w+ -->.*?<!-- end -->", re.DOTALL)
LAYOUT_AND_CODE = re.compile(r"^## [38]\. .*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
HELD = [page for page in PAGES if page.name != "published.md"]


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


def blank(match):
    """
    As many empty lines as the match has, so that the lines below keep their numbers.
    """
    return "\n" * match.group().count("\n")


def items(page):
    """
    First line and text of each bullet of *page*, with the lines that go on with it, and each row.
    """
    text = page.read_text(encoding="utf-8")
    for pattern in (CODE, MADE):
        text = pattern.sub(blank, text)
    if page.name == "design.md":
        text = LAYOUT_AND_CODE.sub(blank, text)

    first, lines = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_row = line.lstrip().startswith("|")
        is_item = is_row or BULLET.match(line) is not None
        is_end = is_item or not line.strip() or line.startswith("#")
        if is_end and lines:
            yield first, " ".join(lines)
            lines = []
        if is_item:
            first, lines = number, [line]
        elif lines:
            lines.append(line)


def words(text):
    """
    How many words a reader sees in a bullet or a row, its marks left out.
    """
    return len(re.sub(r"[|`*]", "", text).split())


def test_bullets_and_rows_are_short():
    """
    What is set as one item is read as one: a bullet or a row has at most MOST_WORDS words.
    """
    long = [
        f"{page.relative_to(PROJECT)}:{number}: {words(text)} words"
        for page in HELD
        for number, text in items(page)
        if words(text) > MOST_WORDS
    ]

    assert long == []
