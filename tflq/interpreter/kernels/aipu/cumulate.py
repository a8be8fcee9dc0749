"""Cumulate: running sums or products along an axis, each with its own requantisation (docs/aipu.md, 5).

SUM: y_k = clamp(RNE(sum_{j<=k} (x_j + zp_x) * M * 2^-N) - zp_y), r = s_y / s_x in 15 bits. PROD: the running product is
halved, rounding down, until it fits 16 bits; step k has its own M and N, the k-th power of 1 / s_x times s_y.

Source: Compass Optimizer, ops/cumulate.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import LARGEST, WIDEST, Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_multiplier
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys

METHODS = ("SUM", "PROD")
PRODUCT_BITS = 16


@dataclass(frozen=True, eq=False)
class CumulateIntegers:
    """The integers of one running sum or product.

    Attributes:
        method: SUM or PROD.
        axis: behind the sample axis.
        is_exclusive: whether step k leaves out element k.
        is_reversed: whether it runs from the end.
        input_offset: zp_x.
        limits: smallest and largest running product of 16 bits.
        rescale: M and N, of PROD one for each step.
        codes: of the output.
        written: for the IR.
    """

    method: str
    axis: int
    is_exclusive: bool
    is_reversed: bool
    input_offset: int
    limits: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> CumulateIntegers:
    """Decide M and N.

    Raises:
        UnsupportedError: another method.
    """
    x, output = operands.input(0), operands.output()
    method = node.attributes.text("method")
    if method not in METHODS:
        raise UnsupportedError(f"method={method}; allowed is {', '.join(METHODS)}")
    axis = node.attributes.integer("axis") % len(x.shape)
    is_exclusive = node.attributes.boolean("exclusive", False)
    if method == "SUM":
        found = multiplier_of(node, scale_of(output) / scale_of(x), WIDEST)
        written = Written(keys=rescale_keys(CURVED, found, "uint16"))
    else:
        found = stated_multiplier(node) or _powers(operands, x.shape[axis], is_exclusive)
        written = Written({"scale": found.m.astype(np.uint16), "shift": found.n.astype(np.int32)})
    signed = code_limits(x)[0] < 0
    limits = (-(1 << (PRODUCT_BITS - 1)), (1 << (PRODUCT_BITS - 1)) - 1) if signed else (0, (1 << PRODUCT_BITS) - 1)
    is_reversed = node.attributes.boolean("reverse", False)
    return CumulateIntegers(
        method, axis + 1, is_exclusive, is_reversed, offset_of(x), limits, found, codes_of(output), written
    )


def run(integers: CumulateIntegers, x: Array) -> tuple[Array, ...]:
    """Run Cumulate: codes [S, ...] -> codes [S, ...]."""
    v = np.moveaxis(x.astype(np.int64) + integers.input_offset, integers.axis, -1)
    v = v[..., ::-1] if integers.is_reversed else v
    if integers.is_exclusive:
        neutral = 0 if integers.method == "SUM" else 1
        v = np.concatenate([np.full_like(v[..., :1], neutral), v[..., :-1]], axis=-1)
    if integers.method == "SUM":
        # The tool adds in float32: sums beyond 2^24 lose bits.
        codes = integers.codes.requantise(np.cumsum(v, axis=-1, dtype=np.float32).astype(np.int64), integers.rescale)
    else:
        products, halvings = _products(v, integers.limits)
        codes = integers.codes.requantise(products, Multiplier(integers.rescale.m, integers.rescale.n - halvings))
    return (np.moveaxis(codes[..., ::-1] if integers.is_reversed else codes, -1, integers.axis),)


def _products(v: Integers, limits: tuple[int, int]) -> tuple[Integers, Integers]:
    """Return the running products that fit, and how often each was halved."""
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


def _powers(operands: Operands, steps: int, is_exclusive: bool) -> Multiplier:
    """Return M and N of s_y / s_x^k for each step, M halved to 15 bits after each product."""
    of_input = find_multiplier(np.float32(1) / scale_of(operands.input(0)), WIDEST)
    of_output = find_multiplier(scale_of(operands.output()), WIDEST)
    m, n = (1, 0) if is_exclusive else (of_input.first_m, of_input.first_n)
    found = []
    for _ in range(steps):
        found.append(_fitting(m * of_output.first_m, n + of_output.first_n))
        m, n = _fitting(m * of_input.first_m, n + of_input.first_n)
    return Multiplier(np.array([f[0] for f in found], np.int64), np.array([f[1] for f in found], np.int64))


def _fitting(m: int, n: int) -> tuple[int, int]:
    while m > LARGEST:
        m, n = m >> 1, n - 1
    return m, n
