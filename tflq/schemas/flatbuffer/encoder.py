"""Writing any declared table as a flatbuffer, on the builder of the flatbuffers runtime."""

from __future__ import annotations

import numpy as np
from flatbuffers import number_types
from flatbuffers.builder import Builder, BuilderSizeError
from numpy.typing import NDArray

from tflq import limits
from tflq.schemas.flatbuffer import scalars
from tflq.schemas.flatbuffer.decoder import DamageError
from tflq.schemas.flatbuffer.fields import Field
from tflq.schemas.flatbuffer.table import Table

MAX_SIZE = 2**31 - 1
"""Most bytes of a flatbuffer: its signed offsets have 32 bits."""


def encode(root: Table, identifier: bytes, where: str = "model") -> bytes:
    """Write a table and everything below it; the same tables always give the same bytes.

    Fields are present in the file exactly as they are present in the tables. A table that is used twice is written
    twice. Vectors lie at the alignment that their field declares, counted from the start of the file.

    Args:
        root: The root table.
        identifier: The four bytes that name the format.
        where: Name of the result, for messages.

    Raises:
        FormatError: A list holds something that is no table of the declared class, tables are nested deeper than the
            limit `max_depth`, or the result would be 2 GiB or more.
    """
    try:
        vectors, bound = _measure(root, limits.current().max_depth)
        if vectors > MAX_SIZE:
            raise _too_large(vectors)
        sink = Encoder(bound)
        sink.builder.Finish(sink.table(root, type(root)), file_identifier=identifier)
    except DamageError as damage:
        raise damage.at(where, type(root).__name__) from None
    except BuilderSizeError:
        raise _too_large(vectors).at(where, type(root).__name__) from None
    return bytes(memoryview(sink.builder.Bytes)[sink.builder.Head() :])


def _too_deep(most: int) -> DamageError:
    return DamageError(
        f"more than {most} tables within each other",
        f"a depth of {most}",
        f"a table may not contain itself; otherwise {limits.describe_fix('max_depth')}",
    )


def _too_large(vectors: int) -> DamageError:
    return DamageError(
        f"{vectors} bytes of vectors, besides tables and text",
        f"a flatbuffer of at most {MAX_SIZE} bytes",
        "put constants outside the flatbuffer (external_buffers_above)",
    )


class Encoder:
    """The primitives with which fields write themselves. Children are written before the table that refers to them."""

    def __init__(self, size: int) -> None:
        self.builder = Builder(min(size, MAX_SIZE))
        self.max_depth = limits.current().max_depth
        self.depth = 0

    def table(self, table: object, expected: type[Table]) -> int:
        """Write a table and what it refers to; return its offset."""
        if not isinstance(table, expected):
            raise DamageError(type(table).__name__, f"a {expected.__name__}", "put a table of that class there")
        if self.depth >= self.max_depth:
            raise _too_deep(self.max_depth)
        self.depth += 1
        ready: list[tuple[Field, object]] = []
        for field in table.FIELDS:
            value = field.stored(table.__dict__)
            if value is None:
                continue
            try:
                ready.append((field, value if field.scalar is not None else field.write(self, value)))
            except DamageError as damage:
                raise damage.within("." + field.name) from None
        self.depth -= 1
        return self._object(len(table.FIELDS), sorted(ready, key=_wide_first))

    def _object(self, slots: int, ready: list[tuple[Field, object]]) -> int:
        builder = self.builder
        builder.StartObject(slots)
        for field, value in ready:
            if field.scalar is None:
                builder.PrependUOffsetTRelative(value)
            else:
                builder.Prepend(_FLAGS[field.scalar.name], value)
            builder.Slot(field.slot)
        return int(builder.EndObject())

    def string(self, text: str) -> int:
        """Write a string; return its offset."""
        return int(self.builder.CreateString(text))

    def vector(self, array: NDArray[np.generic], align: int) -> int:
        """Write a vector of numbers at an alignment; return its offset."""
        builder = self.builder
        builder.StartVector(array.itemsize, array.size, align)
        end = builder.head = builder.Head() - array.nbytes
        builder.Bytes[end : end + array.nbytes] = array.view(np.uint8).data
        return int(builder.EndVector())

    def offsets(self, offsets: list[int]) -> int:
        """Write a vector of offsets; return its own."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def tables(self, tables: list[object], expected: type[Table]) -> int:
        """Write tables and the vector of their offsets; return the vector's."""
        offsets = []
        for i, table in enumerate(tables):
            try:
                offsets.append(self.table(table, expected))
            except DamageError as damage:
                raise damage.within(f"[{i}]") from None
        return self.offsets(offsets)


_FLAGS = {scalar.name: getattr(number_types, f"{scalar.name}Flags") for scalar in scalars.ALL}


def _wide_first(entry: tuple[Field, object]) -> int:
    return -entry[0].size


def _measure(value: object, most: int, depth: int = 0) -> tuple[int, int]:
    """Return the bytes of all vectors of numbers below a value, and a bound for everything."""
    if isinstance(value, np.ndarray):
        return value.nbytes, value.nbytes + 36
    if isinstance(value, str):
        return 0, 4 * len(value) + 8
    if depth > 2 * most:  # a list between each two tables
        raise _too_deep(most)
    if isinstance(value, list):
        parts = [_measure(item, most, depth + 1) for item in value]
    elif isinstance(value, Table):
        parts = [_measure(item, most, depth + 1) for item in value.__dict__.values()]
    else:
        return 0, 16
    return sum(vectors for vectors, _ in parts), sum(bound + 4 for _, bound in parts) + 32
