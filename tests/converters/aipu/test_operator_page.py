"""The rows of docs/rules/aipu/operators.md: 79 of 79 operators, each with its kernel, its way from TFLite, its tests.

scripts/worked_layers writes the page of them, and tests/scripts/test_worked_layers.py holds it to that.
"""

from __future__ import annotations

import re

import pytest

from tests.converters.aipu.test_golden import LAYERS, OPS
from tests.support.tracked import ROOT
from tflq.converters.aipu.descriptor import Row
from tflq.converters.aipu.operators import DOCS, OPERATORS
from tflq.converters.aipu.operators.sources import SOURCES as TRANSLATED
from tflq.interpreter.kernels.aipu import activation
from tflq.interpreter.kernels.aipu.operators import ARITHMETIC

RULES = ROOT / "docs" / "rules" / "aipu"
PAGE = (RULES / "operators.md").read_text(encoding="utf-8")
BOXES = (RULES / "boxes.md").read_text(encoding="utf-8")
FUSED = {"SQUARED_DIFFERENCE"}
"""Operators of TFLite that are part of a fusion only."""


def _numbers(cell: str) -> list[int]:
    """Return the numbers behind 4. of a cell such as "4.24 to 4.26, 4.28"."""
    found: list[int] = []
    for part in cell.split(", "):
        first, _, last = (text.removeprefix("4.") for text in part.partition(" to "))
        found += range(int(first), int(last or first) + 1)
    return found


def test_79_of_79() -> None:
    of_paper = [row for row in DOCS if row.paper != "-"]
    assert sorted(n for row in of_paper for n in _numbers(row.paper)) == list(range(1, 80))
    assert len([name for row in of_paper for name in row.operator.split(", ")]) == 79


@pytest.mark.parametrize("row", DOCS, ids=lambda row: row.operator)
def test_a_row_names_layers_that_run_and_tests_that_exist(row: Row) -> None:
    assert not [text for text in vars(row).values() if "|" in text]
    for kind in row.types:
        assert OPERATORS[kind] in ARITHMETIC.kernels
    methods = [word for word in row.layer.split() if row.types == ("Activation",) and word.isupper()]
    assert set(methods) <= set(activation.METHODS)
    marks, cases = re.sub(r"\(.*?\)", "", row.tests).split(), re.findall(r"[A-Z][A-Z0-9_]+", row.tests)
    assert marks
    assert set(marks) <= set("grmvp")
    assert set(cases) <= {*OPS, *LAYERS}


def test_every_layer_has_a_row_or_stands_among_those_of_boxes() -> None:
    named = {kind for row in DOCS for kind in row.types} | set(re.findall(r"\w+", BOXES))
    of_tflite = {word for row in DOCS for word in re.findall(r"\w+", row.tflite)}
    assert [kind for kind in OPERATORS if kind not in named and kind.upper() not in of_tflite] == []


def test_the_legend_names_files_that_exist() -> None:
    for name in re.findall(r"test_\w+\.py", PAGE):
        assert list((ROOT / "tests").rglob(name)), name


def test_every_operator_of_tflite_that_is_taken_stands_on_the_page() -> None:
    named = {word for row in DOCS for word in re.findall(r"\b[A-Z][A-Z0-9_]{2,}", row.tflite)}
    taken = {name.upper() for name in TRANSLATED}
    assert taken - named == set()
    assert named - taken <= FUSED
    assert f"{len(taken)} operators of\nTFLite" in PAGE
