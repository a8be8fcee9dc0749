"""Moments, and division by a root of the sum of squares: Moments, Normalization (docs/rules/aipu/operators.md).

Reciprocal square roots of integers by a table of 193 entries, interpolated.
Source: Compass Optimizer, utils/math_utils.py, calculate_inverse_sqrt.

Normalization L2: y = x / sqrt(sum of x^2), by a table of reciprocal roots. Q = sum of (x + zp_x)^2, G = isqrt(Q) in 15
bits, 2^31 / sqrt(Q) except for its shift g; y = clamp(RNE(clamp32(clamp16((x + zp_x) * M >> p) * G) * 2^-(N + 31 - p -
g))
- zp_y), (M, N) of s_y, p the bits of (x + zp_x) * M beyond 16.

Moments: mean and variance over axes. m = clamp(RNE(mean of quantized values)), on the input's scale, zp included; v =
trunc(mean of (q - m)^2); y_v = clamp(RNE(v * M * 2^-N) - zp_v), r = s_v / s_x^2. Beyond 8 bits v is multiplied by M in
two halves of 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.aipu.imported import imported_numbers, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import bits_of, is_wide, offset_of, scale_of, signed_width
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel

ROOT_TABLE: Integers = np.minimum(np.rint(2**15 * np.sqrt(64 / np.arange(64, 257))), 32767).astype(np.int64)
"""RNE(2^15 * sqrt(64 / i)) for i = 64..256, at most 32767."""


def reciprocal_root(values: Integers) -> Integers:
    """Return about 2^31 / sqrt(v) of v in 0..2^31 - 1; 0 counts as 1.

    v is shifted left by k until it reaches 2^30, E = 31 - k; if E is odd it is halved; its upper bits choose two
    entries of the table, the 15 below them interpolate, and the result is shifted right by (E - 1) >> 1.
    """
    lengths = np.frexp(np.maximum(values, 1).astype(np.float64))[1].astype(np.int64)
    shifts = np.clip(31 - lengths, 0, 30)
    exponents, fractions = 31 - shifts, values << shifts
    fractions = np.where(exponents & 1 == 1, fractions >> 1, fractions) >> 7
    places = np.maximum((fractions >> 16) - 64, 0)
    rest = (fractions >> 1) & 0x7FFF
    steps = ROOT_TABLE[places] - ROOT_TABLE[places + 1]
    roots: Integers = ((ROOT_TABLE[places] << 16) - ((steps * rest) << 1)) >> ((exponents - 1) >> 1)
    return roots


ROOT_BITS = 15
PRODUCT_BITS = 16


@dataclass(frozen=True, eq=False)
class NormalizationParams:
    """The params of one normalization.

    Attributes:
        axes: Reduced axes, after the sample axis.
        input_offset: zp_x.
        rescale: M and N of s_y.
        shift: p.
        codes: Quantized values of the output.
    """

    axes: tuple[int, ...]
    input_offset: int
    rescale: Multiplier
    shift: int
    codes: OutputCodes


def lower_normalization(node: Node, operands: Operands) -> NormalizationParams:
    """Decide M, N and p.

    Raises:
        UnsupportedError: another method than L2.
    """
    x, output = operands.input(0), operands.output()
    require_choice(node, "method", ("L2",))
    multiplier = multiplier_of(node, scale_of(output), bits_of(output))
    given = imported_numbers(node, "shift")
    width = signed_width(x) + int(np.ceil(np.log2(multiplier.first_m)))
    shift = max(0, width - PRODUCT_BITS) if given is None else int(given[0])
    axes = np.atleast_1d(np.asarray(node.attributes["axis"], np.int64))
    places = tuple(int(a) % len(x.shape) + 1 for a in axes)
    return NormalizationParams(places, offset_of(x), multiplier, shift, codes_of(output))


def run_normalization(params: NormalizationParams, x: Array) -> tuple[Array, ...]:
    """Run Normalization: quantized [S, ...] -> quantized [S, ...]."""
    v = x.astype(np.int64) + params.input_offset
    root, root_shift = _root(np.square(v).sum(axis=params.axes, keepdims=True))
    product = np.clip(v * params.rescale.m, INT32_MIN, INT32_MAX) >> params.shift
    scaled = np.clip(np.clip(product, DType.INT16.minimum, DType.INT16.maximum) * root, INT32_MIN, INT32_MAX)
    shifts = params.rescale.n + 31 - params.shift - root_shift
    return (params.codes.requantize(scaled, Multiplier(np.ones(1, np.int64), shifts)),)


def _root(total: Integers) -> tuple[Integers, Integers]:
    """Return 2^31 / sqrt(total) in 15 bits, and its shift."""
    beyond = np.maximum(_bit_length(total) - 31, 0)
    beyond += beyond % 2
    root = reciprocal_root(total >> beyond)
    bits = np.ceil(np.log2(root.astype(np.float32))).astype(np.int64)
    shift = np.maximum(bits - ROOT_BITS, 0)
    return np.clip(root >> shift, 0, (1 << ROOT_BITS) - 1), shift - beyond // 2


def _bit_length(values: Integers) -> Integers:
    lengths: Integers = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    return lengths


HALF = 16


@dataclass(frozen=True, eq=False)
class MomentsParams:
    """The params of one pair of moments.

    Attributes:
        axes: Reduced axes, after the sample axis.
        shapes: Shapes of the mean and of the variance, with or without the axes.
        rescale: M and N of the variance.
        is_wide: whether quantized values have more than 8 bits.
        mean: quantized values of the mean.
        variance: quantized values of the variance.
    """

    axes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    rescale: Multiplier
    is_wide: bool
    mean: np.dtype[np.generic]
    variance: OutputCodes


def lower_moments(node: Node, operands: Operands) -> MomentsParams:
    """Decide M and N of s_v / s_x^2."""
    x, mean, variance = operands.input(0), operands.output(0), operands.output(1)
    bits = bits_of(variance)
    multiplier = multiplier_of(node, scale_of(variance) / np.float32(scale_of(x) * scale_of(x)), bits)
    axes = tuple(a % len(x.shape) + 1 for a in node.attributes.integers("axis"))
    return MomentsParams(
        axes,
        (mean.shape, variance.shape),
        multiplier,
        is_wide(x),
        mean.dtype.storage,
        codes_of(variance),
    )


def run_moments(params: MomentsParams, x: Array) -> tuple[Array, ...]:
    """Run Moments: quantized [S, ...] -> quantized values of the mean, quantized values of the variance."""
    q = x.astype(np.int64)
    count = int(np.prod([x.shape[a] for a in params.axes]))
    mean = np.rint(q.sum(axis=params.axes, keepdims=True) / count).astype(np.int64)
    variance = np.square(q - mean).sum(axis=params.axes, keepdims=True) // count
    codes = _rescale_wide(params, variance) if params.is_wide else params.variance.requantize(variance, params.rescale)
    first, second = params.shapes
    return mean.astype(params.mean).reshape(-1, *first), codes.reshape(-1, *second)


def _rescale_wide(params: MomentsParams, variance: Integers) -> Array:
    m, n = params.rescale.m, params.rescale.n
    high = Multiplier(m, n - HALF).apply(variance >> HALF)
    low = Multiplier(m, n).apply(variance & ((1 << HALF) - 1))
    return params.variance.store(high + low)


KERNELS = {
    "normalization": Kernel(lower_normalization, run_normalization,
        "x / sqrt(sum of x^2), by a table of reciprocal roots",
        "Compass Optimizer, ops/lpnormalization.py; utils/math_utils.py, calculate_inverse_sqrt; "
            "docs/rules/aipu/operators.md"),
    "moments": Kernel(lower_moments, run_moments,
        "mean and variance, RNE(v * M * 2^-N) - zp_v", "Compass Optimizer, ops/moments.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip
