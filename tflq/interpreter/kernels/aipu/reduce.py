"""Reduce: SUM, MEAN and PROD by one multiplier, MIN and MAX of codes, ANY and ALL of truth values (docs/aipu.md, 5).

A product is halved, rounding down, until it fits 16 bits; M / 2^N is s_y / s_x^n.

Source: Compass Optimizer, ops/reduce.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.products import product_limits, product_multipliers, running_products
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_multiplier
from tflq.interpreter.kernels.aipu.written import CURVED, NOTHING, Written, rescale_keys

METHODS = ("SUM", "MEAN", "MIN", "MAX", "PROD", "ANY", "ALL")
_OF_CODES: dict[str, Callable[..., Array]] = {"MIN": np.min, "MAX": np.max}
_OF_TRUTH: dict[str, Callable[..., Array]] = {"ANY": np.any, "ALL": np.all}


@dataclass(frozen=True, eq=False)
class ReduceIntegers:
    """The integers of one reduction.

    Attributes:
        method: SUM, MEAN, MIN, MAX, PROD, ANY or ALL.
        axes: behind the sample axis.
        input_offset: zp_x.
        limits: of a product.
        rescale: M and N; None where none is needed.
        codes: of the output.
        written: for the IR.
    """

    method: str
    axes: tuple[int, ...]
    input_offset: int
    limits: tuple[int, int]
    rescale: Multiplier | None
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> ReduceIntegers:
    """Decide M, N of s_y / s_x, for MEAN of s_y / (s_x * n), for PROD of s_y / s_x^n.

    Raises:
        UnsupportedError: another method.
    """
    x, output = operands.input(0), operands.output()
    method = node.attributes.text("method")
    if method not in METHODS:
        raise UnsupportedError(f"method={method}; allowed is {', '.join(METHODS)}")
    rank = len(x.shape)
    axes = tuple(axis % rank for axis in node.attributes.integers("axis"))
    count = int(np.prod([x.shape[a] for a in axes]))
    rescale, written = None, NOTHING
    if method in ("SUM", "MEAN"):
        ratio = scale_of(output) / np.float32(scale_of(x) * np.float32(count if method == "MEAN" else 1))
        rescale = multiplier_of(node, ratio, bits_of(output))
        written = Written(keys=rescale_keys(CURVED, rescale, type_of_multiplier(bits_of(output))))
    if method == "PROD":
        rescale = stated_multiplier(node) or product_multipliers(operands, count).split()[-1]
        written = Written(keys={**rescale_keys(CURVED, rescale, "uint16"), "shift_type": "uint32"})
    limits = product_limits(code_limits(x)[0] + offset_of(x) < 0)
    return ReduceIntegers(method, tuple(a + 1 for a in axes), offset_of(x), limits, rescale, codes_of(output), written)


def run(integers: ReduceIntegers, x: Array) -> tuple[Array, ...]:
    """Run Reduce: codes [S, ...] -> codes [S, ...] with axes of length 1."""
    if integers.method in _OF_CODES:
        return (_OF_CODES[integers.method](x, axis=integers.axes, keepdims=True),)
    v = x.astype(np.int64) + integers.input_offset
    if integers.rescale is None:
        return (_OF_TRUTH[integers.method](v != 0, axis=integers.axes, keepdims=True).astype(integers.codes.dtype),)
    if integers.method == "PROD":
        return (_product(integers, v, integers.rescale),)
    return (integers.codes.requantise(v.sum(axis=integers.axes, keepdims=True), integers.rescale),)


def _product(integers: ReduceIntegers, v: Integers, rescale: Multiplier) -> Array:
    kept = tuple(a for a in range(v.ndim) if a not in integers.axes)
    shape = tuple(1 if a in integers.axes else n for a, n in enumerate(v.shape))
    lined = v.transpose(*kept, *integers.axes).reshape(*(v.shape[a] for a in kept), -1)
    products, halvings = (p[..., -1] for p in running_products(lined, integers.limits))
    return integers.codes.requantise(products, Multiplier(rescale.m, rescale.n - halvings)).reshape(shape)
