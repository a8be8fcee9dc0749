"""What a fused activation does to the sum of a linear layer before its zero point (docs/aipu.md, 3).

    NONE               RNE(v * M * 2^-N)
    RELU, RELU6        RNE(max(v, 0) * M * 2^-N); RELU takes v through float32, RELU6 leaves its upper limit to the type
    CLIP               RNE(clamp(RNE(v * M * 2^-(N - 8)), limits) / 256), limits at 256 s_y; at 16 bits without the 8
    LEAKYRELU, PRELU   RNE((max(v, 0) + RNE(min(v, 0) * slope * 2^-k)) * M * 2^-N), k = bits of the output, or 12

Source: Compass Optimizer, ops/activation.py, apply_with_activation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Node, Operands
from tflq.interpreter.kernels.aipu.clip import EXTRA_BITS, clip_limits
from tflq.interpreter.kernels.aipu.multiplier import Doubles, Multiplier
from tflq.interpreter.kernels.aipu.prelu import SLOPE, SLOPE_SHIFT
from tflq.interpreter.kernels.aipu.scales import bits_of, constant_codes
from tflq.interpreter.kernels.aipu.signed_rescale import leaky_slope, slope_type
from tflq.interpreter.kernels.aipu.written import Value
from tflq.interpreter.numerics.fixed_point import Integers

NONE, RELU, RELU6, CLIP, LEAKY, PRELU = "NONE", "RELU", "RELU6", "CLIP", "LEAKYRELU", "PRELU"
RECTIFIERS = (RELU, RELU6)
ACTIVATIONS = (NONE, *RECTIFIERS, CLIP, LEAKY, PRELU)


@dataclass(frozen=True, eq=False)
class Fused:
    """A fused activation.

    Attributes:
        kind: as in the IR.
        limits: of CLIP, on the finer scale.
        extra_bits: how much finer that is.
        slope: of negative sums: int64[] or int64[..., O].
        slope_bits: k.
        keys: computed keys of the IR.
        changed: keys of the float IR with a new value.
    """

    kind: str
    limits: tuple[int, int] = (0, 0)
    extra_bits: int = 0
    slope: Integers | int = 0
    slope_bits: int = 0
    keys: Mapping[str, Value] = field(default_factory=dict)
    changed: Mapping[str, Value | None] = field(default_factory=dict)

    @property
    def is_monotone_line(self) -> bool:
        """Whether codes follow from sums by one line with limits."""
        return self.kind in (NONE, *RECTIFIERS)

    def apply(self, total: Integers, rescale: Multiplier) -> Doubles:
        """Return whole numbers before the zero point, float64[..., O], of sums int64[..., O]."""
        if self.kind in RECTIFIERS:
            positive = np.maximum(total, 0)
            # The tool's RELU works on float32: accumulators beyond 2^24 lose bits there.
            return rescale.apply(positive.astype(np.float32).astype(np.int64) if self.kind == RELU else positive)
        if self.kind == CLIP:
            finer = Multiplier(rescale.m, rescale.n - self.extra_bits)
            clipped: Doubles = np.rint(np.clip(finer.apply(total), *self.limits) * 2.0**-self.extra_bits)
            return clipped
        if self.kind in (LEAKY, PRELU):
            below = np.rint(np.minimum(total, 0) * (self.slope * 2.0**-self.slope_bits)).astype(np.int64)
            return rescale.apply(np.maximum(total, 0) + below)
        return rescale.apply(total)


def lower_fused(node: Node, operands: Operands) -> Fused:
    """Decide limits or slopes of the key with_activation.

    Raises:
        UnsupportedError: another activation; PRELU without constant slopes.
    """
    kind, output = node.attributes.text("with_activation", NONE), operands.output()
    if kind not in ACTIVATIONS:
        raise UnsupportedError(f"with_activation={kind}; allowed is {', '.join(ACTIVATIONS)}")
    if kind == CLIP:
        low, high = clip_limits(node, output)
        extra = EXTRA_BITS if bits_of(output) <= EXTRA_BITS else 0
        return Fused(kind, (low, high), extra, changed={"clip_min": low, "clip_max": high})
    if kind == LEAKY:
        bits = bits_of(output)
        slope = leaky_slope(node, bits)
        changed: dict[str, Value | None] = {"negative_slope_type": slope_type(slope), "negative_slope_value": slope}
        return Fused(kind, slope=slope, slope_bits=bits, changed=changed)
    if kind == PRELU:
        slopes = constant_codes(operands, SLOPE)
        return Fused(kind, slope=slopes, slope_bits=SLOPE_SHIFT, keys={"negative_slope_shift": SLOPE_SHIFT})
    return Fused(kind)
