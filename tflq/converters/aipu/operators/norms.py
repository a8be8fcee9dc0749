"""Layers that normalize over axes: LayerNorm, InstanceNorm, GroupNorm (docs/rules/aipu/operators.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import Layer, Row, always
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import type_of_range
from tflq.converters.aipu.weights import quantize_biases, quantize_weights
from tflq.graph import Affine, Array, DType, Node, Operands, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.imported import multiplier_bits
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.normalization import ROOT_TABLE
from tflq.interpreter.kernels.aipu.norms import NORMALISED_SCALE, NormParams, adjustment, count_of
from tflq.interpreter.kernels.aipu.scales import bits_of, reciprocal, required_constant
from tflq.schemas.aipu import Value


def _normalized(node: Node, operands: Operands, options: LayerOptions) -> Affine:
    """Return the type of the normalized value: +-sqrt(n) * 2^adj, signed, in the mode of the activations."""
    count = count_of(node, operands.input(0))
    largest = float(np.sqrt(count)) * 2.0 ** adjustment(count, options.activation_bits)
    return type_of_range(-largest, largest, options.activation_bits, True, options.is_symmetric, options.restricted)


def _requested(node: Node, operands: Operands, options: LayerOptions) -> dict[str, Attribute]:
    return {NORMALISED_SCALE: float(reciprocal(_normalized(node, operands, options))[0])}


def _constants(node: Node, operands: Operands, options: LayerOptions) -> Mapping[str, Tensor]:
    """Weights and biases of a linear layer on the normalized value, whose zero point is not folded.

    With one scale each channel, the channel is the last axis.
    """
    normalized = replace(_normalized(node, operands, options), zero_point=np.zeros(1, np.int64))
    x = Tensor("", (), DType.INT8, normalized)
    weights, biases = (_channels_first(required_constant(operands, key)) for key in ("weights", "biases"))
    groups = weights.shape[0] if options.per_channel else 0
    found = quantize_weights(weights, x, operands.output(), options, groups if groups > 1 else 0)
    offsets = quantize_biases(biases, found, x, options)
    return {"weights": _channels_last(found), "biases": _channels_last(offsets)}


def _channels_first(constant: Tensor) -> Tensor:
    data = np.ascontiguousarray(np.moveaxis(np.asarray(constant.data), -1, 0))
    return replace(constant, data=data, shape=data.shape)


def _channels_last(constant: Tensor) -> Tensor:
    data = np.ascontiguousarray(np.moveaxis(np.asarray(constant.data), 0, -1))
    data.setflags(write=False)
    affine = constant.affine
    axis = None if affine.axis is None else data.ndim - 1
    return replace(constant, data=data, shape=data.shape, quantization=replace(affine, axis=axis))


def _emit(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, NormParams)
    output = layer.operands.output()
    kind, last = (type_of_multiplier(bits) for bits in (bits_of(output), multiplier_bits(layer.node, output)))
    keys: dict[str, Value] = {
        "var_shift_value": params.variance_shift,
        "var_shift_type": "uint8",
        "norm_scale_value": params.norm.first_m,
        "norm_scale_type": kind,
        "norm_shift_value": params.norm.first_n,
        "norm_shift_type": "int8" if params.is_wide else "uint8",
    }
    constants: dict[str, Array] = {}
    if params.rescale.m.size == 1 and not required_constant(layer.operands, "weights").affine.is_per_axis:
        keys |= ir.factor_keys(ir.LINEAR, params.rescale, last)
    else:
        narrow = last if layer.node.operator != "group_norm" else "uint16"
        constants = {"scale": params.rescale.m.astype(np.dtype(narrow)), "shift": params.rescale.n.astype(np.int8)}
    return ir.Emitted({**constants, "lut": ROOT_TABLE.astype(np.int16)}, keys)


def _read(file: ir.FromFile) -> ir.Params:
    found, norm = file.multiplier(), file.multiplier("norm_{0}_{1}")
    shifts = {"variance_shift": file.numbers("var_shift_value"), "norm_shift": file.numbers("norm_shift_value")}
    given: ir.Params = {key: value for key, value in shifts.items() if value is not None}
    given = given if found is None else {**given, "rescale": found}
    return given if norm is None else {**given, "norm": norm}


LAYERS = {
    operator: Layer(
        name, always, emitted=(ir.Computed(_emit, _read),), constants=_constants, requested=_requested, has_width=True
    )
    for operator, name in (
        ("group_norm", "GroupNorm"),
        ("instance_norm", "InstanceNorm"),
        ("layer_norm", "LayerNorm"),
    )
}

# fmt: off
DOCS = (
    Row("-", "(layer norms)", "u = RNE((q - m) * g * 2^-(8 + n)), g = isqrt(sum (q - m)^2 >> v) by the table of 193 "
        "roots; RNE((w * u + b) * M * 2^-N) - zp_y", "v", layer="LayerNorm, InstanceNorm, GroupNorm",
        tflite="none (norms that are written out)",
        restriction="more than 4 elements at 8 bits; test_more_layers.py"),
)
# fmt: on
