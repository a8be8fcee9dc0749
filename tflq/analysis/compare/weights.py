"""How the weights of one side stand to those of the other, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.analysis.compare.tally import sqnr_db
from tflq.analysis.executions import real_values
from tflq.arrays import Doubles
from tflq.graph import Affine, Tensor

_OFF = 0.02
"""Channels whose weights are so much larger or smaller than the reference's have another factor."""
_NOISE = 2.0
"""Times the step's own rounding that may be left once the factor is taken off: then nothing else differs."""
_NARROW_BITS = 4
"""Channels that lose more bits than this to the largest one need a scale of their own."""


@dataclass(frozen=True)
class WeightFigures:
    """What differs in the weights of one layer.

    Attributes:
        sqnr_db: of the first side's weights against the second's.
        factors: (channel, w / reference) of those whose weights are the reference's times one number, not 1.
        narrow: channels that use less than 1/16 of the quantized values, where another one uses all.
    """

    sqnr_db: float
    factors: tuple[tuple[int, float], ...]
    narrow: tuple[int, ...]


def weight_figures(ours: Tensor, theirs: Tensor, channel_axis: int) -> WeightFigures | None:
    """Compare the weights of a layer; None where both are the same.

    Channel c has the factor r = <w, v> / <v, v>, w ours and v theirs, if |r - 1| > 0.02, the mean of (w - r v)^2 is at
    most twice what rounding to our steps gives, s^2 / 12, and that of (w - v)^2 is more than 4 times.

    Args:
        ours: the first side's constant.
        theirs: the reference's, of the same shape.
        channel_axis: that counts the output channels.
    """
    x, y = (_real(t) for t in (ours, theirs))
    noise = float(np.square(x - y).sum())
    if not noise:
        return None
    w, v = (np.moveaxis(a, channel_axis, 0).reshape(a.shape[channel_axis], -1) for a in (x, y))
    power = np.square(v).sum(axis=1)
    ratio = np.divide((w * v).sum(axis=1), power, out=np.ones(len(w)), where=power > 0)
    left = np.square(w - ratio[:, None] * v).mean(axis=1)
    step = _steps(ours, len(w))
    allowed = _NOISE * np.square(step) / 12 + np.square(1e-5 * np.abs(v).max(axis=1, initial=0))
    is_rounding = np.square(w - v).mean(axis=1) <= 2 * allowed
    is_off = (np.abs(ratio - 1) > _OFF) & (left <= allowed) & ~is_rounding & (power > 0)
    factors = tuple((int(c), float(ratio[c])) for c in np.flatnonzero(is_off))
    return WeightFigures(sqnr_db(float(np.square(y).sum()), noise), factors, _narrow(ours, w))


def _real(tensor: Tensor) -> Doubles:
    assert tensor.data is not None
    real: Doubles = real_values(tensor.data[None], tensor)
    return real.reshape(tensor.data.shape)


def _steps(tensor: Tensor, channels: int) -> Doubles:
    if not isinstance(tensor.quantisation, Affine) or not tensor.dtype.is_integer:
        return np.zeros(channels)
    scale = np.asarray(tensor.quantisation.scale, np.float64)
    return np.broadcast_to(scale, channels) if scale.size in (1, channels) else np.full(channels, scale.max())


def _narrow(tensor: Tensor, w: Doubles) -> tuple[int, ...]:
    if not isinstance(tensor.quantisation, Affine) or tensor.quantisation.is_per_axis or not tensor.dtype.is_integer:
        return ()
    largest = np.abs(w).max(axis=1, initial=0)
    narrow = (largest > 0) & (largest * 2.0**_NARROW_BITS < largest.max(initial=0))
    return tuple(int(c) for c in np.flatnonzero(narrow))
