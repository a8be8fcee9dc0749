"""From the tape of a kernel to loops: which expression each element of an array is, as a function of its place.

Every element on a tape has a number. An array of such numbers, one for each turn of some loops, says what is computed
there: all of one operation, whose operands are arrays of numbers again. Places in memory become sums of one term for
each loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.emit.c99.bounds import WHOLE_ALREADY, as_whole, bounds_of, bounds_of_type, called, smallest_type
from tflq.emit.c99.expression import (
    Axis,
    Buffer,
    Constant,
    Expression,
    Index,
    Load,
    LookUp,
    Nest,
    Number,
    Operation,
    Term,
    cut_of,
    index_of,
    strides_of,
    varying,
)
from tflq.emit.c99.recorder import Call, Chosen
from tflq.emit.c99.stored import Stored, is_worth_memory, shape_of
from tflq.emit.c99.sums import fold_of, product_of, row_of, window_of
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.accumulate.taps import TransposedTaps, WindowTaps
from tflq.interpreter.recording.numpy_functions import Along, Row
from tflq.interpreter.recording.primitive import Ids, Primitive
from tflq.interpreter.recording.tape import Kind, Record, Tape

MOST_PARTS = 64
"""Parts into which an array is cut where its elements come from several places."""


class Mixed(Exception):  # noqa: N818
    """Elements of several operations in one array; `axis` and `at` say where to cut it."""

    def __init__(self, axis: Axis, at: int) -> None:
        super().__init__(f"cut at {at}")
        self.axis, self.at = axis, at


class Builder:
    """Makes the loops of one function."""

    def __init__(self, tape: Tape, inputs: Sequence[Buffer | None]) -> None:
        """Start.

        Args:
            tape: of `ProgramOperations`.
            inputs: the buffers of the kernel's inputs, by position.
        """
        self.tape = tape
        self.nests: list[Nest] = []
        self._inputs = inputs
        self._is_primitive = any(b is not None and b.is_scalar for b in inputs)  # its callers keep to its tables
        self._made: dict[tuple[int, tuple[Axis, ...], bytes], Expression] = {}
        self._buffers: dict[int, Buffer] = {}
        self._stored = Stored(tape)
        self.depth = 0

    def fill(self, target: Buffer, ids: Ids) -> None:
        """Add the loops that fill a buffer with the elements of these numbers.

        Raises:
            UnsupportedError: what an element follows from cannot be told from its place, or has no form in C.
        """
        while True:
            before: int = len(self.nests)
            known = self._stored.count
            self._fill(target, ids)
            if self._stored.count == known:
                break
            self.nests[before:] = [nest for nest in self.nests[before:] if nest.target is not target]
            self._made.clear()  # once more: what was stored meanwhile is read from memory everywhere

    def output(self, target: Buffer, ids: Ids) -> None:
        """Fill a buffer whose elements are read where they are needed once more."""
        before = len(self.nests)
        self.fill(target, ids)
        values = [nest.value for nest in self.nests[before:] if nest.target is target]
        low, high = min(v.low for v in values), max(v.high for v in values)
        self._stored.add(replace(target, low=low, high=high), ids, values[0] if len(values) == 1 else None)
        self._made.clear()

    def _fill(self, target: Buffer, ids: Ids) -> None:
        flat = ids.reshape(-1)
        if flat.size > 1 and self._fill_flat(target, flat):
            return
        shape = shape_of(self.tape, ids)
        strides = strides_of(shape)
        parts: list[tuple[Ids, tuple[int, ...]]] = [(ids.reshape(shape), (0,) * len(shape))]
        count = 0
        while parts:
            part, start = parts.pop()
            if count + len(parts) > MOST_PARTS:
                raise UnsupportedError(f"its elements come from more than {MOST_PARTS} places")
            axes = tuple(Axis(n, level + 1) for level, n in enumerate(part.shape))
            outer, self.depth = self.depth, len(axes)
            try:
                value = self.build(part, axes)
            except Mixed as mixed:
                if mixed.axis not in axes:
                    raise UnsupportedError("a sum over elements of several operations") from mixed
                cut = axes.index(mixed.axis)
                first, second = np.split(part, [mixed.at], cut)
                moved = tuple(s + (mixed.at if n == cut else 0) for n, s in enumerate(start))
                parts += [(second, moved), (first, start)]
                continue
            finally:
                self.depth = outer
            count += 1
            origin = sum(s * stride for s, stride in zip(start, strides, strict=True))
            terms = tuple(Term(a, stride) for a, stride in zip(axes, strides, strict=True) if a.size > 1)
            self.nests.append(Nest(target, Index(origin, terms), axes, value))

    def build(self, ids: Ids, axes: tuple[Axis, ...]) -> Expression:
        """Return the expression of these numbers, one for each turn of the loops.

        Loops along which they do not change are left out first: what does not depend on them is computed once.
        """
        ids, axes = varying(ids, axes)
        stored = self._stored.find(ids)
        if stored is not None:
            return self._load(*stored, axes)
        records, places = self.tape.locate(ids.reshape(-1))
        first = self.tape.records[int(records[0])]
        if (records != records[0]).any():
            kinds = {self.tape.records[r].kind for r in np.unique(records).tolist()}
            if kinds <= {Kind.PARAM, Kind.LITERAL}:
                return self._gathered(records, places, ids.shape, axes)
            axis, at = cut_of(records.reshape(ids.shape))
            raise Mixed(axes[axis], at)
        key = (int(records[0]), axes, places.tobytes())
        if key not in self._made:
            self._made[key] = self._of_record(first, places.reshape(ids.shape), axes)
        return self._made[key]

    def inner(self, ids: Ids, axes: tuple[Axis, ...], inner: tuple[Axis, ...]) -> Expression:
        """Return what a sum goes over: as `build`, or memory filled before where elements come from several places."""
        self.depth += len(inner)
        try:
            found = self.build(ids, (*axes, *inner))
        except Mixed as mixed:
            if mixed.axis not in inner:
                raise
            found = None
        finally:
            self.depth -= len(inner)
        if found is not None and not is_worth_memory(found, inner, axes):
            return found
        ids, used = varying(ids, (*axes, *inner))
        buffer = self.buffer(ids)
        if found is not None:
            self._stored.add(buffer, ids)
        return self._load(buffer, np.arange(ids.size).reshape(ids.shape), used)

    def _fill_flat(self, target: Buffer, flat: Ids) -> bool:
        """Fill with one loop where nothing depends on more than the place in it; else do nothing."""
        axis = Axis(flat.size, 1)
        nests, outer, known = len(self.nests), self.depth, (dict(self._made), dict(self._buffers))
        stored, self.depth = self._stored.count, 1
        value: Expression | None
        try:
            value = self.build(flat, (axis,))
        except (Mixed, UnsupportedError):
            value = None
        finally:
            self.depth = outer
        if value is None or not _is_flat(value):
            del self.nests[nests:]
            self._made, self._buffers = known
            self._stored.forget(stored)
            return False
        self.nests.append(Nest(target, Index(0, (Term(axis, 1),)), (axis,), value))
        return True

    def _gathered(self, records: Array, places: Ids, shape: tuple[int, ...], axes: tuple[Axis, ...]) -> Expression:
        kinds = {self.tape.records[r].values.dtype for r in np.unique(records).tolist()}
        values = np.empty(len(places), np.result_type(*kinds))
        for r in np.unique(records).tolist():
            mine = records == r
            values[mine] = self.tape.records[r].values.reshape(-1)[places[mine]]
        return _constant(values.reshape(shape), axes, "constants")

    def _of_record(self, record: Record, places: Ids, axes: tuple[Axis, ...]) -> Expression:
        if record.kind in (Kind.PARAM, Kind.LITERAL):
            return _constant(record.values.reshape(-1)[places], axes, record.label or "constants")
        if record.kind is Kind.INPUT:
            buffer = self._inputs[record.position]
            assert buffer is not None
            return self._load(buffer, places, axes)
        if record.kind is Kind.OPAQUE:
            raise UnsupportedError(f"{record.label}: numpy's function has no form in C")
        if isinstance(record.taps, (WindowTaps, TransposedTaps)):
            return window_of(self, record, record.taps, places, axes)
        if isinstance(record.taps, Along):
            return fold_of(self, record, record.taps.rows, record.taps.stay, places, axes)
        if isinstance(record.taps, Row):
            return row_of(self, record, record.taps, places, axes)
        if record.operation is np.matmul or (isinstance(record.operation, Primitive) and record.taps is not None):
            return product_of(self, record, places, axes)
        return self._operation(record, places, axes)

    def _load(self, buffer: Buffer, places: Ids, axes: tuple[Axis, ...]) -> Load:
        index = index_of(places, axes)
        used = frozenset(term.axis for term in index.terms)
        return Load(buffer.dtype, buffer.low, buffer.high, used, buffer, index)

    def _operation(self, record: Record, places: Ids, axes: tuple[Axis, ...]) -> Expression:
        shape = record.values.shape

        def operand(name: str) -> Expression:
            ids = np.broadcast_to(record.operands[name], shape).reshape(-1)[places]
            return self.build(ids, axes)

        dtype = record.values.dtype
        if record.operation == "look up" or isinstance(record.operation, Chosen):
            return self._looked_up(record, places, operand("1"), axes)
        operation: object = record.operation
        operands = tuple(operand(name) for name in record.operands)
        if operation is np.clip:
            operation, operands = _without_infinite_ends(operands)
            if operation is None:
                return operands[0]
        if operation is None:
            raise UnsupportedError(f"'{record.label}' has no form in C")
        if isinstance(operation, Call) and operation.rule.body:
            return called(record.label, operation, operands)
        whole = as_whole(operation, operands, dtype)
        if whole is not None:
            operands, dtype = whole, np.dtype(np.int64)
            if operation == "cast" or operation in WHOLE_ALREADY:
                return operands[0]
        low, high = bounds_of(operation, operands, dtype)
        if operation is np.subtract:
            low, high = self._ordered(record, places, low, high)
        least, most = bounds_of_type(dtype)
        wraps = dtype.kind in "iu" and (low < least or high > most)
        if wraps:
            low, high = least, most
        used = frozenset().union(*(x.axes for x in operands))
        return Operation(dtype, low, high, used, operation, operands, record.label, wraps and dtype.itemsize < 8)

    def _ordered(self, record: Record, places: Ids, low: Number, high: Number) -> tuple[Number, Number]:
        """Return the bounds of a difference: none is below 0 where a row's largest element is the first operand."""
        shape = record.values.shape
        first, second = (np.broadcast_to(record.operands[k], shape).reshape(-1)[places] for k in "01")
        if self._is_largest_of(first, second):
            return 0, high
        return (low, 0) if self._is_largest_of(second, first) else (low, high)

    def _is_largest_of(self, found: Ids, elements: Ids) -> bool:
        records, at = self.tape.locate(found.reshape(-1))
        record = self.tape.records[int(records[0])]
        if (records != records[0]).any() or not isinstance(record.taps, Along):
            return False
        if record.operation not in (np.max, np.maximum):
            return False
        rows = record.taps.rows
        own = rows.reshape(record.values.size, -1)[at]
        return bool((own == elements.reshape(-1, 1)).any(axis=1).all())

    def _looked_up(self, record: Record, places: Ids, index: Expression, axes: tuple[Axis, ...]) -> Expression:
        sources = np.broadcast_to(record.operands["0"], record.values.shape).reshape(-1)[places]
        chosen = np.broadcast_to(record.operands["1"], record.values.shape).reshape(-1)[places]
        records, found = self.tape.locate(sources.reshape(-1))
        table = self.tape.records[int(records[0])]
        if (records != records[0]).any() or table.kind is Kind.COMPUTED or "2" in record.operands:
            raise UnsupportedError("elements of what is computed are chosen by data")
        where, at = self.tape.locate(chosen.reshape(-1))
        given = self.tape.records[int(where[0])].values.reshape(-1)[at].astype(np.int64)
        name, size = table.label or "table", table.values.size
        if isinstance(record.operation, Chosen):  # the kernel has checked the indices
            stride = record.operation.stride
            base = index_of((found - stride * given).reshape(places.shape), axes)
            memory = self._inputs[table.position] if table.kind is Kind.INPUT else table.values.reshape(-1)
            assert memory is not None
            used = index.axes | frozenset(term.axis for term in base.terms)
            return LookUp(table.values.dtype, *_extremes(memory), used, memory, index, base, stride, name)
        entries = table.values.reshape(-1)
        wrapped = np.where(given < 0, size, 0)  # a negative index counts from the end
        is_inside = -size <= index.low and index.high < size
        if not (given + wrapped == found).all() or not (is_inside or self._is_primitive) or table.kind is Kind.INPUT:
            raise UnsupportedError("a table of more than one axis is read by data")
        if is_inside and index.low < 0:  # entries -k..-1 stand at the end
            entries = np.concatenate([entries[int(index.low) :], entries[: max(int(index.high) + 1, 0)]])
        start = Index(-min(int(index.low), 0) if is_inside else 0, ())
        return LookUp(entries.dtype, *_extremes(entries), index.axes, entries, index, start, 1, name)

    def buffer(self, ids: Ids) -> Buffer:
        """Return memory with these elements in order: an input as it lies, or an intermediate buffer."""
        records, places = self.tape.locate(ids.reshape(-1))
        record = self.tape.records[int(records[0])]
        is_whole = not (records != records[0]).any() and np.array_equal(places, np.arange(places.size))
        if is_whole and record.kind is Kind.INPUT and record.values.size == places.size:
            found = self._inputs[record.position]
            assert found is not None
            return found
        key = hash(ids.tobytes())
        if key not in self._buffers:
            before = len(self.nests)
            scratch = Buffer(f"scratch_{len(self._buffers)}", np.dtype(np.int64), 0, 0, ids.size)
            self.fill(scratch, ids)
            made = self.nests[before:]
            if any(nest.value.is_real for nest in made):
                raise UnsupportedError("a window over real numbers")
            low = min(nest.value.low for nest in made)
            high = max(nest.value.high for nest in made)
            narrow = replace(scratch, dtype=smallest_type(low, high), low=low, high=high)
            self.nests[before:] = [replace(n, target=narrow) if n.target is scratch else n for n in made]
            self._buffers[key] = narrow
        return self._buffers[key]


