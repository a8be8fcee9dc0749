"""Arrays that carry the numbers of their elements on a tape, through numpy's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tflq.interpreter.recording.primitive import Ids, recorder

if TYPE_CHECKING:
    from tflq.interpreter.recording.operations import Operations

_view = np.ndarray.view
_array = np.array


class Traced(np.ndarray[Any, Any]):
    """An array with the numbers of its elements; `ids` is None if numpy made it in an unknown way."""

    ids: Ids | None

    def __array_finalize__(self, source: object) -> None:
        self.ids = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        found = operations()
        if found is None:
            return getattr(ufunc, method)(*plain(inputs), **plain(kwargs))
        return found.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        found = operations()
        return func(*plain(args), **plain(kwargs)) if found is None else found.function(func, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        found = operations()
        return plain(self)[plain(key)] if found is None else found.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        found = operations()
        if found is None:
            plain(self)[plain(key)] = plain(value)
        else:
            found.put(self, key, value)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __int__(self) -> int:
        return int(plain(self))

    def __float__(self) -> float:
        return float(plain(self))

    def __bool__(self) -> bool:
        return bool(plain(self))

    def __index__(self) -> int:
        return plain(self).__index__()  # type: ignore[no-any-return]

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        found = operations()
        values = plain(self).astype(dtype, *args, **kwargs)
        return values if found is None else found.cast(self, values)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        found = operations()
        values = _view(plain(self), *args, **kwargs)
        return values if found is None else found.reinterpreted(self, values)

    def item(self, *args: Any) -> Any:
        return number(plain(self).item(*args), self[args].ids if args else self.ids)

    @property
    def T(self) -> Any:  # noqa: N802
        return self.transpose()


class TracedInt(int):
    """A Python integer that is an element of a tape."""

    ids: Ids | None = None


class TracedFloat(float):
    """A Python float that is an element of a tape."""

    ids: Ids | None = None


def number(value: Any, ids: Ids | None) -> Any:
    """Return a Python number that carries its element's number, which arithmetic in Python loses."""
    if ids is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    made: Any = TracedInt(value) if isinstance(value, int) else TracedFloat(value)
    made.ids = ids.reshape(())
    return made


def operations() -> Operations | None:
    """Return the recorder of array operations in this thread."""
    return cast("Operations | None", recorder())


def traced(values: Any, ids: Ids) -> Any:
    """Return values with the numbers of their elements."""
    made = _view(plain(_array(values, copy=None, subok=True)), Traced)
    made.ids = ids
    return made


def plain(value: Any) -> Any:
    """Return arrays without numbers, and numbers without theirs, also within lists, tuples and dictionaries."""
    if isinstance(value, Traced):
        return _view(value, np.ndarray)
    if isinstance(value, TracedInt):
        return int(value)
    if isinstance(value, TracedFloat):
        return float(value)
    if type(value) in (tuple, list):
        return type(value)(plain(item) for item in value)
    return {k: plain(v) for k, v in value.items()} if type(value) is dict else value


def is_traced(value: Any) -> bool:
    """Whether a value, or one within lists and tuples, carries numbers."""
    if isinstance(value, (Traced, TracedInt, TracedFloat)):
        return True
    return isinstance(value, (list, tuple)) and any(is_traced(item) for item in value)


def _mover(name: str) -> Callable[..., Any]:
    moves = getattr(np.ndarray, name)

    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        values = moves(plain(self), *plain(args), **plain(kwargs))
        if self.ids is None or operations() is None:
            return values
        return traced(values, moves(self.ids, *plain(args), **plain(kwargs)))

    return method


def _caller(name: str) -> Callable[..., Any]:
    def method(self: Traced, *args: Any, **kwargs: Any) -> Any:
        return getattr(np, name)(self, *args, **kwargs)

    return method


for _name in ("reshape", "transpose", "swapaxes", "ravel", "flatten", "squeeze", "repeat", "copy", "diagonal"):
    setattr(Traced, _name, _mover(_name))
for _name in (
    *("all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "dot", "max", "mean", "min"),
    *("nonzero", "prod", "round", "std", "sum", "take", "var"),
):
    setattr(Traced, _name, _caller(_name))
