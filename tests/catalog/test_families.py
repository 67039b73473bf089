"""
Families: jobs of one program are known by their names and classes, or by rules.
"""

import pytest

from harness.base.errors import SpecError
from harness.catalog.families import families, own_family, read_rules, stem

JOB = ("etl-2026-11-25", "org.example.Map", "", "org.example.Reduce", "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("word count", "word count"),
        ("etl-2026-11-25-run3", "etl-#-run#"),
        ("load 2026-11-25T03:00:00Z", "load #"),
        ("load of 25 Nov 2026", "load of #"),
        ("load of November 25, 2026", "load of #"),
        ("q 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "q #"),
        ("march of ants", "march of ants"),
        ("job_1795224441974_0001", "job_#"),
        ("q_20150301_3f2504e0-4f89-41d3-9a0c-0305e82c3301", "q_#_#"),
        ("sessions-3fa9c1b2", "sessions-#"),
        ("GROUP BY a(Stage-2)", "GROUP BY a(Stage-2)"),
        ("users.20150301.120000.123456 (step 2 of 3)", "users.# (step 2 of 3)"),
        ("users.20150301 (2 of 3)", "users.# (2 of 3)"),
        ("python3 users.py --step-num=1 --limit=50", "python# users.py --step-num=1 --limit=#"),
        ("stage 2026-11-25", "stage #"),
        ("backstage 7", "backstage #"),
        ("  ", "no name"),
        ("decade", "decade"),
    ],
)
def test_stems(name, expected):
    """
    Numbers and dates are taken out, words are not.
    """
    assert stem(name) == expected


def test_a_family_has_one_stem_and_the_same_classes():
    """
    Classes are short where they are shown, and what is not known is no class.
    """
    assert own_family(JOB) == "etl-# [o.e.Map, -, o.e.Reduce]"
    assert own_family((JOB[0], None, None, None, None)) == "etl-# [?, ?, ?]"
    assert own_family((*JOB[:4], "in o.e.In")) == "etl-# [o.e.Map, -, o.e.Reduce; in o.e.In]"


def rules(tmp_path, text):
    """
    The rules of a file.
    """
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    return read_rules(path)


def test_the_first_rule_counts_that_is_in_the_name_or_a_class(tmp_path):
    """
    Each line of a job is looked at by itself.
    """
    known = rules(tmp_path, 'nightly: "^etl-[0-9-]+$"\nreduced: "example[.]Reduce"\n')
    jobs = [JOB, ("x", *JOB[1:]), ("x", None, None, None, None)]

    assert families(known, jobs) == ["nightly", "reduced", "x [?, ?, ?]"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[a]", "are not a mapping"),
        ('a: "("', "no regular expression for a"),
        ("a: {b: c}", "not a text of at most"),
        (f"a: {'x' * 501}", "not a text of at most"),
        ("a: (?=b)", "no regular expression for a"),
        ("a: &x b", "anchors"),
        ("\n".join(f"f{n}: x" for n in range(501)), "at most 500"),
    ],
)
def test_rules_that_cannot_be_read(tmp_path, text, what):
    """
    Are one clear error with the file.
    """
    with pytest.raises(SpecError, match=what) as raised:
        rules(tmp_path, text)
    assert "rules.yaml" in raised.value.where


def test_no_pattern_takes_long(tmp_path):
    """
    One that others search for minutes ends at once.
    """
    known = rules(tmp_path, 'slow: "^(a+)+$"\n')

    assert families(known, [("a" * 300 + "b", None, None, None)] * 100)[0].startswith("aaa")
