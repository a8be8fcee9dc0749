"""Scales and zero points that no kernel can compute with: refused once, in front of every kernel that uses them."""

from __future__ import annotations

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Affine, Operands, Tensor

_WIDEST_BITS = 16
"""Zero points of wider types (biases) are read by no kernel."""


def require_sound_scales(operands: Operands) -> None:
    """Check the affine quantisation of every integer operand.

    TFLite does not look: a scale of 0, below 0, infinite or NaN, or a zero point outside the type, gives results there
    that stand for nothing. A scale of 0 is sound in a constant whose elements are all its zero point: TFLiteConverter
    writes the first state of unrolled LSTMs so (16x8).

    Raises:
        GraphError: a scale is not a positive finite number, or a zero point is no value of the type.
    """
    for tensor in (*operands.inputs, *operands.outputs):
        if tensor is not None:
            require_sound_tensor(tensor)


def require_sound_tensor(tensor: Tensor) -> None:
    """Check the affine quantisation of one tensor, where it has one and holds integers.

    Raises:
        GraphError: as `require_sound_scales`.
    """
    affine = tensor.quantisation
    if not isinstance(affine, Affine) or not tensor.dtype.is_integer:
        return
    bad = ~(np.isfinite(affine.scale) & (affine.scale > 0))
    if tensor.data is not None and not affine.is_per_axis and affine.scale[0] == 0:
        bad = np.array([bool((tensor.data != affine.zero_point[0]).any())])  # all zeros: every product vanishes
    if bad.any():
        raise GraphError(
            f"tensor '{tensor.name}' has scale {affine.scale[bad][0]}{_channel(affine, bad)}; "
            f"scales are positive and finite"
        )
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    outside = (affine.zero_point < low) | (affine.zero_point > high)
    if outside.any() and tensor.dtype.bits <= _WIDEST_BITS:
        raise GraphError(
            f"tensor '{tensor.name}' has zero point {affine.zero_point[outside][0]}{_channel(affine, outside)}; "
            f"those of {tensor.dtype.value} are {low}..{high}"
        )


def _channel(affine: Affine, marked: np.ndarray) -> str:
    return f" in channel {int(np.argmax(marked))}" if affine.is_per_axis else ""
