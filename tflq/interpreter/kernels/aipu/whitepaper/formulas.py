"""The whitepaper's formulas that differ from the Optimizer's, by its sections (docs/differences/aipu.md).

    4.8   BiasAdd      y = clamp(RNE((x + B) * M * 2^-N) - zp_y), B = RNE(s_x * b) + zp_x, r = s_y / s_x. The quantizer
                       makes B; the kernel is the Optimizer's own sum, which is right on this scale
    4.10  Cast         t[q] = clamp(trunc((q + zp_x) / s_x)), the cast of each quantized value's real number
    4.11  CLIP         y = clamp(RNE((x + zp_x) * M * 2^-N) - zp_y, cmin_q, cmax_q), limits as quantized values of the
    output
    4.23  Div          q = round((a + zp_a) * M / (b + zp_b)), halves away from zero; y = clamp(RNE(q * 2^-N) - zp_y),
                       r = s_y * s_b / s_a; dividing by zero gives 0
    4.25, 4.26         Eltwise MAX, MIN: y = clamp(RNE(max((a + zp_a) * M_a, (b + zp_b) * M_b) * 2^-N) - zp_y): each
                       input has its own s_y / s_i, both on the larger N
    4.37  Count        limits are quantized values of the input, round(limit * s_x - zp_x)
    4.39  LEAKYRELU    v = RNE((x + zp_x) * M * 2^-N); y = max(v, 0) + RNE(min(v, 0) * alpha_q * 2^-bits) - zp_y
    4.41  Logical      (a + zp_a) * 2^N against (b + zp_b) * M, M / 2^N = s_a / s_b in 15 bits
    4.46  Moments      m = clamp(RNE(mean of q)) on the input's scale; y_v = clamp(RNE(v * M * 2^-N) - zp_v),
                       r = s_v / s_x^2, v = floor((n * sum q^2 - (sum q)^2) / (n * d)), d = n, n - 1 with unbiased=true
    4.47  Negative     s_y = s_x, zp_y = -zp_x, so that y = -x; the lowest quantized value saturates
    4.53  Reduce MEAN  the input's scale and zero point pass, y = clamp(RNE(mean of quantized values))
    4.66  Softmax      e = t[x], y = RNE(round(e * M / sum e) * 2^-N), s_y = 2^bits - 1, zp_y = 0; the table is the
                       Optimizer's, the division is whole and rounds by its remainder, M / 2^N = s_y in 15 bits

Functions with a symmetry by half a table (3.3.2.2): t[i] = RNE(s_y * f(i / s_x)) for i = 0..max|x + zp_x|. Even
functions: y = t[|x + zp_x|] - zp_y; odd ones: that with the sign of x + zp_x; Sigmoid, where f(-v) = 1 - f(v): RNE(s_y)
- t[|x + zp_x|] for negative ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import count, eltwise, unweighted
from tflq.interpreter.kernels.aipu.activation import (
    CLIP,
    LEAKY,
    NEGATIVE,
    ActivationParams,
    Fused,
    leaky_slope,
    lower_fused,
)
from tflq.interpreter.kernels.aipu.curve import function_of
from tflq.interpreter.kernels.aipu.multiplier import (
    WIDEST,
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
    scaled,
)
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, encode, is_plain, is_wide, offset_of, scale_of
from tflq.interpreter.kernels.aipu.softmax import exponentials, require_short_axis
from tflq.interpreter.kernels.aipu.tables import Table
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

EVEN, ODD, ABOUT_HALF = "even", "odd", "about a half"
SYMMETRIES = {
    "cosine": EVEN,
    "square": EVEN,
    "sine": ODD,
    "SOFTSIGN": ODD,
    "TANH": ODD,
    "SIGMOID": ABOUT_HALF,
}


@dataclass(frozen=True, eq=False)
class MirroredParams:
    """Half a table and how it is mirrored.

    Attributes:
        entries: int64[max|x + zp_x| + 1], without zero point.
        symmetry: even, odd, or about a half.
        one: RNE(s_y).
        input_offset: zp_x.
        codes: Quantized values of the output.
    """

    entries: Integers
    symmetry: str
    one: int
    input_offset: int
    codes: OutputCodes

    def apply(self, x: Array) -> Array:
        """Return quantized values of quantized values."""
        v = x.astype(np.int64) + self.input_offset
        values = self.entries[np.abs(v)]
        if self.symmetry == ODD:
            values = values * np.sign(v)
        elif self.symmetry == ABOUT_HALF:
            values = np.where(v < 0, self.one - values, values)
        return self.codes.store(values)


def lower_mirrored(node: Node, operands: Operands) -> MirroredParams:
    """Compute half a table.

    Raises:
        UnsupportedError: quantized values wider than 8 bits (their table is sampled).
    """
    x, output = operands.input(0), operands.output()
    if is_wide(x):
        raise UnsupportedError(f"half a table of {bits_of(x)} bits; allowed are 8")
    zp = offset_of(x)
    largest = max(abs(code + zp) for code in code_limits(x))
    steps = np.arange(largest + 1, dtype=np.float64) / float(scale_of(x))
    with np.errstate(all="ignore"):
        real = function_of(node)(steps).astype(np.float32)
    entries = np.rint(scale_of(output) * real).astype(np.int64)
    name = node.attributes.text("method", "") or node.operator
    one = int(np.rint(scale_of(output)))
    return MirroredParams(entries, SYMMETRIES[name], one, zp, codes_of(output))


UNBIASED = "unbiased"


@dataclass(frozen=True, eq=False)
class ScaledParams:
    """The params of CLIP and LEAKYRELU.

    Attributes:
        input_offset: zp_x.
        rescale: M and N of s_y / s_x.
        slope: alpha * 2^bits and bits, the bits of the output; None for CLIP.
        codes: Quantized values of the output; the limits of CLIP are its own.
    """

    input_offset: int
    rescale: Multiplier
    slope: tuple[int, int] | None
    codes: OutputCodes

    def apply(self, x: Array) -> Array:
        """Return quantized values of quantized values."""
        v = self.rescale.apply(x.astype(np.int64) + self.input_offset).astype(np.int64)
        if self.slope is not None:
            v = np.maximum(v, 0) + scaled(np.minimum(v, 0), *self.slope).astype(np.int64)
        return self.codes.store(v)


def lower_activation(node: Node, operands: Operands) -> ScaledParams | MirroredParams:
    """Decide M and N, and limits or slope; or half a table."""
    method = node.attributes.text("method")
    if method not in (CLIP, LEAKY):
        return lower_mirrored(node, operands)
    x, output = operands.input(0), operands.output()
    bits, codes = bits_of(output), codes_of(output)
    multiplier = find_multiplier(scale_of(output) / scale_of(x), bits)
    if method == LEAKY:
        return ScaledParams(offset_of(x), multiplier, (leaky_slope(node, bits), bits), codes)
    limits = np.array([node.attributes.real(key) for key in ("clip_min", "clip_max")], np.float32)
    low, high = (int(code) for code in encode(limits, output.affine))
    return ScaledParams(offset_of(x), multiplier, None, replace(codes, minimum=low, maximum=high))


def lower_negative(_node: Node, operands: Operands) -> ActivationParams:
    """Take both zero points."""
    one = Multiplier(np.ones(1, np.int64), np.zeros(1, np.int64))
    return ActivationParams(Fused(NEGATIVE), offset_of(operands.input(0)), one, codes_of(operands.output()))


def run_activation(params: ScaledParams | MirroredParams | ActivationParams, x: Array) -> tuple[Array, ...]:
    """Run the layer: quantized [S, ...] -> quantized [S, ...]."""
    return (params.apply(x),)


@dataclass(frozen=True, eq=False)
class CastParams:
    """Results by code, from the lowest one on; None for an input of plain integers; quantized values of the output."""

    table: Integers | None
    lowest: int
    codes: OutputCodes


def lower_cast(_node: Node, operands: Operands) -> CastParams:
    """Compute the table.

    Raises:
        UnsupportedError: quantized values wider than 8 bits.
    """
    x, codes = operands.input(0), codes_of(operands.output())
    if is_plain(x):
        return CastParams(None, 0, codes)
    if is_wide(x):
        raise UnsupportedError(f"Cast of {bits_of(x)} bits by a table; allowed are 8")
    low, high = code_limits(x)
    real = np.float32(np.arange(low, high + 1) + offset_of(x)) / scale_of(x)
    return CastParams(np.trunc(real).astype(np.int64), low, codes)


def run_cast(params: CastParams, x: Array) -> tuple[Array, ...]:
    """Run Cast: quantized [S, ...] -> integers [S, ...]."""
    if params.table is None:
        return (x.astype(params.codes.dtype),)
    return (params.codes.store(params.table[x.astype(np.int64) - params.lowest]),)


def lower_count(node: Node, operands: Operands) -> count.CountParams:
    """Decide the limits; raises as the Optimizer's own."""
    x = operands.input(0)
    limits = (np.rint(np.float32(node.attributes.real(key)) * scale_of(x) - offset_of(x)) for key in ("min", "max"))
    return count.lower_limits(node, operands, *(float(limit) for limit in limits))


