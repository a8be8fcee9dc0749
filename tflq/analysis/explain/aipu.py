"""Layers in the integers of Zhouyi AIPU, as the Compass Optimizer computes them (docs/aipu.md)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tflq.analysis.explain.family import Families, families_of
from tflq.analysis.explain.filters import Products, convolution_products, largest_tap, row_products, sum_of_taps
from tflq.analysis.explain.moves import explain_move
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.errors import UnsupportedError
from tflq.interpreter.kernels.aipu.activation import RECTIFIERS, RELU, ActivationParams
from tflq.interpreter.kernels.aipu.convolution import ConvolutionParams
from tflq.interpreter.kernels.aipu.curve import CurveParams
from tflq.interpreter.kernels.aipu.eltwise import EltwiseParams
from tflq.interpreter.kernels.aipu.filter import FilterParams
from tflq.interpreter.kernels.aipu.fully_connected import ProductParams
from tflq.interpreter.kernels.aipu.layout import LayoutParams, Reshaped
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes
from tflq.interpreter.kernels.aipu.pooling import PoolParams
from tflq.interpreter.kernels.aipu.softmax import SoftmaxParams
from tflq.interpreter.kernels.aipu.tables import Table

_COMBINE = {"ADD": "+", "SUB": "-", "MUL": "*", "MAX": "max", "MIN": "min"}


def explain_convolution(element: Element) -> Computed:
    """Explain Convolution and DepthwiseConv: raw codes, padding holding -zp_x, the stored bias, then M and N."""
    params = element.node.params
    assert isinstance(params, ConvolutionParams)
    trace, found = Trace(), params.filter
    products = convolution_products(trace, element, found.weights, params.prepared.window, found.pad)
    return _finish(trace, products, found)


def explain_fully_connected(element: Element) -> Computed:
    """Explain FullyConnected: raw codes, the stored bias, then M and N."""
    params = element.node.params
    assert isinstance(params, ProductParams)
    trace = Trace()
    return _finish(trace, row_products(trace, element, params.filter.weights), params.filter)


def explain_pool(element: Element) -> Computed:
    """Explain Pooling: AVG by a multiplier of the position's area, MAX of raw codes."""
    params = element.node.params
    assert isinstance(params, PoolParams)
    trace = Trace()
    if params.rescale is None:
        largest = largest_tap(trace, element, params.window, params.codes.minimum)
        trace.clamp(largest, params.codes.minimum, params.codes.maximum)
        return trace.done()
    _, row, column, _ = element.index
    total, inside = sum_of_taps(trace, element, params.window)
    accumulator = trace.add(
        "with offsets", f"{total} + {inside} * ({params.codes.offset})", total + inside * params.codes.offset
    )
    place = (row, column, 0)
    m, n = int(params.rescale.m[place]), int(params.rescale.n[place])
    return _stored(trace, _scaled(trace, accumulator, m, n), params.codes)


def explain_pair(element: Element) -> Computed:
    """Explain Eltwise: both codes on one scale, the operation, a fused rectifier, then M and N."""
    params = element.node.params
    assert isinstance(params, EltwiseParams)
    trace, parts = Trace(), []
    for k, word in enumerate(("first ", "second ")):
        code, zp, factor = element.read(k), params.input_offsets[k], params.factors[k]
        trace.add(f"{word}input", f"of '{element.operands.input(k).name}'", code)
        parts.append(trace.add(f"{word}scaled", f"({code} + ({zp})) * {factor}", (code + zp) * factor))
    a, b = parts
    word = _COMBINE[params.method]
    total = {"+": a + b, "-": a - b, "*": a * b, "max": max(a, b), "min": min(a, b)}[word]
    trace.add("accumulator", f"{a} {word} ({b})", total)
    if params.is_rectified:
        total = trace.add("activation", f"max({total}, 0)", max(total, 0))
    rounded = _rescaled(trace, total, params.rescale)
    return _stored(trace, rounded, params.codes)


def explain_rectifier(element: Element) -> Computed:
    """Explain RELU and RELU6 that stay alone."""
    params = element.node.params
    assert isinstance(params, ActivationParams)
    if params.fused.kind not in RECTIFIERS:
        raise UnsupportedError(f"the steps of {params.fused.kind} are not shown; its tensors are right")
    trace = Trace()
    code, zp = trace.add("input", "", element.read(0)), params.input_offset
    total = trace.add("activation", f"max({code} + ({zp}), 0)", max(code + zp, 0))
    rounded = _rescaled(trace, total, params.rescale)
    return _stored(trace, rounded, params.codes, (0, element.index))


def explain_curve(element: Element) -> Computed:
    """Explain a function by table, interpolated where codes are wider than the table."""
    params = element.node.params
    assert isinstance(params, CurveParams)
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    value = _entry(trace, params.table, code)
    trace.add("stored value", f"in the output's {element.operands.output().dtype.value}", value)
    return trace.done((0, element.index))


