"""
Tests for `harness.core.store.compare`: files of two runs side by side, value by value.
"""

import hashlib
import json

import pytest

from harness.base.errors import DataError
from harness.core.store.compare import Difference, compare_files
from harness.observe.storage.opener import Opener


@pytest.fixture
def pair(tmp_path):
    """
    Two empty folders, as openers.
    """
    openers = []
    for name in ("stored", "remade"):
        (tmp_path / name).mkdir()
        openers.append(Opener(tmp_path / name))
    return openers


def put(opener, name, *documents):
    """
    Write *documents*, one a line, each of this version.
    """
    path = opener.root / name
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"schema_version": 1, **document}) for document in documents]
    path.write_text("\n".join(lines))


def compared(pair, pattern="*"):
    """
    What differs in the files that *pattern* selects, as plain tuples.
    """
    return [tuple(difference) for difference in compare_files(*pair, pattern)]


def test_a_value_is_named_by_its_model_and_its_place(pair):
    """
    A place leads through lists and mappings; the model is that of the nearest mapping that has one.
    """
    for opener, number in zip(pair, (2.0, 3.0), strict=True):
        rows = [{"same": 1, "job_s": 5.0}, {"parts": [7, {"job_s": number}]}]
        put(opener, "scores.json", {"scores": [{"model": "ptc", "rows": rows}], "seen": number})

    assert compared(pair) == [
        ("ptc", "scores.json.scores.0.rows.1.parts.1.job_s", 2.0, 3.0, 0.5),
        ("", "scores.json.seen", 2.0, 3.0, 0.5),
    ]


def test_a_prediction_is_named_by_its_cell(pair):
    """
    One line is one prediction; a line without a cell is known by its number.
    """
    for opener, number in zip(pair, (-4.0, -5.0), strict=True):
        lines = [{"model": "m", "cell": "sort", "job_s": number}, {"model": "m", "job_s": number}]
        put(opener, "whatif.jsonl", *lines)

    assert compared(pair) == [
        ("m", "sort.job_s", -4.0, -5.0, -0.25),
        ("m", "whatif.jsonl[1].job_s", -4.0, -5.0, -0.25),
    ]


def test_what_made_a_prediction_is_no_part_of_it(pair):
    """
    Neither the code, nor the profile, nor the version of the format is an answer; in other files
    code and profile are values like others.
    """
    for opener, text in zip(pair, "ab", strict=True):
        origin = {"code": text, "profile": text, "schema_version": ord(text) - 96}
        put(opener, "whatif.jsonl", {"cell": "c", "job_s": 1.0, **origin})
        put(opener, "other.json", origin)

    assert compared(pair) == [
        ("", "other.json.code", "a", "b", None),
        ("", "other.json.profile", "a", "b", None),
    ]


def test_what_one_run_lacks_has_no_value_there(pair):
    """
    A field, or a whole file, of one side alone differs from nothing by no share.
    """
    stored, remade = pair
    put(stored, "a.json", {"old": 1, "zero": 0, "text": "x"})
    put(remade, "a.json", {"new": 2, "zero": 1, "text": "y"})
    put(remade, "b.json", {"more": 3})

    assert compared(pair) == [
        ("", "a.json.old", 1, None, None),
        ("", "a.json.zero", 0, 1, None),
        ("", "a.json.text", "x", "y", None),
        ("", "a.json.new", None, 2, None),
        ("", "b.json.more", None, 3, None),
    ]


def test_a_table_is_compared_by_its_hash(pair):
    """
    Of what is neither JSON nor lines of it the hashes are the values.
    """
    hashes = []
    for opener, data in zip(pair, (b"one", b"two"), strict=True):
        (opener.root / "attempts.parquet").write_bytes(data)
        (opener.root / "equal.parquet").write_bytes(b"same")
        hashes.append(hashlib.sha256(data).hexdigest())

    assert compared(pair) == [("", "attempts.parquet", *hashes, None)]


def test_only_what_the_pattern_selects_is_compared(pair):
    """
    By the order of the names, whichever side has them.
    """
    for opener, number in zip(pair, (1, 2), strict=True):
        for name in ("x/b.json", "x/a.json", "c.json"):
            put(opener, name, {"n": number})
    (pair[1].root / "x/b.json").rename(pair[1].root / "x/0.json")

    assert [name for _, name, *_ in compared(pair, "x/*.json")] == [
        "x/0.json.n",
        "x/a.json.n",
        "x/b.json.n",
    ]


def test_the_first_thousand_of_a_file_are_named(pair):
    """
    Each file has a thousand of its own.
    """
    for opener, number in zip(pair, (1, 2), strict=True):
        for name in ("a.json", "b.json"):
            put(opener, name, {"n": [number] * 1100})

    names = [name for _, name, *_ in compared(pair)]
    assert len(names) == 2000
    assert (names[999], names[1000]) == ("a.json.n.999", "b.json.n.0")


def test_a_file_that_cannot_be_read_is_named(pair):
    """
    With the line of a prediction's file, and with the commands that make such files again.
    """
    for opener, text in zip(pair, ("{}", "{"), strict=True):
        (opener.root / "scores.json").write_text(text)

    with pytest.raises(DataError, match="schema_version None is not a version") as caught:
        compared(pair)
    assert caught.value.where == str(pair[0].root / "scores.json")

    (pair[0].root / "scores.json").write_text("{")
    (pair[1].root / "scores.json").write_text("[")
    with pytest.raises(DataError, match=r"scores\.json is not JSON") as caught:
        compared(pair)
    assert caught.value.fix == (
        "restore it from a copy, or make it again: harness collect, profile, predict, score"
    )


@pytest.mark.parametrize(
    ("relative", "is_equal"),
    [(0.0, True), (1e-9, True), (-1e-9, True), (1.1e-9, False), (-1.1e-9, False), (None, False)],
)
def test_floats_of_linear_algebra_are_equal_to_a_billionth(relative, is_equal):
    """
    In either direction; what has no relative difference is not equal.
    """
    assert Difference("m", "n", 1.0, 1.0, relative).is_equal == is_equal


@pytest.mark.parametrize(("version", "differing"), [(8, []), (9, ["f.json.tallies.0.planned"])])
def test_fields_that_came_later_differ_in_nothing(tmp_path, version, differing):
    """
    An older file has none of them; one of the same version that lacks them is not the same.
    """
    old = {"schema_version": version, "scores": [{"model": "m", "s": 1.0}]}
    new = {**old, "schema_version": 9, "tallies": [{"planned": 3}]}
    for folder, document in (("old", old), ("new", new)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.json").write_text(json.dumps(document))

    found = compare_files(Opener(tmp_path / "old"), Opener(tmp_path / "new"), "f.json")

    assert [difference.name for difference in found] == differing
