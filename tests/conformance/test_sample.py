"""Two cases of every cell of the conformance table; scripts/conformance runs the whole table."""

from __future__ import annotations

import pytest

from tests.conformance import docs
from tests.conformance.cases import run_cell
from tests.conformance.table import entries
from tests.conformance.wanted import WANTED
from tests.support.tracked import ROOT
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.registry import arithmetic

CELLS = list(entries())
OPERATORS = sorted({e.cell.operator for e in CELLS})
RUN = {*arithmetic("tflite").kernels, *arithmetic("float").kernels, *CONTROL}


@pytest.mark.parametrize("operator", OPERATORS)
def test_two_cases_of_each_type(oracle, optimized_oracle, operator):
    judges = {"BUILTIN_REF": oracle, "BUILTIN": optimized_oracle}
    results = [run_cell(judges[e.kernels], e, 2) for e in CELLS if e.cell.operator == operator]
    assert not [(r.kind, r.failures) for r in results if r.failures]


def test_every_quantized_type_that_tflite_takes_has_a_cell():
    have = {(e.cell.operator, str(e.cell.kind)) for e in CELLS}
    wanted = [(operator, f"{kind}q") for operator, kinds in WANTED.items() for kind in kinds]
    assert not [cell for cell in wanted if cell not in have]


def test_every_operator_has_a_cell():
    assert RUN - {"stablehlo_while"} == set(OPERATORS)  # which no resolver of TFLite registers


def test_the_page_lists_every_operator():
    page = (ROOT / "docs" / "reference" / "operators.md").read_text(encoding="utf-8")
    assert not [o for o in OPERATORS if f"\n| {o} |" not in page]
    assert docs.HEAD in page
