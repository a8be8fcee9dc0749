"""Products that stay within 16 bits by halving, and the multipliers that make up for it (docs/aipu.md, 5).

Source: Compass Optimizer, ops/cumulate.py and reduce.py, convert_less_mbit.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Operands
from tflq.interpreter.kernels.aipu.multiplier import LARGEST, WIDEST, Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import scale_of
from tflq.interpreter.numerics.fixed_point import Integers

BITS = 16


def product_limits(signed: bool) -> tuple[int, int]:
    """Return the smallest and the largest product."""
    return (-(1 << (BITS - 1)), (1 << (BITS - 1)) - 1) if signed else (0, (1 << BITS) - 1)


def running_products(v: Integers, limits: tuple[int, int]) -> tuple[Integers, Integers]:
    """Return the running products along the last axis, halved rounding down until they fit, and how often each was."""
    products, halvings = np.empty_like(v), np.empty_like(v)
    product, halved = np.ones_like(v[..., 0]), np.zeros_like(v[..., 0])
    for k in range(v.shape[-1]):
        product = product * v[..., k]
        outside = (product < limits[0]) | (product > limits[1])
        while outside.any():
            product = np.where(outside, product >> 1, product)
            halved = halved + outside
            outside = (product < limits[0]) | (product > limits[1])
        products[..., k], halvings[..., k] = product, halved
    return products, halvings


def product_multipliers(operands: Operands, steps: int, first_power: int = 1) -> Multiplier:
    """Return M and N of s_y / s_x^k for k = first_power, first_power + 1, ...; each product is halved to 15 bits."""
    of_input = find_multiplier(np.float32(1) / scale_of(operands.input(0)), WIDEST)
    of_output = find_multiplier(scale_of(operands.output()), WIDEST)
    m, n = (of_input.first_m, of_input.first_n) if first_power else (1, 0)
    found = []
    for _ in range(steps):
        found.append(_fitting(m * of_output.first_m, n + of_output.first_n))
        m, n = _fitting(m * of_input.first_m, n + of_input.first_n)
    return Multiplier(np.array([f[0] for f in found], np.int64), np.array([f[1] for f in found], np.int64))


def _fitting(m: int, n: int) -> tuple[int, int]:
    while m > LARGEST:
        m, n = m >> 1, n - 1
    return m, n
