"""
The configuration a job ran with: ``job.xml`` beside its history, or any Hadoop site file.

Values stand as written: references such as ``${user.name}`` are not resolved.  A document type
declaration is refused, and with it every entity that could grow or read a file.
"""

from __future__ import annotations

from xml.parsers import expat

from harness.errors import ParseError
from harness.text import excerpt

_PROPERTY = ["configuration", "property"]
_LEAVES = ([*_PROPERTY, "name"], [*_PROPERTY, "value"])


def read_properties(text: bytes, source: str) -> dict[str, str]:
    """
    Properties of a Hadoop configuration file, in the file's order; of equal names the last stands.

    XML that is not well-formed or not a Hadoop configuration is `ParseError` with *source* and
    line.
    """
    properties: dict[str, str] = {}
    open_elements: list[str] = []  # of the element that is being read
    property_texts: dict[str, str] = {}  # of the property that is being read, by element
    parser = expat.ParserCreate("utf-8")

    def content_error(what: str) -> ParseError:
        fix = "give the job.xml that Hadoop wrote"
        return ParseError(what, source=source, line=parser.CurrentLineNumber, fix=fix)

    def refuse_doctype(*_: object) -> None:
        raise content_error("a document type declaration, which Hadoop never writes")

    def start(element: str, _: object) -> None:
        if not open_elements and element != "configuration":
            raise content_error(f"the root element is '{excerpt(element)}', not 'configuration'")
        open_elements.append(element)
        if open_elements == _PROPERTY:
            property_texts.clear()
        elif open_elements in _LEAVES:
            property_texts[element] = ""

    def add_text(characters: str) -> None:
        if open_elements in _LEAVES:
            property_texts[open_elements[-1]] += characters

    def end(_: str) -> None:
        if open_elements == _PROPERTY:
            property_name = property_texts.get("name", "").strip()
            if not property_name:
                raise content_error("a property without a name")
            properties[property_name] = property_texts.get("value", "")
        open_elements.pop()

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add_text
    try:
        parser.Parse(text, True)  # noqa: FBT003 - expat takes its arguments by position
    except expat.ExpatError as error:
        raise ParseError(f"not XML: {error}", source=source, line=error.lineno) from error
    return properties
