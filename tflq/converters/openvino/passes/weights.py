"""Weights as signed symmetric codes: the file's own where they can be written so, else quantised here."""

from __future__ import annotations

import numpy as np

from tflq.converters.openvino.options import LayerOptions
from tflq.converters.passes.rewrite import channel_maxima, constant
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, DType, Tensor
from tflq.graph.quantisation import FloatArray


def weight_codes(source: Tensor, real: Tensor, channel_axis: int, layer: LayerOptions) -> Tensor:
    """Return constant weights as quantized values with zero points of 0.

    Quantized values of a file stay what they are, its zero points taken off: uint8 with 128 becomes int8. Else, for
    each output channel or for all: S = max|w| / (2^(bits-1) - 1), q = round half even(w / S). Channels of zeros get S =
    1.

    Args:
        source: as the file has it.
        real: float32.
        channel_axis: of the output channels.
        layer: bits and granularity.

    Raises:
        UnsupportedError: a file's quantized values without their zero points leave int8.
        GraphError: weights that are computed at run time or not finite; a scale that is not positive and finite.
    """
    if real.data is None:
        raise UnsupportedError(f"weights '{real.name}' are computed at run time; the runtime's int8 needs constants")
    affine = source.quantisation
    if isinstance(affine, Affine) and source.data is not None and affine.bits <= layer.weight_bits:
        return _own(source, source.data, affine)
    values = np.asarray(real.data, np.float64)
    if not np.isfinite(values).all():
        found = np.argwhere(~np.isfinite(values))[0]
        place = tuple(int(i) for i in found)
        raise GraphError(f"weights '{real.name}' are {values[place]} at {place}; weights are finite")
    return _quantised(real, values, channel_axis, layer)


def _own(source: Tensor, data: Array, affine: Affine) -> Tensor:
    bad = ~(np.isfinite(affine.scale) & (affine.scale > 0))
    if bad.any():
        raise GraphError(
            f"weights '{source.name}' have scale {affine.scale[bad][0]} in channel {int(np.argmax(bad))}; scales are "
            f"positive and finite"
        )
    _, zero_point = affine.along(data.ndim)
    codes = data.astype(np.int64) - zero_point
    if codes.size and (codes.min() < -128 or codes.max() > 127):
        raise UnsupportedError(
            f"weights '{source.name}' are asymmetric: without zero point they reach {codes.min()}..{codes.max()}, "
            f"beyond int8, and OpenVINO's CPU plug-in executes weights with zero points in f32; convert the float "
            f"model, or leave the layer float (precision=float)"
        )
    count = affine.scale.size
    kept = Affine(affine.scale, np.zeros(count, np.int64), affine.axis if count > 1 else None, 8)
    return _constant(source.name, codes, kept)


def _quantised(real: Tensor, values: FloatArray, channel_axis: int, layer: LayerOptions) -> Tensor:
    largest = channel_maxima(values, channel_axis if layer.per_channel else None)
    top = (1 << (layer.weight_bits - 1)) - 1
    scale = np.where(largest > 0, largest / top, 1.0).astype(np.float32)
    # A range below the smallest float32 steps would have a scale of zero.
    scale = np.maximum(scale, np.finfo(np.float32).tiny)
    zeros = np.zeros(scale.size, np.int64)
    affine = Affine(scale, zeros, channel_axis if scale.size > 1 else None, layer.weight_bits)
    codes = np.clip(np.rint(values / affine.along(values.ndim)[0].astype(np.float64)), -top - 1, top)
    return _constant(real.name, codes, affine)


def _constant(name: str, codes: Array, affine: Affine) -> Tensor:
    return constant(name, codes.astype(np.int8), affine, DType.INT4 if affine.bits == 4 else DType.INT8)
