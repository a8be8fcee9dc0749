"""What the families draw in common: values, quantization, operands that are constant or computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from tests.conformance.cells import Cell, Kind
from tests.support import draw as support
from tests.support.nodes import Operand, Result, fixed, sampled, values
from tflq.graph import Affine, Array, DType

Draw = st.DrawFn
SAMPLES = 3
FUSED = ["none", "relu", "relu6", "relu_n1_to_1"]


def pick(draw: Draw, options: Sequence[object]) -> object:
    return draw(st.sampled_from(options))


def whole(draw: Draw, low: int, high: int) -> int:
    return draw(st.integers(low, high))


def flag(draw: Draw) -> bool:
    return draw(st.booleans())


def rng_of(draw: Draw) -> np.random.Generator:
    return np.random.default_rng(draw(support.seeds))


def shape_of(draw: Draw, rank: int = 4, size: int = 5) -> tuple[int, ...]:
    return draw(support.shapes(rank, size))


def axis_of(draw: Draw, shape: Sequence[int]) -> int:
    """Any axis, negative ones too."""
    return draw(st.integers(-len(shape), len(shape) - 1))


def quantization(draw: Draw, kind: Kind | DType, low: int = -12, high: int = 3) -> Affine | None:
    """Scales from 2^low to 2^high and any zero point that TFLite allows; None for a kind without."""
    if isinstance(kind, Kind):
        if not kind.is_quantized:
            return None
        kind = kind.dtype
    return draw(support.quantizations(kind, low, high))


def affine(dtype: DType, scale: float, zero_point: int = 0) -> Affine:
    return support.affine(dtype, scale, zero_point)


def numbers(draw: Draw, dtype: DType, shape: Sequence[int], samples: int = SAMPLES, bound: int | None = None) -> Array:
    """Samples [S, *shape]: integers of the whole range or within +-bound; reals large, small, equal and near 0."""
    rng = rng_of(draw)
    full = (samples, *shape)
    if dtype.is_integer:
        low = dtype.minimum if bound is None else max(dtype.minimum, -bound)
        high = dtype.maximum if bound is None else min(dtype.maximum, bound)
        return rng.integers(low, high, full, dtype.storage, endpoint=True)
    if dtype.is_floating and dtype.storage.kind == "f":
        spread = [np.ones(full), 2.0 ** rng.integers(-8, 8, full), np.full(full, 0.01)][whole(draw, 0, 2)]
        reals = rng.normal(size=full) * spread
        return (np.rint(reals * 2) / 2 if flag(draw) else reals).astype(dtype.storage)
    if dtype.storage.kind == "c":
        return (rng.normal(size=full) + 1j * rng.normal(size=full)).astype(dtype.storage)
    drawn = values(int(rng.integers(1 << 31)), full, dtype)
    if dtype is DType.STRING and not shape:  # TFLite's Python interface turns an empty scalar into a zero byte
        drawn = np.where(drawn == b"", b"x", drawn)
    return drawn


def data(draw: Draw, cell: Cell, shape: Sequence[int], q: Affine | None = None, bound: int | None = None) -> Operand:
    """An input of the cell's type."""
    return sampled(numbers(draw, cell.dtype, shape, bound=bound), q, cell.dtype)


def result(cell: Cell, q: Affine | None = None) -> Result:
    """An output of the cell's type."""
    return Result(cell.dtype, q)


def either(draw: Draw, operand: Operand) -> Operand:
    """An input, or its first sample as a constant."""
    first = operand.value[:1].reshape(operand.value.shape[1:])  # value[0] of a scalar string is no array
    return fixed(first, operand.quantization, operand.dtype) if flag(draw) else operand


def index_operand(draw: Draw, array: Array) -> Operand:
    """Samples of indices, of int32 or int64, that are computed or constant."""
    kind = np.int64 if flag(draw) else np.int32
    return either(draw, sampled(array.astype(kind)))


def ints(draw: Draw, value: object) -> Operand:
    """A constant of int32, or of int64."""
    return fixed(np.asarray(value, np.int64 if flag(draw) else np.int32))


def int32(value: object) -> Operand:
    """A constant of int32."""
    return fixed(np.asarray(value, np.int32))