@dataclass(frozen=True, eq=False)
class DivParams:
    """zp of the inputs, M and N, how the output is stored."""

    input_offsets: tuple[int, int]
    rescale: Multiplier
    codes: OutputCodes


def lower_div(_node: Node, operands: Operands) -> DivParams:
    """Decide M and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    ratio = np.float32(scale_of(output) * scale_of(b)) / scale_of(a)
    multiplier = find_multiplier(np.float32(ratio), bits_of(output))
    return DivParams((offset_of(a), offset_of(b)), multiplier, codes_of(output))


def run_div(params: DivParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Div: quantized [S, ...] and [S, ...] -> quantized [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), params.input_offsets, strict=True))
    numerator, divisor = np.abs(left) * params.rescale.first_m, np.maximum(np.abs(right), 1)
    quotient = (2 * numerator + divisor) // (2 * divisor) * np.sign(left) * np.sign(right)
    return (params.codes.store(scaled(quotient, 1, params.rescale.first_n)),)


def lower_extreme(node: Node, operands: Operands) -> eltwise.EltwiseParams:
    """Decide M_a and M_b, which are the factors of the inputs, and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    of_a, of_b = (find_multiplier(scale_of(output) / scale_of(t), bits_of(output)) for t in (a, b))
    shift = max(of_a.first_n, of_b.first_n)
    factors = (of_a.first_m << (shift - of_a.first_n), of_b.first_m << (shift - of_b.first_n))
    fused = lower_fused(node, operands)
    rescale = Multiplier(np.ones(1, np.int64), np.full(1, shift, np.int64))
    offsets = (offset_of(a), offset_of(b))
    return eltwise.EltwiseParams(node.attributes.text("method"), fused, factors, offsets, rescale, codes_of(output))


