"""Declaring flatbuffer tables: one class per table, its fields in slot order.

A present value lies in the instance's `__dict__`; an absent one is answered by the class, where its default lies.
So presence is remembered for every field, at its default or not, and reading an attribute costs nothing extra::

    class Tensor(Table):
        shape: VectorOf[np.int32] = vector(np.int32)
        type: TensorType = enum(TensorType.FLOAT32, INT8)
        name: str | None = string()
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar

import numpy as np

from tflq.schemas.flatbuffer.fields import Field, UnionField, UnionTypeField, UnstoredField

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    _T = TypeVar("_T")

    def dataclass_transform(**_: bool) -> Callable[[_T], _T]:
        """Stand in for typing.dataclass_transform, which Python 3.10 lacks; only type checkers need it."""
        return lambda decorated: decorated


@dataclass_transform(kw_only_default=True, eq_default=True)
class Table:
    """Base of every table: mutable, comparable, built with keywords.

    Setting a field makes it present, whatever its value; None or `del` makes it absent.
    Two tables are equal if they are of one class, the same fields are present, and values are equal bit for bit.
    Vectors of numbers are one-dimensional numpy arrays; a list or bytes is converted when it is set.

    Raises:
        FormatError: A value that does not fit the type of its field is set.
        AttributeError: The table has no such field.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    BY_NAME: ClassVar[dict[str, Field]] = {}

    if not TYPE_CHECKING:

        def __init__(self, **values: object) -> None:
            for name, value in values.items():
                setattr(self, name, value)

    def __init_subclass__(cls) -> None:
        cls.BY_NAME = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        stored = [field for field in cls.BY_NAME.values() if not isinstance(field, UnstoredField)]
        cls.FIELDS = tuple(stored)
        for slot, field in enumerate(stored):
            field.slot = slot
        for name, field in cls.BY_NAME.items():
            field.name = name
            if isinstance(field, UnionTypeField):
                value = stored[field.slot + 1]
                assert isinstance(value, UnionField), f"{cls.__name__}.{name}: a union's type stands before its value"
                field.union_field = value
            else:
                setattr(cls, name, field.default)

    def __setattr__(self, name: str, value: object) -> None:
        field = self.BY_NAME.get(name)
        if field is None:
            self._no_field(name)
        if value is None:
            self.__dict__.pop(name, None)
        else:
            self.__dict__[name] = field.convert(value, f"{type(self).__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        if name not in self.BY_NAME:
            self._no_field(name)
        self.__dict__.pop(name, None)

    def is_present(self, name: str) -> bool:
        """Say whether a field is stored in the file, at its default value or not.

        Args:
            name: Name of a field of this table.

        Raises:
            AttributeError: The table has no such field.
        """
        field = self.BY_NAME.get(name)
        if field is None:
            self._no_field(name)
        return field.stored(self.__dict__) is not None

    def present(self) -> dict[str, object]:
        """Return the present fields and their values, in slot order."""
        stored = ((field.name, field.stored(self.__dict__)) for field in self.BY_NAME.values())
        return {name: value for name, value in stored if value is not None}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.present(), other.present()
        return mine.keys() == theirs.keys() and all(same(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={_brief(value)}" for name, value in self.present().items())
        return f"{type(self).__name__}({inner})"

    def _no_field(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self.BY_NAME) or 'none'}")


class Union(Table):
    """Base of a union: a table derives from it and says its type number, `class Circle(Shape, member=1)`.

    Attributes:
        MEMBERS: type number -> table, of the whole union.
        MEMBER: the table's own type number; 0 for the union itself.
    """

    MEMBERS: ClassVar[dict[int, type[Table]]] = {}
    MEMBER: ClassVar[int] = 0

    def __init_subclass__(cls, member: int = 0) -> None:
        super().__init_subclass__()
        cls.MEMBER = member
        if not member:
            cls.MEMBERS = {}
        else:
            assert member not in cls.MEMBERS, f"{cls.__name__}: {cls.MEMBERS[member].__name__} has number {member}"
            cls.MEMBERS[member] = cls

    @classmethod
    def code(cls, table: object) -> int | None:
        """Return the type number of a table, None if it is no member."""
        return table.MEMBER if isinstance(table, Union) and isinstance(table, cls) else None


def same(one: object, other: object) -> bool:
    """Compare two field values bit for bit: NaN equals the same NaN, 0.0 differs from -0.0."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(one.dtype == other.dtype and np.array_equal(one.view(np.uint8), other.view(np.uint8)))
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{value.size}]" if value.size > 8 else str(value.tolist())
    if isinstance(value, list) and len(value) > 8:
        return f"[{len(value)} x {type(value[0]).__name__}]"
    return repr(value)
