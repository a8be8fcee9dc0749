"""The element types of tensors, with the numpy type that holds them."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

import numpy as np


class DType(Enum):
    """Element type of a tensor; the value is its name in lower case.

    Types narrower than a byte (int2, int4, uint4) live unpacked, one element a byte; bfloat16 lives in uint16;
    strings are arrays of `object` that hold `bytes`; resources and variants have no elements of their own.
    """

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    INT2 = "int2"
    INT4 = "int4"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT4 = "uint4"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    STRING = "string"
    RESOURCE = "resource"
    VARIANT = "variant"

    @cached_property
    def storage(self) -> np.dtype[np.generic]:
        """The numpy type that holds one element."""
        return _STORAGE[self]

    @cached_property
    def is_floating(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return self.value.startswith(("float", "bfloat"))

    @cached_property
    def is_integer(self) -> bool:
        """Whether elements are integers (bool is not)."""
        return self.value.startswith(("int", "uint"))

    @cached_property
    def is_signed(self) -> bool:
        """Whether an integer type has negative values."""
        return self.value.startswith("int")

    @cached_property
    def bits(self) -> int:
        """Width of one element in bits as it counts for the model's size; 0 for strings, resources and variants."""
        return _BITS.get(self, 0) or self.storage.itemsize * 8 * (self not in _WITHOUT_WIDTH)

    @cached_property
    def minimum(self) -> int:
        """Smallest value of an integer type: -2^(bits-1), or 0 where it is unsigned."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @cached_property
    def maximum(self) -> int:
        """Largest value of an integer type: 2^(bits-1) - 1, or 2^bits - 1 where it is unsigned."""
        return (1 << (self.bits - 1)) - 1 if self.is_signed else (1 << self.bits) - 1

    @classmethod
    def of(cls, dtype: np.dtype[np.generic] | type[np.generic]) -> DType:
        """Return the type of a numpy array's elements; numpy's `object` counts as string."""
        name = np.dtype(dtype).name
        return cls.STRING if name == "object" else cls(name)


_WITHOUT_OWN_STORAGE = {
    DType.BFLOAT16: "uint16",
    DType.FLOAT8_E4M3FN: "uint8",
    DType.FLOAT8_E5M2: "uint8",
    DType.INT2: "int8",
    DType.INT4: "int8",
    DType.UINT4: "uint8",
    DType.STRING: "object",
    DType.RESOURCE: "object",
    DType.VARIANT: "object",
}
_STORAGE = {dtype: np.dtype(_WITHOUT_OWN_STORAGE.get(dtype, dtype.value)) for dtype in DType}
_BITS = {DType.INT2: 2, DType.INT4: 4, DType.UINT4: 4}
_WITHOUT_WIDTH = (DType.STRING, DType.RESOURCE, DType.VARIANT)
