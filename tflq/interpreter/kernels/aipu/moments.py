"""Moments: mean and variance over axes (docs/aipu.md, 5).

m = clamp(RNE(mean of codes)), on the input's scale, zp included; v = trunc(mean of (q - m)^2);
y_v = clamp(RNE(v * M * 2^-N) - zp_v), r = s_v / s_x^2. Beyond 8 bits v goes through M in two halves of 16 bits.

Source: Compass Optimizer, ops/moments.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import Value, Written
from tflq.interpreter.numerics.fixed_point import Integers

HALF = 16
_LARGEST = (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class MomentsParams:
    """The integers of one pair of moments.

    Attributes:
        axes: behind the sample axis.
        shapes: of the mean and of the variance, with or without the axes.
        rescale: M and N of the variance.
        is_wide: whether codes have more than 8 bits.
        mean: codes of the mean.
        variance: codes of the variance.
        written: for the IR.
    """

    axes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    rescale: Multiplier
    is_wide: bool
    mean: np.dtype[np.generic]
    variance: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> MomentsParams:
    """Decide M and N of s_v / s_x^2."""
    x, mean, variance = operands.input(0), operands.output(0), operands.output(1)
    bits = bits_of(variance)
    found = multiplier_of(node, scale_of(variance) / np.float32(scale_of(x) * scale_of(x)), bits, "var_")
    kind = type_of_multiplier(bits)
    keys: dict[str, Value] = {
        "var_scale_value": found.first_m,
        "var_scale_type": kind,
        "var_shift_value": found.first_n,
        "var_shift_type": "int8",
        "input_scale_value": 1,
        "input_scale_type": kind,
        "input_shift_value": 0,
        "input_shift_type": "int8",
    }
    axes = tuple(a % len(x.shape) + 1 for a in node.attributes.integers("axis"))
    return MomentsParams(
        axes,
        (mean.shape, variance.shape),
        found,
        bits_of(x) > 8,
        mean.dtype.storage,
        codes_of(variance),
        Written(keys=keys),
    )


def run(params: MomentsParams, x: Array) -> tuple[Array, ...]:
    """Run Moments: codes [S, ...] -> codes of the mean, codes of the variance."""
    q = x.astype(np.int64)
    count = int(np.prod([x.shape[a] for a in params.axes]))
    mean = np.rint(q.sum(axis=params.axes, keepdims=True) / count).astype(np.int64)
    variance = np.square(q - mean).sum(axis=params.axes, keepdims=True) // count
    codes = _wide(params, variance) if params.is_wide else params.variance.requantise(variance, params.rescale)
    first, second = params.shapes
    return mean.astype(params.mean).reshape(-1, *first), codes.reshape(-1, *second)


def _wide(params: MomentsParams, variance: Integers) -> Array:
    m, n = params.rescale.m, params.rescale.n
    high = np.clip(Multiplier(m, n - HALF).apply(variance >> HALF), 0, _LARGEST)
    low = np.clip(Multiplier(m, n).apply(variance & ((1 << HALF) - 1)), 0, _LARGEST)
    return params.variance.store(high + low)
