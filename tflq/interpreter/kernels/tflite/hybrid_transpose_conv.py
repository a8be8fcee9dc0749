"""TRANSPOSE_CONV of float32 activations with int8 weights (docs/tflite.md).

Each image is quantised as one row with a zero point (hybrid.py). Every product goes to float32 by itself:
total = f32(total + f32(f32(f32((q - z) w) sw[o]) * scale of the image)), in the order of accumulate/transposed.py; then
the bias and the clamp. Source: TFLite kernels/transpose_conv.cc (EvalHybrid), internal/reference/transpose_conv.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.transposed import TransposedWindow
from tflq.interpreter.kernels.float.convolution import finish, float_bounds
from tflq.interpreter.kernels.tflite.hybrid import quantize_asymmetric
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.windows import transposed_window


@dataclass(frozen=True, eq=False)
class HybridTransposeConv:
    """What a hybrid TRANSPOSE_CONV needs.

    Attributes:
        place: window and output size.
        scale: of the weights: float32[O].
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
    place = transposed_window(node, operands)
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
            each = [_convolve(layer, w, images[s % len(images)][None]) for s, w in enumerate(weights)]
            total = np.concatenate(each)
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
