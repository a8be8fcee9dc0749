"""The structs of kernels.c; its comments say what the fields are."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array

T = TypeVar("T", bound=np.generic)
ALIGNMENT = 64
"""Bytes of the widest vector, and of a line of the cache."""
_INT32, _INT64, _FLOAT, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p


class LayerKind(IntEnum):
    """What a layer does: enum kind."""

    READ = 0
    WRITE = 1
    DENSE = 2
    DEPTHWISE = 3
    AVERAGE = 4
    LARGEST = 5
    PAIR = 6
    TABLE = 7
    SOFTMAX = 8
    ROUNDED_PAIR = 9
    READ_REALS = 10
    WRITE_REALS = 11
    TO_REALS = 12
    REAL_SUM = 13


def _fields(text: str) -> list[tuple[str, type]]:
    """Return fields of lines "type: names"."""
    kinds = {"int32": _INT32, "int64": _INT64, "float": _FLOAT, "double": ctypes.c_double, "pointer": _POINTER}
    lines = [line.split(":") for line in text.strip().splitlines()]
    return [(name, kinds[kind.strip()]) for kind, names in lines for name in names.split()]


class CMap(ctypes.Structure):
    """struct map."""

    _fields_ = _fields("""
        pointer: offset scale low high wide_offset wide_scale wide_low wide_high bias at value rows
        int32: channels stride
        float: minimum maximum
    """)


class CLayer(ctypes.Structure):
    """struct layer."""

    _fields_ = [
        *_fields("""
            int32: kind slot
            int64: x second y
            int32: x_least second_least y_least x_row second_row y_row rows length
            int32: pixels blocks groups apart taps pieces piece_apart outputs neighbours x_pixel y_pixel
            int32: height width out_width kernel_y kernel_x stride_y stride_x top left
            pointer: x_at y_at steps start weights table table_at exponentials addends
            double: first_scale second_scale offset first_offset second_offset scale
            int32: is_single of_nan zero is_away
            pointer: thresholds numbers
        """),
        ("map", CMap),
    ]


class CPlan(ctypes.Structure):
    """struct plan."""

    _fields_ = _fields("""
        pointer: layers
        int32: count batch
        int64: sample_bytes slots
        pointer: slot_bytes
    """)


def fill(target: ctypes.Structure, owner: list[Array], **values: object) -> None:
    """Set fields of a struct; arrays go in as pointers to aligned copies, which `owner` keeps alive."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            kept = aligned_copy(value)
            owner.append(kept)
            setattr(target, name, kept.ctypes.data)
        elif value is not None:
            setattr(target, name, value)


def aligned_copy(array: NDArray[T]) -> NDArray[T]:
    """Return a copy that begins at a multiple of ALIGNMENT, so that no vector lies across two lines of the cache."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy: NDArray[T] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
