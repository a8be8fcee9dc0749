"""The roundings of runtimes by values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.errors import OptionError, UsageError
from tflq.interpreter.kernels.tflite.rescale import round_product_in_float32
from tflq.interpreter.kernels.tflite.runtimes import ARITHMETICS, RULES
from tflq.interpreter.numerics.fixed_point import (
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_once,
    multiply_by_quantized_multiplier_up,
)
from tflq.interpreter.registry import RUNTIMES as REGISTERED
from tflq.interpreter.runtimes import RUNTIME_NAMES, RUNTIMES, find_runtime

HALF = 1 << 30  # with shift 0 a factor of 1/2


def test_ties_of_the_second_rounding() -> None:
    """h = 2 x / 2 = x exactly with multiplier 2^30 and shift 1; then / 4 with shift -1 on x << 0."""
    x = np.array([-12, -4, 4, 12])  # x / 2 is -6, -2, 2, 6; / 4 is -1.5, -0.5, 0.5, 1.5
    assert multiply_by_quantized_multiplier(x, HALF, -2).tolist() == [-2, -1, 1, 2]
    assert multiply_by_quantized_multiplier_up(x, HALF, -2, 0).tolist() == [-1, 0, 1, 2]
    assert multiply_by_quantized_multiplier_up(x, HALF, -2, 1).tolist() == [-2, -1, 1, 2]
    assert multiply_by_quantized_multiplier_up(x, HALF, -2, np.array([0, 1, 0, 1])).tolist() == [-1, -1, 1, 2]


def test_one_rounding_and_two() -> None:
    """3 * 0.5 / 4 = 0.375 is 0; twice rounded 1.5 is 2, and 2 / 4 = 0.5 is 1."""
    assert multiply_by_quantized_multiplier_once(3, HALF, -2).tolist() == 0
    assert multiply_by_quantized_multiplier(3, HALF, -2).tolist() == 1
    assert multiply_by_quantized_multiplier_once(np.array([-4, 4]), HALF, -2).tolist() == [0, 1]


def test_float32() -> None:
    """Halves go to the even number; 2^24 + 1 is no float32."""
    totals = np.array([-3, -1, 1, 3, (1 << 24) + 1])
    assert round_product_in_float32(totals, np.float32(0.5)).tolist() == [-2, 0, 0, 2, 1 << 23]
    assert round_product_in_float32(np.array([3]), np.float32(1e9)).tolist() == [(1 << 31) - 1]


def test_the_tables_name_the_same_runtimes_and_operators() -> None:
    assert set(RUNTIME_NAMES) == set(RUNTIMES) == {"ref", *ARITHMETICS}
    assert set(REGISTERED) == set(ARITHMETICS)
    for name, rows in RULES.items():
        assert set(RUNTIMES[name].rules) == set(rows)


def test_an_unknown_runtime() -> None:
    with pytest.raises(OptionError, match="no runtime is called 'edge'; there are ref, xnnpack"):
        find_runtime("edge")


def test_contradictions(tmp_path) -> None:
    import tflq

    model = "tflq/data/digits.tflite"
    with pytest.raises(UsageError, match="target does not compute a runtime's integers"):
        tflq.run(model, runtime="tflm", target="gap9-ne16")
    with pytest.raises(UsageError, match="arithmetic float does not compute a runtime's integers"):
        tflq.run(model, runtime="tflm", arithmetic="float")
    with pytest.raises(UsageError, match="no Python package runs tosa"):
        tflq.verify(model, runtime="tosa")
    with pytest.raises(UsageError, match="omit oracle and kernels"):
        tflq.verify(model, runtime="tflm", kernels="AUTO")
    assert tflq.run(model, runtime="tflm").arithmetic == "tflm"
