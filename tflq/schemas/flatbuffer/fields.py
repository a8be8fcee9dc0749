"""The kinds of fields a table can have: how each checks a value, and how it is read and written."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError
from tflq.schemas.flatbuffer.scalars import BOOL, UINT8, Scalar

if TYPE_CHECKING:
    from tflq.schemas.flatbuffer.decoder import Decoder
    from tflq.schemas.flatbuffer.encoder import Encoder
    from tflq.schemas.flatbuffer.table import Table, Union


def _number(value: object, scalar: Scalar, where: str) -> bool | int | float:
    """Return a bool, int or float of the type; a float is rounded to the type's precision.

    Raises:
        FormatError: The value is of another kind, or outside the range of the type.
    """
    if scalar is BOOL:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise FormatError(f"{where}: found {value!r}; allowed are True and False")
    if scalar.low is None or scalar.high is None:
        return _real(value, scalar, where)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and scalar.low <= value <= scalar.high:
        return int(value)
    raise FormatError(f"{where}: found {value!r}; allowed are integers from {scalar.low} to {scalar.high}")


def _real(value: object, scalar: Scalar, where: str) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            return float(scalar.codec.unpack(scalar.codec.pack(value))[0])
        except OverflowError:
            pass
    raise FormatError(f"{where}: found {value!r}; allowed are numbers within the range of {scalar.dtype}")


def _member(value: object, members: type[IntEnum], where: str) -> IntEnum:
    """Return the enum member with this value.

    Raises:
        FormatError: There is none.
    """
    if type(value) is members:
        return value
    foreign = isinstance(value, IntEnum) or not isinstance(value, (int, np.integer))
    if foreign or int(value) not in members._value2member_map_:  # type: ignore[call-overload]
        raise FormatError(f"{where}: found {value!r}; allowed are members of {members.__name__}")
    return members(int(value))  # type: ignore[call-overload]


def _text(value: object, where: str) -> str:
    """Return the string.

    Raises:
        FormatError: The value is no string, or cannot be written as UTF-8.
    """
    if not isinstance(value, str):
        raise FormatError(f"{where}: found {value!r}; allowed is a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise FormatError(f"{where}: found {value!r}; allowed is text that UTF-8 can hold ({error.reason})") from None
    return value


def _items(value: object, where: str) -> Iterable[object]:
    """Return the sequence.

    Raises:
        FormatError: The value is a string, or nothing one can iterate over.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise FormatError(f"{where}: found {value!r}; allowed is a list")
    return value


def _instance(value: object, expected: type, where: str) -> object:
    """Return the table.

    Raises:
        FormatError: It is of another class.
    """
    if not isinstance(value, expected):
        raise FormatError(f"{where}: found {type(value).__name__}; allowed is {expected.__name__}")
    return value


def _array(value: NDArray[np.generic], scalar: Scalar, where: str) -> NDArray[np.generic]:
    """Return the array, contiguous and of the type.

    Raises:
        FormatError: It has not one dimension, or holds values that the type cannot.
    """
    if value.ndim != 1 or (value.dtype != scalar.dtype and not _fits(value, scalar)):
        raise FormatError(
            f"{where}: found an array {value.dtype}{list(value.shape)}; "
            f"allowed is a one-dimensional array whose values {scalar.dtype} can hold"
        )
    return np.ascontiguousarray(value, scalar.dtype)


def _fits(value: NDArray[np.generic], scalar: Scalar) -> bool:
    if scalar.low is None or scalar.high is None:
        return value.dtype.kind in "iuf"
    if value.dtype.kind not in "iu" or scalar is BOOL:
        return value.size == 0
    return value.size == 0 or (int(value.min()) >= scalar.low and int(value.max()) <= scalar.high)


class Field:
    """A field of a table.

    Attributes:
        name: Its name, set by the class it stands in.
        slot: Its position in the vtable, counted from 0.
        size: Bytes it takes in the table itself, which is also its alignment.
        default: What an absent field reads as.
        scalar: Type of a value that lies in the table itself; None where an offset to it lies there.
    """

    size: int = 4
    scalar: Scalar | None = None

    def __init__(self, default: object = None) -> None:
        self.default = default
        self.name = ""
        self.slot = -1

    def convert(self, value: object, where: str) -> object:
        """Return the value as it is kept; raise FormatError if it does not fit."""
        raise NotImplementedError

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the value at a checked position of the table into `values`."""
        raise NotImplementedError

    def write(self, sink: Encoder, value: object) -> int:
        """Write a value that lies outside the table and return its offset."""
        raise NotImplementedError

    def stored(self, values: dict[str, object]) -> object:
        """Return the present value of this field among a table's values, or None."""
        return values.get(self.name)


class ScalarField(Field):
    """A number or truth value in the table itself."""

    def __init__(self, scalar: Scalar, default: float | None) -> None:
        super().__init__(default)
        self.type = self.scalar = scalar
        self.size = scalar.size

    def convert(self, value: object, where: str) -> object:
        """Return a bool, int or float within the range of the type."""
        return _number(value, self.type, where)

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read one number."""
        values[self.name] = source.number(self.type, position)


class EnumField(ScalarField):
    """A member of an enum in the table itself."""

    def __init__(self, scalar: Scalar, default: IntEnum) -> None:
        super().__init__(scalar, default)
        self.members = type(default)

    def convert(self, value: object, where: str) -> object:
        """Return the member with this value."""
        return _member(value, self.members, where)

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read one member."""
        values[self.name] = source.member(self.members, source.number(self.type, position))


