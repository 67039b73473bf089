"""
The configuration a job ran with: ``job.xml`` beside its history, or any Hadoop site file.

Values stand as written: references such as ``${user.name}`` are not resolved.  A document type
declaration is refused, and with it every entity that could grow or read a file.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from harness.errors import ParseError

_LEAVES = ("name", "value")


def read_properties(text: bytes, source: str) -> dict[str, str]:
    """
    Properties of a Hadoop configuration file, in the file's order; of equal names the last stands.

    XML that is not well-formed or not a Hadoop configuration is `ParseError` with *source* and
    line.
    """
    parser = expat.ParserCreate("utf-8")
    reader = _Reader(lambda what: _refuse(what, source, parser.CurrentLineNumber))
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(text, True)  # noqa: FBT003 - expat takes its arguments by position
    except expat.ExpatError as error:
        raise ParseError(f"not XML: {error}", source=source, line=error.lineno) from error
    return reader.properties


def _refuse(what: str, source: str, line: int) -> ParseError:
    return ParseError(what, source=source, line=line, fix="give the job.xml that Hadoop wrote")


class _Reader:
    """Follows the parser: configuration > property > name and value, anything else skipped."""

    def __init__(self, error: Callable[[str], ParseError]) -> None:
        self.properties: dict[str, str] = {}
        self._error = error
        self._path: list[str] = []
        self._parts: dict[str, list[str]] = {}

    def doctype(self, *_: object) -> None:
        raise self._error("a document type declaration, which Hadoop never writes")

    def start(self, name: str, _: object) -> None:
        if not self._path and name != "configuration":
            raise self._error(f"the root element is {name[:80]!a}, not 'configuration'")
        self._path.append(name)
        if self._path == ["configuration", "property"]:
            self._parts = {}
        elif self._leaf():
            self._parts[name] = []

    def text(self, data: str) -> None:
        if self._leaf():
            self._parts[self._path[-1]].append(data)

    def end(self, _: str) -> None:
        if self._path == ["configuration", "property"]:
            self._keep()
        self._path.pop()

    def _leaf(self) -> bool:
        path = self._path
        return len(path) == 3 and path[:2] == ["configuration", "property"] and path[2] in _LEAVES

    def _keep(self) -> None:
        name = "".join(self._parts.get("name", ())).strip()
        if not name:
            raise self._error("a property without a name")
        self.properties[name] = "".join(self._parts.get("value", ()))
