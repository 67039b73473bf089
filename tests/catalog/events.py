"""
Events of job histories in the forms and schemas of three versions of Hadoop.
"""

import io
import json

from functools import cache

import fastavro

from tests.parsing.histories import HEAD

RECORDS = "org.apache.hadoop.mapreduce.jobhistory"
# Hadoop 2 knows no killed tasks of a job, and counts no tasks of one that failed.
LATER = {
    "JobFinished": {"killedMaps", "killedReduces"},
    "JobUnsuccessfulCompletion": {"failedMaps", "failedReduces", "killedMaps", "killedReduces"},
}
GROUPS = {
    "FILE_": "FileSystemCounter",
    "HDFS_": "FileSystemCounter",
    "BYTES_READ": "lib.input.FileInputFormatCounter",
    "BYTES_WRITTEN": "lib.output.FileOutputFormatCounter",
}


@cache
def schema_of(version):
    """
    The schema of events as that version of Hadoop has it.
    """
    schema = json.loads(HEAD[1])
    if version.startswith("2"):
        for record in schema["fields"][1]["type"]:
            later = LATER.get(record["name"], ())
            record["fields"] = [field for field in record["fields"] if field["name"] not in later]
    return schema


@cache
def records_of(version):
    """
    Of each record its fields, and whether each may be null.
    """
    return {
        record["name"]: {field["name"]: isinstance(field["type"], list)
                         for field in record["fields"]}
        for record in schema_of(version)["fields"][1]["type"]
    }  # fmt: skip


@cache
def parsed_schema(version):
    """
    The schema for fastavro.
    """
    return fastavro.parse_schema(schema_of(version))


def in_json(version, events):
    """
    A history in JSON of *events*: type, record, and fields, of which the version has some.
    """
    lines = [b"Avro-Json", json.dumps(schema_of(version)).encode()]
    for event_type, record, fields in events:
        tagged = {}
        for name, is_union in records_of(version)[record].items():
            value = fields[name]
            if is_union and value is not None:
                tag = "string" if isinstance(value, str) else f"{RECORDS}.JhCounters"
                value = {tag: value}
            tagged[name] = value
        event = {"type": event_type, "event": {f"{RECORDS}.{record}": tagged}}
        lines += [json.dumps(event, separators=(",", ":")).encode(), b""]
    return b"\n".join([*lines, b""])


def in_binary(version, events):
    """
    The same in Avro's binary form.
    """
    datums = io.BytesIO()
    for event_type, record, fields in events:
        known = {name: fields[name] for name in records_of(version)[record]}
        event = {"type": event_type, "event": (f"{RECORDS}.{record}", known)}
        fastavro.schemaless_writer(datums, parsed_schema(version), event)
    head = b"Avro-Binary\n" + json.dumps(schema_of(version)).encode() + b"\n"
    return head + datums.getvalue()


def counters(name, **values):
    """
    Counters of a task or of all; each in its group, by how its name begins.
    """
    groups = {}
    for counter, value in values.items():
        short = next((GROUPS[begin] for begin in GROUPS if counter.startswith(begin)),
                     "TaskCounter")  # fmt: skip
        entry = {"name": counter, "displayName": counter, "value": int(value)}
        groups.setdefault(short, []).append(entry)
    return {
        "name": name,
        "groups": [
            {"name": f"org.apache.hadoop.mapreduce.{short}", "displayName": short, "counts": counts}
            for short, counts in groups.items()
        ],
    }
