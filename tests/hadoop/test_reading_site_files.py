"""Site files and ``job.xml`` as `read_properties` reads them."""

from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import ParseError
from harness.base.hadoop.site import read_properties

REAL = (Path(__file__).parents[1] / "parsing" / "data" / "terasort_conf.xml").read_bytes()
# Characters that XML can hold and that its readers neither change nor trim.
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8)


def site(*properties):
    """A site file with (name, value) properties."""
    body = "".join(
        f"<property><name>{escape(k)}</name><value>{escape(v)}</value></property>"
        for k, v in properties
    )
    return f"<configuration>{body}</configuration>".encode()


def test_real_job():
    """
    The settings that a job was submitted with stand in its configuration.
    """
    result = read_properties(REAL, "job.xml")

    assert len(result) == REAL.count(b"<property>")
    assert result["mapreduce.job.reduces"] == "2"
    assert result["mapreduce.map.java.opts"].endswith("-Xlog:gc:file=<LOG_DIR>/gc.log")


@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_round_trip(properties):
    """
    Names and values read back as they were written, in their order.
    """
    result = read_properties(site(*properties.items()), "x")

    assert list(result.items()) == list(properties.items())


def test_last_of_equal_names():
    """
    The last of equal names stands; a property without a value is empty.
    """
    text = site(("a", "1"), ("a", "2")).replace(
        b"</configuration>", b"<property><name>b</name></property></configuration>"
    )

    assert read_properties(text, "x") == {"a": "2", "b": ""}


def test_other_elements_are_skipped():
    """
    Descriptions, sources and comments are no values.
    """
    text = b"""<?xml version="1.0"?><!-- c --><configuration><property>
      <name> a </name><value>1<!-- c -->2</value><final>true</final>
      <description>a <value>3</value></description></property><x/></configuration>"""

    assert read_properties(text, "x") == {"a": "12"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not XML: no element found"),
        (REAL[:-40], "not XML"),
        (b"<html></html>", "the root element is 'html'"),
        (b"<configuration><property></property></configuration>", "a property without a name"),
        (b"<!DOCTYPE x><configuration/>", "document type"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><configuration>&a;</configuration>', "document type"),
        (b"<configuration>&a;</configuration>", "undefined entity"),
    ],
)
def test_refused(text, message):
    """
    What is no configuration, and every document type, is refused with its file.
    """
    with pytest.raises(ParseError, match=rf"(?s){message}.*job\.xml"):
        read_properties(text, "job.xml")


@given(
    st.lists(st.tuples(st.integers(0, 10**5), st.integers(1, 255)), max_size=6),
    st.integers(0, 10**5),
)
def test_any_bytes(flips, size):
    """
    A damaged file is read or refused.
    """
    data = bytearray(REAL)
    for at, bits in flips:
        data[at % len(data)] ^= bits

    with suppress(ParseError):
        assert read_properties(bytes(data[: len(data) - size]), "x") is not None


def test_nesting_costs_no_stack():
    """
    A file of nothing but open tags is refused like any other.
    """
    with pytest.raises(ParseError, match="not XML"):
        read_properties(b"<configuration>" + b"<a>" * 200_000, "x")
