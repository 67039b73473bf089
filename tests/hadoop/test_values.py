"""
Tests for values as Hadoop reads them in jobs that have run.
"""

import pytest

from harness.base.errors import SpecError
from harness.base.hadoop.properties import job_config
from harness.base.hadoop.values import (
    decimal_number,
    expanded,
    plain_value,
    runs_on_java_8,
    whole_number,
)

SORT_MB = "mapreduce.task.io.sort.mb"
SPILL = "mapreduce.map.sort.spill.percent"
COMPRESS = "mapreduce.map.output.compress"
MAP_LIMIT = "mapreduce.job.running.map.limit"
REDUCE_MB = "mapreduce.reduce.memory.mb"
DEFAULTS = dict.fromkeys(
    (
        "mapreduce.client.progressmonitor.pollinterval",
        "mapreduce.job.end-notification.retry.attempts",
        "mapreduce.job.ubertask.maxreduces",
    ),
    "1",
)


class TestVariables:
    """What `Configuration` puts in the place of ``${name}``."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("${a}", "1"),
            ("x${a}y${b}", "x1y1z"),
            ("${unknown} ${a}", "${unknown} ${a}"),
            ("${env.HOME} ${a}", "${env.HOME} ${a}"),
            ("${not a name} ${}", "${not a name} ${}"),
            ("${loop}", "${loop}"),
            ("${self}", "${self}"),
            ("${empty}", ""),
            ("$a {a}", "$a {a}"),
        ],
    )
    def test_are_replaced_from_the_same_file(self, text, value):
        """
        The leftmost first; one that nobody knows ends it, one that contains itself takes all back.
        """
        properties = {
            "a": "1", "b": "${a}z", "self": "x${self}", "loop": "${pool}", "pool": "${loop}",
            "empty": "",
        }  # fmt: skip

        assert expanded(text, properties) == value

    def test_are_at_most_twenty(self):
        """
        Hadoop refuses more.
        """
        chain = {f"v{number}": f"${{v{number + 1}}}" for number in range(30)} | {"v30": "end"}

        assert expanded("${v12}", chain) == "end"
        assert expanded("${v11}", chain) == "${v11}"


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "number"),
        [("100", 100), ("+7", 7), ("-1", -1), ("0x64", 100), ("0X0a", 10), ("-0x10", -16),
         ("007", 7), ("1.0", None), ("1_0", None), ("٣", None), ("0x", None), ("", None),
         ("9" * 20, None)],
    )  # fmt: skip
    def test_whole(self, text, number):
        """
        As getInt takes them.
        """
        assert whole_number(text) == number

    @pytest.mark.parametrize(
        ("text", "number"),
        [("0.80f", 0.8), ("0.8", 0.8), ("1e-1d", 0.1), ("1.F", 1.0), (".5", 0.5), ("-2", -2.0),
         ("NaN", None), ("0.8%", None), ("0,8", None), ("f", None), ("1" * 400, None)],
    )  # fmt: skip
    def test_decimal(self, text, number):
        """
        As Float.parseFloat takes them, those that are finite.
        """
        assert decimal_number(text) == number


class TestPlainValue:
    @pytest.mark.parametrize(
        ("name", "text", "value"),
        [
            (SORT_MB, " 0x64\n", "100"),
            (SPILL, "0.80f", "0.8"),
            (SPILL, "1", "1.0"),
            (COMPRESS, " TRUE ", "true"),
            (COMPRESS, "yes", ""),
            (COMPRESS, "False", "false"),
            (MAP_LIMIT, "-1", ""),
            (MAP_LIMIT, "0", ""),
            (MAP_LIMIT, "0x4", "4"),
            (REDUCE_MB, "-5", "-1"),
            (REDUCE_MB, "2048", "2048"),
            ("mapreduce.reduce.memory.totalbytes", "5000000000", "5000000000"),
            ("mapreduce.reduce.java.opts", " -Xmx400m ", "-Xmx400m"),
            (SORT_MB, " ", ""),
        ],
    )
    def test_is_read_strictly_afterwards(self, name, text, value):
        """
        What Hadoop takes its default for is left out.
        """
        assert plain_value(name, text) == value
        job_config({name: value} if value else {})

    @pytest.mark.parametrize(
        ("name", "text"),
        [(SORT_MB, "x"), (SORT_MB, "1.5"), (SORT_MB, "0x80000000"), (SPILL, "80%"),
         (MAP_LIMIT, "none"), (REDUCE_MB, "2g")],
    )  # fmt: skip
    def test_no_job_runs_with_some(self, name, text):
        """
        The property is named.
        """
        with pytest.raises(SpecError) as refused:
            plain_value(name, text)

        assert refused.value.what.startswith(f"{name} = {text!r} is not ")
        assert "{" not in str(refused.value)


class TestJava:
    @pytest.mark.parametrize(
        ("options", "properties", "is_8"),
        [
            ("-Xmx1g -XX:MaxPermSize=256m", {}, True),
            ("-XX:+PrintGCDateStamps", {}, True),
            ("-Xmx1g", {}, False),
            ("-Xmx1g", DEFAULTS, True),
            ("-Xmx1g", DEFAULTS | {"mapreduce.jvm.add-opens-as-default": "true"}, False),
            ("-Xlog:gc:file=gc.log", DEFAULTS, False),
            ("--add-opens=java.base/java.lang=ALL-UNNAMED", DEFAULTS, False),
        ],
    )
    def test_is_shown_by_options_or_a_whole_configuration(self, options, properties, is_8):
        """
        Of a part of a configuration nobody knows.
        """
        assert runs_on_java_8(options, properties) is is_8
