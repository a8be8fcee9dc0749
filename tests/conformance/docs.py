"""docs/reference/operators.md: the table of conformance as a page."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.cases import CellResult
from tests.conformance.report import HEADER, rows, summary

HEAD = """# Operators and types: conformance with TFLite

Made by `scripts/conformance --all --write-docs docs/reference/operators.md`; do not edit.

Each number is a count of generated models of that one operator: shapes, types, attributes, scales, zero points, and
operands that are constant or computed are drawn at random, always the same ones. A model is written by tflq's own
writer, run by TFLite (ai-edge-litert, kernels BUILTIN_REF; BUILTIN for operators that the reference set lacks) in
another process and by tflq over three or four samples, and every bit of every output is compared. `n listed` are cases
with a difference that [the list](../differences/tflite_operators.md) allows: last bits of floats. A type ends with `q`
where the integers are
quantized, and `float32*int8` has float activations and int8 weights. An empty field is a type that TFLite does not
take, or that has no cases. The last column counts cases of kernels of TFLite that are wrong: another model, run by
TFLite too, judges them, and the same list says which. They are not among the exact ones.
"""


def page(results: Sequence[CellResult], cases: int) -> str:
    """Return the page in Markdown."""
    lines = [
        HEAD,
        f"At least {cases} cases a cell: {summary(results)}.",
        "",
        _row(HEADER),
        _row(["---"] * len(HEADER)),
    ]
    lines += [_row(row) for row in rows(results)]
    return "\n".join([*lines, ""])


def _row(fields: Sequence[str]) -> str:
    return "| " + " | ".join(field.replace("|", "\\|") for field in fields) + " |"
