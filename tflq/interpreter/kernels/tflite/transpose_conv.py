"""TRANSPOSE_CONV in TFLite's integer arithmetic: int8, uint8, int16 with int8 weights (docs/tflite.md).

total = sum of (w - zw) * (x - zi) over the taps that meet, + bias; then as CONV_2D (quantised_convolution.py): MBQ with
the multiplier of each channel; int16 has int64 accumulators and MBQ64 unless quantized_bias_type is int32. zw counts
for uint8 only. float32 with int8 weights: hybrid_transpose_conv.py.

Source: TFLite kernels/transpose_conv.cc, internal/reference/integer_ops/transpose_conv.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.transposed import (
    Transposed,
    TransposedWindow,
    accumulate_transposed,
    prepare_transposed,
)
from tflq.interpreter.kernels.float import transpose_conv as float_kernel
from tflq.interpreter.kernels.float.transpose_conv import FloatTransposeConv
from tflq.interpreter.kernels.tflite.hybrid_transpose_conv import HybridTransposeConv, lower_hybrid, run_hybrid
from tflq.interpreter.kernels.tflite.quantised_convolution import effective_scale
from tflq.interpreter.kernels.tflite.rescale import Rounding, make_rule, require_bias_scale
from tflq.interpreter.kernels.tflite.weighted import LayerConstants, WeightedLayer, make_constants, with_constants
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_symmetric, require_type
from tflq.interpreter.operands.windows import transposed_window


@dataclass(frozen=True, eq=False)
class TransposeConv(WeightedLayer[Transposed]):
    """The params of one TRANSPOSE_CONV.

    Attributes:
        place: window and output size.
        input_bounds: smallest and largest x - zi.
    """

    place: TransposedWindow
    input_bounds: tuple[int, int]

    def make(self, weights: Array, bias: Array | None, fit: bool) -> LayerConstants[Transposed]:
        """Return the constants of weights [O, KH, KW, C] and a bias, as `make_constants`."""

        def pack(shifted: Array, magnitude: int) -> Transposed:
            return prepare_transposed(shifted, self.place, magnitude)

        return make_constants(self.rule, self.input_bounds, (0, self.weights_zero_point), weights, bias, pack, fit)

    def compute(self, constants: LayerConstants[Transposed], x: Array) -> Array:
        """Return the quantized values of x."""
        shifted = x.astype(np.int32) - self.input_zero_point
        return constants.rescale.apply(accumulate_transposed(constants.prepared, shifted))


def lower(node: Node, operands: Operands) -> TransposeConv | HybridTransposeConv | FloatTransposeConv:
    """Decide the params; float32 is left to its own kernel (the first input, a shape, does not tell).

    Raises:
        UnsupportedError: types or quantisation that TFLite's kernel does not take.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    weights, x, bias, output = operands.input(1), operands.input(2), operands.optional(3), operands.output()
    if x.dtype is DType.FLOAT32 and weights.dtype is DType.INT8:
        return lower_hybrid(node, operands)
    if x.dtype is DType.FLOAT32:
        return float_kernel.lower(node, operands)
    dtype = require_type(x, (*EIGHT_BITS, DType.INT16))
    require_same_type(x, output)
    require_type(weights, (DType.UINT8,) if dtype is DType.UINT8 else (DType.INT8,))
    if dtype is DType.INT16:
        require_symmetric(x, output)
    wide = dtype is DType.INT16 and node.attributes.text("quantized_bias_type", "float32") != "int32"
    if bias is not None:
        require_type(bias, (DType.INT64,) if wide else (DType.INT32,))
        if dtype is DType.UINT8:
            require_bias_scale(x, weights, bias, output)
    zi = per_tensor(x)[1]
    zw = per_tensor(weights)[1] if dtype is DType.UINT8 else 0
    place = transposed_window(node, operands)
    scale = effective_scale(x, weights, output, weights.shape[0])
    rounding, bits = (Rounding.SINGLE_64, 64) if wide else (Rounding.DOUBLE, 32)
    bounds = (min(dtype.minimum - zi, 0), max(dtype.maximum - zi, 0))
    layer = TransposeConv(zi, zw, make_rule(node, output, scale, rounding, bits), None, place, bounds)
    return with_constants(layer, weights.data, bias)


def run(
    params: TransposeConv | HybridTransposeConv | FloatTransposeConv,
    _shape: Array,
    weights: Array,
    x: Array,
    bias: Array | None = None,
) -> tuple[Array, ...]:
    """Run TRANSPOSE_CONV: weights [S or 1, O, KH, KW, C], x [S, N, H, W, C], bias [S or 1, O] -> [S, N, OH, OW, O]."""
    if isinstance(params, HybridTransposeConv):
        return run_hybrid(params, weights, x, bias)
    if isinstance(params, FloatTransposeConv):
        return float_kernel.run(params, _shape, weights, x, bias)
    return (params.run(x, weights, bias),)