class StringField(Field):
    """A UTF-8 string."""

    def convert(self, value: object, where: str) -> object:
        """Return the string."""
        return _text(value, where)

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the string."""
        values[self.name] = source.string(position)

    def write(self, sink: Encoder, value: object) -> int:
        """Write the string."""
        assert isinstance(value, str)
        return sink.string(value)


class StringVectorField(Field):
    """A vector of strings, kept as a list."""

    def convert(self, value: object, where: str) -> object:
        """Return the list of strings."""
        return [_text(item, f"{where}[{i}]") for i, item in enumerate(_items(value, where))]

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the strings."""
        values[self.name] = source.strings(position)

    def write(self, sink: Encoder, value: object) -> int:
        """Write the strings and the vector of their offsets."""
        assert isinstance(value, list)
        return sink.offsets([sink.string(item) for item in value])


class VectorField(Field):
    """A vector of numbers, kept as a one-dimensional numpy array."""

    def __init__(self, scalar: Scalar, align: int) -> None:
        super().__init__()
        self.type = scalar
        self.align = max(align, scalar.size)

    def convert(self, value: object, where: str) -> object:
        """Return the array; lists and bytes are converted, numbers outside the range of the type refused."""
        if isinstance(value, np.ndarray):
            return _array(value, self.type, where)
        if isinstance(value, (bytes, bytearray, memoryview)) and self.type is UINT8:
            return np.frombuffer(value, np.uint8)
        items = [_number(item, self.type, f"{where}[{i}]") for i, item in enumerate(_items(value, where))]
        return np.array(items, self.type.dtype)

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the vector without copying it."""
        values[self.name] = source.vector(self.type, position)

    def write(self, sink: Encoder, value: object) -> int:
        """Write the vector at its alignment."""
        assert isinstance(value, np.ndarray)
        return sink.vector(value, self.align)


class EnumVectorField(Field):
    """A vector of enum members, kept as a list."""

    def __init__(self, scalar: Scalar, members: type[IntEnum]) -> None:
        super().__init__()
        self.type = scalar
        self.members = members

    def convert(self, value: object, where: str) -> object:
        """Return the list of members."""
        return [_member(item, self.members, f"{where}[{i}]") for i, item in enumerate(_items(value, where))]

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the members."""
        values[self.name] = source.members(self.type, self.members, position)

    def write(self, sink: Encoder, value: object) -> int:
        """Write their numbers."""
        assert isinstance(value, list)
        return sink.vector(np.array(value, self.type.dtype), self.type.size)


class TableField(Field):
    """A nested table."""

    def __init__(self, target: type[Table]) -> None:
        super().__init__()
        self.target = target

    def convert(self, value: object, where: str) -> object:
        """Return the table."""
        return _instance(value, self.target, where)

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the table."""
        values[self.name] = source.table(self.target, source.follow(position))

    def write(self, sink: Encoder, value: object) -> int:
        """Write the table."""
        return sink.table(value, self.target)


class TableVectorField(TableField):
    """A vector of tables, kept as a list."""

    def convert(self, value: object, where: str) -> object:
        """Return the list of tables."""
        if not isinstance(value, list):  # a list itself is kept, so that the caller can go on appending to it
            value = list(_items(value, where))
        for i, item in enumerate(value):
            _instance(item, self.target, f"{where}[{i}]")
        return value

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the tables."""
        values[self.name] = source.tables(self.target, position)

    def write(self, sink: Encoder, value: object) -> int:
        """Write the tables and the vector of their offsets."""
        assert isinstance(value, list)
        return sink.tables(value, self.target)


class UnionField(Field):
    """The value of a union: one of several tables; the slot before it says which."""

    def __init__(self, union: type[Union]) -> None:
        super().__init__()
        self.union = union

    def convert(self, value: object, where: str) -> object:
        """Return the table, which must be a member of the union."""
        if self.union.code(value) is None:
            raise FormatError(f"{where}: found {type(value).__name__}; allowed is a member of {self.union.__name__}")
        return value

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the table that the type, read before, names."""
        code = values.pop(f"{self.name}_type", 0)
        values[self.name] = source.union(self.union, code, position)

    def write(self, sink: Encoder, value: object) -> int:
        """Write the table."""
        return sink.table(value, self.union)


class UnionTypeField(Field):
    """The type slot of a union. It follows from the value; without a value a bare type is kept as the file has it."""

    size = 1
    scalar = UINT8
    union_field: UnionField

    def __get__(self, table: object, owner: type | None = None) -> object:
        """Return the type number: of the value if there is one, otherwise the bare one, or 0."""
        return self if table is None else self.stored(table.__dict__) or 0

    def __set__(self, table: object, value: object) -> None:
        """Never called: Table.__setattr__ stores values. Makes this a data descriptor, so that __get__ answers."""
        raise AttributeError(self.name)

    def convert(self, value: object, where: str) -> object:
        """Return a type number of the union."""
        count = len(self.union_field.union.MEMBERS)
        if not isinstance(value, (int, np.integer)) or not 0 <= value <= count:
            raise FormatError(f"{where}: found {value!r}; allowed are 0 to {count}")
        return int(value)

    def read(self, source: Decoder, position: int, values: dict[str, object]) -> None:
        """Read the type number."""
        values[self.name] = source.union_type(self.union_field.union, position)

    def stored(self, values: dict[str, object]) -> object:
        """Return the type number of the value, or the bare one."""
        table = values.get(self.union_field.name)
        return values.get(self.name) if table is None else self.union_field.union.code(table)


class UnstoredField(VectorField):
    """An array beside the flatbuffer: kept and compared with the table, but neither read nor written with it."""
