"""What other programs read of a bundle: its citation (CFF 1.2.0) and its crate (RO-Crate 1.1)."""

from __future__ import annotations

import json
import mimetypes
import re

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from harness import __version__
from harness.errors import SpecError
from harness.publish.claim import Claim

_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,60}")
_PERSON = ("family-names", "given-names", "name", "orcid", "affiliation", "email")
_SOFTWARE = "mapreduce-harness"
_PROFILE = "https://w3id.org/ro/crate/1.1"
Author = Mapping[str, str]


def read_authors(text: str, where: str) -> list[Author]:
    """Authors in a YAML list: each has `family-names` and `given-names`, or `name`, as in CFF."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        people = YAML(typ="safe").load(text)
    except YAMLError as error:
        raise SpecError("the authors are not YAML", where=where, fix=_AUTHORS_FIX) from error
    known = people if isinstance(people, list) else []
    for person in known or [None]:
        is_named = isinstance(person, dict) and ("family-names" in person or "name" in person)
        if not is_named or not all(
            key in _PERSON and isinstance(value, str) and value
            for key, value in dict(person or {}).items()
        ):
            raise SpecError("this is not a list of authors", where=where, fix=_AUTHORS_FIX)
    return known


_AUTHORS_FIX = "write a list: - {family-names: Doe, given-names: Jo, orcid: https://orcid.org/...}"


def check_licence(licence: str) -> None:
    """`SpecError` where *licence* cannot be an identifier of SPDX's list."""
    if not _SPDX.fullmatch(licence):
        fix = "an identifier of https://spdx.org/licenses, such as CC-BY-4.0"
        raise SpecError(f"{licence!a} is not a licence's identifier", where="--licence", fix=fix)


def citation(claim: Claim, authors: Sequence[Author], licence: str) -> str:
    """`CITATION.cff` of the bundle, as a data set."""
    from ruamel.yaml import YAML

    document: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you quote this comparison, please cite it as below.",
        "type": "dataset",
        "title": claim.title,
        "abstract": " ".join(line.strip().removeprefix("- ") for line in claim.lines),
        "date-released": claim.date,
        "authors": [dict(author) for author in authors],
        "keywords": ["Hadoop", "MapReduce", "performance model", "prediction", "validation"],
        "references": [
            {
                "type": "software",
                "title": _SOFTWARE,
                "version": __version__,
                "authors": [{"name": f"The {_SOFTWARE} authors"}],
            }
        ],
    }
    if licence:
        document["license"] = licence
    stream, yaml = StringIO(), YAML()
    yaml.width, yaml.default_flow_style = 4096, False
    yaml.dump(document, stream)
    return stream.getvalue()


def crate(
    claim: Claim, authors: Sequence[Author], licence: str, hashes: Mapping[str, str], folder: Path
) -> str:
    """`ro-crate-metadata.json`: the bundle, its files with *hashes*, who made it, and by what."""
    people = [
        {
            "@id": author.get("orcid") or f"#author-{number}",
            "@type": "Person" if "family-names" in author else "Organization",
            "name": author.get("name")
            or f"{author.get('given-names', '')} {author['family-names']}".strip(),
            **{key: author[key] for key in ("affiliation", "email") if key in author},
        }
        for number, author in enumerate(authors, 1)
    ]
    spdx = {"@id": f"https://spdx.org/licenses/{licence}" if licence else "#no-licence"}
    files = [
        {
            "@id": name,
            "@type": "File",
            "name": name,
            "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
            "contentSize": str((folder / name).stat().st_size),
            "sha256": sha,
        }
        for name, sha in hashes.items()
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": claim.title,
        "description": " ".join(line.strip().removeprefix("- ") for line in claim.lines),
        "datePublished": claim.date,
        "license": spdx,
        "author": [{"@id": person["@id"]} for person in people],
        "hasPart": [{"@id": each["@id"]} for each in files],
        "mentions": {"@id": "#made"},
    }
    metadata = {
        "@id": "ro-crate-metadata.json",
        "@type": "CreativeWork",
        "conformsTo": {"@id": _PROFILE},
        "about": {"@id": "./"},
    }
    made = {
        "@id": "#made",
        "@type": "CreateAction",
        "name": "measured, predicted, scored and published",
        "instrument": {"@id": "#harness"},
        "result": {"@id": "./"},
        "endTime": claim.date,
    }
    tool = {
        "@id": "#harness",
        "@type": "SoftwareApplication",
        "name": _SOFTWARE,
        "softwareVersion": __version__,
    }
    named = licence or "no licence is stated: all rights are reserved"
    rights = {**spdx, "@type": "CreativeWork", "name": named}
    graph = [metadata, root, *people, rights, made, tool, *files]
    document = {"@context": f"{_PROFILE}/context", "@graph": graph}
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def default_authors() -> list[Author]:
    """Who is named where nobody is: a citation has an author at least."""
    return [{"name": "The authors of this bundle"}]
