"""`tflq.diff`: what differs between two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import TableResult, picked
from tflq.diagnosis.model_difference import Finding, model_differences
from tflq.quoting import Json


@dataclass(frozen=True)
class DiffResult(TableResult):
    """What differs between two models.

    Attributes:
        first: the one model's name.
        second: the other's.
        findings: what differs, in the order of the graphs.
    """

    first: str
    second: str
    findings: tuple[Finding, ...]

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return not self.findings

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each finding."""
        return [_row(finding) for finding in self.findings]

    def report(self) -> Mapping[str, Json]:
        """Return both names and the findings."""
        return {"first": self.first, "second": self.second, "equal": self.is_equal, "findings": self.rows()}


def diff(first: ModelSource, second: ModelSource) -> DiffResult:
    """List what differs between two models: operators, attributes, types, shapes, quantization, constants.

    Nothing is run; `compare` says what the differences do.

    Raises:
        InputError, FormatError, UnsupportedError: a model that cannot be read.
    """
    found = model_differences(read_model(first), read_model(second))
    return DiffResult(name_of(first), name_of(second), tuple(found))


def _row(finding: Finding) -> Mapping[str, Json]:
    constant = finding.constant
    facts: dict[str, Json] = {"channel": None, "differing": None}
    facts |= {} if constant is None else picked(constant, *facts)
    return {**picked(finding, "kind", "where", "words"), **facts}
