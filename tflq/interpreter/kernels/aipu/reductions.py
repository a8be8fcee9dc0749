"""Sums, products, extremes and truths along axes: Reduce, Cumulate, SegmentReduce (docs/rules/aipu/operators.md).

Products that stay within 16 bits by halving, and the multipliers that make up for it.
Source: Compass Optimizer, ops/cumulate.py and reduce.py, convert_less_mbit.

Reduce: SUM, MEAN and PROD by one multiplier, MIN and MAX of quantized values, ANY and ALL of truth values. VARIANCE:
sum (q - RNE(mean of q))^2, r = s_y / s_x^2 / n in 15 bits. A product is halved, rounding down, until it fits 16 bits; M
/ 2^N is s_y / s_x^n. L1, L2: the sums of |x + zp_x| or (x + zp_x)^2 lose k bits, k = max(0, ceil(log2(largest sum of
the sample)) - 16), and end at 65535; u = RNE(sum * M * 2^-(N - k)), r = s_y / s_x, of L2 s_q / s_x^2; L1: y = clamp(u -
zp_y); L2: y = t(clamp(u)) by a table of roots, s_q the scale of the internal tensor of sums.

Cumulate: running sums or products along an axis, each with its own requantization. SUM: y_k = clamp(RNE(sum_{j<=k} (x_j
+ zp_x) * M * 2^-N) - zp_y), r = s_y / s_x in 15 bits. PROD: the running product is halved, rounding down, until it fits
16 bits; step k has its own M and N, the k-th power of 1 / s_x times s_y.

SegmentReduce: sums of rows with the same number: y = clamp(RNE(sum(x + zp_x) * M * 2^-N) - zp_y). r = s_y / s_x in 15
bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import internal_tensor
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, is_imported, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import (
    LARGEST,
    WIDEST,
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.scales import (
    bits_of,
    code_limits,
    is_plain,
    is_signed,
    offset_of,
    scale_of,
    type_limits,
)
from tflq.interpreter.kernels.aipu.tables import Table, table_bits, table_of, table_shift
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel

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
    multipliers = []
    for _ in range(steps):
        multipliers.append(_fitting(m * of_output.first_m, n + of_output.first_n))
        m, n = _fitting(m * of_input.first_m, n + of_input.first_n)
    return Multiplier(np.array([f[0] for f in multipliers], np.int64), np.array([f[1] for f in multipliers], np.int64))


def _fitting(m: int, n: int) -> tuple[int, int]:
    while m > LARGEST:
        m, n = m >> 1, n - 1
    return m, n


REDUCE_METHODS = ("SUM", "MEAN", "MIN", "MAX", "PROD", "VARIANCE", "ANY", "ALL", "L1", "L2")
_LARGEST_SHIFT, _LARGEST_SUM = 63, (1 << BITS) - 1
_OF_CODES: dict[str, Callable[..., Array]] = {"MIN": np.min, "MAX": np.max}
_OF_TRUTH: dict[str, Callable[..., Array]] = {"ANY": np.any, "ALL": np.all}


@dataclass(frozen=True, eq=False)
class ReduceParams:
    """The params of one reduction.

    Attributes:
        method: SUM, MEAN, MIN, MAX, PROD, VARIANCE, ANY, ALL, L1 or L2.
        axes: Reduced axes, after the sample axis.
        input_offset: zp_x.
        limits: Limits of a product.
        rescale: M and N; None if the method needs no rescaling.
        codes: Quantized values of the output.
        table: Table of roots, for L2.
    """

    method: str
    axes: tuple[int, ...]
    input_offset: int
    limits: tuple[int, int]
    rescale: Multiplier | None
    codes: OutputCodes
    table: Table | None = None


def lower_reduce(node: Node, operands: Operands) -> ReduceParams:
    """Decide M, N of s_y / s_x, for MEAN of s_y / (s_x * n), for PROD of s_y / s_x^n.

    Raises:
        UnsupportedError: another method; L2 of plain integers.
    """
    x, output = operands.input(0), operands.output()
    method = require_choice(node, "method", REDUCE_METHODS)
    rank = len(x.shape)
    axes = tuple(axis % rank for axis in node.attributes.integers("axis"))
    count = int(np.prod([x.shape[a] for a in axes]))
    rescale = None
    if method in ("SUM", "MEAN"):
        ratio = scale_of(output) / np.float32(scale_of(x) * np.float32(count if method == "MEAN" else 1))
        rescale = multiplier_of(node, ratio, bits_of(output))
    if method == "VARIANCE":
        ratio = np.float32(scale_of(output) / np.float32(scale_of(x) * scale_of(x))) / np.float32(count)
        rescale = imported_multiplier(node) or find_multiplier(ratio, WIDEST + 1, _LARGEST_SHIFT)
    if method == "PROD":
        rescale = imported_multiplier(node) or product_multipliers(operands, count).split()[-1]
    limits, table = product_limits(code_limits(x)[0] + offset_of(x) < 0), None
    if method == "L1":
        rescale = imported_multiplier(node) or find_multiplier(scale_of(output) / scale_of(x), BITS, _LARGEST_SHIFT)
    if method == "L2":
        rescale, table = _roots(node, operands)
    return ReduceParams(method, tuple(a + 1 for a in axes), offset_of(x), limits, rescale, codes_of(output), table)


def _roots(node: Node, operands: Operands) -> tuple[Multiplier, Table]:
    """Return M and N of s_q / s_x^2, and the table of roots of sums at s_q."""
    x, output = operands.input(0), operands.output()
    if is_imported(node):
        given, multiplier = imported_numbers(node), imported_multiplier(node)
        if given is None or multiplier is None:
            raise UnsupportedError(f"layer '{node.name}': L2 without its table or multiplier; give the whole file")
        return multiplier, Table(given, 0, table_shift(node, given, BITS), *type_limits(output))
    if is_plain(x):
        raise UnsupportedError("L2 of whole numbers: the Optimizer stops there; allowed are real numbers")
    sums = internal_tensor(operands, 0)
    ratio = scale_of(sums) / np.float32(scale_of(x) * scale_of(x))
    table = table_of(node, sums, output, np.sqrt, bits=table_bits(node, x))
    return find_multiplier(ratio, BITS, _LARGEST_SHIFT), table


def run_reduce(params: ReduceParams, x: Array) -> tuple[Array, ...]:
    """Run Reduce: quantized [S, ...] -> quantized [S, ...] with axes of length 1."""
    if params.method in _OF_CODES:
        return (_OF_CODES[params.method](x, axis=params.axes, keepdims=True),)
    if params.method == "VARIANCE" and params.rescale is not None:
        q = x.astype(np.int64)
        apart = q - np.rint(q.mean(axis=params.axes, keepdims=True)).astype(np.int64)
        return (params.codes.requantize(np.square(apart).sum(axis=params.axes, keepdims=True), params.rescale),)
    v = x.astype(np.int64) + params.input_offset
    if params.rescale is None:
        return (_OF_TRUTH[params.method](v != 0, axis=params.axes, keepdims=True).astype(params.codes.dtype),)
    if params.method == "PROD":
        return (_product(params, v, params.rescale),)
    if params.method in ("L1", "L2"):
        return (_length(params, v, params.rescale),)
    return (params.codes.requantize(v.sum(axis=params.axes, keepdims=True), params.rescale),)


def _product(params: ReduceParams, v: Integers, rescale: Multiplier) -> Array:
    kept = tuple(a for a in range(v.ndim) if a not in params.axes)
    shape = tuple(1 if a in params.axes else n for a, n in enumerate(v.shape))
    lined = v.transpose(*kept, *params.axes).reshape(*(v.shape[a] for a in kept), -1)
    products, halvings = (p[..., -1] for p in running_products(lined, params.limits))
    return params.codes.requantize(products, Multiplier(rescale.m, rescale.n - halvings)).reshape(shape)


def _length(params: ReduceParams, v: Integers, rescale: Multiplier) -> Array:
    """Return L1 or L2: sums of at most 16 bits, the largest of a sample decides by how many bits they are shifted."""
    parts = np.abs(v) if params.method == "L1" else np.square(v)
    sums = np.minimum(parts.sum(axis=params.axes, keepdims=True), (1 << 32) - 1)
    largest = sums.max(axis=tuple(range(1, sums.ndim)), keepdims=True).astype(np.float32)
    with np.errstate(divide="ignore"):
        needed = np.ceil(np.log2(largest.astype(np.float64)).astype(np.float32))
    lost = np.maximum(needed - BITS, 0).astype(np.int64)
    kept = np.minimum(sums >> lost, _LARGEST_SUM)
    shifted = Multiplier(rescale.m, rescale.n - lost)
    if params.table is None:
        return params.codes.requantize(kept, shifted)
    places = np.clip(shifted.apply(kept), 0, _LARGEST_SUM).astype(np.int64)
    return params.table.lookup(places).astype(params.codes.dtype)


CUMULATE_METHODS = ("SUM", "PROD")


@dataclass(frozen=True, eq=False)
class CumulateParams:
    """The params of one running sum or product.

    Attributes:
        method: SUM or PROD.
        axis: Axis of the sum, after the sample axis.
        is_exclusive: whether step k leaves out element k.
        is_reversed: whether it runs from the end.
        input_offset: zp_x.
        limits: smallest and largest running product of 16 bits.
        rescale: M and N, of PROD one for each step.
        codes: Quantized values of the output.
    """

    method: str
    axis: int
    is_exclusive: bool
    is_reversed: bool
    input_offset: int
    limits: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes


def lower_cumulate(node: Node, operands: Operands) -> CumulateParams:
    """Decide M and N.

    Raises:
        UnsupportedError: another method.
    """
    x, output = operands.input(0), operands.output()
    method = require_choice(node, "method", CUMULATE_METHODS)
    axis = node.attributes.integer("axis") % len(x.shape)
    is_exclusive = node.attributes.boolean("exclusive")
    if method == "SUM":
        multiplier = multiplier_of(node, scale_of(output) / scale_of(x), WIDEST)
    else:
        first_power = 0 if is_exclusive else 1
        multiplier = imported_multiplier(node) or product_multipliers(operands, x.shape[axis], first_power)
    limits = product_limits(is_signed(x))
    is_reversed = node.attributes.boolean("reverse")
    return CumulateParams(
        method, axis + 1, is_exclusive, is_reversed, offset_of(x), limits, multiplier, codes_of(output)
    )


def run_cumulate(params: CumulateParams, x: Array) -> tuple[Array, ...]:
    """Run Cumulate: quantized [S, ...] -> quantized [S, ...]."""
    v = np.moveaxis(x.astype(np.int64) + params.input_offset, params.axis, -1)
    v = v[..., ::-1] if params.is_reversed else v
    if params.is_exclusive:
        neutral = 0 if params.method == "SUM" else 1
        v = np.concatenate([np.full_like(v[..., :1], neutral), v[..., :-1]], axis=-1)
    if params.method == "SUM":
        # The Optimizer adds in float32: sums beyond 2^24 lose bits.
        codes = params.codes.requantize(np.cumsum(v, axis=-1, dtype=np.float32).astype(np.int64), params.rescale)
    else:
        products, halvings = running_products(v, params.limits)
        codes = params.codes.requantize(products, Multiplier(params.rescale.m, params.rescale.n - halvings))
    return (np.moveaxis(codes[..., ::-1] if params.is_reversed else codes, -1, params.axis),)


@dataclass(frozen=True, eq=False)
class SegmentParams:
    """The params of one layer: the number of segments, zp_x, M and N, the output's quantized values."""

    segments: int
    input_offset: int
    rescale: Multiplier
    codes: OutputCodes


