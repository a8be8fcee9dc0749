"""Two tables of TFLite's operators: known differences from TFLite, and the rule and source of each kernel."""

from __future__ import annotations

from collections.abc import Mapping

from site_pages.tables import table
from tflq.diagnosis.known_differences import KNOWN_DIFFERENCES
from tflq.interpreter.registry import arithmetic, kernel

DIFFERENCES, RULES = "differences/tflite_operators.md", "rules/operators.md"
_DIFFERENCES = """# Known differences: operators of TFLite

Use this page if `tflq verify` counts known differences. Each row is an operator with outputs that differ from TFLite's
reference kernels under the stated condition. All other cells of [the table](../reference/operators.md) are
bit-identical.

"""
_RULES = """# Rules: one line per operator

The kernels state it: arithmetic `tflite` if quantized tensors enter, `float` if all tensors are real.
[TFLite's integer arithmetic](tflite/index.md) has the formulas in full.

"""


def pages() -> Mapping[str, str]:
    """Return the page of known differences and the page of rules."""
    rows = [(k.operator_words, k.type_words, k.words, k.reason) for k in KNOWN_DIFFERENCES]
    return {
        DIFFERENCES: _DIFFERENCES + table(("operator", "types", "difference", "reason"), rows),
        RULES: _RULES + table(("operator", "arithmetic", "rule", "source"), _rules()),
    }


def _rules() -> list[tuple[str, str, str, str]]:
    """Return operator, arithmetics, summary and source of tflq's own kernels; equal rules share a row."""
    arithmetics: dict[tuple[str, str, str], list[str]] = {}
    for name in ("tflite", "float"):
        for operator in arithmetic(name).kernels:
            entry = kernel(name, operator)
            if entry.module.startswith("tflq."):
                arithmetics.setdefault((operator, entry.summary, entry.source), []).append(name)
    return sorted(
        (operator, ", ".join(names), f"`{rule}`", source) for (operator, rule, source), names in arithmetics.items()
    )
