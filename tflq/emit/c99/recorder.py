"""Records a kernel as a program must run it: every operand of every operation, and conversions that may cut a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import BoundArguments, signature
from typing import Any

import numpy as np

from tflq.graph import Array
from tflq.interpreter.recording.operations import Operations
from tflq.interpreter.recording.primitive import Compute, Ids, Primitive, recorded_by
from tflq.interpreter.recording.tape import Kind
from tflq.interpreter.recording.traced import Traced, is_traced, plain, traced

BYTES = 1 << 8
"""Entries of a table of all bytes. Larger ones, such as those of all pairs, are longer than the rule behind them."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a primitive.

    Attributes:
        rule: the primitive.
        fixed: arguments that the function is made for, by name: those that are declared `int`, and what is no number.
        dtypes: of the other arguments, by name.
        examples: one number of each of them.
        part: which of its results; None where there is one.
    """

    rule: Primitive
    fixed: Mapping[str, Any]
    dtypes: Mapping[str, np.dtype[Any]]
    examples: Mapping[str, Any]
    part: int | None = None


@dataclass(frozen=True)
class Chosen:
    """Elements that data choose along an axis.

    Attributes:
        stride: elements from one index to the next.
    """

    stride: int


class ProgramOperations(Operations):
    """Keeps what `explain` leaves out because it shows one sample: conversions that changed nothing, both choices."""

    def _kept(self, rule: Primitive, bound: BoundArguments, result: Any) -> Any:
        """Keep a primitive with all its operands."""
        specialized = {k for k, p in bound.signature.parameters.items() if p.annotation in ("int", int)}
        shape = np.shape(result[0] if isinstance(result, tuple) else result)
        given = {
            k: v
            for k, v in bound.arguments.items()
            if _is_number(v) and k not in specialized and (rule.taps or self._is_operand(v, shape))
        }
        operands = {k: np.array(self._ids(v)) for k, v in given.items()}
        fixed = {k: plain(v) for k, v in bound.arguments.items() if k not in given}
        dtypes = {k: np.asarray(plain(v)).dtype for k, v in given.items()}
        examples = {k: np.asarray(plain(v)).reshape(-1)[0] for k, v in given.items()}
        if rule.taps is not None:
            return self._sum(rule, bound.arguments, operands, plain(result))
        many = isinstance(result, tuple)
        parts = [
            self._add(part, rule.label, rule.formula, operands, operation=Call(rule, fixed, dtypes, examples, at))
            for at, part in (enumerate(result) if many else ((None, result),))
        ]
        return tuple(parts) if many else parts[0]

    def computation(self, table: Array) -> Compute | None:
        """Return the rule of a table of more than bytes; other tables are looked up."""
        return None if self.stands(table) else super().computation(table)

    def stands(self, table: Array) -> bool:
        """Return whether a table has an entry a byte."""
        return table.size <= BYTES

    def _is_operand(self, value: Any, shape: tuple[int, ...]) -> bool:
        """Whether an argument goes with each element of the result; a constant table does not."""
        own = np.shape(value)
        fits = len(own) <= len(shape) and all(n in (1, m) for n, m in zip(reversed(own), reversed(shape), strict=False))
        return fits or not self.tape.is_given(np.asarray(self._ids(value)))

    def _copy(self, target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
        if not isinstance(target, Traced) or where is True:
            super()._copy(target, source, casting, where)
            return
        with recorded_by(None):
            chosen = np.where(plain(where), plain(source), plain(target)).astype(target.dtype)
            self._into(target, self._selected(chosen, where, source, target), True)

    def _into(self, out: Any, made: Any, where: Any) -> Any:
        if where is not True:  # which elements are written depends on the sample
            made = self._opaque("writing under a mask", plain(made))
        return super()._into(out, made, True if where is not True else where)

    def _sum(self, rule: Primitive, arguments: Mapping[str, Any], operands: dict[str, Ids], result: Array) -> Any:
        assert rule.taps is not None
        wanted = signature(rule.taps).parameters
        given = {k: plain(v) for k, v in arguments.items() if k in wanted} | {"x": operands["x"]}
        exact = arguments["x"].dtype.kind in "iu"
        shown = result.astype(np.int64) if exact else result
        made = self.tape.add(
            Kind.COMPUTED, shown, rule.label, rule.formula, operands, rule.taps(**given), operation=rule
        )
        return traced(result, made)

    def _cast(self, x: Any, values: Array) -> Any:
        before, ids = plain(x), self._ids(x)
        if np.can_cast(before.dtype, values.dtype, "safe") and before.dtype.kind == values.dtype.kind:
            return traced(values, np.array(ids))
        return self._add(values, f"as {values.dtype}", f"{values.dtype}({{0}})", {"0": ids}, operation="cast")

    def _selected(self, result: Array, condition: Any, a: Any, b: Any) -> Any:
        operands = {"0": self._ids(condition), "1": self._ids(a), "2": self._ids(b)}
        return self._add(result, "selected", "{0} ? {1} : {2}", operands, operation="select")

    def _taken(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with recorded_by(None):
            bound = signature(func).bind(*args, **kwargs).arguments
            data, indices, axis = args[0], args[1], bound.get("axis")
            if func is not np.take or axis is None or self.tape.is_given(self._ids(indices)):
                return super()._taken(func, args, kwargs)
            axis = int(axis) % np.ndim(data)
            values = np.take(plain(data), plain(indices), axis)
            ids = self._ids(indices)
            rows = ids.reshape(*ids.shape, *(1,) * (np.ndim(data) - axis - 1))
            operands = {"0": np.take(self._ids(data), plain(indices), axis), "1": np.broadcast_to(rows, values.shape)}
            stride = int(np.prod(np.shape(data)[axis + 1 :], dtype=np.int64))
            return self._add(values, "looked up", "{0:name}[{1}]", operands, operation=Chosen(stride))

    def _made(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        if method == "__call__" and ufunc is np.matmul and min(np.ndim(v) for v in inputs) > 1:
            operands = {"x": self._ids(inputs[0]), "y": self._ids(inputs[1])}
            return self._add(result, "sum of products", "", operands, operation=np.matmul)
        return super()._made(ufunc, method, inputs, kwargs, result)


def _is_number(value: object) -> bool:
    """Whether an argument is an operand: a number or numbers, computed or constant."""
    if is_traced(value):
        return True
    return isinstance(value, (int, float, np.ndarray, np.generic)) and not isinstance(value, bool)
