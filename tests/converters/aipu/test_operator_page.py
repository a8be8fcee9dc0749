"""docs/aipu.md, 5: 79 of 79 operators, each with a layer that has a kernel, its way from TFLite and its tests."""

from __future__ import annotations

import re

import pytest

from tests.converters.aipu.test_golden import LAYERS, OPS
from tests.support.tracked import ROOT
from tflq.converters.aipu.operators import OPERATORS
from tflq.converters.aipu.operators import SOURCES as TRANSLATED
from tflq.interpreter.kernels.aipu import ARITHMETIC, activation

PAGE = (ROOT / "docs" / "aipu.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## 5 Operators")[2].partition("\n## 6 ")[0]
ROWS = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in SECTION.splitlines() if line.startswith("| ")][
    1:
]
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
    assert all(len(row) == 8 and all(row) for row in ROWS)
    numbers = [n for row in ROWS if row[0] != "-" for n in _numbers(row[0])]
    assert sorted(numbers) == list(range(1, 80))
    names = [name for row in ROWS if row[0] != "-" for name in row[1].split(", ")]
    assert len(names) == 79


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_row_names_layers_that_run_and_tests_that_exist(row: list[str]) -> None:
    layers = row[1] if row[2] == "the same names" else re.sub(r"\(.*?\)|quantize_method=\w+", "", row[2])
    kinds = [re.split(r"[ ;]", part.strip())[0] for part in re.split("[,;]", layers) if part.strip()]
    for kind in kinds:
        assert OPERATORS[kind] in ARITHMETIC.kernels
    methods = [word for word in row[2].split() if kinds == ["Activation"] and word.isupper()]
    assert set(methods) <= set(activation.METHODS)
    marks, cases = re.sub(r"\(.*?\)", "", row[7]).split(), re.findall(r"[A-Z][A-Z0-9_]+", row[7])
    assert marks
    assert set(marks) <= set("grmvp")
    assert set(cases) <= {*OPS, *LAYERS}


def test_the_legend_names_files_that_exist() -> None:
    for name in re.findall(r"test_\w+\.py", PAGE):
        assert list((ROOT / "tests").rglob(name)), name


def test_every_operator_of_tflite_that_is_taken_stands_on_the_page() -> None:
    named = {word for row in ROWS for word in re.findall(r"\b[A-Z][A-Z0-9_]{2,}", row[3])}
    taken = {name.upper() for name in TRANSLATED}
    assert taken - named == set()
    assert named - taken <= FUSED
    assert f"{len(taken)} operators of\nTFLite" in SECTION
