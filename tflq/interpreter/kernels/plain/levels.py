"""BUCKETIZE and FAKE_QUANT: floating-point values among boundaries and levels.

FAKE_QUANT: scale = f32((max - min) / (2^bits - 1)); z = clamp(round_half_away(f32(-min / scale)), 0, 2^bits - 1); low =
f32(-z scale); high = f32((2^bits - 1 - z) scale); y = f32(f32(round_half_away(f32(f32(clamp(x) - low) f32(1 / scale)))
scale) + low). Equal to TFLite bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.registry import Kernel

_COUNTED = (DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64)


@dataclass(frozen=True, eq=False)
class Bucketize:
    """The boundaries, ascending: float32[N]."""

    boundaries: NDArray[np.float32]


def _lower_bucketize(node: Node, operands: Operands) -> Bucketize:
    """Read the boundaries.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: boundaries that are missing or not ascending.
    """
    lower_unary(operands, _COUNTED, DType.INT32)
    given = node.attributes.get("boundaries")
    if not isinstance(given, (tuple, np.ndarray)):
        raise GraphError(f"attribute boundaries: found {given!r}, allowed is a list of numbers")
    boundaries = np.array(given, np.float32)
    if np.any(boundaries[1:] < boundaries[:-1]):
        raise GraphError("the boundaries are not ascending")
    return Bucketize(boundaries)


def _run_bucketize(params: Bucketize, x: Array) -> tuple[Array, ...]:
    """Run BUCKETIZE: T[S, *shape] -> int32[S, *shape]."""
    compared = x if x.dtype == np.float64 else x.astype(np.float32)
    return (np.searchsorted(params.boundaries, compared, side="right").astype(np.int32),)


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


def _lower_fake_quant(node: Node, operands: Operands) -> FakeQuant:
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


def _run_fake_quant(params: FakeQuant, x: Array) -> tuple[Array, ...]:
    """Run FAKE_QUANT: float32[S, *shape] -> float32[S, *shape]."""
    number = np.where(np.isnan(x), params.low, x).astype(np.float32)
    clamped = clamp_in_place(number, params.low, params.high)
    steps = round_half_away((clamped - params.low) * (np.float32(1) / params.scale))
    return (np.asarray(steps * params.scale + params.low, np.float32),)


KERNELS = {
    "bucketize": Kernel(_lower_bucketize, _run_bucketize,
        "how many boundaries are not above x: int32. Integers are compared as float32; NaN is above all",
        "TFLite kernels/bucketize.cc"),
    "fake_quant": Kernel(_lower_fake_quant, _run_fake_quant,
        "FAKE_QUANT of float32: rounded to the levels between two bounds that are nudged so that 0 is a level; NaN is "
        "low",
        "TFLite kernels/fake_quant.cc, internal/quantization_util.cc (NudgeQuantizationRange, FakeQuantizeArray)"),
}  # fmt: skip
