"""Layers over axes: Reduce, Cumulate, SegmentReduce, Moments, Normalization, LRN (docs/rules/aipu/operators.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import (
    Internal,
    Layer,
    OutputType,
    Row,
    all_values,
    by_range,
    follows_input,
    like,
    never,
    plain,
)
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.passes.activations import as_written
from tflq.converters.aipu.translation import Translation
from tflq.graph import Attributes, Node, Operands
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.normalization import ROOT_TABLE
from tflq.interpreter.kernels.aipu.scales import code_limits, is_signed, offset_of

_PASSING, _OF_TRUTH, _UNSIGNED = ("MIN", "MAX"), ("ANY", "ALL"), ("VARIANCE", "L1", "L2")


def _reduce(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...] | None:
    """MIN and MAX pass the input's type; ANY and ALL are truth values."""
    method = node.attributes.text("method")
    if method in _OF_TRUTH:
        return (plain(8),)
    if method in _UNSIGNED:
        return (by_range(operands.output(), False, options),)
    return all_values(node, operands, options) if method in _PASSING else None


def _paper_reduce(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """MEAN: as the input."""
    return (like(operands.input(0)),)


def _reduce_needs_range(node: Node) -> bool:
    return node.attributes.text("method") not in (*_PASSING, *_OF_TRUTH)


_REDUCED: dict[str, tuple[ir.Part, ...]] = {
    "SUM": (ir.Factors(ir.CURVED),),
    "MEAN": (ir.Factors(ir.CURVED),),
    "VARIANCE": (ir.Factors(ir.CURVED, "uint16"),),
    "PROD": (ir.Factors(ir.CURVED, "uint16", shift="uint32"),),
    "L1": (ir.Factors(ir.CURVED, "uint16"),),
    "L2": (ir.Lut("sqrt_lut"), ir.Factors(ir.CURVED, "uint16")),
}


def _emit_products(layer: ir.Lowered) -> ir.Emitted:
    (found,) = layer.multipliers("rescale")
    return ir.Emitted({"scale": found.m.astype(np.uint16), "shift": found.n.astype(np.int32)})


_CUMULATED: dict[str, tuple[ir.Part, ...]] = {
    "SUM": (ir.Factors(ir.CURVED, "uint16"),),
    "PROD": (ir.Computed(_emit_products, ir.Factors().read),),
}


def _cumulate(node: Node) -> Sequence[ir.Part]:
    return _CUMULATED.get(node.attributes.text("method"), ())


def _emit_moments(layer: ir.Lowered) -> ir.Emitted:
    """The input's own multiplier is 1, of the variance's type."""
    kind = ir.stored_type(layer.operands.output(1))
    return ir.Emitted(
        keys={"input_scale_value": 1, "input_scale_type": kind, "input_shift_value": 0, "input_shift_type": "int8"}
    )


def _normalized(_node: Node, operands: Operands) -> bool:
    x = operands.input(0)
    return code_limits(x)[0] + offset_of(x) < 0


def _emit_roots(_layer: ir.Lowered) -> ir.Emitted:
    return ir.Emitted({"lut": ROOT_TABLE.astype(np.int16)})


def _segmented(_node: Node, operands: Operands) -> bool:
    return is_signed(operands.input(0))


def map_reduce(work: Translation, node: Node) -> None:
    """Reduce; whether it keeps its axes, the shapes say."""
    shape = work.shape(node.inputs[0])
    axes = tuple(sorted(a % len(shape) for a in work.numbers(node, 1)))
    keeps = len(work.shape(node.outputs[0])) == len(shape)
    keys: dict[str, Attribute] = {
        "axis": axes,
        "method": node.operator.upper().removeprefix("REDUCE_"),
        "keepdims": keeps,
    }
    work.append(node, "reduce", {}, Attributes(keys))


def without_axes(
    work: Translation, node: Node, operator: str, keys: dict[str, Attribute], axes: tuple[int, ...]
) -> None:
    """Add a layer that keeps its axes with length 1, and the Reshape that takes them off where the source has none."""
    kept = tuple(1 if a in axes else n for a, n in enumerate(work.shape(node.inputs[0])))
    x, (t,) = work.operand(node.inputs[0]), node.outputs
    if work.shape(t) == kept:
        work.add(node, operator, (x,), node.outputs, keys)
    else:
        name = work.name_of(t)
        (inner,) = work.layer(node, name, operator, (x,), (work.inner(t, kept),), keys)
        work.reshape(node, inner, t, f"{name}_post_reshape")


def map_cumsum(work: Translation, node: Node) -> None:
    """Map CUMSUM."""
    keys: dict[str, Attribute] = {
        "axis": work.numbers(node, 1)[0] % len(work.shape(node.inputs[0])),
        "method": "SUM",
        "exclusive": node.attributes.boolean("exclusive", False),
        "reverse": node.attributes.boolean("reverse", False),
    }
    work.append(node, "cumulate", {}, Attributes(keys))


def map_normalization(work: Translation, node: Node) -> None:
    """Map L2_NORMALIZATION."""
    keys: dict[str, Attribute] = {"axis": (len(work.shape(node.inputs[0])) - 1,), "method": "L2", "epsilon": 0.0}
    work.append(node, "normalization", {}, Attributes(keys))


def map_segments(work: Translation, node: Node) -> None:
    """The output has as many rows as there are segments, which the file's shape may not say."""
    (t,) = node.outputs
    count = work.numbers(node, 1)[-1] + 1
    top = replace(work.top(t), shape=(count, *work.shape(t)[1:]))
    inputs = [work.operand(i) for i in node.inputs]
    (work.places[t],) = work.layer(node, work.name_of(t), "segment_reduce", inputs, (top,), {"method": "SUM"})


def map_lrn(work: Translation, node: Node) -> None:
    """Size 2 radius + 1, alpha times size. The mean square is at most the largest square, where no run says more."""
    size = 2 * node.attributes.integer("radius", 0) + 1
    keys: dict[str, Attribute] = {
        "method": "ACROSS_CHANNELS",
        "size": size,
        "bias": as_written(node.attributes.real("bias", 0.0)),
        "alpha": as_written(node.attributes.real("alpha", 0.0) * size),
        "beta": as_written(node.attributes.real("beta", 0.0)),
    }
    work.append(node, "lrn", {}, Attributes(keys))
    limits = work.limits(node.inputs[0])
    work.add_internal(node.outputs[0], {"square_sum": None if limits is None else (0.0, max(v * v for v in limits))})


LAYERS = {
    "cumulate": Layer("Cumulate", follows_input, emitted=_cumulate, keeps_whole=True),
    "lrn": Layer(
        "LRN",
        follows_input,
        emitted=(
            ir.Lut(dtype=np.uint16),
            ir.Factors(ir.ADDITIVE, name="of_sum", names="{0}_sum_{1}"),
            ir.Factors(ir.ADDITIVE),
        ),
        internal=Internal(("square_sum",), signed=False),
    ),
    "moments": Layer(
        "Moments",
        never,
        emitted=(ir.Factors(ir.TYPED, names="var_{0}_{1}", output=1), ir.Computed(_emit_moments)),
        passed=(0,),
    ),
    "normalization": Layer(
        "Normalization",
        _normalized,
        emitted=(
            ir.Computed(_emit_roots),
            ir.Factors(ir.TYPED),
            ir.Number("reciprocal_shift_value", "shift", "reciprocal_shift_type"),
        ),
    ),
    "reduce": Layer(
        "Reduce",
        follows_input,
        _reduce,
        _paper_reduce,
        lambda node: _REDUCED.get(node.attributes.text("method"), ()),
        Internal(("power2_sum",), signed=False, methods=("L2",)),
        keeps_whole=True,
        needs_range=_reduce_needs_range,
    ),
    "segment_reduce": Layer("SegmentReduce", _segmented, emitted=(ir.Factors(ir.CURVED, "uint16"),)),
}

# fmt: off
DOCS = (
    Row("4.46", "Moments",
        "m = RNE(mean of quantized values), v = trunc(mean of (q - m)^2), RNE(v * M * 2^-N) - zp_v, r = s_v / s_x^2",
        "g r", tflite="MEAN, SQUARED_DIFFERENCE, MEAN", signed="mean passes; variance unsigned",
        restriction="both keep their axes"),
    Row("4.53", "Reduce", "SUM: r = s_y / s_x; MEAN: / n; PROD halved to 16 bits, r = s_y / s_x^n; MIN, MAX of "
        "quantized values; ANY, ALL of x + zp_x; L1, L2: sums of abs(x + zp_x) or of squares in 16 bits, L2 by a "
        "table of roots", "g(SUM_B, MEAN_B, REDUCE_MIN, REDUCE_ANY) r v",
        tflite="SUM, MEAN, REDUCE_MIN, REDUCE_MAX, REDUCE_PROD, REDUCE_ANY, REDUCE_ALL; SUM of ABS is L1, SQRT of SUM "
        "of squares L2", signed="follows the input; L1, L2 unsigned; MIN, MAX pass; ANY, ALL uint8, s = 1",
        restriction="constant axes"),
    Row("-", "(running sums)", "each RNE(sum * M * 2^-N) - zp_y, r = s_y / s_x in 15 bits; PROD from a float IR",
        "g(CUMSUM) r", layer="Cumulate", tflite="CUMSUM", restriction="constant axis"),
    Row("-", "(response normalization)", "a = clamp(RNE(sum of v^2 * M_s * 2^-N_s)), 16 bits; RNE(v * t(a) * M * "
        "2^-N) - zp_y, t a table of (bias + alpha * u)^-beta", "g r", layer="LRN",
        tflite="LOCAL_RESPONSE_NORMALIZATION"),
    Row("-", "(L2 normalization)",
        "G = isqrt(sum of v^2) by a table of 193 roots, RNE((v * M >> p) * G * 2^-(N + 31 - p - g)) - zp_y", "r",
        layer="Normalization", tflite="L2_NORMALIZATION", signed="signed where x + zp_x can be below 0",
        restriction="L2; no golden case"),
    Row("-", "(segment sums)", "RNE(sum of rows of a segment * M * 2^-N) - zp_y, r = s_y / s_x in 15 bits", "r",
        layer="SegmentReduce", tflite="SEGMENT_SUM",
        signed="follows the input", restriction="SUM; constant segments; no golden case"),
)
# fmt: on
