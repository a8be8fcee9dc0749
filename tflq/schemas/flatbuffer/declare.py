"""What stands at the right of a field's declaration: one function per kind of field.

Each returns a field under the type that a user of the table sees, so that type checkers know the attribute and the
constructor's keyword.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tflq.schemas.flatbuffer import fields, scalars
from tflq.schemas.flatbuffer.scalars import Scalar

if TYPE_CHECKING:
    from tflq.schemas.flatbuffer.table import Table, Union

NumberT = TypeVar("NumberT", bound=np.generic)
ValueT = TypeVar("ValueT", bool, int, float)
EnumT = TypeVar("EnumT", bound=IntEnum)
TableT = TypeVar("TableT", bound="Table")
UnionT = TypeVar("UnionT", bound="Union")


class VectorOf(Generic[NumberT]):
    """Type of a vector of numbers: reads as a numpy array or None, and may be set from a list or bytes too."""

    if TYPE_CHECKING:

        def __get__(self, table: object, owner: type | None = None) -> NDArray[NumberT] | None:
            """Return the array."""

        def __set__(self, table: object, value: NDArray[NumberT] | Sequence[float] | None) -> None:
            """Set the array."""


class Declaration(Protocol[ValueT]):
    """Declares a field of one kind of numbers."""

    def __call__(self, default: ValueT = ...) -> ValueT:
        """Return the field under the type of its values."""


def _number(scalar: Scalar, zero: ValueT) -> Declaration[ValueT]:
    """Return the function that declares a field of that type: f(default=0)."""
    return lambda default=zero: cast(ValueT, fields.ScalarField(scalar, default))


boolean = _number(scalars.BOOL, False)
int8, int16, int32, int64 = (_number(each, 0) for each in (scalars.INT8, scalars.INT16, scalars.INT32, scalars.INT64))
uint8, uint16, uint32, uint64 = (
    _number(each, 0) for each in (scalars.UINT8, scalars.UINT16, scalars.UINT32, scalars.UINT64)
)
float32, float64 = (_number(each, 0.0) for each in (scalars.FLOAT32, scalars.FLOAT64))


def optional(declared: ValueT) -> ValueT | None:
    """Take the default from the declaration of a number or truth value: such a field reads as None if absent."""
    cast(fields.ScalarField, declared).default = None
    return cast("ValueT | None", declared)


def enum(default: EnumT, scalar: Scalar = scalars.INT8) -> EnumT:
    """Declare a member of the default's enum, stored as the given integer type."""
    return cast(EnumT, fields.EnumField(scalar, default))


def string() -> str | None:
    """Declare a UTF-8 string."""
    return cast("str | None", fields.StringField())


def strings() -> list[str] | None:
    """Declare a vector of strings."""
    return cast("list[str] | None", fields.StringVectorField())


def vector(dtype: type[NumberT], align: int = 1) -> VectorOf[NumberT]:
    """Declare a vector of numbers whose first element lies at a multiple of `align` bytes in the file."""
    return cast(VectorOf[NumberT], fields.VectorField(scalars.OF_DTYPE[np.dtype(dtype)], align))


def enums(members: type[EnumT], scalar: Scalar) -> list[EnumT] | None:
    """Declare a vector of enum members."""
    return cast("list[EnumT] | None", fields.EnumVectorField(scalar, members))


def table(target: type[TableT]) -> TableT | None:
    """Declare a nested table."""
    return cast("TableT | None", fields.TableField(target))


def tables(target: type[TableT]) -> list[TableT] | None:
    """Declare a vector of tables."""
    return cast("list[TableT] | None", fields.TableVectorField(target))


def union_type() -> int:
    """Declare the type slot of a union; it stands right before the value and is called `<value>_type`."""
    return cast(int, fields.UnionTypeField())


def union(base: type[UnionT]) -> UnionT | None:
    """Declare the value of a union, one of the tables that derive from `base`."""
    return cast("UnionT | None", fields.UnionField(base))


def unstored(dtype: type[NumberT]) -> VectorOf[NumberT]:
    """Declare an array that belongs to the object, not to the flatbuffer: it has no slot."""
    return cast(VectorOf[NumberT], fields.UnstoredField(scalars.OF_DTYPE[np.dtype(dtype)], 1))
