"""Six cases of each quantized cell of the conformance table whose operator arithmetic `tflite` computes itself."""

from __future__ import annotations

import pytest

from tests.conformance.cases import run_cell
from tests.conformance.table import Entry, entries
from tflq.interpreter.registry import arithmetic
from tflq.oracle import Oracle

OWN = {
    operator
    for operator, place in arithmetic("tflite").kernels.items()
    if str(place).startswith("tflq.interpreter.kernels.tflite.")
}
CELLS = [e for e in entries() if e.cell.operator in OWN and (e.cell.is_quantized or e.cell.kind.weights is not None)]
CASES = 6


@pytest.mark.parametrize("entry", CELLS, ids=lambda entry: str(entry.cell))
def test_drawn_cases(oracle: Oracle, optimized_oracle: Oracle, entry: Entry) -> None:
    result = run_cell(oracle if entry.kernels == "BUILTIN_REF" else optimized_oracle, entry, CASES)
    assert not result.failures
