"""TRANSPOSE_CONV in TFLite's integer arithmetic, and of float32 activations with int8 weights.

Source: docs/rules/tflite/index.md.

Float32 activations with int8 weights: each image is quantized as one row with a zero point (hybrid.py). Every product
is converted to float32 separately: total = f32(total + f32(f32(f32((q - z) w) sw[o]) * scale of the image)), in the
order of accumulate/transposed.py; then the bias and the clamp. Source: TFLite kernels/transpose_conv.cc (EvalHybrid),
internal/reference/transpose_conv.h.

TRANSPOSE_CONV: total = sum of (w - zw) * (x - zi) over the taps that meet, + bias; then as CONV_2D
(quantized_convolution.py): MBQ with the multiplier of each channel; int16 has int64 accumulators and MBQ64 unless
quantized_bias_type is int32. zw counts for uint8 only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.transposed import (
    Transposed,
    TransposedWindow,
    accumulate_transposed,
    prepare_transposed,
)
from tflq.interpreter.kernels.float.convolution import finish, float_bounds
from tflq.interpreter.kernels.float.products import FloatTransposeConv, lower_transpose_conv, run_transpose_conv
from tflq.interpreter.kernels.tflite.hybrid import quantize_asymmetric
from tflq.interpreter.kernels.tflite.rescale import Rounding, effective_scale, make_rule, require_bias_scale
from tflq.interpreter.kernels.tflite.weighted import LayerConstants, WeightedLayer, make_constants, with_constants
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_symmetric, require_type
from tflq.interpreter.operands.windows import transposed_window
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import each_sample


@dataclass(frozen=True, eq=False)
class HybridTransposeConv:
    """The params of a hybrid TRANSPOSE_CONV.

    Attributes:
        place: window and output size.
        scale: Scales of the weights: float32[O].
        minimum: lower bound of the fused activation; without one the smallest finite number.
        maximum: upper bound.
    """

    place: TransposedWindow
    scale: Singles
    minimum: np.float32
    maximum: np.float32


def lower_hybrid(node: Node, operands: Operands) -> HybridTransposeConv:
    """Check the operands.

    Raises:
        UnsupportedError: types other than float32 with int8 weights, or scales that fit no channel.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    weights, x, bias = operands.input(1), operands.input(2), operands.optional(3)
    require_type(weights, (DType.INT8,))
    for tensor in (x, operands.output(), *(() if bias is None else (bias,))):
        require_type(tensor, (DType.FLOAT32,))
    place = TransposedWindow(*transposed_window(node, operands))
    scale, outputs = weights.affine.scale.astype(np.float32), weights.shape[0]
    if scale.size not in (1, outputs):
        raise UnsupportedError(f"weights '{weights.name}' have {scale.size} scales; allowed are 1 or {outputs}")
    return HybridTransposeConv(place, np.array(np.broadcast_to(scale, (outputs,))), *float_bounds(node))


def run_hybrid(layer: HybridTransposeConv, weights: Array, x: Array, bias: Array | None) -> tuple[Array, ...]:
    """Run it: weights int8[S or 1, O, KH, KW, C], x float32[S, N, H, W, C], bias [O] -> float32[S, N, OH, OW, O]."""
    images = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        if len(weights) == 1:
            total = _convolve(layer, weights[0], images)
        else:
            total = np.concatenate(
                [_convolve(layer, w[0], cast(Singles, image)) for image, w, _ in each_sample(images, weights, None)]
            )
        added = None if bias is None else np.asarray(bias, np.float32)
        return (finish(total, added, layer.minimum, layer.maximum),)


def _convolve(layer: HybridTransposeConv, weights: Array, x: Singles) -> Singles:
    rows = quantize_asymmetric(x.reshape(*x.shape[:2], -1))
    codes = rows.codes.reshape(x.shape).astype(np.float32)
    codes -= rows.zero_point.astype(np.float32)[:, :, None, None, None]
    image = rows.scale[:, :, None, None, None]
    taps = np.asarray(weights, np.float32)
    total = np.zeros((*x.shape[:2], *layer.place.output, weights.shape[0]), np.float32)
    for ky, kx, source, target in layer.place.taps((x.shape[2], x.shape[3])):
        seen, pixels = total[target], codes[source]
        for c in range(x.shape[-1]):
            seen += pixels[..., c, None] * taps[:, ky, kx, c] * layer.scale * image
    return total


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


def _lower_transpose_conv(
    node: Node, operands: Operands, rounding: Rounding = Rounding.DOUBLE
) -> TransposeConv | HybridTransposeConv | FloatTransposeConv:
    """Decide the params; float32 is left to its own kernel (the first input, a shape, does not determine the type).

    Raises:
        UnsupportedError: types or quantization that TFLite's kernel does not take.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    weights, x, bias, output = operands.input(1), operands.input(2), operands.optional(3), operands.output()
    if x.dtype is DType.FLOAT32 and weights.dtype is DType.INT8:
        return lower_hybrid(node, operands)
    if x.dtype is DType.FLOAT32:
        return lower_transpose_conv(node, operands)
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
    place = TransposedWindow(*transposed_window(node, operands))
    chosen, bits = (Rounding.SINGLE_64, 64) if wide else (Rounding.DOUBLE, 32)
    if dtype is DType.INT8 or (dtype is DType.UINT8 and rounding is not Rounding.UP_BY_EIGHT):
        chosen = rounding
    scale = effective_scale(x, weights, output, weights.shape[0], chosen, product_in_float32=dtype is DType.UINT8)
    bounds = (min(dtype.minimum - zi, 0), max(dtype.maximum - zi, 0))
    layer = TransposeConv(zi, zw, make_rule(node, output, scale, chosen, bits), None, place, bounds)
    return with_constants(layer, weights.data, bias)


def _run_transpose_conv(
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
        return run_transpose_conv(params, _shape, weights, x, bias)
    return (params.run(x, weights, bias),)


KERNELS = {
    "transpose_conv": Kernel(_lower_transpose_conv, _run_transpose_conv,
        "TRANSPOSE_CONV in TFLite's integer arithmetic: int8, uint8, int16 with int8 weights "
            "(docs/rules/tflite/index.md)",
        "TFLite kernels/transpose_conv.cc, internal/reference/integer_ops/transpose_conv.h"),
}  # fmt: skip
