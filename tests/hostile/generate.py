"""
Inputs that no file was changed for: made from the grammars of what the harness reads.

A grammar is a JSON schema, of a record or of what recorded texts have in common, or the layout of a
binary form.  Values keep to it as often as they break it, alone or many at once.  `made` texts are
deterministic: the same seed gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import tarfile
import zipfile
import zlib

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from tests.hostile.hunt import Target
from tests.hostile.mutate import NUMBERS, TEXTS, TOKENS

Make = Callable[[Random], bytes]
Schema = Mapping[str, Any]
_DEEPEST = 12
_WILD = (0.0, 0.0, 0.0, 0.002, 0.01, 0.05, 0.3)
_WORDS = ("a", "b", "x1", "task_1", "m_000000_0", "worker1", "INFO", "0", "terasort", "job_1_0001")


def made_target(target: Target, make: Make) -> Target:
    """The same reader, given what *make* makes; its name has ``made-`` before it."""
    fields = {**vars(target), "name": f"made-{target.name}"}
    return Target(**{**fields, "change": lambda _, __, random: make(random)})


# Values by a schema.


def infer(values: Sequence[Any]) -> Schema:
    """What *values*, as JSON makes them, have in common: a schema with examples of the leaves."""
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    leaves = [value for value in values if not isinstance(value, dict | list)]
    options: list[Schema] = []
    if objects:
        names = dict.fromkeys(name for each in objects for name in each)
        of_name = {name: [each[name] for each in objects if name in each] for name in names}
        if len(names) > 60 and len(objects) < 3:  # the names are data
            one = infer([item for each in of_name.values() for item in each][:200])
            options.append({"type": "object", "additionalProperties": one, "names": [*names]})
        else:
            properties = {name: infer(several[:200]) for name, several in of_name.items()}
            required = [name for name in names if len(of_name[name]) == len(objects)]
            options.append({"type": "object", "properties": properties, "required": required})
    if len(lists) == 1 and len(lists[0]) < 20:
        options.append({"type": "array", "prefixItems": [infer([item]) for item in lists[0]]})
    elif lists:
        items = [item for each in lists for item in each][:200]
        options.append({"type": "array", "items": infer(items) if items else {}})
    if leaves:
        options.append({"examples": list(dict.fromkeys(leaves))[:40]})
    return options[0] if len(options) == 1 else {"anyOf": options}


class Values:
    """Makes values of *schema*; each node is something else with the probability *wild*."""

    def __init__(self, schema: Schema, random: Random, wild: float) -> None:
        """Take the definitions of *schema* for all that is made."""
        self.random = random
        self.wild = wild
        self.definitions = schema.get("$defs", {})

    def make(self, schema: Schema, depth: int = 0) -> Any:
        """A value of *schema*, more or less."""
        if self.random.random() < self.wild:
            return self.odd()
        if "$ref" in schema:
            schema = self.definitions[schema["$ref"].rpartition("/")[2]]
        if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            return self.make(self.random.choice(options), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if schema.get("examples") and self.random.random() < (1 if self.wild < 0.01 else 0.8):
            return self.random.choice(schema["examples"])
        kind = schema.get("type") or self.kind_of(schema.get("examples", ()))
        kind = self.random.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            return self.mapping(schema, depth)
        if kind == "array":
            if depth > _DEEPEST:
                return []
            if prefix := schema.get("prefixItems"):
                return [self.make(each, depth + 1) for each in prefix]
            count = self.random.choice((0, 1, 1, 2, 3, 9)) + schema.get("minItems", 0)
            return [self.make(schema.get("items") or {}, depth + 1) for _ in range(count)]
        return self.leaf(kind, schema)

    def kind_of(self, examples: Sequence[Any]) -> str:
        """The type of what is like *examples*."""
        names = {int: "integer", float: "number", str: "string", bool: "boolean"}
        kinds = [names.get(type(example), "null") for example in examples]
        return self.random.choice(kinds or ["string", "integer", "object"])

    def mapping(self, schema: Schema, depth: int) -> dict[str, Any]:
        """Fields of a record, or entries under names of all kinds."""
        answer = {}
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            share = 1 - self.wild if name in required else 0.6
            if self.random.random() < share and depth < _DEEPEST:
                answer[name] = self.make(field, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping) and depth < _DEEPEST:
            for _ in range(self.random.choice((0, 1, 2, 5))):
                names = schema.get("names") or _WORDS
                name = self.random.choice(TEXTS if self.random.random() < self.wild else names)
                answer[name] = self.make(more, depth + 1)
        if self.random.random() < self.wild:
            answer[self.random.choice((*TEXTS, *_WORDS))] = self.odd()
        return answer

    def leaf(self, kind: str, schema: Schema) -> Any:
        """A value without parts."""
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        whole = self.random.choice((0, 1, 2, 3, 7, 100, 10**6, 2**31, 2**40, 1_795_224_441))
        if kind == "integer":
            return whole + int(least) + ("exclusiveMinimum" in schema)
        if kind == "number":
            return least + self.random.choice((whole, whole / 3, 1e-9, 0.5, 1.5, 1e-300))
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "null":
            return None
        return self.random.choice(_WORDS)

    def odd(self) -> Any:
        """What no schema asks for."""
        kind = self.random.random()
        if kind < 0.4:
            return self.random.choice(NUMBERS)
        if kind < 0.8:
            return self.random.choice(TEXTS)
        return self.random.choice(([], {}, [[]], [None], {"": {}}, [{}] * 3, {"a": 1, "b": [2]}))


def json_text(value: Any, random: Random, wild: float, *, indent: int | None = None) -> bytes:
    """*value* as JSON, as somebody else may write it; rarely as nobody may."""
    text = json.dumps(value, indent=indent, ensure_ascii=random.random() < 0.9)
    data = text.encode("utf-8", "surrogatepass")
    if random.random() >= wild:
        return data
    kind = random.randrange(7)
    at = random.randrange(len(data) + 1)
    if kind == 0:
        return data[:at] + random.choice(TOKENS) + data[at:]
    if kind == 1:
        return text.encode("utf-16", "surrogatepass")
    if kind == 2:
        return data.replace(b": ", b" : ", 1) + b" " + data
    if kind == 3:
        return re.sub(rb'"(\w+)": ', rb'"\1": 0, "\1": ', data, count=random.randrange(1, 4))
    if kind == 4:
        return b"[" * random.choice((10, 1000, 100_000)) + data
    return data[:at] if kind == 5 else b"\xef\xbb\xbf" + data


def of_schema(schema: Schema, *, version: int = 0, indent: int | None = 2) -> Make:
    """Records of a *schema*; those that are stored have the *version* of their shapes."""

    def make(random: Random) -> bytes:
        wild = random.choice(_WILD)
        value = Values(schema, random, wild).make(schema)
        if version and isinstance(value, dict) and random.random() >= wild:
            value["schema_version"] = version
        return json_text(value, random, wild, indent=indent) + b"\n"

    return make


def lines_of(make: Make, most: int = 12) -> Make:
    """A file of lines that *make* makes."""

    def make_lines(random: Random) -> bytes:
        ends = (b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\n\n", b"")
        end = random.choice(ends) if random.random() < 0.1 else b"\n"
        lines = (make(random).rstrip(b"\n") for _ in range(random.randrange(most)))
        return b"".join(line + end for line in lines)

    return make_lines


def soup(random: Random) -> bytes:
    """Tokens without any grammar, or bytes of any kind."""
    if random.random() < 0.3:
        return random.randbytes(random.choice((0, 1, 7, 100, 5000)))
    return b"".join(random.choices(TOKENS, k=random.choice((1, 3, 30, 300))))


def mixed(make: Make, share: float = 0.05) -> Make:
    """What *make* makes, and soup instead in a *share* of all cases."""
    return lambda random: soup(random) if random.random() < share else make(random)


# Texts.


def like_lines(corpus: Sequence[bytes], *, keep: int = 400) -> Make:
    """
    Lines as those of *corpus*, in any order: their numbers and times are new ones.
    """
    lines = list(dict.fromkeys(line for text in corpus for line in text.splitlines()))
    templates = [re.split(rb"(\d+)", line) for line in lines]

    def make(random: Random) -> bytes:
        wild = random.choice(_WILD)
        several = []
        start = random.randrange(len(templates))
        for number in range(random.randrange(keep)):
            at = start + number if random.random() > wild else random.randrange(len(templates))
            parts = list(templates[at % len(templates)])
            for place in range(1, len(parts), 2):
                if random.random() < wild:
                    parts[place] = random.choice((b"0", b"9" * 30, b"-1", b"", b"1e9", b"%d" % at))
            if random.random() < wild:
                parts[random.randrange(len(parts))] = random.choice(TOKENS)
            several.append(b"".join(parts))
        return b"\n".join(several) + b"\n" * (random.random() > wild)

    return make


def history(corpus: Sequence[bytes], binary: Callable[[bytes], bytes] | None = None) -> Make:
    """Events of job histories, by what recorded events of their type have in common."""
    grammars = []
    for text in corpus:
        head = text.splitlines(keepends=True)[:2]
        rest = text.splitlines()[2:]
        events = [json.loads(line) for line in rest if line.strip()]
        kinds = dict.fromkeys(event["type"] for event in events)
        schemas = {kind: infer([e for e in events if e["type"] == kind][:60]) for kind in kinds}
        grammars.append((b"".join(head), schemas, [event["type"] for event in events]))

    def make(random: Random) -> bytes:
        wild = random.choice(_WILD)
        lines = []
        head, schemas, order = random.choice(grammars)
        types = list(order)
        if random.random() < 0.5:
            types = order[: random.randrange(len(order))]
            types += random.choices(order, k=random.randrange(8))
        for kind in types:
            value = Values({}, random, wild / 30).make(schemas[kind])
            lines.append(json_text(value, random, wild / 30) + b"\n\n")
        text = head + b"".join(lines)
        if binary is None:
            return text
        try:
            return binary(text)
        except Exception:  # noqa: BLE001 - what has no binary form is given as it is
            return (
                b"Avro-Binary\n" + text.partition(b"\n")[2][: random.randrange(6000)] + soup(random)
            )

    return make


def jobconf(random: Random) -> bytes:
    """Properties of a job, as XML."""
    wild = random.choice(_WILD)
    parts = []
    names = ("mapreduce.job.reduces", "mapreduce.task.io.sort.mb", "mapreduce.job.maps", "a.b")
    for _ in range(random.randrange(12)):
        name = random.choice(names)
        value = str(random.choice((1, 2, 100, "true", "0.5", "x")))
        if random.random() < wild:
            name = random.choice(TEXTS)
        if random.random() < wild:
            value = random.choice((*TEXTS, *map(str, NUMBERS[:9])))
        tags = [f"<name>{name}</name>", f"<value>{value}</value>", "<final>false</final>"]
        if random.random() < wild:
            random.shuffle(tags)
            del tags[random.randrange(4) :]
            tags += ["<value/>", "<!-- x -->", "<![CDATA[<]]>"]
        parts.append(f"<property>{''.join(tags)}</property>")
    head = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>'
    if random.random() < wild:
        head += '<!DOCTYPE x [<!ENTITY a "bbbb"><!ENTITY c "&a;&a;&a;">]>'
    text = f"{head}<configuration>{''.join(parts)}</configuration>"
    return text.encode("utf-8", "surrogatepass")


def speed(random: Random) -> bytes:
    """Samples of the speed probe."""
    wild = random.choice(_WILD)
    lines = ["# epoch_ms thread units cpu_ns"]
    for number in range(random.randrange(40)):
        words = [1_768_471_200_000 + 1000 * number, number % 3, 40, 1_500_000]
        texts = [str(random.choice(NUMBERS)) if random.random() < wild else str(w) for w in words]
        lines.append((" ", "\t", "  ")[random.randrange(3)].join(texts))
    return "\n".join([*lines, ""] if random.random() > wild else lines).encode()


# Binary forms.


def _number(random: Random, value: int, wild: float, bits: int = 64) -> int:
    """*value*, or one at a limit of its width."""
    if random.random() >= wild:
        return value
    top = 2 ** (bits - 1)
    return random.choice((0, 1, -1, top - 1, -top, 2**20, random.randrange(-top, top)))


def recording(random: Random) -> bytes:
    """Spans of one task, as the tracer lays them out."""
    wild = random.choice(_WILD)

    def number(value: int, bits: int = 64) -> int:
        return _number(random, value, wild, bits)

    attempt = b"attempt_1795224441974_0001_m_000000_0"
    anchor = 10**15
    head = struct.pack(
        "<8siiqqqqiiii", b"LTRACE01", number(1, 32), number(5, 32), number(1_795_224_441 * 10**6),
        number(anchor), number(1_795_224_440_000), number(10**7), number(0, 32),
        number(random.randrange(3), 32), number(3, 32), number(len(attempt), 32),
    )  # fmt: skip
    sums = [number(random.randrange(1000)) for _ in range(32)]
    histogram = [number(random.randrange(9)) for _ in range(64)]
    page = bytearray(4096)
    page[: len(head)] = head
    page[64 : 64 + len(attempt)] = attempt if random.random() >= wild else random.randbytes(37)
    struct.pack_into("<32q", page, 256, *sums)
    struct.pack_into("<64q", page, 1024, *histogram)
    chunks = [bytes(page)]
    for thread in range(random.randrange(4)):
        name = b"SpillThread"
        slots = [struct.pack("<ii40s", number(thread, 32), number(len(name), 32), name)]
        begin = anchor
        for _ in range(random.randrange(30)):
            begin += random.randrange(10**8)
            kind = random.choice((*range(1, 45), 100, 101, -1, -2, 0))
            if kind < 0:
                slots.append(struct.pack("<ii40s", number(kind, 32), 0, random.randbytes(40)))
                continue
            end = random.choice((0, begin + random.randrange(10**9)))
            slots.append(struct.pack("<iiqqqqq", number(kind, 32), 0, number(begin), number(end),
                                     number(100), number(200), number(4096)))  # fmt: skip
        chunks.append(b"".join(slots).ljust(32768, b"\0"))
    data = b"".join(chunks)
    return data if random.random() >= wild else data[: random.randrange(len(data))]


def units(random: Random) -> bytes:
    """Durations of units, as the tracer lays them out."""
    wild = random.choice(_WILD)
    magic = b"LTUNITS1" if random.random() >= wild else random.randbytes(8)
    head = struct.pack("<8sii", magic, _number(random, 5, wild, 32), 0)
    return head + random.randbytes(random.randrange(600))


def packed(random: Random) -> bytes:
    """A gzip file: members, optional fields, stored blocks, sums that are wrong, and bombs."""
    wild = random.choice(_WILD)
    members = []
    for _ in range(random.choice((0, 1, 1, 1, 2, 5))):
        text = soup(random) * random.choice((1, 1, 1, 1, 200))
        if random.random() < wild / 5:
            text = bytes(random.choice((2**16, 2**22, 2**24)))
        flags = random.choice((0, 0, 4, 8, 16, 2)) if random.random() < wild else 0
        head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
        head += b"\2\0ab" if flags == 4 else b"name\0" * (flags in (8, 16)) + b"xx" * (flags == 2)
        squeeze = zlib.compressobj(random.randrange(10), zlib.DEFLATED, -15)
        body = squeeze.compress(text) + squeeze.flush()
        sums = [_number(random, each, wild, 32) & 0xFFFFFFFF
                for each in (zlib.crc32(text), len(text))]  # fmt: skip
        members.append(head + body + struct.pack("<II", *sums))
    data = b"".join(members)
    if random.random() < wild:
        data = data[: random.randrange(len(data) + 1)] + random.choice(TOKENS)
    return data + bytes(random.choice((0, 0, 0, 5)))


# Archives.

_PARTS = ("RUN", "trials", "a", "A", "manifest.json", "raw", "x.gz", "..", ".", "", "/", "~", ".x",
          "a b", "C:", "CON", "nul", "\u202e", "a" * 300, "\0", "\n", "-rf", "é")  # fmt: skip
_KINDS = (b"0", b"0", b"0", b"0", b"0", b"5", b"5", b"1", b"2", b"3", b"4", b"6", b"7", b"L", b"K",
          b"x", b"g", b"S", b"\0", b"Z")  # fmt: skip


def tar_or_zip(sound: Mapping[str, bytes]) -> Make:
    """Archives of any members, some beside the files of a *sound* run."""

    def make(random: Random) -> bytes:
        wild = random.choice((0.0, 0.02, 0.1, 0.5))
        entries = list(sound.items()) if random.random() < 0.7 else []
        for _ in range(random.choice((0, 0, 1, 2, 4)) if wild else 0):
            name = "/".join(random.choices(_PARTS, k=random.randrange(1, 6)))
            entries.insert(random.randrange(len(entries) + 1), (name, soup(random)[:400]))
        if random.random() < wild and entries:
            entries.append(random.choice(entries))
        if random.random() < wild and entries:
            entries.pop(random.randrange(len(entries)))
        data = _zip(entries, random, wild) if random.random() < 0.3 else _tar(entries, random, wild)
        if random.random() < wild:
            at = random.randrange(len(data) + 1)
            data = data[:at] + random.choice((b"", random.randbytes(3))) + data[at + 3 :]
        return data if random.random() >= wild / 3 else data[: random.randrange(len(data) + 1)]

    return make


def _tar(entries: Sequence[tuple[str, bytes]], random: Random, wild: float) -> bytes:
    answer = io.BytesIO()
    forms = (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)
    form = random.choice(forms)
    for name, content in entries:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        if random.random() < wild / 4:
            info.type = random.choice(_KINDS)
            info.linkname = random.choice(_PARTS)
            info.size = random.choice((0, len(content), 2**20, 2**33))
            info.pax_headers = {"path": random.choice(_PARTS), "size": "9" * random.randrange(1, 9)}
        try:
            head = info.tobuf(form, "utf-8", "surrogateescape")
        except ValueError:
            continue
        answer.write(head + content + bytes(-len(content) % 512))
    answer.write(bytes(1024))
    data = answer.getvalue()
    return gzip.compress(data, 1, mtime=0) if random.random() < 0.5 else data


def _zip(entries: Sequence[tuple[str, bytes]], random: Random, wild: float) -> bytes:
    answer = io.BytesIO()
    with zipfile.ZipFile(answer, "w") as archive:
        for name, content in entries:
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            if random.random() < wild / 4:
                info.external_attr = random.choice((0o120777, 0o010644, 0o040755, 0o20644)) << 16
                info.compress_type = random.choice((0, 8, 12, 14))
            archive._didModify = True
            try:
                archive.writestr(info, content)
            except (ValueError, UserWarning):
                continue
    return answer.getvalue()
