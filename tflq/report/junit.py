"""Check results as JUnit XML, which CI servers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tflq.files import write_bytes
from tflq.quoting import escape_unprintable


@dataclass(frozen=True)
class Case:
    """One check.

    Attributes:
        name: Name of the checked tensor.
        failure: Problem in one line; None if the check succeeded.
        skipped: Reason why it was not checked; None if it was.
    """

    name: str
    failure: str | None = None
    skipped: str | None = None


def junit_xml(suite: str, cases: Sequence[Case]) -> bytes:
    """Return a test suite as XML in UTF-8.

    Args:
        suite: Name of the model, also the class name of the cases.
        cases: Cases, in order.

    Source: the schema that Jenkins publishes (jenkins-junit.xsd): testsuites, testsuite, testcase, failure, skipped.
    """
    failures = sum(case.failure is not None for case in cases)
    skipped = sum(case.skipped is not None for case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    root = ElementTree.Element("testsuites", counts)
    parent = ElementTree.SubElement(root, "testsuite", {"name": escape_unprintable(suite), **counts})
    for case in cases:
        element = ElementTree.SubElement(
            parent, "testcase", {"classname": escape_unprintable(suite), "name": escape_unprintable(case.name)}
        )
        if case.failure is not None:
            ElementTree.SubElement(element, "failure", {"message": escape_unprintable(case.failure)})
        elif case.skipped is not None:
            ElementTree.SubElement(element, "skipped", {"message": escape_unprintable(case.skipped)})
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return content + b"\n"


def write_junit(path: Path, suite: str, cases: Sequence[Case]) -> None:
    """Write a test suite to a file; arguments as for `junit_xml`.

    Raises:
        OutputError: The file cannot be written.
    """
    write_bytes(path, junit_xml(suite, cases))