def _constant(values: Array, axes: tuple[Axis, ...], name: str) -> Constant:
    """Return numbers that vary along some of the loops, without the others."""
    order = []
    for n, axis in enumerate(axes):
        first = np.take(values, [0], n)
        if axis.size > 1 and not (values == first).all():
            order.append(axis)
        else:
            values = first
    values = values.reshape(tuple(axis.size for axis in order))
    low, high = bounds_of_type(values.dtype)
    if values.dtype.kind != "f":
        low, high = int(values.min()), int(values.max())
    return Constant(values.dtype, low, high, frozenset(order), values, tuple(order), name)


def _without_infinite_ends(operands: tuple[Expression, ...]) -> tuple[object, tuple[Expression, ...]]:
    """Return what a clamp is with the ends that cut something; None where there are none."""
    x, low, high = operands
    has_low, has_high = (not isinstance(e, Constant) or np.isfinite(e.values).any() for e in (low, high))
    if has_low and has_high:
        return np.clip, operands
    if has_low:
        return np.maximum, (x, low)
    return (np.minimum, (x, high)) if has_high else (None, (x,))


def _extremes(table: Array | Buffer) -> tuple[Number, Number]:
    """Return the smallest and the largest entry."""
    if isinstance(table, Buffer):
        return table.low, table.high
    return bounds_of_type(table.dtype) if table.dtype.kind == "f" else (table.min().item(), table.max().item())


def _is_flat(value: Expression) -> bool:
    """Whether an expression of one loop reads memory in even steps, and no constant but single numbers."""
    if isinstance(value, Constant):
        return not value.order
    if isinstance(value, Load):
        return all(term.table is None for term in value.index.terms)
    if isinstance(value, Operation):
        return all(map(_is_flat, value.operands))
    return isinstance(value, LookUp) and not value.base.terms and _is_flat(value.index)
