"""Recorded job histories, in both forms, and histories made of single events."""

import gzip
import io
import json

from pathlib import Path

import fastavro

DATA = Path(__file__).parent / "data"
JSON = {name: (DATA / f"{name}.jhist").read_bytes() for name in
        ("wordcount", "teragen", "terasort", "failed", "killed")}  # fmt: skip
# Recorded as they are, of other jobs, forms and versions of Hadoop.
RECORDED = {
    path.name.removesuffix(".jhist.gz"): gzip.decompress(path.read_bytes())
    for path in sorted(DATA.glob("*.jhist.gz"))
}
HEAD = JSON["wordcount"].splitlines(keepends=True)[:2]


def binary(history):
    """The JSON *history* in binary form, by the schema of its line 2."""
    _, schema_line, *events = history.splitlines(keepends=True)
    schema = fastavro.parse_schema(json.loads(schema_line))
    datums = io.BytesIO()
    for line in events:
        if line.strip():
            (event,) = fastavro.json_reader(io.StringIO(line.decode()), schema)
            fastavro.schemaless_writer(datums, schema, event)
    return b"Avro-Binary\n" + schema_line + datums.getvalue()


def history(*events):
    """The first lines of a recorded history, then *events* as (type, fields) or as raw lines."""
    lines = [
        e if isinstance(e, bytes) else json.dumps({"type": e[0], "event": {e[0]: e[1]}}).encode()
        for e in events
    ]
    return [*HEAD, *(line.rstrip(b"\n") + b"\n\n" for line in lines)]
