"""
Values of properties as Hadoop reads them in jobs that have run.

Hadoop's `Configuration` replaces variables, trims, and takes forms of numbers that an experiment of
ours would be refused for; a word that is no truth stands for the default.  Here each value becomes
the plain text that `properties.job_config` reads.
"""

from __future__ import annotations

import re

from collections.abc import Mapping
from typing import Any

from harness.base.errors import SpecError
from harness.base.hadoop.properties import HEAP_SHARE, JOB_PROPERTIES, REDUCE_MEMORY
from harness.base.hadoop.slots import KINDS
from harness.base.records.prediction import JobConfig

LIMIT = "mapreduce.job.running.{}.limit"
MEMORY = "mapreduce.{}.memory.mb"
_MOST_REPLACED = 20  # variables of one value
_VARIABLE = re.compile(r"\$\{([^}$ ]+)\}")
_SPACES = "".join(map(chr, range(0x21)))  # that Java trims
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_HEXADECIMAL = re.compile(r"(-?)0[xX]([0-9a-fA-F]{1,16})")
_DECIMAL = re.compile(
    r"([+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?)[fFdD]?"
)
_OF_JAVA_8 = re.compile(
    r"-XX:[+-]?(?:(?:Max)?PermSize|PrintGC(?:Date|Time)Stamps|PrintGCApplication\w+Time|PrintHeapAtGC"
    r"|PrintTenuringDistribution|PrintAdaptiveSizePolicy|PrintReferenceGC|UseGCLogFileRotation"
    r"|NumberOfGCLogFiles|GCLogFileSize)\b"
)
_OF_JAVA_9 = re.compile(r"-Xlog:|--add-(?:opens|exports|modules)|--illegal-access")
_DEFAULTS = {  # that nobody sets: where they are, all are
    "mapreduce.client.progressmonitor.pollinterval",
    "mapreduce.job.end-notification.retry.attempts",
    "mapreduce.job.ubertask.maxreduces",
}
_ADD_OPENS = "mapreduce.jvm.add-opens-as-default"  # since Hadoop 3.4
_LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1}
_TYPES: dict[Any, str] = {bool: "boolean", int: "int", float: "float"}  # Hadoop's, by ours
_TYPE_OF = {
    **{
        name: _TYPES[JobConfig.model_fields[field].annotation]
        for field, (name, _) in JOB_PROPERTIES.items()
    },
    **{pattern.format(kind): "int" for pattern in (LIMIT, MEMORY) for kind in KINDS},
    "dfs.replication": "int",
    HEAP_SHARE: "float",
    REDUCE_MEMORY: "long",
}
_WANTED = {
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "float": "a number",
}
# Where 0 or less stands for something else: the text of that, or for the default "".
_NOT_POSITIVE = {LIMIT.format(kind): "" for kind in KINDS}
_NOT_POSITIVE |= {MEMORY.format(kind): "-1" for kind in KINDS}


def expanded(text: str, properties: Mapping[str, str]) -> str:
    """
    Replace variables in *text*, the value of one of *properties*, as Hadoop does.

    One that is not among them stays as it is, and so do ``${env.NAME}``: nobody knows them here.  A
    text that contains itself, or has more than 20, stays as a whole.

    >>> expanded("-Xmx${heap}m -Dx=${user.name}", {"heap": "${mb}", "mb": "400"})
    '-Xmx400m -Dx=${user.name}'
    """
    result = text
    for _ in range(_MOST_REPLACED):
        variable = _VARIABLE.search(result)
        if variable is None:
            return result
        value = properties.get(variable[1])
        if value is None:
            return result
        if variable[0] in value:
            return text
        result = f"{result[: variable.start()]}{value}{result[variable.end() :]}"
    return text


def plain_value(name: str, text: str) -> str:
    """
    Text of a value as `properties.job_config` reads it; empty where Hadoop takes its default.

    ``SpecError`` names the property of a value that no job could have been run with.

    >>> plain_value("mapreduce.task.io.sort.mb", " 0x64 ")
    '100'
    >>> plain_value("mapreduce.map.sort.spill.percent", "0.80f")
    '0.8'
    >>> plain_value("mapreduce.map.output.compress", "yes")
    ''
    >>> plain_value("mapreduce.job.running.map.limit", "-1")
    ''
    """
    trimmed = text.strip(_SPACES)
    type_name = _TYPE_OF.get(name)
    if type_name is None or not trimmed:
        return trimmed
    if type_name == "boolean":
        return trimmed.lower() if trimmed.lower() in ("true", "false") else ""
    number = decimal_number(trimmed) if type_name == "float" else whole_number(trimmed)
    if number is None or (type_name in _LARGEST and abs(number) > _LARGEST[type_name]):
        what = f"{name} = {text!r:.200} is not {_WANTED[type_name]}"
        raise SpecError(what, where=f"configuration, {name}")
    return _NOT_POSITIVE.get(name, repr(number)) if number <= 0 else repr(number)


def whole_number(text: str) -> int | None:
    """
    Number of `getInt` or `getLong`, in digits or hexadecimal; `None`: it is none.

    >>> whole_number("+7"), whole_number("-0x10"), whole_number("1_0"), whole_number("7.0")
    (7, -16, None, None)
    """
    if hexadecimal := _HEXADECIMAL.fullmatch(text):
        return int(hexadecimal[1] + hexadecimal[2], 16)
    return int(text) if _WHOLE.fullmatch(text) else None


def decimal_number(text: str) -> float | None:
    """
    Number of `getFloat`, which may end as one of Java's; `None`: it is none, or not finite.

    >>> decimal_number("0.80f"), decimal_number("1e-1d"), decimal_number(".5"), decimal_number("8%")
    (0.8, 0.1, 0.5, None)
    """
    match = _DECIMAL.fullmatch(text)
    return float(match[1]) if match else None


def runs_on_java_8(options: str, properties: Mapping[str, str]) -> bool:
    """
    Whether a JVM with these *options*, of a job with all these *properties*, is Java 8's or older.

    Its options say it, as Java 9 starts with none of them; or a whole configuration, which has all
    defaults, is of a Hadoop before 3.4.  That runs on Java 8, 3.3 on Java 11 as well.  Where a part
    of a configuration is all there is, nobody knows.
    """
    if _OF_JAVA_9.search(options):
        return False
    is_whole = properties.keys() >= _DEFAULTS
    is_before_3_4 = is_whole and _ADD_OPENS not in properties
    return is_before_3_4 or bool(_OF_JAVA_8.search(options))
