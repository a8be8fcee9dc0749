"""Reading any declared table from a flatbuffer, every offset checked before it is followed.

How damage found deep in a buffer becomes one FormatError that says where.

The format (FlatBuffers documentation, "FlatBuffer Internals"): the file starts with the offset of the root table and
a four-byte identifier. A table starts with the distance to its vtable; a vtable holds its own size, the size of the
table, and for each slot the place of the field in the table, 0 if absent. Strings, vectors and tables are reached by
unsigned 32-bit offsets from where the offset stands, so they only point forward.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq import limits
from tflq.errors import FormatError
from tflq.schemas.flatbuffer.scalars import BOOL, Scalar
from tflq.schemas.flatbuffer.table import Table, Union


class DamageError(Exception):
    """Damage at some field; every table and vector on the way up adds its step to the path."""

    def __init__(self, found: str, allowed: str, advice: str = "the file is damaged: get it again") -> None:
        super().__init__(found)
        self.found = found
        self.allowed = allowed
        self.advice = advice
        self.steps: list[str] = []

    def within(self, step: str) -> DamageError:
        """Add the step that led here and return the error."""
        self.steps.append(step)
        return self

    def at(self, where: str, root: str) -> FormatError:
        """Return the one line for the user: file, path of the field, what was found, what is allowed, what to do."""
        path = root + "".join(reversed(self.steps))
        return FormatError(f"{where}: {path}: found {self.found}; allowed is {self.allowed}; {self.advice}")


_U16X2 = struct.Struct("<HH")
_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")

TableT = TypeVar("TableT", bound=Table)


@dataclass(frozen=True)
class Decoded(Generic[TableT]):
    """A decoded table, and where the flatbuffer that holds it ends.

    Attributes:
        root: The table.
        end_bytes: One past the last byte that was read.
    """

    root: TableT
    end_bytes: int


def decode(
    data: bytes | bytearray | memoryview | mmap.mmap, root: type[TableT], identifier: bytes, where: str
) -> Decoded[TableT]:
    """Read a flatbuffer whose root table is of the given class.

    Vectors of numbers are read-only views of `data`, which therefore must not change.

    Args:
        data: The file.
        root: Class of the root table.
        identifier: The four bytes that name the format.
        where: Name of the file, for messages.

    Raises:
        FormatError: The data is damaged, of another format, uses something newer than the declared tables, or refers
            to the same bytes so often, or nests tables so deep, that it is beyond the limits `max_expansion` and
            `max_depth`.
    """
    decoder = Decoder(data)
    try:
        table = decoder.table(root, decoder.root(identifier))
    except DamageError as damage:
        raise damage.at(where, root.__name__) from None
    return Decoded(table, decoder.end_bytes)


class Decoder:
    """The checked primitives with which fields read themselves."""

    def __init__(self, data: bytes | bytearray | memoryview | mmap.mmap) -> None:
        self.data = memoryview(data).toreadonly().cast("B")
        self.size = len(self.data)
        self.array = np.frombuffer(self.data, np.uint8)
        self.end_bytes = 8
        allowed = limits.current()
        self.max_depth = allowed.max_depth
        self.elements_left = 65536 + allowed.max_expansion * self.size // 16
        self.text_left = self.vector_bytes_left = 65536 + allowed.max_expansion * self.size
        self.depth = 0
        self.vtables: dict[int, tuple[int, tuple[int, ...]]] = {}

    def root(self, identifier: bytes) -> int:
        """Check the first eight bytes and return the position of the root table."""
        if self.size < 8:
            raise DamageError(f"{self.size} bytes", "at least the 8 bytes of offset and identifier")
        found = bytes(self.data[4:8])
        if found != identifier:
            raise DamageError(
                f"the file identifier {found!r}", repr(identifier), "give a file of this format, not of another"
            )
        return self.follow(0)

    def follow(self, position: int) -> int:
        """Follow the offset at a position and return where it leads: a multiple of 4 with 4 readable bytes."""
        offset: int = _U32.unpack_from(self.data, position)[0]
        target = position + offset
        if offset == 0 or target % 4 or target + 4 > self.size:
            raise DamageError(
                f"an offset to byte {target}", f"a multiple of 4 between {position + 4} and {self.size - 4}"
            )
        return target

    def table(self, cls: type[TableT], position: int) -> TableT:
        """Read the table at a position that `follow` returned."""
        self._spend(1)
        if self.depth >= self.max_depth:
            raise DamageError(
                f"more than {self.max_depth} tables within each other",
                f"a depth of {self.max_depth}",
                limits.describe_fix("max_depth"),
            )
        self.depth += 1
        size, slots = self._vtable(position)
        fields = cls.FIELDS
        if len(slots) > len(fields) and any(slots[len(fields) :]):
            raise _newer(f"{len(slots)} fields in {cls.__name__}", f"the {len(fields)} that the schema knows")
        values: dict[str, object] = {}
        for field, offset in zip(fields, slots, strict=False):  # a vtable may be shorter: the rest is absent
            if not offset:
                continue
            try:
                if offset < 4 or offset + field.size > size or (position + offset) % field.size:
                    raise DamageError(
                        f"the field at byte {offset} of its table",
                        f"an aligned place between 4 and {size - field.size}",
                    )
                field.read(self, position + offset, values)
            except DamageError as damage:
                raise damage.within("." + field.name) from None
        self.depth -= 1
        table = cls.__new__(cls)
        table.__dict__.update(values)
        return table

    def _vtable(self, position: int) -> tuple[int, tuple[int, ...]]:
        """Return the size of a table and the places of its fields."""
        start = position - _I32.unpack_from(self.data, position)[0]
        known = self.vtables.get(start)
        if known is None:
            known = self.vtables[start] = self._read_vtable(start)
        if position + known[0] > self.size:
            raise DamageError(f"a table of {known[0]} bytes at byte {position}", f"an end within {self.size} bytes")
        self.end_bytes = max(self.end_bytes, position + known[0])
        return known

    def _read_vtable(self, start: int) -> tuple[int, tuple[int, ...]]:
        if start < 0 or start % 2 or start + 4 > self.size:
            raise DamageError(f"a vtable at byte {start}", f"an even place between 0 and {self.size - 4}")
        length, size = _U16X2.unpack_from(self.data, start)
        if length < 4 or length % 2 or start + length > self.size or size < 4:
            raise DamageError(
                f"a vtable of {length} bytes for a table of {size} at byte {start}",
                f"an even number from 4 to {self.size - start}, and tables of 4 bytes or more",
            )
        self.end_bytes = max(self.end_bytes, start + length)
        self._spend(length // 2)
        return size, struct.unpack_from(f"<{length // 2 - 2}H", self.data, start + 4)

    def number(self, scalar: Scalar, position: int) -> bool | int | float:
        """Read one number at a checked position."""
        value: int | float = scalar.codec.unpack_from(self.data, position)[0]
        if scalar is not BOOL:
            return value
        if value > 1:
            raise DamageError(f"the truth value {value}", "0 or 1")
        return bool(value)

    def member(self, members: type[IntEnum], value: int | float) -> IntEnum:
        """Return the enum member with a number."""
        member = members._value2member_map_.get(value)
        if member is None:
            raise _newer(f"{members.__name__} {value}", f"{min(members)} to {max(members)}")
        assert isinstance(member, members)
        return member

    def string(self, position: int) -> str:
        """Read the string that the offset at a position leads to."""
        start, count = self._extent(self.follow(position), 1)
        end = start + count
        self._spend(1)
        self.text_left -= count
        if self.text_left < 0:
            raise _bomb()
        if end >= self.size or self.data[end]:
            raise DamageError(f"a string without its zero at byte {end}", "text that ends with a zero byte")
        self.end_bytes = max(self.end_bytes, end + 1)
        try:
            return str(self.data[start:end], "utf-8")
        except UnicodeDecodeError as error:
            byte = self.data[start + error.start]
            raise DamageError(f"the byte 0x{byte:02x} at {start + error.start} in a string", "UTF-8") from None

    def vector(self, scalar: Scalar, position: int) -> NDArray[np.generic]:
        """Return a read-only view of the vector of numbers that the offset at a position leads to."""
        start, count = self._extent(self.follow(position), scalar.size)
        self.vector_bytes_left -= count * scalar.size
        if self.vector_bytes_left < 0:
            raise _bomb()
        raw = self.array[start : start + count * scalar.size]
        if scalar is BOOL and count and int(raw.max()) > 1:
            raise DamageError(f"the truth value {int(raw.max())} in a vector", "0 or 1")
        array: NDArray[np.generic] = raw.view(scalar.dtype)
        if not array.flags.aligned:  # the flatbuffers verifier lets it pass, so files may have it
            array = array.copy()
            array.flags.writeable = False
        return array

    def members(self, scalar: Scalar, members: type[IntEnum], position: int) -> list[IntEnum]:
        """Read the vector of enum members that the offset at a position leads to."""
        numbers = self.vector(scalar, position)
        self._spend(numbers.size)
        return [self.member(members, value) for value in numbers.tolist()]

    def strings(self, position: int) -> list[str]:
        """Read the vector of strings that the offset at a position leads to."""
        texts = []
        for i, place in enumerate(self._offsets(position)):
            try:
                texts.append(self.string(place))
            except DamageError as damage:
                raise damage.within(f"[{i}]") from None
        return texts

    def tables(self, cls: type[TableT], position: int) -> list[TableT]:
        """Read the vector of tables that the offset at a position leads to."""
        found = []
        for i, place in enumerate(self._offsets(position)):
            try:
                found.append(self.table(cls, self.follow(place)))
            except DamageError as damage:
                raise damage.within(f"[{i}]") from None
        return found

    def union_type(self, union: type[Union], position: int) -> int:
        """Read the type number of a union."""
        code = self.data[position]
        if code > len(union.MEMBERS):
            raise _newer(f"{union.__name__} {code}", f"0 to {len(union.MEMBERS)}")
        return code

    def union(self, union: type[Union], code: object, position: int) -> Table:
        """Read the table of a union with the given type number."""
        if not isinstance(code, int) or code == 0:
            raise DamageError("a value whose type is NONE", f"a type from 1 to {len(union.MEMBERS)}, or no value")
        return self.table(union.MEMBERS[code], self.follow(position))

    def _offsets(self, position: int) -> range:
        start, count = self._extent(self.follow(position), 4)
        return range(start, start + 4 * count, 4)

    def _extent(self, position: int, item_size: int) -> tuple[int, int]:
        """Return the first byte and the number of elements of the vector at a position that `follow` returned."""
        count: int = _U32.unpack_from(self.data, position)[0]
        end = position + 4 + count * item_size
        if end > self.size:
            most = (self.size - position - 4) // item_size
            raise DamageError(f"{count} elements of {item_size} bytes at byte {position + 4}", f"at most {most}")
        self.end_bytes = max(self.end_bytes, end)
        return position + 4, count

    def _spend(self, elements: int) -> None:
        """Count tables, strings and enum members each time they are read, shared or not."""
        self.elements_left -= elements
        if self.elements_left < 0:
            raise _bomb()


def _bomb() -> DamageError:
    return DamageError(
        "the same bytes referred to over and over",
        "no more elements than a file of this size can hold by itself",
        limits.describe_fix("max_expansion"),
    )


def _newer(found: str, allowed: str) -> DamageError:
    return DamageError(found, allowed, "the file is damaged, or newer than this version: update tflq")
