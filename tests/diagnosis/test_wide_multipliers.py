"""Layers whose shifts C leaves undefined are named; no others are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.draw import affine
from tests.support.oracle import oracle as oracle
from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model, write_model
from tflq.diagnosis.wide_multipliers import wide_multipliers
from tflq.graph import DType, GraphBuilder, Model

INT8, INT16, UINT8 = DType.INT8, DType.INT16, DType.UINT8


def product(scale: float) -> Model:
    b = GraphBuilder()
    x, y = (b.input(name, (1, 4), UINT8, affine(UINT8, 2.0**-6, 3)) for name in "xy")
    return Model(
        [b.build([b.add("mul", [x, y], (1, 4), UINT8, affine(UINT8, scale), fused_activation_function="none")])]
    )


def convolution(scale: float) -> Model:
    b = GraphBuilder()
    x = b.input("x", (1, 2, 2, 1), INT16, affine(INT16, 0.5))
    w = b.constant("w", np.ones((1, 1, 1, 1), np.int8), affine(INT8, 0.5))
    bias = b.constant("b", np.zeros(1, np.int64), affine(DType.INT64, 0.25))
    options = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    return Model([b.build([b.add("conv_2d", [x, w, bias], (1, 2, 2, 1), INT16, affine(INT16, scale), **options)])])


@pytest.mark.parametrize(
    ("model", "exponent"),
    [
        (product(2.0**-42), None),
        (product(2.0**-43), 32),
        (product(2.0**-100), 89),
        (convolution(2.0**-16), None),
        (convolution(2.0**-17), 16),
        (convolution(2.0**-40), 39),
    ],
)
def test_named_from_the_first_undefined_shift_on(model: Model, exponent: int | None) -> None:
    """2^-12 / 2^-43 = 2^31 is 1/2 * 2^32; of int16 with int64 sums 2^-2 / 2^-17 = 2^15 is 1/2 * 2^16."""
    found = wide_multipliers(model)
    assert [w.exponent for w in found] == ([] if exponent is None else [exponent])


def test_ordinary_networks_have_none() -> None:
    assert wide_multipliers(read_model(ROOT / "tflq" / "data" / "digits.tflite")) == ()


@pytest.mark.usefixtures("oracle")
def test_inspect_and_verify_say_so_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "wide.tflite"
    write_model(product(2.0**-100), path)
    for command in ("inspect", "verify"):
        lines = tflq(command, path).out.splitlines()
        (line,) = (line for line in lines if "depends on the processor" in line)
        assert line.startswith("graph 0, operator 0 (mul 'MUL_0_0'): a multiplier of about 2^89")
        (entry,) = tflq(command, path, "--json").json["wide_multipliers"]
        assert (entry["index"], entry["operator"], entry["exponent"]) == (0, "mul", 89)
