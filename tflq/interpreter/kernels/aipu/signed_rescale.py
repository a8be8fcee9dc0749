"""Abs, Negative, Activation LEAKYRELU: a whole-number step before M / 2^N (docs/aipu.md, 5).

Source: Compass Optimizer, ops/abs.py, neg.py, leakyrelu.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import is_stated, multiplier_bits, multiplier_of
from tflq.interpreter.kernels.aipu.written import CURVED, LINEAR, NOTHING, Value, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers

_NARROW = (("uint8", 0, 255), ("int8", -128, 127), ("uint16", 0, 65535), ("int16", -32768, 32767))


@dataclass(frozen=True, eq=False)
class SignedParams:
    """The integers of one layer.

    Attributes:
        kind: abs, negative or leaky.
        slope: alpha * 2^bits of a leaky rectifier.
        slope_bits: bits of the slope.
        input_offset: zp_x.
        rescale: M and N.
        offset: zp_y.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        written: for the IR.
    """

    kind: str
    slope: int
    slope_bits: int
    input_offset: int
    rescale: Multiplier
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        v = x.astype(np.int64) + self.input_offset
        codes = np.clip(self.rescale.apply(self._step(v)) - self.offset, self.minimum, self.maximum)
        return codes.astype(self.dtype)

    def _step(self, v: Integers) -> Integers:
        if self.kind == "abs":
            return np.abs(v)
        if self.kind == "negative":
            return -v
        below = np.rint(np.minimum(v, 0) * self.slope * 2.0**-self.slope_bits).astype(np.int64)
        leaky: Integers = np.maximum(v, 0) + below
        return leaky


def lower(node: Node, operands: Operands) -> SignedParams:
    """Decide M and N of s_y / s_x, and the slope."""
    x, output = operands.input(0), operands.output()
    kind = "leaky" if node.operator == "activation" else node.operator
    bits = bits_of(output)
    width = multiplier_bits(node, output)
    found = multiplier_of(node, scale_of(output) / scale_of(x), width)
    slope, written = 0, Written(keys=rescale_keys(CURVED, found, type_of_multiplier(width)))
    if kind == "negative":
        written = NOTHING
    if kind == "leaky":
        slope = leaky_slope(node, bits)
        changed: dict[str, Value | None] = {"negative_slope_type": slope_type(slope), "negative_slope_value": slope}
        written = Written(keys=rescale_keys(LINEAR, found, type_of_multiplier(width)), changed=changed)
    low, high = code_limits(output)
    return SignedParams(
        kind, slope, bits, offset_of(x), found, offset_of(output), low, high, output.dtype.storage, written
    )


def slope_type(slope: int) -> str:
    """Return the narrowest type of a slope."""
    return next((name for name, low, high in _NARROW if low <= slope <= high), "int32")


def leaky_slope(node: Node, bits: int) -> int:
    """Return RNE(alpha * 2^bits); that of a quantised IR is an integer already."""
    slope = node.attributes.real("negative_slope_value")
    return int(slope if is_stated(node) else np.rint(slope * (1 << bits)))


def run(params: SignedParams, x: Array) -> tuple[Array, ...]:
    """Run the layer: codes [S, ...] -> codes [S, ...]."""
    return (params.apply(x),)
