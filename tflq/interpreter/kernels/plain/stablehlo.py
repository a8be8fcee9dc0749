"""Elementwise operators of StableHLO: T[S or 1, *shape] twice, equal types and equal shapes -> T[S, *shape]."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tflq.graph import Array, DType
from tflq.interpreter.kernels.plain.elementwise import BinaryFunction, binary
from tflq.interpreter.registry import Kernel

INTEGERS = (
    DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL,
)  # fmt: skip
NUMBERS = (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, *INTEGERS)


def _shift_left(_: DType, x: Array, y: Array) -> Array:
    count = y.astype(np.int32) & 31
    return np.asarray(np.left_shift(x.astype(np.int32), count).astype(x.dtype))


def _row(summary: str, file: str, allowed: Collection[DType], function: BinaryFunction) -> Kernel:
    return binary(summary, f"TFLite kernels/{file}, stablehlo_elementwise.h", allowed, function, broadcasts=False)


KERNELS = {
    "stablehlo_add": _row(
        "x + y; integers wrap, bools are joined by or",
        "stablehlo_add.cc",
        NUMBERS,
        lambda _, x, y: np.asarray(np.add(x, y)),
    ),
    "stablehlo_and": _row(
        "x and y, bit by bit; in TFLite's optimised set only",
        "stablehlo_and.cc",
        INTEGERS,
        lambda _, x, y: np.asarray(np.bitwise_and(x, y)),
    ),
    "stablehlo_maximum": _row(
        "x < y ? y : x", "stablehlo_min_max.cc", NUMBERS, lambda _, x, y: np.where(np.less(x, y), y, x)
    ),
    "stablehlo_minimum": _row(
        "y < x ? y : x", "stablehlo_min_max.cc", NUMBERS, lambda _, x, y: np.where(np.less(y, x), y, x)
    ),
    "stablehlo_multiply": _row(
        "x * y; integers wrap, bools are joined by and",
        "stablehlo_multiply.cc",
        NUMBERS,
        lambda _, x, y: np.asarray(np.multiply(x, y)),
    ),
    "stablehlo_shift_left": binary(
        "x << y; int8 and int16 are widened to int32 first and cut after. Counts outside 0 .. 31 "
        "are undefined in C++; they count modulo 32 here, as on x86",
        "TFLite kernels/stablehlo_shift_left.cc; in TFLite's optimised set only",
        (DType.INT8, DType.INT16, DType.INT32),
        _shift_left,
        broadcasts=False,
    ),
}
