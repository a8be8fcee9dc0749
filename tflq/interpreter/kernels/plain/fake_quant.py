"""FAKE_QUANT of float32: rounded to the levels between two bounds that are nudged so that 0 is a level; NaN is low.

scale = f32((max - min) / (2^bits - 1)); z = clamp(round_half_away(f32(-min / scale)), 0, 2^bits - 1);
low = f32(-z scale); high = f32((2^bits - 1 - z) scale);
y = f32(f32(round_half_away(f32(f32(clamp(x) - low) f32(1 / scale))) scale) + low).
Equal to TFLite bit for bit.

Source: TFLite kernels/fake_quant.cc, internal/quantization_util.cc (NudgeQuantizationRange, FakeQuantizeArray).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.numerics.fixed_point import round_half_away


@dataclass(frozen=True)
class FakeQuant:
    """The nudged levels.

    Attributes:
        scale: distance of two levels.
        low: the lowest level.
        high: the highest level.
    """

    scale: np.float32
    low: np.float32
    high: np.float32


def lower(node: Node, operands: Operands) -> FakeQuant:
    """Nudge the bounds.

    Raises:
        UnsupportedError: another type, or narrow_range, which TFLite refuses at run time.
        GraphError: bounds that do not enclose 0, or a number of bits outside 1..16.
    """
    lower_unary(operands, (DType.FLOAT32,))
    if node.attributes.boolean("narrow_range", False):
        raise UnsupportedError("narrow_range is set; TFLite does not run it")
    minimum, maximum = np.float32(node.attributes.real("min")), np.float32(node.attributes.real("max"))
    bits = node.attributes.integer("num_bits")
    if not -np.inf < minimum <= 0 <= maximum < np.inf or minimum == maximum or not 1 <= bits <= 16:
        raise GraphError(f"bounds {minimum} .. {maximum} with {bits} bits; bounds enclose 0, bits are 1 to 16")
    top = np.float32((1 << bits) - 1)
    scale = (maximum - minimum) / top
    zero_point = np.clip(round_half_away(-minimum / scale), np.float32(0), top).astype(np.float32)
    return FakeQuant(scale, -zero_point * scale, (top - zero_point) * scale)


def run(params: FakeQuant, x: Array) -> tuple[Array, ...]:
    """Run FAKE_QUANT: float32[S, *shape] -> float32[S, *shape]."""
    number = np.where(np.isnan(x), params.low, x).astype(np.float32)
    clamped = clamp_in_place(number, params.low, params.high)
    steps = round_half_away((clamped - params.low) * (np.float32(1) / params.scale))
    return (np.asarray(steps * params.scale + params.low, np.float32),)