def lower_segment_reduce(node: Node, operands: Operands) -> SegmentParams:
    """Decide M and N.

    Raises:
        UnsupportedError: another method than SUM.
    """
    x, output = operands.input(0), operands.output()
    require_choice(node, "method", ("SUM",))
    multiplier = multiplier_of(node, scale_of(output) / scale_of(x), WIDEST + 1)
    return SegmentParams(output.shape[0], offset_of(x), multiplier, codes_of(output))


def run_segment_reduce(params: SegmentParams, x: Array, segments: Array) -> tuple[Array, ...]:
    """Run SegmentReduce: quantized [S, rows, ...] and [S, rows] -> quantized [S, segments, ...].

    A segment without rows is 0.
    """
    v = x.astype(np.int64) + params.input_offset
    rows = segments.reshape(*segments.shape[:2], *(1,) * (x.ndim - 2))
    sums = [np.where(rows == number, v, 0).sum(axis=1) for number in range(params.segments)]
    return (params.codes.requantize(np.stack(sums, axis=1), params.rescale),)


KERNELS = {
    "reduce": Kernel(lower_reduce, run_reduce,
        "SUM, MEAN, PROD, L1 by one multiplier, L2 by a table of roots; MIN, MAX of values; ANY, ALL of truth values",
        "Compass Optimizer, ops/reduce.py; docs/rules/aipu/operators.md"),
    "cumulate": Kernel(lower_cumulate, run_cumulate,
        "running sums or products, each with its own M / 2^N", "Compass Optimizer, ops/cumulate.py; "
            "docs/rules/aipu/operators.md"),
    "segment_reduce": Kernel(lower_segment_reduce, run_segment_reduce,
        "RNE(sum of the rows of a segment * M * 2^-N) - zp_y",
        "Compass Optimizer, ops/segment_reduce.py; docs/rules/aipu/operators.md"),
}  # fmt: skip
