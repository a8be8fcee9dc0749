"""CONV_2D and DEPTHWISE_CONV_2D of TFLite: integers, and float32 activations with integer weights.

Source: docs/rules/tflite/index.md.

Float32 activations: each image is quantized as one row (hybrid.py). If all weight scales are equal and there is one
group, CONV_2D quantizes symmetrically and y = clamp(f32(f32(f32(acc) * f32(scale of image * sw)) + bias)). Else inputs
get a zero point, and y = clamp(f32(f32(f32(f32(acc) * sw[o]) * scale of image) + bias)); DEPTHWISE_CONV_2D multiplies
f32(acc) * f32(sw[o] * scale of image) instead. The attribute asymmetric_quantize_inputs plays no part.

Integers of 8 bits, and int16 with 8-bit weights: groups and dilation included. Output channel c * multiplier + m of a
depthwise convolution reads input channel c; the multiplier follows from the shapes: the reference kernel ignores the
attribute `depth_multiplier`. Its int16 has int64 accumulators only. The arithmetic is in quantized_convolution.py.

Source: TFLite kernels/conv.cc (EvalHybrid, EvalHybridPerChannel), depthwise_conv.cc (EvalHybridPerChannel),
internal/reference/conv.h and integer_ops/depthwise_conv.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import Convolution, accumulate_convolution, prepare_convolution
from tflq.interpreter.kernels.float.convolution import finish, float_bounds
from tflq.interpreter.kernels.tflite.hybrid import quantize_rows, signed_weights
from tflq.interpreter.kernels.tflite.quantized_convolution import (
    QuantizedConvolution,
    as_grouped,
    gain_of_samples_last,
    lower_convolution,
    run_convolution,
)
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.operands.checks import meets_integer_weights, require_bias_size, require_type
from tflq.interpreter.operands.sliding_windows import Window, require_convolved, window_of
from tflq.interpreter.operands.windows import groups_of, require_strides
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import each_sample

_LARGEST_SHIFTED_CODE = np.iinfo(np.uint8).max


class Scaling(Enum):
    """In which order an accumulator meets the scales."""

    IMAGE_TIMES_WEIGHTS = "acc * (image * weights)"
    WEIGHTS_THEN_IMAGE = "(acc * weights) * image"


@dataclass(frozen=True, eq=False)
class HybridConvolution:
    """The params of a hybrid convolution.

    Attributes:
        window: kernel, stride, dilation, padding.
        groups: number of groups.
        asymmetric: whether images get a zero point.
        scaling: order of the products.
        scale: Scale of the weights: float32[1] or float32[O].
        wrong_signs: whether blocks of sixteen columns lose the sign of -128 (hybrid.py).
        minimum: lower bound of the fused activation.
        maximum: upper bound.
        prepared: constant weights packed, and the places of -128; None if they are computed at run time.
    """

    window: Window
    groups: int
    asymmetric: bool
    scaling: Scaling
    scale: Singles
    wrong_signs: bool
    minimum: np.float32
    maximum: np.float32
    prepared: tuple[Convolution, Convolution | None] | None


def lower_hybrid(node: Node, operands: Operands, depthwise: bool) -> HybridConvolution:
    """Check the operands and prepare constant weights.

    Raises:
        UnsupportedError: other types, or quantization that makes TFLite read beyond its scales.
        GraphError: shapes that contradict each other.
    """
    x, weights, bias = operands.input(0), operands.input(1), operands.optional(2)
    for tensor in (x, operands.output(), *(() if bias is None else (bias,))):
        require_type(tensor, (DType.FLOAT32,))
    require_type(weights, (DType.INT8,) if depthwise else (DType.INT8, DType.INT4, DType.UINT8))
    groups, outputs = groups_of(x, weights, depthwise)
    require_bias_size(bias, outputs)
    scale = weights.affine.scale.astype(np.float32)
    symmetric = not depthwise and groups == 1 and bool((scale == scale[0]).all() or weights.dtype is DType.UINT8)
    if not symmetric and scale.size != outputs:
        raise UnsupportedError(
            f"weights '{weights.name}' have {scale.size} scales; float inputs with "
            f"{'depthwise' if depthwise else 'grouped'} weights take one for each of the {outputs} output channels"
        )
    low, high = float_bounds(node)
    window = window_of(node.attributes, (x.shape[1], x.shape[2]), (weights.shape[1], weights.shape[2]))
    require_convolved(window, x.shape, outputs)
    scaling = Scaling.IMAGE_TIMES_WEIGHTS if depthwise or symmetric else Scaling.WEIGHTS_THEN_IMAGE
    used = scale[:1] if symmetric else scale
    wrong_signs = symmetric and outputs % 4 != 0
    layer = HybridConvolution(window, groups, not symmetric, scaling, used, wrong_signs, low, high, None)
    if weights.data is None:
        return layer
    grouped = _as_grouped(weights.data, depthwise)
    made = _prepare(layer, grouped)
    return HybridConvolution(window, groups, not symmetric, scaling, used, wrong_signs, low, high, made)


def run_hybrid(
    layer: HybridConvolution, x: Array, weights: Array, bias: Array | None, depthwise: bool
) -> tuple[Array, ...]:
    """Run it: float32[S, N, H, W, C], weights, bias [O] -> float32[S, N, OH, OW, O]."""
    if layer.prepared is not None:
        return (_convolve(layer, layer.prepared, x, bias),)
    made = [_prepare(layer, _as_grouped(w, depthwise)) for w in weights]
    each = [
        _convolve(layer, made[s % len(made)], image, added)
        for s, (image, _, added) in enumerate(each_sample(x, weights, bias))
    ]
    return (np.concatenate(each),)


def _convolve(
    layer: HybridConvolution, made: tuple[Convolution, Convolution | None], x: Array, bias: Array | None
) -> Array:
    quantized = quantize_rows(cast(Singles, x).reshape(*x.shape[:2], -1), layer.asymmetric)
    codes = quantized.codes.reshape(x.shape)
    image = quantized.scale[:, :, None, None, None]
    if layer.asymmetric:  # a padded tap is then zero
        codes = codes - quantized.zero_point.astype(np.int16)[:, :, None, None, None]
    total = accumulate_convolution(made[0], codes, 0)
    if made[1] is not None:
        extra = accumulate_convolution(made[1], np.minimum(codes, 0), 0)
        total = total.astype(np.int64) + 256 * extra.astype(np.int64)
    with np.errstate(all="ignore"):
        real = total.astype(np.float32, copy=False)  # no other reference to it exists
        if layer.scaling is Scaling.IMAGE_TIMES_WEIGHTS:
            real *= image * layer.scale
        else:
            real *= layer.scale
            real *= image
        added: Singles = np.zeros((1, 1), np.float32) if bias is None else cast(Singles, bias) + np.float32(0)
        return finish(real, added, layer.minimum, layer.maximum)  # the addend is no -0.0, so no sum is


def _prepare(layer: HybridConvolution, weights: Array) -> tuple[Convolution, Convolution | None]:
    main = prepare_convolution(weights, layer.window, layer.groups, _LARGEST_SHIFTED_CODE)
    if not layer.wrong_signs:
        return main, None
    flat = weights.reshape(len(weights), -1)
    lowest = flat == np.iinfo(np.int8).min
    lowest[:, flat.shape[1] // 16 * 16 :] = False
    if not lowest.any():
        return main, None
    marked = lowest.astype(np.int8).reshape(weights.shape)
    return main, prepare_convolution(marked, layer.window, layer.groups, _LARGEST_SHIFTED_CODE)


def _as_grouped(weights: Array, depthwise: bool) -> Array:
    """Bring depthwise weights [1, KH, KW, O] to [O, KH, KW, 1]; others stay."""
    signed = signed_weights(weights)
    return np.swapaxes(signed, 0, 3) if depthwise else signed


_Params = QuantizedConvolution | HybridConvolution


def _lower_conv_2d(node: Node, operands: Operands, rounding: Rounding = Rounding.DOUBLE) -> _Params:
    require_strides(node)
    if meets_integer_weights(operands):
        return lower_hybrid(node, operands, depthwise=False)
    return lower_convolution(node, operands, False, allow_int32_bias_for_int16=True, rounding_of_8_bits=rounding)


def _run_conv_2d(params: _Params, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    if isinstance(params, HybridConvolution):
        return run_hybrid(params, x, weights, bias, depthwise=False)
    return run_convolution(params, x, weights, bias)


def _lower_depthwise(node: Node, operands: Operands, rounding: Rounding = Rounding.DOUBLE) -> _Params:
    if meets_integer_weights(operands):
        return lower_hybrid(node, operands, depthwise=True)
    return lower_convolution(node, operands, True, allow_int32_bias_for_int16=False, rounding_of_8_bits=rounding)


def _run_depthwise(params: _Params, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    if isinstance(params, HybridConvolution):
        return run_hybrid(params, x, weights, bias, depthwise=True)
    own = weights if params.constants else as_grouped(weights, channels_last=True)  # constants are packed already
    return run_convolution(params, x, own, bias)


def _samples_last(params: object, operands: Operands) -> float | None:
    return gain_of_samples_last(params, operands) if isinstance(params, QuantizedConvolution) else None


KERNELS = {
    "conv_2d": Kernel(_lower_conv_2d, _run_conv_2d,
        "T[S, N, H, W, C], weights [O, KH, KW, C/groups], bias [O] -> T[S, N, OH, OW, O]",
        "TFLite kernels/internal/reference/integer_ops/conv.h, reference/conv.h (uint8), kernels/conv.cc (EvalHybrid)",
        samples_last=_samples_last),
    "depthwise_conv_2d": Kernel(_lower_depthwise, _run_depthwise,
        "T[S, N, H, W, C], weights [1, KH, KW, O], bias [O] -> T[S, N, OH, OW, O]",
        "TFLite kernels/internal/reference/integer_ops/depthwise_conv.h, reference/depthwiseconv_uint8.h (uint8), "
        "kernels/depthwise_conv.cc (EvalHybridPerChannel)",
        samples_last=_samples_last),
}  # fmt: skip
