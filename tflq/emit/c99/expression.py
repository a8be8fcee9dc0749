"""What one element of an array is computed from, with the loops that it depends on, and where elements lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.recording.primitive import Ids

Number = int | float
INT32 = (-(1 << 31), (1 << 31) - 1)


@dataclass(frozen=True, eq=False)
class Axis:
    """One loop.

    Attributes:
        size: how many turns.
        level: how deep it stands: 1 for the outermost.
    """

    size: int
    level: int


@dataclass(frozen=True, eq=False)
class Expression:
    """One number for each turn of the loops.

    Attributes:
        dtype: its type in numpy.
        low: no value is below.
        high: no value is above.
        axes: loops on which it depends.
    """

    dtype: np.dtype[np.generic]
    low: Number
    high: Number
    axes: frozenset[Axis]

    @property
    def is_real(self) -> bool:
        """Whether it is a floating-point number."""
        return self.dtype.kind == "f"

    @property
    def c_type(self) -> str:
        """The C type that holds every value."""
        if self.is_real:
            return "double" if self.dtype.itemsize == 8 else "float"
        return "int32_t" if INT32[0] <= self.low and self.high <= INT32[1] else "int64_t"


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A number of the params: one for all, or an array over some of the loops.

    Attributes:
        values: [size of each loop of `order`].
        order: the loops, outermost first; none for a single number.
        name: of the field that it comes from.
    """

    values: Array
    order: tuple[Axis, ...]
    name: str


@dataclass(frozen=True)
class Term:
    """What one loop adds to an index: `stride` times its counter, or the entry of a table.

    Attributes:
        axis: the loop.
        stride: elements.
        table: int64[size of the loop]; None where the stride says it all.
    """

    axis: Axis
    stride: int
    table: Array | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Index:
    """Start plus the terms."""

    start: int
    terms: tuple[Term, ...]


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array in memory: a tensor that the layer reads or writes, an argument of a function, or an intermediate one.

    Attributes:
        name: in C.
        dtype: of the elements.
        low: smallest element.
        high: largest element.
        size: elements.
        is_scalar: an argument that is one number.
    """

    name: str
    dtype: np.dtype[np.generic]
    low: Number
    high: Number
    size: int
    is_scalar: bool = False


@dataclass(frozen=True, eq=False)
class Load(Expression):
    """An element of a buffer."""

    buffer: Buffer
    index: Index


@dataclass(frozen=True, eq=False)
class Operation(Expression):
    """An operation of other expressions.

    Attributes:
        operation: numpy's function, a `Call`, or "cast", "select", "view".
        operands: in its order.
        label: what the step is called.
        wraps: whether results that do not fit the type lose their high bits.
    """

    operation: object
    operands: tuple[Expression, ...]
    label: str
    wraps: bool


@dataclass(frozen=True, eq=False)
class LookUp(Expression):
    """An entry of a table: base + stride * index.

    Attributes:
        table: its entries, or the memory that holds them.
        index: which one.
        base: place of the first one.
        stride: entries from one index to the next.
        name: of the table.
    """

    table: Array | Buffer
    index: Expression
    base: Index
    stride: int
    name: str


@dataclass(frozen=True, eq=False)
class Fold(Expression):
    """A sum, product, maximum or minimum over inner loops.

    Attributes:
        function: "sum", "product", "largest" or "smallest".
        inner: the inner loops.
        body: what is summed.
        is_ordered: whether numpy adds one after the other, so that real numbers are rounded alike.
    """

    function: str
    inner: tuple[Axis, ...]
    body: Expression
    is_ordered: bool = False


@dataclass(frozen=True, eq=False)
class WindowFold(Expression):
    """A sum of products, a sum or a maximum over the taps of a window.

    Attributes:
        function: "convolution_sum", "window_sum" or "window_largest".
        buffer: the image [N, H, W, C].
        shape: of the image.
        window: where the taps lie.
        outside: what taps outside hold; None where they are skipped.
        weights: int64[O, KH, KW, D]; None without.
        place: (image, row, column, channel) of the output.
        outputs_per_group: O / groups; 1 without weights.
    """

    function: str
    buffer: Buffer
    shape: tuple[int, int, int, int]
    window: Window
    outside: int | None
    weights: Array | None
    place: tuple[Index, Index, Index, Index]
    outputs_per_group: int


@dataclass(frozen=True, eq=False)
class Nest:
    """Loops that fill a part of a buffer.

    Attributes:
        target: what is filled.
        index: of the element.
        axes: the loops, outermost first.
        value: of the element.
    """

    target: Buffer
    index: Index
    axes: tuple[Axis, ...]
    value: Expression


def order_parts(root: Expression) -> Iterator[Expression]:
    """Yield the parts of an expression, each once, operands before what uses them."""
    seen: set[Expression] = set()
    stack = [(root, False)]
    while stack:
        expression, is_done = stack.pop()
        if is_done:
            yield expression
            continue
        if expression in seen:
            continue
        seen.add(expression)
        stack.append((expression, True))
        stack.extend((part, False) for part in reversed(parts_of(expression)))


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return what an expression is computed from."""
    if isinstance(expression, Operation):
        return expression.operands
    if isinstance(expression, LookUp):
        return (expression.index,)
    return (expression.body,) if isinstance(expression, Fold) else ()


def index_of(places: Ids, axes: tuple[Axis, ...]) -> Index:
    """Write places as a start and one term a loop.

    Raises:
        UnsupportedError: they are no such sum.
    """
    if places.size == 0:
        raise UnsupportedError("a tensor without elements")
    start = int(places[(0,) * places.ndim])
    terms: list[Term] = []
    total: Ids = np.full((1,) * places.ndim, start, np.int64)
    for n, axis in enumerate(axes):
        line = np.moveaxis(places, n, 0).reshape(axis.size, -1)[:, 0] - start
        shape = [1] * places.ndim
        shape[n] = axis.size
        total = total + line.reshape(shape)
        if axis.size == 1 or not line.any():
            continue
        stride = int(line[1])
        is_even = np.array_equal(line, stride * np.arange(axis.size))
        terms.append(Term(axis, stride if is_even else 0, None if is_even else line))
    if not np.array_equal(np.broadcast_to(total, places.shape), places):
        raise UnsupportedError("elements are moved to places that no sum over the axes describes")
    return Index(start, tuple(terms))


def varying(ids: Ids, axes: tuple[Axis, ...]) -> tuple[Ids, tuple[Axis, ...]]:
    """Leave out the loops along which numbers do not change."""
    kept: list[Axis] = []
    for axis in axes:
        n = len(kept)
        first = np.take(ids, 0, n)
        if axis.size > 1 and not (ids == np.expand_dims(first, n)).all():
            kept.append(axis)
        else:
            ids = first
    return ids, tuple(kept)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many elements lie between neighbors along each axis."""
    return tuple(int(np.prod(shape[n + 1 :], dtype=np.int64)) for n in range(len(shape)))


def cut_of(records: Array) -> tuple[int, int]:
    """Return the axis along which the operation changes at the fewest places, and the first of them."""
    found = []
    for n in range(records.ndim):
        rows = np.moveaxis(records, n, 0).reshape(records.shape[n], -1)
        changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
        if changes.size:
            found.append((changes.size, n, int(changes[0])))
    _, axis, at = min(found)
    return axis, at
