"""JUnit's XML, which every CI server shows: test cases by suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from harness.base.documents.wording import one_line
from harness.base.text import printable

Case = tuple[str, str, str]  # of a test: its name, "failure", "skipped" or "", and why


def junit_xml(suites: Mapping[str, Sequence[Case]]) -> str:
    """JUnit's XML of test cases by suite."""
    root = ET.Element("testsuites")
    for suite_name, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", name=printable(suite_name))
        for name, outcome, message in cases:
            attributes = {"classname": suite.attrib["name"], "name": one_line(name)}
            case = ET.SubElement(suite, "testcase", attributes)
            if outcome:
                ET.SubElement(case, outcome, message=one_line(message))
        for kind, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            suite.set(kind, str(len(list(suite.iter(tag)))))
    ET.indent(root)
    return ET.tostring(root, "unicode", xml_declaration=True) + "\n"
