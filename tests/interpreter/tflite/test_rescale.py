"""Where a proven map stands in for the rule of a layer with weights, and where the rule itself must run."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.graph import DType
from tflq.interpreter.kernels.tflite.rescale import Rounding, Rule, make_rescale
from tflq.interpreter.numerics.fixed_point import quantize_multiplier

INT32_SAFE = (1 << 31) - (1 << 17)


def has_map(rounding: Rounding, scale: float, largest: int, bits: int, bias: int = 0) -> bool:
    """Whether there is a map for accumulators from -largest to largest."""
    scales = np.array([scale, 2.0**-30])  # the second channel is harmless everywhere
    rule = Rule(rounding, scales, *quantize_multiplier(scales), bits, 3, -128, 127, DType.INT8)
    reach, added = np.array([largest, 5]), np.array([bias, 0])
    return make_rescale(rule, added, -reach - added, reach - added).step_map is not None


@pytest.mark.parametrize(
    ("rounding", "scale", "bits", "bound"),
    [
        (Rounding.DOUBLE, 2.0**-12, 32, INT32_SAFE),  # totals wrap
        (Rounding.REAL, 2.0**-12, 32, INT32_SAFE),
        (Rounding.SINGLE_64, 2.0**-30, 64, 1 << 47),  # the product does
        (Rounding.DOUBLE, 4.0, 32, INT32_SAFE // 8),  # totals wrap where they are shifted: 4 = 1/2 * 2^3
        (Rounding.DOUBLE, 7.5, 32, INT32_SAFE // 8),
        (Rounding.REAL, 4.0, 32, INT32_SAFE // 4),  # results wrap
        (Rounding.SINGLE_64, 4.0, 64, INT32_SAFE // 4),
    ],
)
@pytest.mark.parametrize("bias", [0, -1000, 1000])
def test_the_largest_total_that_a_map_takes(rounding: Rounding, scale: float, bits: int, bound: int, bias: int) -> None:
    assert has_map(rounding, scale, bound - 1, bits, bias)
    assert not has_map(rounding, scale, bound, bits, bias)


@pytest.mark.parametrize("rounding", [Rounding.DOUBLE, Rounding.REAL])
def test_a_rule_that_falls_has_no_map(rounding: Rounding) -> None:
    assert has_map(rounding, 0.0, 1000, 32)
    assert not has_map(rounding, -(2.0**-12), 1000, 32)
