"""Elementwise operators of StableHLO: T[S or 1, *shape] twice, equal types and equal shapes -> T[S, *shape]."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType
from tflq.interpreter.kernels.plain.elementwise import binary

INTEGERS = (
    DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL,
)  # fmt: skip
NUMBERS = (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, *INTEGERS)


def _shift_left(_: DType, x: Array, y: Array) -> Array:
    count = y.astype(np.int32) & 31
    return np.asarray(np.left_shift(x.astype(np.int32), count).astype(x.dtype))


KERNELS = {
    "stablehlo_add": binary(
        "STABLEHLO_ADD: x + y; integers wrap, bools are joined by or",
        "TFLite kernels/stablehlo_add.cc, stablehlo_elementwise.h",
        NUMBERS,
        lambda _, x, y: np.asarray(np.add(x, y)),
        broadcasts=False,
    ),
    "stablehlo_and": binary(
        "STABLEHLO_AND: x and y, bit by bit",
        "TFLite kernels/stablehlo_and.cc, stablehlo_elementwise.h; in TFLite's optimised set only",
        INTEGERS,
        lambda _, x, y: np.asarray(np.bitwise_and(x, y)),
        broadcasts=False,
    ),
    "stablehlo_maximum": binary(
        "STABLEHLO_MAXIMUM: x < y ? y : x",
        "TFLite kernels/stablehlo_min_max.cc, stablehlo_elementwise.h",
        NUMBERS,
        lambda _, x, y: np.where(np.less(x, y), y, x),
        broadcasts=False,
    ),
    "stablehlo_minimum": binary(
        "STABLEHLO_MINIMUM: y < x ? y : x",
        "TFLite kernels/stablehlo_min_max.cc, stablehlo_elementwise.h",
        NUMBERS,
        lambda _, x, y: np.where(np.less(y, x), y, x),
        broadcasts=False,
    ),
    "stablehlo_multiply": binary(
        "STABLEHLO_MULTIPLY: x * y; integers wrap, bools are joined by and",
        "TFLite kernels/stablehlo_multiply.cc, stablehlo_elementwise.h",
        NUMBERS,
        lambda _, x, y: np.asarray(np.multiply(x, y)),
        broadcasts=False,
    ),
    "stablehlo_shift_left": binary(
        "STABLEHLO_SHIFT_LEFT: x << y; int8 and int16 are widened to int32 first and cut after. Counts outside 0 .. 31 "
        "are undefined in C++; they count modulo 32 here, as on x86",
        "TFLite kernels/stablehlo_shift_left.cc; in TFLite's optimised set only",
        (DType.INT8, DType.INT16, DType.INT32),
        _shift_left,
        broadcasts=False,
    ),
}
