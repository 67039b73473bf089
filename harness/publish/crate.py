"""What other programs read of a bundle: its citation (CFF 1.2.0) and its crate (RO-Crate 1.1)."""

from __future__ import annotations

import json
import mimetypes
import re

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from harness.base.errors import SpecError
from harness.base.version import __version__
from harness.observe.storage.files import folders
from harness.publish.data import Claim

# Identifiers of SPDX that have no version.
_LICENCES = {"0BSD", "CC-PDDC", "ISC", "MIT", "MIT-0", "Unlicense", "Zlib"}
# Families of others, each with its version; and terms of one's own.
_SPDX = re.compile(
    r"(AFL|Apache|Artistic|BSL|CC0|CC-BY(-NC)?(-ND|-SA)?|CDLA-(Permissive|Sharing)|ECL|EPL|EUPL"
    r"|LPPL|MPL|MS-PL|ODC-By|ODbL|OFL|OSL|PDDL|Python|QPL|ZPL)-[0-9]+(\.[0-9]+)*"
    r"|BSD-[0-4]-Clause(-[A-Z][A-Za-z]+)?|(A|L)?GPL-[1-3]\.[0-9]-(only|or-later)"
    r"|GFDL-1\.[1-3]-(only|or-later)|LicenseRef-[A-Za-z0-9.-]{1,50}"
)
_PERSON = {"family-names", "given-names", "name", "orcid", "affiliation", "email"}
NOBODY = ({"name": "The authors of this bundle"},)  # a citation has an author at least
Author = Mapping[str, str]


def read_authors(text: str, where: str) -> list[Author]:
    """Authors in a YAML list: each has `family-names` and `given-names`, or `name`, as in CFF."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    fix = "write a list: - {family-names: Doe, given-names: Jo, orcid: https://orcid.org/...}"
    try:
        people = YAML(typ="safe").load(text)
    except (YAMLError, RecursionError) as error:  # brackets in brackets, thousands deep
        raise SpecError("the authors are not YAML", where=where, fix=fix) from error
    if not isinstance(people, list) or not people or not all(map(is_author, people)):
        raise SpecError("this is not a list of authors", where=where, fix=fix)
    return [*people]


def is_author(person: object) -> bool:
    """Whether *person* has a name, and nothing but lines of text in fields of CFF."""
    if not isinstance(person, dict):
        return False
    is_named = "family-names" in person or "name" in person
    texts = [value for value in person.values() if isinstance(value, str) and value]
    are_texts = len(texts) == len(person) and all(text.isprintable() for text in texts)
    return is_named and are_texts and person.keys() <= _PERSON


def is_licence(licence: str) -> bool:
    """Whether *licence* is empty, or an identifier of SPDX's list, or of one of one's own."""
    return not licence or licence in _LICENCES or _SPDX.fullmatch(licence) is not None


def check_licence(licence: str) -> None:
    """`SpecError` where *licence* is no identifier of SPDX's list, or of one of one's own."""
    if not is_licence(licence):
        fix = "an identifier of https://spdx.org/licenses, such as CC-BY-4.0, CC0-1.0, ODbL-1.0 or"
        fix += " Apache-2.0; for terms of your own, LicenseRef-NAME"
        raise SpecError(f"{licence!a} is not a licence's identifier", where="--licence", fix=fix)


def citation(claim: Claim, authors: Sequence[Author], licence: str) -> str:
    """`CITATION.cff` of the bundle, as a data set."""
    from ruamel.yaml import YAML

    makers = [{"name": "The mapreduce-harness authors"}]
    software = {"type": "software", "title": "mapreduce-harness", "version": __version__}
    document: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you quote this comparison, please cite it as below.",
        "type": "dataset",
        "title": claim.title,
        "abstract": claim.abstract,
        "date-released": claim.date,
        "authors": [dict(author) for author in authors],
        "keywords": ["Hadoop", "MapReduce", "performance model", "prediction", "validation"],
        "references": [{**software, "authors": makers}],
        **({"license": licence} if licence else {}),
    }
    stream = StringIO()
    yaml = YAML()
    yaml.width = 4096
    yaml.default_flow_style = False
    yaml.dump(document, stream)
    return stream.getvalue()


def crate(
    claim: Claim, authors: Sequence[Author], licence: str, hashes: Mapping[str, str], folder: Path
) -> str:
    """`ro-crate-metadata.json`: the bundle, its files with *hashes*, who made it, and by what."""
    people = [person_node(author, number) for number, author in enumerate(authors, 1)]
    rights = f"https://spdx.org/licenses/{licence}" if licence else "#no-licence"
    parts = list[dict[str, Any]]()
    for name, sha in hashes.items():
        if not name.startswith("runs/"):
            parts.append(file_node(folder / name, name, sha))
    for path in folders(folder / "runs"):
        parts.append(
            {
                "@id": f"runs/{path.name}/",
                "@type": "Dataset",
                "name": f"runs/{path.name}",
                "description": "A run: its files have their hashes in SHA256SUMS.",
            }
        )
    graph: list[dict[str, Any]] = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": claim.title,
            "description": claim.abstract,
            "datePublished": claim.date,
            "license": {"@id": rights},
            "author": [{"@id": person["@id"]} for person in people],
            "hasPart": [{"@id": part["@id"]} for part in parts],
        },
        *people,
        {
            "@id": rights,
            "@type": "CreativeWork",
            "name": licence or "no licence is stated: all rights are reserved",
        },
        {
            "@id": "#made",
            "@type": "CreateAction",
            "endTime": claim.date,
            "name": "measured, predicted, scored and published",
            "instrument": {"@id": "#harness"},
            "result": {"@id": "./"},
        },
        {
            "@id": "#harness",
            "@type": "SoftwareApplication",
            "name": "mapreduce-harness",
            "softwareVersion": __version__,
        },
        *parts,
    ]
    document = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
    return json.dumps(document, sort_keys=True, ensure_ascii=False) + "\n"


def person_node(author: Author, number: int) -> dict[str, Any]:
    """An author as a node of the crate."""
    full_name = f"{author.get('given-names', '')} {author.get('family-names', '')}".strip()
    return {
        "@id": author.get("orcid", f"#author-{number}"),
        "@type": "Person" if "family-names" in author else "Organization",
        "name": author.get("name") or full_name,
    }


def file_node(path: Path, name: str, sha: str) -> dict[str, Any]:
    """A file of the bundle as a node of the crate."""
    return {
        "@id": name,
        "@type": "File",
        "name": name,
        "sha256": sha,
        "encodingFormat": mimetypes.guess_type(name)[0] or "application/octet-stream",
        "contentSize": str(path.stat().st_size),
    }
