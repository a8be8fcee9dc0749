"""The pages of GAP9 list every operator as the code treats it."""

from __future__ import annotations

import re

import pytest

from tests.support.gap9_golden import quantized
from tests.support.tracked import ROOT
from tflq.converters.gap9 import NE16
from tflq.converters.gap9.check import supported_operators
from tflq.converters.gap9.operators import MOVES
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder, Model
from tflq.schemas.tflite import BuiltinOperator

NO_OPERATORS = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
OPERATORS = (ROOT / "docs" / "rules" / "gap9" / "operators.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "targets" / "gap9.md").read_text(encoding="utf-8")


def listed(beginning: str) -> set[str]:
    line = next(part for part in OPERATORS.split("\n\n") if part.startswith(beginning))
    return set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", line)) - {"GAP9", "Q15"}


LISTS = {
    "mapped": listed("Mapped: "),
    "through": listed("Pass-through, "),
    "without reference": listed("Refused for want"),
    "refused": listed("Refused, because"),
}


def test_every_operator_stands_in_one_list() -> None:
    known = {m.name for m in BuiltinOperator} - NO_OPERATORS
    assert set().union(*LISTS.values()) == known
    assert sum(map(len, LISTS.values())) == len(known)


def test_lists_say_what_the_code_does() -> None:
    taken = {name.upper() for name in supported_operators()}
    assert LISTS["mapped"] | LISTS["through"] == taken
    assert LISTS["through"] == {name.upper() for name in MOVES}


@pytest.mark.parametrize("name", sorted(LISTS["without reference"] | LISTS["refused"]))
def test_refused_operators_are_named(name: str) -> None:
    b = GraphBuilder("one")
    scale = Affine.per_tensor(0.1)
    x = b.input("x", (1, 4), DType.INT8, scale)
    graph = b.build([b.add(name.lower(), [x], (1, 4), DType.INT8, scale)])
    with pytest.raises(UnsupportedError, match=rf"operator 0 \({name.lower()} '{name}_0_0'\): no"):
        quantized(Model([graph]), "gap9-ne16")


def test_every_setting_is_explained() -> None:
    for setting in NE16.settings:
        assert f"| {setting.key} |" in SETTINGS
