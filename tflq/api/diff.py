"""`tflq.diff`: differences between two models."""

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
        first: Name of the first model.
        second: Name of the second model.
        findings: Differences, in the order of the graphs.
    """

    FACTS = (Column("first", "first"), Column("second", "second"), Column("equal", get="is_equal"))

    first: str
    second: str
    findings: tuple[Finding, ...]

    @property
    def is_equal(self) -> bool:
        """Whether the models have no difference."""
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
    """List the differences between two models: operators, attributes, types, shapes, quantization, constants.

    No model is run; `compare` shows the effect of the differences.

    Raises:
        InputError, FormatError, UnsupportedError: A model cannot be read.
    """
    findings = model_differences(read_model(first), read_model(second))
    return DiffResult(name_of(first), name_of(second), tuple(findings))
