"""
The rings of the Makefile: which tests each part has, and where what takes long belongs.
"""

import re

from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
MAKEFILE = (PROJECT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
PARTS = {
    name: words.split()
    for name, words in re.findall(r"^tests-of-(\w+) := (.+)$", MAKEFILE, re.MULTILINE)
}
# The rules of the whole project, its scripts and its benches are no part's.
OF_ALL = ("additions", "bench", "live", "scripts", "test_")


def test_each_part_has_its_tests():
    """
    A part is a folder of `harness/`.
    """
    assert PARTS.keys() == {path.name for path in (PROJECT / "harness").iterdir()
                            if (path / "__init__.py").exists()}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_a_part_names_what_is_there(part):
    """
    Folders and files of `tests/`.
    """
    assert [name for name in PARTS[part] if not (PROJECT / "tests" / name).exists()] == []


def test_each_test_is_of_a_part():
    """
    Whoever changes a part finds with its ring what the change breaks.
    """
    named = {name for names in PARTS.values() for name in names}
    files = [path.relative_to(PROJECT / "tests") for path in PROJECT.glob("tests/**/test_*.py")]
    lost = [
        str(path)
        for path in files
        if not named & {str(path), *map(str, path.parents)} and not str(path).startswith(OF_ALL)
    ]

    assert lost == []
