"""
Tests for `harness.core.experiment.document.Document`: YAML with the place of each part.
"""

import time

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import SpecError
from harness.core.experiment.document import MAX_CHARACTERS, Document, Scalar

# What YAML is made of, so that random texts are often nearly right.
PIECES = [
    *["a", "b: ", "- ", "\n", "  ", "[", "]", "{", "}", ", ", "&x ", "*x", "!!str ", "'", '"', "|"],
    *[">", "? ", ": ", "# ", "---\n", "...", "%YAML 1.1\n", "\\x", "\t", "é", "\0", "1", "<<"],
]


def read(text):
    """
    The document in *text*, in which nothing may be wrong.
    """
    document = Document(text, "f.yaml")
    document.raise_problems()
    return document


def values(node):
    """
    The meaning of each scalar of a document.
    """
    if isinstance(node, dict):
        return {key: values(value) for key, value in node.items()}
    return [values(item) for item in node] if isinstance(node, list) else node.value


def test_reads_values_by_the_core_schema():
    """
    Words that YAML 1.1 took for truth or for minutes are text; quotes make text of all.
    """
    text = "[1, 0.5, true, no, 1:30, '1', ~, 1e3, 32 MiB, -7, .inf, 12345678901234567890]"

    assert values(read(text).data) == [
        1, 0.5, True, "no", "1:30", "1", None, 1000.0, "32 MiB", -7, ".inf", 12345678901234567890.0,
    ]  # fmt: skip


def test_knows_where_everything_stands():
    """
    Keys and values have their line and column, counted from 1.
    """
    document = read("a: 1\nb:\n  - {c: xyz}\n")

    assert str(document.place(("b",), key=True)) == "f.yaml:2:1"
    assert str(document.place(("b", 0, "c"))) == "f.yaml:3:9"
    assert str(document.place(("b", 0, "d", 7))) == "f.yaml:3:5"


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("a: 1\nb: 2\na: 3\n", "a is given twice, first in line 1", "f.yaml:3:1"),
        ("a: &x [1]\nb: *x\n", "anchors and aliases", "f.yaml:1:4"),
        ("a: !!python/object:os.system x\n", "tag .* is not used", "f.yaml:1:4"),
        ("a: !secret x\n", "tag !secret is not used", "f.yaml:1:4"),
        ("[" * 50 + "]" * 50, "levels deep", "f.yaml:1:13"),
        ("a: [1\nb: 2\n", "this is not YAML", "f.yaml:2:2"),
        ("a: 1\n---\nb: 2\n", "another document", "f.yaml:2:1"),
        ("a: \x07\n", "this is not YAML", "f.yaml:1:1"),
        ("? [a]\n: 1\n", "a key is not a word", "f.yaml:1:3"),
        ("x" * (MAX_CHARACTERS + 1), "characters, more than", "f.yaml:1:1"),
    ],
    ids=["twice", "anchor", "object", "tag", "deep", "open", "two", "bell", "key", "large"],
)
def test_refuses_with_its_place(text, what, place):
    """
    What is not plain YAML is refused, and the error says where.
    """
    with pytest.raises(SpecError, match=what) as caught:
        read(text)

    assert caught.value.where == place


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x,x]\n" + "".join(f"b{i}: &b{i} [*a,*a,*a]\n" for i in range(50)),
        "[" * 49_000,
        "{a: " * 12_000,
        "- " * 24_000,
        "a:\n" * 16_000,
        '"' + "\\" * 49_000,
        "? " * 24_000,
        "&a " * 16_000,
    ],
    ids=["bomb", "lists", "maps", "items", "keys", "escapes", "complex", "anchors"],
)
def test_hostile_text_is_refused_quickly(text):
    """
    Texts made to be expensive are refused in a moment.
    """
    started = time.process_time()

    with pytest.raises(SpecError):
        read(text)

    assert time.process_time() - started < 10


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_text_is_a_document_or_an_error(text):
    """
    Whatever a file holds, the answer is a document or a `SpecError` that can be printed.
    """
    try:
        answer = read(text).data
    except SpecError as error:
        answer = error

    assert isinstance(answer, Scalar | list | dict | SpecError)
    if isinstance(answer, SpecError):
        assert all(line.isprintable() for line in str(answer).split("\n"))
