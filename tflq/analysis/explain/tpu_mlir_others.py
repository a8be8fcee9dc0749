"""SOFTMAX, conversions and tables in TPU-MLIR's integers for BM1684X (docs/tpu_mlir.md)."""

from __future__ import annotations

import math

import numpy as np

from tflq.analysis.explain.plain import multiplied_half_up, round_half_away
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.graph import DType
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams
from tflq.interpreter.kernels.tpu_mlir.dequantize import DequantizeParams
from tflq.interpreter.kernels.tpu_mlir.quantize import QuantizeParams
from tflq.interpreter.kernels.tpu_mlir.softmax import SoftmaxParams


def explain_softmax(element: Element) -> Computed:
    """Explain SOFTMAX: float32 exponentials from a table, summed one by one, one division each."""
    params = element.node.params
    assert isinstance(params, SoftmaxParams)
    trace = Trace()
    row = tuple(int(v) for v in element.input(0)[element.index[:-1]])
    trace.add("inputs", "the row", row)
    largest = trace.add("largest", "of the row", max(row))
    scale = float(element.operands.input(0).affine.scale[0])
    powers = [np.float32(math.exp(-(largest - x) * scale)) for x in row]
    trace.add("exponentials", f"float32 of exp(-({largest} - x) * {scale!r})", tuple(float(p) for p in powers))
    total = np.float32(0)
    for power in powers:
        total = np.float32(total + power)
    trace.add("accumulator", "float32 sum of the exponentials, in order", float(total))
    share = np.float32(powers[element.index[-1]] / total)
    trace.add("share", "float32 quotient", float(share))
    scaled = float(np.float32(share / params.scale))
    trace.add("scaled", f"float32({float(share)!r} / {float(params.scale)!r})", scaled)
    return stored(trace, element, trace.add("rounded", "half away from 0", round_half_away(scaled)))


def explain_quantize(element: Element) -> Computed:
    """Explain conversions into codes: from reals, or from codes of another scale."""
    params = element.node.params
    assert isinstance(params, QuantizeParams)
    trace, z_y = Trace(), zero_point_of(element, None)
    if params.rescale is not None:
        found = difference(trace, element, 0)
        m, s = int(params.rescale.multiplier[0]), int(params.rescale.shift[0])
        if z_y or zero_point_of(element, 0):
            magnitude = multiplied_half_up(trace, abs(found), m, s, "magnitude's ")
            rounded = trace.add("rounded", "with its sign: ties away from 0", int(math.copysign(magnitude, found)))
        else:
            rounded = multiplied_half_up(trace, found, m, s)
    else:
        rounded = trace.add("rounded", "half away from 0", round_half_away(_steps(trace, element)))
    trace.add("plus output zero point", f"{rounded} + ({z_y})", rounded + z_y)
    return stored(trace, element, rounded + z_y, is_elementwise=True)


def explain_dequantize(element: Element) -> Computed:
    """Explain conversions out of codes, and between the widths of reals."""
    params = element.node.params
    assert isinstance(params, DequantizeParams)
    trace, kind = Trace(), params.dtype.storage.type
    if params.affine is None:
        value = trace.add("input", "", float(element.input(0)[element.index]))
    else:
        value = float(difference(trace, element, 0))
        scale = trace.add("scale", f"in {params.dtype.value}", float(kind(params.affine.scale[0])))
        value = float(kind(value)) * scale
    trace.add("stored value", f"one rounding to {params.dtype.value}", kind(value).item())
    return trace.done((0, element.index))


def explain_table(element: Element) -> Computed:
    """Explain a function of one byte: its entry in the table."""
    params = element.node.params
    assert isinstance(params, TableParams)
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    trace.add("stored value", f"entry of {code} in the table of {element.node.operator}", int(params.table[code & 255]))
    return trace.done((0, element.index))


def difference(trace: Trace, element: Element, position: int) -> int:
    """Add the steps of q - Z of an input and return it."""
    word = ("first ", "second ")[position] if len(element.node.inputs) > 1 else ""
    code, zero_point = element.read(position), zero_point_of(element, position)
    trace.add(f"{word}input", f"of '{element.operands.input(position).name}'", code)
    return trace.add(f"{word}minus zero point", f"{code} - ({zero_point})", code - zero_point)


def zero_point_of(element: Element, position: int | None) -> int:
    """Return Z of an input, or of the output for None; 0 for reals."""
    tensor = element.operands.output() if position is None else element.operands.input(position)
    return int(tensor.affine.zero_point[0]) if tensor.dtype.is_integer else 0


def stored(trace: Trace, element: Element, value: int, is_elementwise: bool = False) -> Computed:
    """Add the saturation to the output's type."""
    dtype = element.operands.output().dtype
    trace.clamp(value, dtype.minimum, dtype.maximum)
    return trace.done((0, element.index) if is_elementwise else None)


def _steps(trace: Trace, element: Element) -> float:
    """Add the steps from a real number to its quotient by the scale, which float16 takes as a product."""
    source, affine = element.operands.input(0), element.operands.output().affine
    real = trace.add("input", source.dtype.value, float(element.input(0)[element.index]))
    scale = float(affine.scale[0])
    if source.dtype is DType.FLOAT16:
        inverse = float(np.float16(1.0 / scale))
        return trace.add("scaled", f"float16({real!r} * {inverse!r})", float(np.float16(real * inverse)))
    return trace.add("scaled", f"float32({real!r} / {scale!r})", float(np.float32(real) / np.float32(scale)))
