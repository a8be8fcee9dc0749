"""FULLY_CONNECTED in TFLite's integer arithmetic: int8, uint8, int16 with 8-bit weights (docs/tflite.md).

total = sum of (w - zw) * (x - zi) + bias; y = clamp(round_half_away(float64(total) * (si * sw / so)) + zo), the scale
in float64: the reference kernels use no fixed-point multiplier here. zw counts only where weights have one scale.
Accumulators are int32 and wrap; int16 has int64 ones unless quantized_bias_type is int32.

Source: TFLite kernels/fully_connected.cc, internal/reference/integer_ops/fully_connected.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, accumulator_range, prepare_product
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.fully_connected_shapes import check_shapes, output_shape, require_clipping
from tflq.interpreter.kernels.tflite.bias_scale import require_bias_scale
from tflq.interpreter.kernels.tflite.hybrid_fully_connected import (
    HybridFullyConnected,
    is_hybrid,
    lower_hybrid,
    run_hybrid,
)
from tflq.interpreter.kernels.tflite.rescale import Rescale, Rounding, Rule, make_rescale, make_rule
from tflq.interpreter.operand_checks import (
    EIGHT_BITS,
    per_tensor,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)

SIGNED_WEIGHTS = (DType.INT8, DType.INT4, DType.INT2)


@dataclass(frozen=True, eq=False)
class LayerConstants:
    """What follows from weights and bias.

    Attributes:
        weights: integers [O, K], their zero point taken off.
        bias: int64[O] as in the file, zeros where there is none.
        rescale: rule, folded bias, proven map.
        prepared: the weights made ready for accumulation.
    """

    weights: Array
    bias: Integers
    rescale: Rescale
    prepared: MatrixProduct


@dataclass(frozen=True, eq=False)
class FullyConnected:
    """The integers of one FULLY_CONNECTED.

    Attributes:
        input_dtype: of the input.
        input_zero_point: zi.
        weights_zero_point: zw; 0 where weights are quantised per channel.
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
        rule: how totals become codes.
        constants: None where weights or bias are computed at run time.
    """

    input_dtype: DType
    input_zero_point: int
    weights_zero_point: int
    keep_dimensions: bool
    rule: Rule
    constants: LayerConstants | None


def lower(node: Node, operands: Operands) -> FullyConnected | HybridFullyConnected:
    """Decide the integers of FULLY_CONNECTED; float inputs are those of hybrid_fully_connected.py.

    Raises:
        UnsupportedError: types or quantisation that TFLite's kernel does not take, or shuffled weights.
        GraphError: shapes that contradict each other.
    """
    if is_hybrid(operands):
        return lower_hybrid(node, operands)
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    dtype = require_type(x, (*EIGHT_BITS, DType.INT16))
    require_same_type(x, output)
    require_type(weights, (DType.UINT8,) if dtype is DType.UINT8 else SIGNED_WEIGHTS)
    layout = node.attributes.text("weights_format", "default")
    if layout != "default":
        raise UnsupportedError(f"weights_format '{layout}'; the kernel takes 'default' only")
    require_clipping(node)
    if dtype is DType.INT16:
        require_zero_points_of_zero(x, output)
    bits = _accumulator_bits(node, dtype, bias)
    if bias is not None and not weights.affine.is_per_axis:
        require_bias_scale(x, weights, bias, output)
    rule = make_rule(node, output, _scale(x, weights, output), Rounding.REAL, bits)
    keep = check_shapes(node, x, weights)
    zw = 0 if weights.affine.is_per_axis else int(weights.affine.zero_point[0])
    layer = FullyConnected(dtype, per_tensor(x)[1], zw, keep, rule, None)
    if weights.data is None or (bias is not None and bias.data is None):
        return layer
    made = _make_constants(layer, weights.data, None if bias is None else bias.data, fit=True)
    return FullyConnected(dtype, layer.input_zero_point, zw, keep, rule, made)


def run(
    integers: FullyConnected | HybridFullyConnected, x: Array, weights: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    """Run FULLY_CONNECTED: T[S, ..., K], weights [O, K], bias [O] -> T[S, rows, O], or T[S, ..., O] with axes kept."""
    if isinstance(integers, HybridFullyConnected):
        return run_hybrid(integers, x, weights, bias)
    shape = output_shape(x.shape, weights.shape[1:], integers.keep_dimensions)
    if integers.constants is not None:
        return (_multiply(integers.constants, x).reshape(shape),)
    own = max(x.shape[0], weights.shape[0], 1 if bias is None else bias.shape[0])
    samples = []
    for s in range(own):
        made = _make_constants(
            integers, weights[s % len(weights)], None if bias is None else bias[s % len(bias)], False
        )
        samples.append(_multiply(made, x[s % len(x)][None]))
    return (np.concatenate(samples).reshape(own, *shape[1:]),)


def _multiply(made: LayerConstants, x: Array) -> Array:
    rows = x.reshape(x.shape[0], -1, made.weights.shape[1])
    return made.rescale.apply(accumulate_product(made.prepared, rows))


def _make_constants(layer: FullyConnected, weights: Array, bias: Array | None, fit: bool) -> LayerConstants:
    shifted = weights if layer.weights_zero_point == 0 else weights.astype(np.int16) - layer.weights_zero_point
    outputs = weights.shape[0]
    plain = np.zeros(outputs, np.int64) if bias is None else bias.astype(np.int64).reshape(-1)
    if plain.shape[0] != outputs:
        raise GraphError(f"the bias has {plain.shape[0]} elements, the weights have {outputs} rows")
    folded = plain - layer.input_zero_point * shifted.astype(np.int64).sum(axis=1)
    low, high = layer.input_dtype.minimum, layer.input_dtype.maximum
    rescale = (
        make_rescale(layer.rule, folded, *accumulator_range(shifted, low, high))
        if fit
        else Rescale(layer.rule, folded, None)
    )
    return LayerConstants(shifted, plain, rescale, prepare_product(shifted, max(-low, high)))


def _scale(x: Tensor, weights: Tensor, output: Tensor) -> NDArray[np.float64]:
    si, so = per_tensor(x)[0], per_tensor(output)[0]
    sw, outputs = weights.affine.scale.astype(np.float32), weights.shape[0]
    if sw.size not in (1, outputs):
        raise GraphError(f"weights '{weights.name}' have {sw.size} scales; allowed are 1 or {outputs}")
    scale: NDArray[np.float64] = np.float64(si) * sw.astype(np.float64) / np.float64(so)
    return np.array(np.broadcast_to(scale, (outputs,)))


def _accumulator_bits(node: Node, dtype: DType, bias: Tensor | None) -> int:
    if dtype in EIGHT_BITS:
        if bias is not None:
            require_type(bias, (DType.INT32,))
        return 32
    stated = node.attributes.text("quantized_bias_type", "float32")
    if bias is not None:
        require_type(bias, (DType.INT32,) if stated == "int32" else (DType.INT64,))
    return 32 if stated == "int32" else 64
