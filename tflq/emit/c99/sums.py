"""Sums, products, maxima and minima: over axes, over rows, of rows and columns, over windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tflq.emit.c99.bounds import bounds_of, bounds_of_type
from tflq.emit.c99.expression import Axis, Buffer, Expression, Fold, Operation, WindowFold, index_of
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.accumulate.taps import TransposedTaps, WindowTaps
from tflq.interpreter.recording.numpy_functions import Row
from tflq.interpreter.recording.primitive import Ids, Primitive
from tflq.interpreter.recording.tape import Kind, Record

if TYPE_CHECKING:
    from tflq.emit.c99.builder import Builder

_FOLDS = {
    **dict.fromkeys((np.sum, np.add), "sum"),
    **dict.fromkeys((np.prod, np.multiply), "product"),
    **dict.fromkeys((np.max, np.maximum), "largest"),
    **dict.fromkeys((np.min, np.minimum), "smallest"),
}
_WINDOWS = {
    "accumulate_convolution": "convolution_sum",
    "accumulate_depthwise": "convolution_sum",
    "window_sums": "window_sum",
    "window_maxima": "window_largest",
    "accumulate_transposed": "transposed_sum",
}


def fold_of(build: Builder, record: Record, rows: Ids, stay: int, places: Ids, axes: tuple[Axis, ...]) -> Expression:
    """Return a sum, product, maximum or minimum over axes of a record.

    Raises:
        UnsupportedError: another reduction.
    """
    function = _FOLDS.get(record.operation)
    if function is None:
        raise UnsupportedError(f"'{record.label}' has no form in C")
    own = rows.reshape(-1, *rows.shape[stay:])[places.reshape(-1)]
    kept = [n for n in rows.shape[stay:] if n > 1]
    inner = tuple(Axis(n, build.depth + 1 + i) for i, n in enumerate(kept))
    own = own.reshape(*places.shape, *kept)
    body = build.inner(own, axes, inner)
    return _folded(function, inner, body, record.values.dtype)


def row_of(build: Builder, record: Record, taps: Row, places: Ids, axes: tuple[Axis, ...]) -> Expression:
    """A running sum of which only the last element is read: a sum in order."""
    if record.operation is not np.cumsum or taps.axis is None:
        raise UnsupportedError(f"'{record.label}' has no form in C")
    axis = taps.axis % taps.ids.ndim
    index = np.unravel_index(places, record.values.shape)
    if not (index[axis] == taps.ids.shape[axis] - 1).all():
        raise UnsupportedError(f"'{record.label}' has no form in C")
    rows = np.moveaxis(taps.ids, axis, -1)
    own = tuple(part for n, part in enumerate(index) if n != axis)
    inner = (Axis(rows.shape[-1], build.depth + 1),)
    build.depth += 1
    body = build.build(rows[own], (*axes, *inner))
    build.depth -= 1
    return replace(_folded("sum", inner, body, record.values.dtype), is_ordered=True)


def product_of(build: Builder, record: Record, places: Ids, axes: tuple[Axis, ...]) -> Expression:
    """Sum of products of a row and a column, both computed or one constant."""
    x, y = _matrices(build, record)
    shape = record.values.shape
    index = np.unravel_index(places, shape)
    stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    left = np.broadcast_to(x, (*stack, *x.shape[-2:]))[index[:-1]]
    right = np.moveaxis(np.broadcast_to(y, (*stack, *y.shape[-2:])), -1, -2)[index[:-2] + index[-1:]]
    inner = (Axis(left.shape[-1], build.depth + 1),)
    operands = tuple(build.inner(part, axes, inner) for part in (left, right))
    low, high = bounds_of(np.multiply, operands, record.values.dtype)
    used = operands[0].axes | operands[1].axes
    body = Operation(record.values.dtype, low, high, used, np.multiply, operands, "product", False)
    return _folded("sum", inner, body, record.values.dtype)


def _matrices(build: Builder, record: Record) -> tuple[Ids, Ids]:
    """Return the numbers of [..., A, K] and [..., K, B]; constant weights get numbers."""
    if record.operation is np.matmul or "y" in record.operands:
        return record.operands["x"], record.operands["y"]
    assert record.taps is not None
    assert isinstance(record.operation, Primitive)
    if record.operation.function.__name__ != "accumulate_product":
        raise UnsupportedError(f"{_words(record)} have no form in C")
    x = record.operands["x"]
    columns = np.stack([_column(record, o) for o in range(record.values.shape[-1])], axis=-1)
    weights = build.tape.add(Kind.PARAM, columns.astype(np.int64), "weights")
    return x.reshape(*record.values.shape[:-1], x.shape[-1]), weights


def _column(record: Record, output: int) -> Array:
    assert record.taps is not None
    factors = record.taps((*(0,) * (record.values.ndim - 1), output)).factors
    assert factors is not None
    return factors


def window_of(
    build: Builder, record: Record, taps: WindowTaps | TransposedTaps, places: Ids, axes: tuple[Axis, ...]
) -> Expression:
    """Return what a record computes over the taps of a window.

    Raises:
        UnsupportedError: another function of windows.
    """
    assert isinstance(record.operation, Primitive)
    name = _WINDOWS.get(record.operation.function.__name__, "")
    if not name:
        raise UnsupportedError(f"{_words(record)} have no form in C")
    buffer = build.buffer(taps.x)
    indices = tuple(index_of(part, axes) for part in np.unravel_index(places, record.values.shape)[1:])
    used = frozenset(term.axis for index in indices for term in index.terms)
    outside = None if isinstance(taps, TransposedTaps) or taps.outside is None else int(taps.outside)
    weights, per_group = _weights(taps, record.values.shape[-1])
    if weights is None:
        count = taps.window.taps if name == "window_sum" else 1
        low, high = count * min(buffer.low, 0), count * max(buffer.high, 0)
    else:
        low, high = _sum_bounds(weights, buffer, outside or 0)
    shape = taps.x.shape[1:]
    return WindowFold(
        np.dtype(np.int64) if record.values.dtype.kind in "iu" else record.values.dtype,
        low,
        high,
        used,
        name,
        buffer,
        (shape[0], shape[1], shape[2], shape[3]),
        taps.window,
        outside,
        weights,
        (indices[0], indices[1], indices[2], indices[3]),
        per_group,
    )


def _weights(taps: WindowTaps | TransposedTaps, outputs: int) -> tuple[Array | None, int]:
    """Return weights int64[O, KH, KW, D], and how many outputs read the same input channels."""
    if isinstance(taps, TransposedTaps):
        return taps.weights.astype(np.int64), outputs
    found = [taps.weights(o) for o in range(outputs)]
    if found[0][0] is None:
        return None, 1
    starts = [channels.start for _, channels in found]
    return np.stack([np.asarray(weights) for weights, _ in found]).astype(np.int64), starts.count(starts[0])


def _folded(function: str, inner: tuple[Axis, ...], body: Expression, dtype: np.dtype[np.generic]) -> Fold:
    count = int(np.prod([axis.size for axis in inner], dtype=np.int64)) if inner else 1
    low, high = body.low, body.high
    if function == "sum":
        low, high = count * low, count * high
    elif function == "product":
        low, high = bounds_of_type(dtype)
    kind = dtype if dtype.kind == "f" and body.is_real else np.dtype(np.int64)
    return Fold(kind, low, high, body.axes - frozenset(inner), function, inner, body)


def _sum_bounds(weights: Array, image: Buffer, outside: int) -> tuple[int, int]:
    least, most = min(int(image.low), outside), max(int(image.high), outside)
    ends = np.stack([weights * least, weights * most])
    return int(ends.min(0).sum(axis=(1, 2, 3)).min()), int(ends.max(0).sum(axis=(1, 2, 3)).max())


def _words(record: Record) -> str:
    assert isinstance(record.operation, Primitive)
    name = record.operation.function.__name__.strip("_").replace("_", " ")
    return f"sums of real numbers ({name})" if record.values.dtype.kind == "f" else f"'{name}'"
