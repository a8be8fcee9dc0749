"""What numpy's functions do to elements: names and formulas, which only move them, and what reductions read."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.graph import Array
from tflq.interpreter.recording.primitive import Ids, Taps, TapsOf

_INFIX = {
    "add": ("sum", "+"),
    "subtract": ("difference", "-"),
    "multiply": ("product", "*"),
    "divide": ("quotient", "/"),
    "floor_divide": ("floored quotient", "//"),
    "remainder": ("remainder", "mod"),
    "power": ("power", "**"),
    "left_shift": ("shifted left", "<<"),
    "right_shift": ("shifted right", ">>"),
    "bitwise_and": ("masked", "&"),
    "bitwise_or": ("bits", "|"),
    "bitwise_xor": ("bits", "^"),
    "less": ("is less", "<"),
    "less_equal": ("is at most", "<="),
    "greater": ("is greater", ">"),
    "greater_equal": ("is at least", ">="),
    "equal": ("is equal", "=="),
    "not_equal": ("differs", "!="),
}
_NAMED = {
    "maximum": ("larger", "max({0}, {1})"),
    "minimum": ("smaller", "min({0}, {1})"),
    "negative": ("negated", "-{0}"),
    "absolute": ("magnitude", "|{0}|"),
    "rint": ("rounded", "{0} rounded half to even"),
    "floor": ("floor", "floor({0})"),
    "trunc": ("truncated", "{0} cut toward 0"),
    "ceil": ("ceiling", "ceil({0})"),
}
REDUCED = {
    np.sum: "sum",
    np.prod: "product",
    np.max: "largest",
    np.min: "smallest",
    np.any: "any",
    np.all: "all",
    np.mean: "mean",
    np.std: "deviation",
    np.var: "variance",
    np.median: "median",
    np.argmax: "place of the largest",
    np.argmin: "place of the smallest",
    np.count_nonzero: "count",
}
UFUNC_REDUCED = {"add": "sum", "multiply": "product", "maximum": "largest", "minimum": "smallest"}
ROWS = {np.sort: "sorted", np.argsort: "order", np.cumsum: "running sum", np.cumprod: "running product"}
EACH = (np.clip, np.round, np.nan_to_num, np.real, np.imag, np.isclose)
MOVES = (
    *(np.reshape, np.transpose, np.moveaxis, np.swapaxes, np.ravel, np.squeeze, np.expand_dims, np.broadcast_to),
    *(np.concatenate, np.stack, np.hstack, np.vstack, np.repeat, np.tile, np.flip, np.roll, np.rollaxis, np.diagonal),
    *(np.split, np.array_split, np.pad, np.copy, np.atleast_1d, np.atleast_2d, np.delete, np.rot90),
    *(np.lib.stride_tricks.sliding_window_view, np.lib.stride_tricks.as_strided, np.take, np.take_along_axis),
)
MOVES_ALL = (np.append, np.broadcast_arrays)
FILLED = (np.zeros_like, np.ones_like, np.full_like, np.empty_like)


def words(ufunc: np.ufunc) -> tuple[str, str]:
    """Return the label and the formula of a universal function."""
    name = ufunc.__name__
    if name in _INFIX:
        label, sign = _INFIX[name]
        return label, f"{{0}} {sign} {{1}}"
    arguments = ", ".join(f"{{{i}}}" for i in range(ufunc.nin))
    return _NAMED.get(name, (name, f"{name}({arguments})"))


def along(ids: Ids, axis: Any) -> TapsOf:
    """Return the taps of a reduction along axes; an index of the result may have those axes with size 1, or not."""
    axes = tuple(range(ids.ndim)) if axis is None else tuple(np.atleast_1d(axis) % max(ids.ndim, 1))
    rows = np.moveaxis(ids, axes, range(-len(axes), 0)) if axes else ids[..., None]
    own = rows.shape[: ids.ndim - len(axes)]

    def taps(index: tuple[int, ...]) -> Taps:
        if len(index) == ids.ndim and axes:
            index = tuple(i for n, i in enumerate(index) if n not in axes)
        return Taps(rows.reshape(*own, -1)[index])

    return taps


def row(ids: Ids, axis: Any, is_running: bool) -> TapsOf:
    """Return the taps of what follows from a whole row, or from all up to its place in it."""

    def taps(index: tuple[int, ...]) -> Taps:
        if axis is None:
            return Taps(ids.reshape(-1)[: index[0] + 1 if is_running else None])
        along = int(axis) % ids.ndim
        row = np.moveaxis(ids, along, -1)[index[:along] + index[along + 1 :]]
        return Taps(row[: index[along] + 1] if is_running else row)

    return taps


def matrix(ids: Ids, columns: Array) -> TapsOf:
    """Return the taps of a product of matrices [..., A, K] and [..., K, B]."""

    def taps(index: tuple[int, ...]) -> Taps:
        *stack, row, column = index
        return Taps(_of_stack(ids, stack)[row], _of_stack(columns, stack)[:, column])

    return taps


def _of_stack(matrices: Array, index: list[int]) -> Array:
    """Return the matrix of a stack that broadcasts at an index."""
    own = index[len(index) - (matrices.ndim - 2) :]
    found: Array = matrices[tuple(0 if n == 1 else i for i, n in zip(own, matrices.shape, strict=False))]
    return found
