"""An obvious writer of Avro, to make binary histories out of JSON ones."""

import json


def binary(history):
    """The JSON *history* in binary form, by the schema of its line 2."""
    lines = [line for line in history.splitlines() if line.strip()]
    schema = json.loads(lines[1])
    datums = [encoded(json.loads(line), schema, {}) for line in lines[2:]]
    return b"\n".join([b"Avro-Binary", lines[1], b"".join(datums)])


def encoded(value, schema, known):
    """*value*, as Avro's JSON has it, as bytes; *known* collects the types that have names."""
    if isinstance(schema, list):
        return member(value, schema, known)
    if isinstance(schema, str):
        return known[schema](value) if schema in known else primitive(value, schema)
    if schema["type"] == "record":
        known[schema["name"]] = lambda v: record(v, schema, known)
        return record(value, schema, known)
    if schema["type"] == "enum":
        return number(schema["symbols"].index(value))
    if schema["type"] == "array":
        return blocks([encoded(v, schema["items"], known) for v in value])
    if schema["type"] == "map":
        items = value.items()
        return blocks([text(k) + encoded(v, schema["values"], known) for k, v in items])
    return encoded(value, schema["type"], known)


def record(value, schema, known):
    """The fields, one behind the other."""
    return b"".join(encoded(value[f["name"]], f["type"], known) for f in schema["fields"])


def member(value, union, known):
    """One of a union: null, or an object whose only key is the name of its type."""
    for s in union:  # a later member may use a name that an earlier one defines
        if isinstance(s, dict) and "name" in s:
            define(s, known)
    names = [s["name"] if isinstance(s, dict) else s for s in union]
    tag, inner = ("null", None) if value is None else next(iter(value.items()))
    which = names.index(tag.rpartition(".")[2])
    return number(which) + (b"" if value is None else encoded(inner, union[which], known))


def define(schema, known):
    """Collect the types with names within *schema*."""
    if isinstance(schema, list):
        for inner in schema:
            define(inner, known)
    elif isinstance(schema, dict):
        if schema["type"] == "record":
            known[schema["name"]] = lambda v: record(v, schema, known)
            for field in schema["fields"]:
                define(field["type"], known)
        define(schema.get("items"), known)
        define(schema["type"], known)


def blocks(items):
    """Items in one block."""
    return (number(len(items)) + b"".join(items) if items else b"") + number(0)


def primitive(value, kind):
    """A value without a name for its type."""
    if kind == "string":
        return text(value)
    return bytes([value]) if kind == "boolean" else number(value)


def text(value):
    """Size in bytes, then UTF-8."""
    return number(len(value.encode())) + value.encode()


def number(value):
    """Zigzag, seven bits a byte, lowest first."""
    rest, raw = (value << 1) ^ (value >> 63), []
    while rest > 127:
        raw.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*raw, rest])
