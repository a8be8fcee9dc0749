"""Activations of a sum v before its zero point, fused into a linear layer or as a separate layer.

Source: docs/rules/aipu/values.md, docs/rules/aipu/operators.md.

    NONE               RNE(v * M * 2^-N)
    RELU, RELU6        RNE(max(v, 0) * M * 2^-N); RELU takes v through float32, RELU6 leaves its upper limit to the type
    CLIP               RNE(clamp(RNE(v * M * 2^-(N - 8)), limits) / 256), limits at 256 s_y; at 16 bits without the 8
    LEAKYRELU, PRELU   RNE((max(v, 0) + RNE(min(v, 0) * slope * 2^-k)) * M * 2^-N), k = bits of the output, or 12
    ABS, NEGATIVE      RNE(|v| * M * 2^-N), RNE(-v * M * 2^-N)
    CRELU              RNE(max(v, 0) * M * 2^-N) and RNE(max(-v, 0) * M * 2^-N)
    SIGN               -1, 0 or 1, at scale 1

A separate layer has v = x + zp_x and y = clamp(... - zp_y).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu import curve
from tflq.interpreter.kernels.aipu.imported import is_imported, multiplier_bits, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, scaled
from tflq.interpreter.kernels.aipu.scales import bits_of, constant_codes, offset_of, scale_of
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.numerics.thresholds import NEVER, of_rounded_shift
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel

NONE, RELU, RELU6, CLIP, LEAKY, PRELU = "NONE", "RELU", "RELU6", "CLIP", "LEAKYRELU", "PRELU"
ABS, NEGATIVE, CRELU = "ABS", "NEGATIVE", "CRELU"
RECTIFIERS = (RELU, RELU6)
FUSED = (NONE, *RECTIFIERS, CLIP, LEAKY, PRELU)
"""What a linear layer can fuse."""

METHODS = (*FUSED[1:], *curve.METHODS)
"""What the layer Activation can compute."""

EXTRA_BITS = 8
SLOPE = "negative_slope"
SLOPE_SHIFT = 12


@dataclass(frozen=True, eq=False)
class Fused:
    """A function of sums.

    Attributes:
        kind: Activation, as named in the IR.
        limits: Limits of CLIP, on the finer scale.
        extra_bits: Number of additional fraction bits of the finer scale.
        slope: Slope of negative sums: one number or int64[..., O].
        slope_bits: k.
        axis: Concatenation axis of CRELU, after the sample axis.
    """

    kind: str
    limits: tuple[int, int] = (0, 0)
    extra_bits: int = 0
    slope: Integers | int = 0
    slope_bits: int = 0
    axis: int = 0

    @property
    def is_monotone_line(self) -> bool:
        """Whether quantized values follow from sums by one line with limits."""
        return self.kind in (NONE, *RECTIFIERS)

    def reach(self, whole: Integers, rescale: Multiplier) -> Integers:
        """Return the smallest sums that `apply` takes to at least `whole`, of a monotone line below 2^24."""
        sums = of_rounded_shift(whole, rescale.m, rescale.n, ties_to_even=True)
        return sums if self.kind == NONE else np.where(whole <= 0, -NEVER, sums)

    def apply(self, total: Integers, rescale: Multiplier) -> Doubles:
        """Return integers before the zero point, float64[..., O], of sums int64[..., O]."""
        if self.kind == CLIP:
            finer = Multiplier(rescale.m, rescale.n - self.extra_bits)
            return scaled(np.clip(finer.apply(total), *self.limits), 1, self.extra_bits)
        return rescale.apply(self._step(total))

    def _step(self, total: Integers) -> Integers:
        """Return the integer that M and N scale."""
        stepped = total
        if self.kind == RELU:
            # The Optimizer's RELU works on float32: accumulators beyond 2^24 lose bits there.
            stepped = np.maximum(total, 0).astype(np.float32).astype(np.int64)
        elif self.kind == RELU6:
            stepped = np.maximum(total, 0)
        elif self.kind in (LEAKY, PRELU):
            below = scaled(np.minimum(total, 0), self.slope, self.slope_bits).astype(np.int64)
            stepped = np.maximum(total, 0) + below
        elif self.kind == ABS:
            stepped = np.abs(total)
        elif self.kind == NEGATIVE:
            stepped = -total
        elif self.kind == CRELU:
            stepped = np.concatenate([np.maximum(total, 0), np.maximum(-total, 0)], axis=self.axis)
        return stepped


@dataclass(frozen=True, eq=False)
class ActivationParams:
    """The params of a separate layer: the activation of v, zp_x, M and N of s_y / s_x.

    How quantized values are stored.
    """

    fused: Fused
    input_offset: int
    rescale: Multiplier
    codes: OutputCodes

    def apply(self, x: Array) -> Array:
        """Return quantized values of quantized values."""
        return self.codes.store(self.fused.apply(x.astype(np.int64) + self.input_offset, self.rescale))


@dataclass(frozen=True, eq=False)
class SignParams:
    """zp_x and the output's type."""

    input_offset: int
    dtype: np.dtype[np.generic]

    def apply(self, x: Array) -> Array:
        """Return -1, 0, 1 of quantized values."""
        return np.sign(x.astype(np.int64) + self.input_offset).astype(self.dtype)