def lower_comparison(node: Node, operands: Operands) -> eltwise.LogicalParams:
    """Decide 2^N and M."""
    a, b = operands.input(0), operands.input(1)
    multiplier = find_multiplier(scale_of(a) / scale_of(b), WIDEST + 1)
    factors = (1 << max(multiplier.first_n, 0), multiplier.first_m << max(-multiplier.first_n, 0))
    return eltwise.LogicalParams(node.attributes.text("method"), (offset_of(a), offset_of(b)), factors)


@dataclass(frozen=True, eq=False)
class MomentsParams:
    """The params of one pair of moments.

    Attributes:
        axes: Reduced axes, after the sample axis.
        shapes: Shapes of the mean and of the variance.
        divisor: d.
        rescale: M and N of the variance.
        mean: type of the mean.
        variance: Quantized values of the variance.
    """

    axes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    divisor: int
    rescale: Multiplier
    mean: np.dtype[np.generic]
    variance: OutputCodes


def lower_moments(node: Node, operands: Operands) -> MomentsParams:
    """Decide M and N.

    Raises:
        UnsupportedError: an unbiased variance of one value.
    """
    x, mean, variance = operands.input(0), operands.output(0), operands.output(1)
    axes = tuple(a % len(x.shape) for a in node.attributes.integers("axis"))
    values = int(np.prod([x.shape[a] for a in axes]))
    divisor = values - node.attributes.boolean(UNBIASED, False)
    if not divisor:
        raise UnsupportedError("the unbiased variance of one value is not defined; allowed are two values")
    multiplier = find_multiplier(scale_of(variance) / np.float32(scale_of(x) * scale_of(x)), bits_of(variance))
    places, shapes = tuple(a + 1 for a in axes), (mean.shape, variance.shape)
    return MomentsParams(places, shapes, divisor, multiplier, mean.dtype.storage, codes_of(variance))


def run_moments(params: MomentsParams, x: Array) -> tuple[Array, ...]:
    """Run Moments: quantized [S, ...] -> quantized values of the mean, quantized values of the variance."""
    q = x.astype(np.int64)
    values = int(np.prod([x.shape[a] for a in params.axes]))
    total, squares = (v.sum(axis=params.axes, keepdims=True) for v in (q, np.square(q)))
    variance = (values * squares - np.square(total)) // (values * params.divisor)
    mean = np.rint(total / values).astype(params.mean)
    first, second = params.shapes
    return mean.reshape(-1, *first), params.variance.requantize(variance, params.rescale).reshape(-1, *second)


