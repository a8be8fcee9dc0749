"""Conversions between integers and floats in an arithmetic of integers, as forms for other implementations."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.arrays import Doubles, Integers


@dataclass(frozen=True)
class RealLine:
    """QUANTIZE as a line: round(f32(f32(x * scale) + offset)) + zero, then the ends of the type.

    Attributes:
        scale: a float32.
        offset: likewise.
        zero: integer zero point.
        is_away: whether halves are rounded away from zero; else to the even number.
    """

    scale: float
    offset: float
    zero: int
    is_away: bool


@dataclass(frozen=True, eq=False)
class RealMap:
    """Sums as floating-point values: f32(clip((acc - folded) * multiplier + bias, minimum, maximum)), in float64.

    Attributes:
        folded: int64[O].
        multiplier: float64[O].
        bias: float64[O].
        minimum: Lower bound of the fused activation; may be infinite.
        maximum: likewise.
    """

    folded: Integers
    multiplier: Doubles
    bias: Doubles
    minimum: float
    maximum: float


@dataclass(frozen=True)
class RealSum:
    """Two operands' sum: clip(rint((a + b) / scale + zero), least, most) + first, in float64.

    Attributes:
        operands: scale and zero point of quantized values, s * (q - z); None for floating-point values.
        scale: Scale of the result.
        zero: likewise.
        least: level above the first one.
        most: likewise.
        first: quantized value of level 0.
    """

    operands: tuple[tuple[float, int] | None, tuple[float, int] | None]
    scale: float
    zero: float
    least: int
    most: int
    first: int
