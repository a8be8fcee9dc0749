"""`tflq.diff`: what differs between two models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.result import Result
from tflq.diagnosis.model_difference import Finding, model_differences
from tflq.report import Column, Table, Verdict, word_of


@dataclass(frozen=True)
class DiffResult(Result):
    """Differences of two models.

    Attributes:
        first: the one model's name.
        second: the other's.
        findings: what differs, in the order of the graphs.
    """

    FACTS = (Column("first", "first"), Column("second", "second"), Column("equal", get="is_equal"))

    first: str
    second: str
    findings: tuple[Finding, ...]

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return not self.findings

    @property
    def verdict(self) -> Verdict:
        """Number of differences."""
        number = len(self.findings)
        unit = f"difference{'s' * (number != 1)} of {self.first}"
        return Verdict(word_of(self.is_equal), number, unit, self.second, link=" from")

    def tables(self) -> Sequence[Table]:
        """Return a row for each difference."""
        return [Table("findings", _FINDINGS, self.findings, "Differences")]


_FINDINGS = (
    Column("kind", "kind"),
    Column("where", "where", "identifier"),
    Column("words", "first against second"),
    Column("channel", get="constant.channel"),
    Column("differing", get="constant.differing"),
)


def diff(first: ModelSource, second: ModelSource) -> DiffResult:
    """List what differs between two models: operators, attributes, types, shapes, quantization, constants.

    Nothing is run; `compare` says what the differences do.

    Raises:
        InputError, FormatError, UnsupportedError: a model that cannot be read.
    """
    found = model_differences(read_model(first), read_model(second))
    return DiffResult(name_of(first), name_of(second), tuple(found))
