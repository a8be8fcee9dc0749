"""docs/operators.md: the table of conformance as a page."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.cases import CellResult
from tests.conformance.report import HEADER, rows, summary
from tflq.diagnosis.known_differences import KNOWN_DIFFERENCES
from tflq.interpreter.registry import arithmetic, kernel

_HEAD = """# Operators: what tflq runs, and how it compares with TFLite

Made by `scripts/conformance --all --write-docs docs/operators.md`; do not edit.

Each number is a count of generated models of that one operator: shapes, types, attributes, scales, zero points, and
operands that are constant or computed are drawn at random, always the same ones. A model is written by tflq's own
writer, run by TFLite (ai-edge-litert, kernels BUILTIN_REF; BUILTIN for operators that the reference set lacks) in
another process and by tflq over three or four samples, and every bit of every output is compared. `n listed` are cases
with a difference that the list below allows: last bits of floats. A type ends with `q` where the integers are
quantized, and `float32*int8` has float activations and int8 weights. An empty field is a type that TFLite does not
take, or that has no cases. The last column counts cases of kernels of TFLite that are wrong: another model, run by
TFLite too, judges them, and the list below says which. They are not among the exact ones.
"""

_DIFFERENCES = "\n## Differences that are known\n\n"
_RULES = """As the kernels say it: in arithmetic `tflite` where quantized tensors enter, in `float` where all are real.
`scripts/conformance --rules docs/operators.md` writes this and the section above without running a case.
"""


def page(results: Sequence[CellResult], cases: int) -> str:
    """Return the page in Markdown."""
    lines = [
        _HEAD,
        f"At least {cases} cases a cell: {summary(results)}.",
        "",
        _row(HEADER),
        _row(["---"] * len(HEADER)),
    ]
    lines += [_row(row) for row in rows(results)]
    return "\n".join([*lines, ""]) + sections_of_code()


def with_rules(old: str) -> str:
    """Return a page with what the code tells as it does now, and the counts as they were."""
    return old.partition(_DIFFERENCES)[0] + sections_of_code()


def sections_of_code() -> str:
    """Return the sections that need no run: differences that are known, and the rule of each kernel."""
    lines = [_row(["operator", "types", "what", "why"]), _row(["---"] * 4)]
    lines += [_row([k.operator_words, k.type_words, k.words, k.reason]) for k in KNOWN_DIFFERENCES]
    lines += ["", "## What each operator computes", "", _RULES]
    lines += [_row(["operator", "arithmetic", "rule", "source"]), _row(["---"] * 4), *map(_row, _rules())]
    return _DIFFERENCES + "\n".join([*lines, ""])


def _rules() -> list[tuple[str, str, str, str]]:
    """Return operator, arithmetics, summary and source of tflq's own kernels; those that share a rule share a row."""
    arithmetics: dict[tuple[str, str, str], list[str]] = {}
    for name in ("tflite", "float"):
        for operator in arithmetic(name).kernels:
            found = kernel(name, operator)
            if found.module.startswith("tflq."):
                arithmetics.setdefault((operator, found.summary, found.source), []).append(name)
    return sorted((operator, ", ".join(names), *words) for (operator, *words), names in arithmetics.items())


def _row(fields: Sequence[str]) -> str:
    return "| " + " | ".join(field.replace("|", "\\|") for field in fields) + " |"