def lower_fused(node: Node, operands: Operands) -> Fused:
    """Decide limits or slopes of the key with_activation.

    Raises:
        UnsupportedError: another activation; PRELU without constant slopes.
    """
    kind = require_choice(node, "with_activation", FUSED, NONE)
    return _function(kind, node, operands)


def lower(node: Node, operands: Operands) -> ActivationParams | curve.CurveParams:
    """Decide the params of Activation, Abs, Negative or CRELU, of which only Activation names a method.

    CRELU: input [..., C], output [..., 2C] on the axis, 0 unless the node names one.

    Raises:
        UnsupportedError: another method.
    """
    kind = node.attributes.text("method") if node.operator == "activation" else node.operator.upper()
    if kind in curve.METHODS:
        return curve.lower(node, operands)
    if node.operator == "activation" and kind not in METHODS:
        raise UnsupportedError(f"method={kind}; allowed is {', '.join(METHODS)}")
    x, output = operands.input(0), operands.output()
    multiplier = multiplier_of(node, scale_of(output) / scale_of(x), multiplier_bits(node, output))
    return ActivationParams(_function(kind, node, operands), offset_of(x), multiplier, codes_of(output))


def lower_sign(_node: Node, operands: Operands) -> SignParams:
    """Take the zero point."""
    return SignParams(offset_of(operands.input(0)), operands.output().dtype.storage)


def run(params: ActivationParams | curve.CurveParams | SignParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run the layer: quantized [S, ...] -> quantized [S, ...]."""
    return (params.apply(x),)


def clip_limits(node: Node, output: Tensor) -> tuple[int, int]:
    """Return the limits RNE(limit * 256 * s_y), at s_y from 16 bits on; a quantized file has them already."""
    if is_imported(node):
        return node.attributes.integer("clip_min"), node.attributes.integer("clip_max")
    given = [np.float32(node.attributes.real(key)) for key in ("clip_min", "clip_max")]
    fine = np.float32(scale_of(output) * np.float32(1 << _extra_bits(output)))
    low, high = (int(np.clip(float(np.rint(fine * limit)), INT32_MIN, INT32_MAX)) for limit in given)
    return low, high


def leaky_slope(node: Node, bits: int) -> int:
    """Return RNE(alpha * 2^bits); that of a quantized file is an integer already."""
    slope = node.attributes.real("negative_slope_value")
    return int(slope if is_imported(node) else np.rint(slope * (1 << bits)))


def _function(kind: str, node: Node, operands: Operands) -> Fused:
    output = operands.output()
    if kind == CLIP:
        return Fused(kind, clip_limits(node, output), _extra_bits(output))
    if kind == LEAKY:
        return Fused(kind, slope=leaky_slope(node, bits_of(output)), slope_bits=bits_of(output))
    if kind == PRELU:
        return Fused(kind, slope=constant_codes(operands, SLOPE), slope_bits=SLOPE_SHIFT)
    if kind == CRELU:
        return Fused(kind, axis=node.attributes.integer("axis", 0) % len(operands.input(0).shape) + 1)
    return Fused(kind)


def _extra_bits(output: Tensor) -> int:
    return EXTRA_BITS if bits_of(output) <= EXTRA_BITS else 0


KERNELS = {
    "abs": Kernel(lower, run, "RNE(|x + zp_x| * M * 2^-N) - zp_y", "Compass Optimizer, ops/abs.py; "
        "docs/rules/aipu/operators.md"),
    "activation": Kernel(lower, run,
        "by method: a step and M / 2^N, or a table",
        "Compass Optimizer, ops/activation.py, clip.py, leakyrelu.py, prelu.py; "
            "docs/rules/aipu/values.md, docs/rules/aipu/operators.md"),
    "crelu": Kernel(lower, run,
        "the rectified input beside the rectified negative", "Compass Optimizer, ops/crelu.py; "
            "docs/rules/aipu/operators.md"),
    "negative": Kernel(lower, run, "-(x + zp_x) - zp_y", "Compass Optimizer, ops/neg.py; docs/rules/aipu/operators.md"),
    "sign": Kernel(lower_sign, run, "-1, 0 or 1 of x + zp_x", "docs/rules/aipu/operators.md"),
}  # fmt: skip