@dataclass(frozen=True, eq=False)
class MeanParams:
    """The axes after the sample axis, the number of averaged values, and the quantized values of the output."""

    axes: tuple[int, ...]
    count: int
    codes: OutputCodes


def lower_mean(node: Node, operands: Operands) -> MeanParams:
    """Decide the axes."""
    shape = operands.input(0).shape
    axes = tuple(axis % len(shape) for axis in node.attributes.integers("axis"))
    # Quantized values are averaged unchanged: their zero point stays in them.
    plain = replace(codes_of(operands.output()), offset=0)
    return MeanParams(tuple(a + 1 for a in axes), int(np.prod([shape[a] for a in axes])), plain)


def run_mean(params: MeanParams, x: Array) -> tuple[Array, ...]:
    """Run MEAN: quantized [S, ...] -> quantized [S, ...] with axes of length 1."""
    total = x.astype(np.int64).sum(axis=params.axes, keepdims=True)
    return (params.codes.store(np.rint(total / params.count)),)


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The params of one softmax.

    Attributes:
        table: Table of exp.
        axis: Axis among the sample's own axes.
        span: 2^bits - 1, the index of the row's maximum.
        rescale: M and N of s_y.
        codes: Quantized values of the output.
    """

    table: Table
    axis: int
    span: int
    rescale: Multiplier
    codes: OutputCodes


def lower_softmax(node: Node, operands: Operands) -> SoftmaxParams:
    """Decide the table, M and N.

    Raises:
        UnsupportedError: more than 4096 terms.
    """
    x, output = operands.input(0), operands.output()
    axis = require_short_axis(node, x)
    multiplier = find_multiplier(scale_of(output), WIDEST + 1)
    return SoftmaxParams(exponentials(node, operands), axis, (1 << bits_of(x)) - 1, multiplier, codes_of(output))


def run_softmax(params: SoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run Softmax: quantized [S, ...] -> quantized [S, ...]."""
    wide, axis = x.astype(np.int64), params.axis + 1
    e = params.table.lookup(wide - wide.max(axis=axis, keepdims=True) + params.span)
    total = np.maximum(e.sum(axis=axis, keepdims=True), 1)
    share = (2 * e * params.rescale.first_m + total) // (2 * total)
    return (params.codes.store(scaled(share, 1, params.rescale.first_n)),)


_PAPER = "whitepaper ACN-AWP-1002A, {}; docs/differences/aipu.md"

KERNELS = {
    **dict.fromkeys(
        ("cosine", "sine", "square"),
        Kernel(lower_mirrored, run_activation, "half a table, mirrored", _PAPER.format("3.3.2.2")),
    ),
    "activation": Kernel(lower_activation, run_activation,
        "M / 2^N first, then the limits or the slope", _PAPER.format("4.11, 4.39")),
    "bias_add": Kernel(unweighted.lower_bias_add, unweighted.run_bias_add,
        "RNE((q + b) * M * 2^-N) - zp_y", _PAPER.format("4.8")),
    "cast": Kernel(lower_cast, run_cast, "a table of each value cast", _PAPER.format("4.10")),
    "count": Kernel(lower_count, count.run, "bins between limits as values of the input", _PAPER.format("4.37")),
    "div": Kernel(lower_div, run_div, "a whole division, rounded by its remainder", _PAPER.format("4.23")),
    "eltwise": Kernel(lower_extreme, eltwise.run_eltwise,
        "MAX, MIN with one multiplier for each input", _PAPER.format("4.25, 4.26")),
    "logical": Kernel(lower_comparison, eltwise.run_logical,
        "(a + zp_a) * 2^N against (b + zp_b) * M", _PAPER.format("4.41")),
    "moments": Kernel(lower_moments, run_moments,
        "variance as mean of squares less squared mean", _PAPER.format("4.46")),
    "negative": Kernel(lower_negative, run_activation, "-(x + zp_x) - zp_y, zp_y = -zp_x", _PAPER.format("4.47")),
    "reduce": Kernel(lower_mean, run_mean, "RNE(mean of values)", _PAPER.format("4.53")),
    "softmax": Kernel(lower_softmax, run_softmax, "RNE(round(e * M / sum e) * 2^-N)", _PAPER.format("4.66")),
}  # fmt: skip
