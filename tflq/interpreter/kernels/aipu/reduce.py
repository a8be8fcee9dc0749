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
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.products import product_limits, product_multipliers, running_products
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_multiplier
from tflq.interpreter.kernels.aipu.written import CURVED, NOTHING, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers

METHODS = ("SUM", "MEAN", "MIN", "MAX", "PROD", "ANY", "ALL")
_OF_CODES: dict[str, Callable[..., Array]] = {"MIN": np.min, "MAX": np.max}
_OF_TRUTH: dict[str, Callable[..., Array]] = {"ANY": np.any, "ALL": np.all}


@dataclass(frozen=True, eq=False)
class ReduceParams:
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


def lower(node: Node, operands: Operands) -> ReduceParams:
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
    return ReduceParams(method, tuple(a + 1 for a in axes), offset_of(x), limits, rescale, codes_of(output), written)


def run(params: ReduceParams, x: Array) -> tuple[Array, ...]:
    """Run Reduce: codes [S, ...] -> codes [S, ...] with axes of length 1."""
    if params.method in _OF_CODES:
        return (_OF_CODES[params.method](x, axis=params.axes, keepdims=True),)
    v = x.astype(np.int64) + params.input_offset
    if params.rescale is None:
        return (_OF_TRUTH[params.method](v != 0, axis=params.axes, keepdims=True).astype(params.codes.dtype),)
    if params.method == "PROD":
        return (_product(params, v, params.rescale),)
    return (params.codes.requantise(v.sum(axis=params.axes, keepdims=True), params.rescale),)


def _product(params: ReduceParams, v: Integers, rescale: Multiplier) -> Array:
    kept = tuple(a for a in range(v.ndim) if a not in params.axes)
    shape = tuple(1 if a in params.axes else n for a, n in enumerate(v.shape))
    lined = v.transpose(*kept, *params.axes).reshape(*(v.shape[a] for a in kept), -1)
    products, halvings = (p[..., -1] for p in running_products(lined, params.limits))
    return params.codes.requantise(products, Multiplier(rescale.m, rescale.n - halvings)).reshape(shape)
