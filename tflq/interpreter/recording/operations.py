"""Kind of each operation of numpy on a tape: it computes element by element, moves elements, or reduces them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from inspect import BoundArguments, signature
from threading import RLock
from typing import Any

import numpy as np

from tflq.graph import Array
from tflq.interpreter.recording.numpy_functions import (
    EACH,
    FILLED,
    MOVES,
    MOVES_ALL,
    REDUCED,
    ROWS,
    UFUNC_REDUCED,
    Row,
    along,
    matrix,
    words,
)
from tflq.interpreter.recording.primitive import Compute, Ids, Primitive, Taps, TapsOf, recorded_by
from tflq.interpreter.recording.tape import Kind, Tape
from tflq.interpreter.recording.traced import Traced, TracedFloat, TracedInt, is_traced, operations, plain, traced

_CONVERT, _CREATE = ("asarray", "array", "asanyarray", "ascontiguousarray"), ("empty", "zeros", "ones", "full")
_one_at_a_time = RLock()
"""numpy's functions are replaced for one recording at a time."""


class Operations:
    """Records operations of numpy, and primitives, on a tape."""

    def __init__(self, tape: Tape, tables: Callable[[], Sequence[tuple[Array, Compute]]] = tuple) -> None:
        """Start.

        Args:
            tape: gets what runs.
            tables: Function that returns tables and the functions that computed their entries; called when the first
                table is read.
        """
        self.tape = tape
        self._tables = cache(tables)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the block: a kernel over traced arrays.

        numpy dispatches its operations to arrays' classes, but not `asarray` and `empty`, which make plain arrays; they
        are replaced for the block, and are unchanged in other threads.
        """
        with _one_at_a_time:
            kept = {name: getattr(np, name) for name in (*_CONVERT, *_CREATE)}
            for name in _CONVERT:
                setattr(np, name, self._converter(kept[name]))
            for name in _CREATE:
                setattr(np, name, self._creator(kept[name]))
            try:
                with recorded_by(self):
                    yield
            finally:
                for name, function in kept.items():
                    setattr(np, name, function)

    def source(self, kind: Kind, values: Array, label: str, formula: str = "", position: int = -1) -> Any:
        """Return an input or a field as a traced array."""
        with recorded_by(None):
            return traced(values, self.tape.add(kind, values, label, formula, position=position))

    def call(self, rule: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a primitive and keep it as one operation."""
        with recorded_by(None):
            result = rule.function(*plain(args), **plain(kwargs))
            if not (is_traced(args) or is_traced(tuple(kwargs.values()))):
                return result
            bound = signature(rule.function).bind(*args, **kwargs)
            bound.apply_defaults()
            return self._kept(rule, bound, result)

    def _kept(self, rule: Primitive, bound: BoundArguments, result: Any) -> Any:
        """Keep a primitive that ran on traced arguments."""
        operands = {k: self._ids(v) for k, v in bound.arguments.items() if "{" + k + "}" in rule.formula}
        if rule.taps is not None:
            operands.pop("x", None)
            wanted = signature(rule.taps).parameters
            given = {k: plain(v) for k, v in bound.arguments.items() if k in wanted}
            given["x"] = np.array(self._ids(bound.arguments["x"]))
            exact = bound.arguments["x"].dtype.kind in "iu"  # integers, stored in the type of the sum
            shown = plain(result).astype(np.int64) if exact else plain(result)
            made = self.tape.add(Kind.COMPUTED, shown, rule.label, rule.formula, operands, rule.taps(**given))
            return traced(result, made)
        if isinstance(result, tuple):
            return tuple(self._add(part, rule.label, rule.formula, operands) for part in result)
        return self._add(result, rule.label, rule.formula, operands)

    def move(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Run a function that moves elements of its first argument."""
        with recorded_by(None):
            values, rest = function(*plain(args)), plain(args[1:])
            return traced(values, function(self._ids(args[0]), *rest)) if is_traced(args[0]) else values

    def entries(self, table: Array, index: Any) -> Any:
        """Read entries of a constant table."""
        return self._taken(np.take, (table, index), {}) if is_traced(index) else np.take(table, index)

    def stands(self, table: Array) -> bool:  # noqa: ARG002
        """Return that the rule runs."""
        return False

    def computation(self, table: Array) -> Compute | None:
        """Return the function that computed a table of equal entries when the node was lowered."""
        with recorded_by(None):
            found = [compute for made, compute in self._tables() if np.array_equal(made, plain(table))]
        return found[0] if found else None

    def ufunc(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run and keep a universal function; `out` gets values and numbers."""
        with recorded_by(None):
            out, where = kwargs.pop("out", ()), kwargs.get("where", True)
            if method == "__call__":
                kwargs.pop("where", None)
            elif out and kwargs.get("dtype") is None:
                kwargs["dtype"] = out[0].dtype
            if method == "at":
                return self._scattered(ufunc, *inputs)
            results = getattr(ufunc, method)(*plain(inputs), **plain(kwargs))
            many = isinstance(results, tuple)
            made = [self._made(ufunc, method, inputs, kwargs, r) for r in (results if many else (results,))]
            if out:
                where = plain(where) if method == "__call__" else True
                made = [m if o is None else self._into(o, m, where) for o, m in zip(out, made, strict=True)]
            return tuple(made) if many else made[0]

    def function(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run and keep a function of numpy."""
        if func is np.copyto:
            return self._copy(*args, **kwargs)
        if func in (np.take, np.take_along_axis) and is_traced(args[1]):
            return self._taken(func, args, kwargs)
        if kwargs.get("out") is not None:
            out = kwargs.pop("out")
            made = self.function(func, args, kwargs)
            with recorded_by(None):
                return self._into(out, made, True)
        with recorded_by(None):
            if func in MOVES_ALL or func in MOVES:
                return self._moved(func, args, kwargs)
            result = func(*plain(args), **plain(kwargs))
            if func in FILLED:
                return traced(result, self._ids(result))
            if func is np.where and len(args) == 3:
                return self._selected(result, *args)
            if func is np.searchsorted:
                return self._add(result, "place", "of {0} among the borders", {"0": self._ids(args[1])})
            if func in EACH:
                label = "clamp" if func is np.clip else func.__name__
                operands = {str(i): self._ids(v) for i, v in enumerate((*args, *kwargs.values())) if v is not None}
                names = ", ".join("{" + name + "}" for name in operands)
                return self._add(result, label, f"{label}({names})", operands, operation=func)
            if func in REDUCED or func in ROWS:
                axis = kwargs.get("axis", args[1] if len(args) > 1 else (-1 if func in (np.sort, np.argsort) else None))
                ids = np.array(self._ids(args[0]))
                taps = along(ids, axis) if func in REDUCED else Row(ids, axis, func in (np.cumsum, np.cumprod))
                return self._add(result, (REDUCED | ROWS)[func], "of {x}", {}, taps, func)
            if isinstance(result, np.ndarray) and result.dtype != object:
                return self._opaque(func.__name__, result)
            return result

    def get(self, x: Traced, key: Any) -> Any:
        """Index: a move; with computed indices a look-up."""
        with recorded_by(None):
            where, ids = plain(key), self._ids(x)
            values, sources = plain(x)[where], np.asarray(ids[where])
            if not is_traced(key):
                return traced(values, sources)
            indices = [k for k in (key if isinstance(key, tuple) else (key,)) if is_traced(k)]
            found = [self._ids(k) for k in indices if np.shape(k) == np.shape(values) and k.dtype.kind in "iu"]
            return self._looked_up(values, sources, found)

    def put(self, x: Traced, key: Any, value: Any) -> None:
        """Assign: values and numbers; a change of type is a conversion, a computed mask a choice."""
        if isinstance(key, Traced) and key.dtype == bool and key.shape == x.shape and np.ndim(value) == 0:
            self._copy(x, value, where=key)
            return
        with recorded_by(None):
            given = value if isinstance(value, Traced) else traced(plain(value), self._ids(value))
            cast = self._cast(given, plain(given).astype(x.dtype))
            if x.ids is None:
                x.ids = self._ids(x).copy()
            plain(x)[plain(key)] = plain(cast)
            x.ids[plain(key)] = cast.ids

    def cast(self, x: Traced, values: Array) -> Any:
        """Keep a conversion that changes a value; another one moves."""
        with recorded_by(None):
            return self._cast(x, values)

    def reinterpreted(self, x: Traced, values: Array) -> Any:
        """Keep another reading of the same bits."""
        with recorded_by(None):
            if values.shape != x.shape:
                return self._opaque("view", values)
            if values.dtype == x.dtype:
                return traced(values, self._ids(x))
            return self._add(
                values, "raw bits", "bits of {0} as " + str(values.dtype), {"0": self._ids(x)}, operation="view"
            )

    def _ids(self, value: Any) -> Ids:
        """Return the params of a value's elements; constants get new ones."""
        ids: Ids | None = getattr(value, "ids", None)
        if isinstance(value, (Traced, TracedInt, TracedFloat)) and ids is not None:
            return ids
        kind = Kind.OPAQUE if isinstance(value, Traced) else Kind.LITERAL
        if isinstance(value, (list, tuple)) and is_traced(value):
            return np.asarray([self._ids(item) for item in value])
        return self.tape.add(kind, np.asarray(plain(value)), "not recorded" if kind is Kind.OPAQUE else "")

    def _add(
        self,
        result: Any,
        label: str,
        formula: str,
        operands: dict[str, Ids],
        taps: TapsOf | None = None,
        operation: object = None,
    ) -> Any:
        made = self.tape.add(Kind.COMPUTED, result, label, formula, operands, taps, operation=operation)
        return traced(result, made)

    def _opaque(self, name: str, result: Array) -> Any:
        return traced(result, self.tape.add(Kind.OPAQUE, result, name, f"numpy's {name}: not recorded by element"))

    def _into(self, out: Any, made: Any, where: Any) -> Any:
        """Write a result into an array that was given for it."""
        cast = self._cast(made, plain(made).astype(out.dtype)) if made.dtype != out.dtype else made
        np.copyto(plain(out), plain(cast), casting="unsafe", where=where)
        if isinstance(out, Traced):
            if out.ids is None or not out.ids.flags.writeable:
                out.ids = self._ids(out).copy()
            np.copyto(out.ids, cast.ids, where=where)
        return out

    def _made(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        name = ufunc.__name__
        if method == "__call__" and ufunc.signature is None:
            label, formula = words(ufunc)
            operands = {str(i): self._ids(v) for i, v in enumerate(inputs)}
            return self._add(result, label, formula, operands, operation=ufunc)
        if method == "__call__" and name == "matmul" and min(np.ndim(v) for v in inputs) > 1:
            return self._add(
                result, "sum of products", "", {}, matrix(np.array(self._ids(inputs[0])), plain(inputs[1]))
            )
        axis = kwargs.get("axis", inputs[1] if len(inputs) > 1 else 0)
        if method in ("reduce", "accumulate"):
            ids = np.array(self._ids(inputs[0]))
            taps = along(ids, axis) if method == "reduce" else Row(ids, axis, True)
            running = "" if method == "reduce" else "running "
            label = running + UFUNC_REDUCED.get(ufunc, name)
            function = ufunc if method == "reduce" else np.cumsum if ufunc is np.add else None
            return self._add(result, label, "of {x}", {}, taps, function)
        if method == "outer":
            a, b = (self._ids(v) for v in inputs)
            operands = {"0": a.reshape(*a.shape, *(1,) * b.ndim), "1": b}
            return self._add(result, *words(ufunc), operands, operation=ufunc)
        return self._opaque(f"{name}.{method}", result)

    def _scattered(self, ufunc: np.ufunc, target: Any, where: Any, *values: Any) -> None:
        """Keep `ufunc.at`: each element of the target follows from its former value and all values added to it."""
        before = np.array(self._ids(target))
        ufunc.at(plain(target), plain(where), *plain(values))
        reached = np.arange(before.size).reshape(before.shape)[plain(where)]
        came = np.broadcast_to(self._ids(values[0]), reached.shape) if values else reached[:0]

        def taps(index: tuple[int, ...]) -> Taps:
            flat = np.ravel_multi_index(index, before.shape)
            return Taps(np.append(before[index], came[reached == flat]))

        label = UFUNC_REDUCED.get(ufunc, ufunc.__name__)
        self._into(target, self._add(plain(target), label, "of {x}", {}, taps), True)

    def _cast(self, x: Traced, values: Array) -> Any:
        before, ids = plain(x), self._ids(x)
        same = np.array_equal(before, values, equal_nan=values.dtype.kind in "fc" and before.dtype.kind in "fc")
        if same:
            return traced(values, np.array(ids))
        return self._add(values, f"as {values.dtype}", f"{values.dtype}({{0}})", {"0": ids}, operation="cast")

    def _copy(self, target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
        if not isinstance(target, Traced):
            np.copyto(target, plain(source), casting=casting, where=plain(where))  # type: ignore[arg-type]
        elif where is True:
            self.put(target, ..., source)
        else:
            with recorded_by(None):
                chosen = np.where(plain(where), plain(source), plain(target)).astype(target.dtype)
                self._into(target, self._selected(chosen, where, source, target), plain(where))

    def _moved(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = func(*plain(args), **plain(kwargs))
        numbers, rest = dict(plain(kwargs)), plain(args[1:])
        numbers.pop("dtype", None)
        if func is np.pad and numbers.get("mode", rest[1] if len(rest) > 1 else "constant") == "constant":
            numbers["constant_values"] = -1
        if func in MOVES_ALL:
            count = 2 if func is np.append else len(args)
            ids = func(*(self._ids(a) for a in args[:count]), *plain(args[count:]), **numbers)
        else:
            data = args[0]
            many = isinstance(data, (list, tuple)) and any(np.ndim(part) for part in data)
            ids = func(type(data)(self._ids(a) for a in data) if many else self._ids(data), *rest, **numbers)
        if isinstance(values, (list, tuple)):
            return type(values)(self._with(v, i) for v, i in zip(values, ids, strict=True))
        return self._with(values, ids)

    def _with(self, values: Array, ids: Ids) -> Any:
        """Return moved values; filled places without a number are constants."""
        if (ids == -1).any():
            ids = np.where(ids == -1, self.tape.add(Kind.LITERAL, values), ids)
        return traced(values, ids)

    def _taken(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with recorded_by(None):
            values, rest = func(*plain(args), **plain(kwargs)), plain(args[1:])
            sources = func(self._ids(args[0]), *rest, **plain(kwargs))
            index = [self._ids(args[1])] if np.shape(args[1]) == np.shape(values) else []
            return self._looked_up(values, sources, index)

    def _looked_up(self, values: Any, sources: Ids, indices: list[Ids]) -> Any:
        computed = [ids for ids in indices if not self.tape.is_given(ids)]
        if not computed:
            return traced(values, sources)
        places = ", ".join("{" + str(i + 1) + "}" for i in range(len(computed)))
        operands = {"0": sources, **{str(i + 1): ids for i, ids in enumerate(computed)}}
        return self._add(values, "looked up", "{0:name}" + f"[{places}]", operands, operation="look up")

    def _selected(self, result: Array, condition: Any, a: Any, b: Any) -> Any:
        chosen = np.where(plain(condition), self._ids(a), self._ids(b))
        operands = {"0": chosen, "1": self._ids(condition)}
        return self._add(result, "selected", "{0}, the condition being {1}", operands, operation="select")

    def _converter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
            if operations() is not self or not is_traced(value):
                return original(value, *args, **kwargs)
            with recorded_by(None):
                values = original(plain(value), *plain(args), **plain(kwargs))
                return self._cast(traced(original(plain(value)), self._ids(value).reshape(values.shape)), values)

        return convert

    def _creator(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(*args: Any, **kwargs: Any) -> Any:
            result = original(*plain(args), **plain(kwargs))
            if operations() is not self or result.dtype == object:
                return result
            with recorded_by(None):
                return traced(result, self.tape.add(Kind.LITERAL, result))

        return create
