"""MIRROR_PAD against TFLite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_slice import TYPES
from tests.support.draw import affine, kernel_settings, shapes
from tests.support.nodes import Result, check, check_refused, fixed, long, sampled, values
from tflq.graph import DType


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_every_type(oracle, dtype, mode):
    operands = [sampled(values(0, (3, 4, 3), dtype)), long([[2, 3], [2, 0]])]
    check(oracle, "mirror_pad", operands, [dtype], mode=mode)


@kernel_settings
@given(data=st.data(), shape=shapes(4, 4), mode=st.sampled_from(["reflect", "symmetric"]), seed=st.integers(0, 99))
def test_amounts(oracle, data, shape, mode, seed):
    amounts = [[data.draw(st.integers(0, n - (mode == "reflect"))) for _ in range(2)] for n in shape]
    q = affine(DType.INT8, 0.5, -3)
    operands = [sampled(values(seed, (2, *shape), DType.INT8), q), fixed(amounts)]
    check(oracle, "mirror_pad", operands, [Result(DType.INT8, q)], mode=mode)


@pytest.mark.parametrize(
    ("amounts", "mode", "message"),
    [
        ([[0, 0], [4, 0]], "reflect", "0 to 3"),
        ([[0, 0], [0, 5]], "symmetric", "0 to 4"),
        ([[0, 0], [-1, 0]], "symmetric", "-1"),
        ([[0, 0]], "reflect", "shape"),
    ],
)
def test_refused(oracle, amounts, mode, message):
    x = sampled(values(0, (1, 2, 4), DType.INT32))
    check_refused(oracle, "mirror_pad", [x, fixed(amounts)], [DType.INT32], message, mode=mode)


def test_other_quantizations_are_refused(oracle):
    x, zero = values(0, (1, 4), DType.INT8), fixed([[0, 0]])
    operand, result = sampled(x, affine(DType.INT8, 1)), Result(DType.INT8, affine(DType.INT8, 2))
    check_refused(oracle, "mirror_pad", [operand, zero], [result], "scale")
    q = affine(DType.INT16, 1, 3)
    operands = [sampled(values(0, (1, 4), DType.INT16), q), zero]
    check_refused(oracle, "mirror_pad", operands, [Result(DType.INT16, q)], "zero point")