def explain_softmax(element: Element) -> Computed:
    """Explain Softmax by a table of exponentials."""
    params = element.node.params
    assert isinstance(params, SoftmaxParams)
    trace, x, axis = Trace(), element.input(0), params.axis
    codes = np.moveaxis(x, axis, -1)[element.index[:axis] + element.index[axis + 1 :]]
    row = trace.add("inputs", "along the axis", tuple(int(v) for v in codes))
    largest = trace.add("largest", "of them", max(row))
    quiet = Trace()
    powers = tuple(_entry(quiet, params.table, v - largest + params.span) for v in row)
    trace.add("exponentials", f"table entries of x - {largest} + {params.span}", powers)
    total = trace.add("accumulator", "sum of the exponentials, at least 1", max(sum(powers), 1))
    m, n = params.rescale.first_m, params.rescale.first_n
    own, top = powers[element.index[axis]], int(params.table.entries.max())
    if params.is_small:
        left = 31 - _log2_up(top)
        share = trace.add(
            "share", f"(({own} << {left}) + {total} / 2) / {total}", ((own << left) + (total >> 1)) // total
        )
        rounded = _scaled(trace, share, m, n + left)
    else:
        left = (30 if top == 1 else 31) - _log2_up(m)
        trace.add("multiplier of the output's scale", f"M; N is {n}", m)
        reciprocal = trace.add("reciprocal", f"({m} << {left}) / {total}", (m << left) // total)
        rounded = _scaled(trace, own, reciprocal, n + left)
    return _stored(trace, rounded, params.codes)


def _finish(trace: Trace, products: Products, found: FilterParams) -> Computed:
    o, kind = products.channel, found.fused.kind
    if found.remain_shift is not None or not found.fused.is_monotone_line:
        raise UnsupportedError(f"the steps of a layer with {kind} or remain_shift are not shown; its tensors are right")
    bias = trace.add("bias", "as stored: the input zero point folded in", int(found.bias[o]))
    accumulator = trace.add("accumulator", f"{products.total} + ({bias})", products.total + bias)
    if kind in RECTIFIERS:
        accumulator = trace.add("activation", f"{kind}: max({accumulator}, 0)", max(accumulator, 0))
    if kind == RELU:
        accumulator = trace.add("in float32", "the tool's RELU works there", int(np.float32(accumulator)))
    rounded = _rescaled(trace, accumulator, found.rescale, o)
    return _stored(trace, rounded, found.codes)


def _rescaled(trace: Trace, x: int, rescale: Multiplier, channel: int = 0) -> int:
    own = channel if rescale.m.size > 1 else 0
    return _scaled(trace, x, int(rescale.m[own]), int(rescale.n[own]))


def _scaled(trace: Trace, x: int, m: int, n: int) -> int:
    """Add the steps of RNE(x * M * 2^-N), in exact fractions."""
    trace.add("multiplier", "M", m)
    trace.add("shift", "N, to the right", n)
    product = trace.add("product", f"{x} * {m}", x * m)
    return trace.add("rounded", f"{product} * 2^-{n}, ties to even", round(Fraction(product) / Fraction(2) ** n))


def _entry(trace: Trace, table: Table, code: int) -> int:
    """Return what a table gives for a code, by a straight line between two entries where it has fewer than codes."""
    place = code - table.lowest
    index, rest = place >> table.shift, place & ((1 << table.shift) - 1)
    base = trace.add("table entry", f"number {index}", int(table.entries[index]))
    if table.shift == 0:
        return base
    above = int(table.entries[min(index + 1, table.entries.size - 1)])
    moved = base + (((above - base) * rest) >> table.shift)
    bounded = min(max(moved, table.minimum), table.maximum)
    return trace.add("interpolated", f"{base} + ((({above} - {base}) * {rest}) >> {table.shift})", bounded)


def _stored(
    trace: Trace,
    rounded: int,
    codes: OutputCodes,
    origin: tuple[int, tuple[int, ...]] | None = None,
) -> Computed:
    zp = codes.offset
    trace.add("minus zp_y", f"{rounded} - ({zp})", rounded - zp)
    trace.clamp(rounded - zp, codes.minimum, codes.maximum)
    return trace.done(origin)


def _log2_up(value: int) -> int:
    return math.ceil(math.log2(value))


_family = families_of("aipu", "docs/aipu.md")
FAMILIES: Families = {
    ConvolutionParams: _family("convolution, depthwise_conv", explain_convolution, "3"),
    ProductParams: _family("fully_connected", explain_fully_connected, "3"),
    PoolParams: _family("pooling", explain_pool, "5"),
    EltwiseParams: _family("eltwise, add, sub, mul", explain_pair, "5"),
    ActivationParams: _family("activation RELU, RELU6", explain_rectifier, "5"),
    CurveParams: _family("functions by table", explain_curve, "4"),
    SoftmaxParams: _family("softmax", explain_softmax, "5"),
    Reshaped: _family("reshape", explain_move, "5"),
    LayoutParams: _family("layout", explain_move, "5"),
}
