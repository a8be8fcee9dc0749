"""Folds of windows, what REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW share.

    y[p] = fold(fold(start, x[p*stride + k[0]*dilation]), x[p*stride + k[1]*dilation]), ...

over the places k of the window, the last axis fastest. Results are cut to the type after each step: integers wrap,
sums of floats depend on the order. bool is a byte, so that the sum of two true elements is the byte 2, as in TFLite;
`all` and `any` of numbers give 1 or 0. NaN: the larger is `a >= b ? a : b`, the smaller `a <= b ? a : b`.

Source: TFLite kernels/stablehlo_reduce_window.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.indexing import equal_samples

TYPES = (
    DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.BOOL,
)  # fmt: skip
_MAXIMUM_RANK = 6
_FOLDS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "minimum": lambda a, b: np.where(np.less_equal(a, b), a, b),
    "maximum": lambda a, b: np.where(np.greater_equal(a, b), a, b),
    "all": np.logical_and,
    "any": np.logical_or,
}


@dataclass(frozen=True)
class WindowFold:
    """Sizes along each of the model's own axes.

    Attributes:
        fold: name of the function.
        window: elements of the window.
        strides: distance of neighbouring windows.
        dilations: distance of neighbouring elements of a window.
    """

    fold: str
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return how many windows fit along each axis: 0 where none does."""
        spans = [(n - 1) * d + 1 for n, d in zip(self.window, self.dilations, strict=True)]
        return tuple(
            0 if n < span else (n - span) // step + 1 for n, span, step in zip(shape, spans, self.strides, strict=True)
        )


def require_foldable(operands: Operands) -> int:
    """Check input, start value and output; return the rank.

    Raises:
        UnsupportedError: types that differ or that TFLite does not fold.
        GraphError: no axis or more than six, or a start value without elements.
    """
    source, start = operands.input(0), operands.input(1)
    require_type(source, TYPES)
    require_same_type(source, start, operands.output())
    if not 1 <= len(source.shape) <= _MAXIMUM_RANK or start.size < 1:
        raise GraphError(
            f"input {source.shape} and start value {start.shape}; 1 to {_MAXIMUM_RANK} axes and an element are needed"
        )
    return len(source.shape)


def require_fold(name: str) -> str:
    """Return the name of a function that TFLite folds with.

    Raises:
        UnsupportedError: it is none.
    """
    if name not in _FOLDS:
        raise UnsupportedError(f"windows are folded with {name}; TFLite knows {', '.join(_FOLDS)}")
    return name


def fold_windows(params: WindowFold, x: Array, start: Array) -> Array:
    """Fold all windows: T[S or 1, *shape], T[S or 1, ...] -> T[S, *output shape]."""
    x, start = equal_samples(x, start.reshape(start.shape[0], -1)[:, 0])
    kind = np.dtype(np.int8) if x.dtype == np.bool_ else x.dtype
    shape = params.output_shape(x.shape[1:])
    source, fold = x.view(kind), _FOLDS[params.fold]
    first = start.view(kind).reshape(-1, *(1,) * len(shape))
    folded: Array = np.broadcast_to(first, (x.shape[0], *shape)).copy()
    if folded.size:
        with np.errstate(all="ignore"):
            for place in product(*(range(n) for n in params.window)):
                taps = (slice(None), *_taps(params, place, shape))
                folded = fold(folded, source[taps]).astype(kind, copy=False)
    return np.asarray(folded.view(x.dtype))


def _taps(params: WindowFold, place: Sequence[int], shape: Sequence[int]) -> list[slice]:
    """Return where the element at `place` of every window lies."""
    return [
        slice(k * dilation, k * dilation + (count - 1) * step + 1, step)
        for k, dilation, count, step in zip(place, params.dilations, shape, params.strides, strict=True)
    ]
