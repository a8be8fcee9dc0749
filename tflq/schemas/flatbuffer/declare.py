"""What stands at the right of a field's declaration: one function per kind of field.

Each returns a field under the type that a user of the table sees, so that type checkers know the attribute and the
constructor's keyword.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tflq.schemas.flatbuffer import fields, scalars
from tflq.schemas.flatbuffer.scalars import Scalar

if TYPE_CHECKING:
    from tflq.schemas.flatbuffer.table import Table, Union

NumberT = TypeVar("NumberT", bound=np.generic)
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


def boolean(default: bool = False) -> bool:
    """Declare a truth value."""
    return cast(bool, fields.ScalarField(scalars.BOOL, default))


def int8(default: int = 0) -> int:
    """Declare a signed integer of 8 bits."""
    return cast(int, fields.ScalarField(scalars.INT8, default))


def uint8(default: int = 0) -> int:
    """Declare an unsigned integer of 8 bits."""
    return cast(int, fields.ScalarField(scalars.UINT8, default))


def int16(default: int = 0) -> int:
    """Declare a signed integer of 16 bits."""
    return cast(int, fields.ScalarField(scalars.INT16, default))


def uint16(default: int = 0) -> int:
    """Declare an unsigned integer of 16 bits."""
    return cast(int, fields.ScalarField(scalars.UINT16, default))


def int32(default: int = 0) -> int:
    """Declare a signed integer of 32 bits."""
    return cast(int, fields.ScalarField(scalars.INT32, default))


def uint32(default: int = 0) -> int:
    """Declare an unsigned integer of 32 bits."""
    return cast(int, fields.ScalarField(scalars.UINT32, default))


def int64(default: int = 0) -> int:
    """Declare a signed integer of 64 bits."""
    return cast(int, fields.ScalarField(scalars.INT64, default))


def uint64(default: int = 0) -> int:
    """Declare an unsigned integer of 64 bits."""
    return cast(int, fields.ScalarField(scalars.UINT64, default))


def float32(default: float = 0.0) -> float:
    """Declare a float of 32 bits."""
    return cast(float, fields.ScalarField(scalars.FLOAT32, default))


def float64(default: float = 0.0) -> float:
    """Declare a float of 64 bits."""
    return cast(float, fields.ScalarField(scalars.FLOAT64, default))


def optional_boolean() -> bool | None:
    """Declare a truth value without a default: None if absent."""
    return cast("bool | None", fields.ScalarField(scalars.BOOL, None))


def optional_integer(scalar: Scalar) -> int | None:
    """Declare an integer without a default: None if absent."""
    return cast("int | None", fields.ScalarField(scalar, None))


def optional_float(scalar: Scalar) -> float | None:
    """Declare a float without a default: None if absent."""
    return cast("float | None", fields.ScalarField(scalar, None))


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
