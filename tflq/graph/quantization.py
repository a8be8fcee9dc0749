"""How the params of a tensor stand for real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tflq.arrays import Doubles, Integers, Reals, Singles, is_same


@dataclass(frozen=True, eq=False)
class Affine:
    """real = scale * (q - zero_point), per tensor or along one axis.

    Attributes:
        scale: float[1] or float[C]; float32 as the file has it, or float64 where a target computes so. The type
            matters: effective multipliers are products of these in the precision that the vendor uses.
        zero_point: int64[1] or int64[C].
        axis: the axis of the C channels; None per tensor.
        bits: width of q.
        signed: whether q is signed.
        narrow_range: whether the lowest quantized value is unused (-127..127 for 8 bits).
    """

    scale: Reals
    zero_point: Integers
    axis: int | None = None
    bits: int = 8
    signed: bool = True
    narrow_range: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Affine) and is_same(tuple(vars(self).values()), tuple(vars(other).values()))

    def __hash__(self) -> int:
        return hash((self.scale.tobytes(), self.zero_point.tobytes(), self.axis, self.bits, self.signed))

    @classmethod
    def per_tensor(
        cls,
        scale: float | np.floating,
        zero_point: int = 0,
        bits: int = 8,
        signed: bool = True,
        narrow_range: bool = False,
    ) -> Affine:
        """Build a per-tensor quantization; a numpy scalar keeps its precision, a Python float becomes float64."""
        return cls(np.atleast_1d(np.asarray(scale)), np.array([zero_point], np.int64), None, bits, signed, narrow_range)

    @property
    def is_per_axis(self) -> bool:
        """Whether there is more than one scale."""
        return self.scale.size > 1

    @property
    def minimum_code(self) -> int:
        """Smallest q."""
        return (-(1 << (self.bits - 1)) if self.signed else 0) + self.narrow_range

    @property
    def maximum_code(self) -> int:
        """Largest q."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    def along(self, rank: int) -> tuple[Reals, Integers]:
        """Return scale and zero point shaped to broadcast against a tensor of this rank."""
        if not self.is_per_axis or self.axis is None:
            return self.scale.reshape((1,) * rank), self.zero_point.reshape((1,) * rank)
        shape = [1] * rank
        shape[self.axis] = -1
        return self.scale.reshape(shape), self.zero_point.reshape(shape)


@dataclass(frozen=True)
class Blockwise:
    """real = scale[block] * (q - zero_point[block]), blocks of equal length along the last axis.

    Attributes:
        scales: index of the tensor that holds the scales (float16 or float32), [..., last axis / block_size].
        zero_points: index of the tensor that holds the zero points, of the same shape; -1 (in files also 0) for none.
        block_size: elements that share one scale.
        block_shape: the block along every axis, where a file states it; empty elsewhere.
    """

    scales: int
    zero_points: int
    block_size: int
    block_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Logarithmic:
    """Sign and base-2 logarithmic magnitude (NNIE); `clipping` is the largest value that the quantized values reach.

    Attributes:
        clipping: largest magnitude, on the grid of the scheme.
        bits: 8 or 16.
    """

    clipping: float
    bits: int = 8


@dataclass(frozen=True, eq=False)
class FakeQuantize:
    """Levels between two bounds, kept as real numbers (OpenVINO).

    Attributes:
        levels: number of levels, at least 2.
        input_low: float32 bounds, scalars or per channel; so the other three.
        input_high: upper bound of the input.
        output_low: value of the lowest level.
        output_high: value of the highest level.
    """

    levels: int
    input_low: Singles
    input_high: Singles
    output_low: Singles
    output_high: Singles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FakeQuantize) and is_same(tuple(vars(self).values()), tuple(vars(other).values()))

    def __hash__(self) -> int:
        return hash((self.levels, self.input_low.tobytes(), self.input_high.tobytes()))


Quantization = Affine | Blockwise | Logarithmic | FakeQuantize


@dataclass(frozen=True, eq=False)
class Range:
    """The real range of a tensor that the file or a calibration states: float arrays [1] or [C].

    Attributes:
        minimum: least value.
        maximum: greatest value.
        statistics: what else a file of another tool's calibration says, by its name there.
    """

    minimum: Reals
    maximum: Reals
    statistics: Mapping[str, Doubles] = field(default_factory=dict, kw_only=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Range) and is_same((self.minimum, self.maximum), (other.minimum, other.maximum))

    def __hash__(self) -> int:
        return hash((self.minimum.tobytes(), self.maximum.tobytes()))
