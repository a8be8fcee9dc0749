"""Effects of numpy's functions on elements: names and formulas, functions that only move them, reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.graph import Array
from tflq.interpreter.recording.primitive import Ids, Taps, TapsOf

_INFIX: dict[np.ufunc, tuple[str, str]] = {
    np.add: ("sum", "+"),
    np.subtract: ("difference", "-"),
    np.multiply: ("product", "*"),
    np.divide: ("quotient", "/"),
    np.floor_divide: ("floored quotient", "//"),
    np.remainder: ("remainder", "mod"),
    np.power: ("power", "**"),
    np.left_shift: ("shifted left", "<<"),
    np.right_shift: ("shifted right", ">>"),
    np.bitwise_and: ("masked", "&"),
    np.bitwise_or: ("bits", "|"),
    np.bitwise_xor: ("bits", "^"),
    np.less: ("is less", "<"),
    np.less_equal: ("is at most", "<="),
    np.greater: ("is greater", ">"),
    np.greater_equal: ("is at least", ">="),
    np.equal: ("is equal", "=="),
    np.not_equal: ("differs", "!="),
}
_NAMED: dict[np.ufunc, tuple[str, str]] = {
    np.maximum: ("larger", "max({0}, {1})"),
    np.minimum: ("smaller", "min({0}, {1})"),
    np.negative: ("negated", "-{0}"),
    np.absolute: ("magnitude", "|{0}|"),
    np.rint: ("rounded", "{0} rounded half to even"),
    np.floor: ("floor", "floor({0})"),
    np.trunc: ("truncated", "{0} cut toward 0"),
    np.ceil: ("ceiling", "ceil({0})"),
}
REDUCED: dict[Callable[..., object], str] = {
    **{function: function.__name__ for function in (np.sum, np.any, np.all, np.mean)},
    np.prod: "product",
    np.max: "largest",
    np.min: "smallest",
    np.std: "deviation",
    np.var: "variance",
    np.median: "median",
    np.argmax: "place of the largest",
    np.argmin: "place of the smallest",
    np.count_nonzero: "count",
}
UFUNC_REDUCED: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "product",
    np.maximum: "largest",
    np.minimum: "smallest",
}
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
    if ufunc in _INFIX:
        label, sign = _INFIX[ufunc]
        return label, f"{{0}} {sign} {{1}}"
    arguments = ", ".join(f"{{{i}}}" for i in range(ufunc.nin))
    return _NAMED.get(ufunc, (name, f"{name}({arguments})"))


@dataclass(frozen=True, eq=False)
class Along:
    """Taps of a reduction along axes.

    Attributes:
        rows: numbers of the elements, [axes that stay, axes that are reduced].
        axes: Reduced axes of the operand.
        stay: Number of axes that stay.
    """

    rows: Ids
    axes: tuple[int, ...]
    stay: int

    def __call__(self, index: tuple[int, ...]) -> Taps:
        """Return the taps of an element; its index may have the reduced axes with size 1, or not."""
        if len(index) == self.stay + len(self.axes) and self.axes:
            index = tuple(i for n, i in enumerate(index) if n not in self.axes)
        return Taps(self.rows.reshape(*self.rows.shape[: self.stay], -1)[index])


def along(ids: Ids, axis: Any) -> Along:
    """Return the taps of a reduction along axes; None for all."""
    axes = tuple(range(ids.ndim)) if axis is None else tuple(np.atleast_1d(axis) % max(ids.ndim, 1))
    rows = np.moveaxis(ids, axes, range(-len(axes), 0)) if axes else ids[..., None]
    return Along(rows, axes, ids.ndim - len(axes))


@dataclass(frozen=True, eq=False)
class Row:
    """Taps of elements that follow from a whole row, or from all up to their place in it.

    Attributes:
        ids: numbers of the elements.
        axis: Axis of the rows; None if all elements are one.
        is_running: whether only elements up to its place count.
    """

    ids: Ids
    axis: int | None
    is_running: bool

    def __call__(self, index: tuple[int, ...]) -> Taps:
        """Return the taps of an element."""
        if self.axis is None:
            return Taps(self.ids.reshape(-1)[: index[0] + 1 if self.is_running else None])
        along = int(self.axis) % self.ids.ndim
        row = np.moveaxis(self.ids, along, -1)[index[:along] + index[along + 1 :]]
        return Taps(row[: index[along] + 1] if self.is_running else row)


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
