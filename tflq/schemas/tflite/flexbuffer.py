"""Flexbuffers, in which custom operators keep their options: to Python values and back.

The format (FlatBuffers documentation, "FlexBuffers"): the last byte is the width of the root value, the byte before
its packed type (type << 2 | log2 of the width of what it refers to), before that the value itself. Offsets point
backwards. The runtime's own reader follows damaged offsets, so reading is checked here; writing uses the runtime.
"""

from __future__ import annotations

import struct
from typing import TypeAlias, Union

from tflq import limits
from tflq.errors import FormatError
from tflq.schemas.flatbuffer.decoder import DamageError

FlexValue: TypeAlias = Union[bool, int, float, str, bytes, "list[FlexValue]", "dict[str, FlexValue]", None]

_NULL, _INT, _UINT, _FLOAT, _KEY, _STRING, _INDIRECT_INT, _INDIRECT_UINT, _INDIRECT_FLOAT, _MAP, _VECTOR = range(11)
_BLOB, _BOOL, _VECTOR_BOOL = 25, 26, 36
_INTS = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
_UINTS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_FLOATS = {4: "<f", 8: "<d"}
_INLINE = {_INT: _INTS, _UINT: _UINTS, _FLOAT: _FLOATS}
_INDIRECT = {_INDIRECT_INT: _INTS, _INDIRECT_UINT: _UINTS, _INDIRECT_FLOAT: _FLOATS}


def _typed_vectors() -> dict[int, tuple[int, int]]:
    """Return element type and length (0: stored before the elements) of each type of typed vector."""
    found = {11: (_INT, 0), 12: (_UINT, 0), 13: (_FLOAT, 0), 14: (_KEY, 0), 15: (_KEY, 0), _VECTOR_BOOL: (_BOOL, 0)}
    for length in (2, 3, 4):
        for element in (_INT, _UINT, _FLOAT):
            found[16 + 3 * (length - 2) + element - _INT] = (element, length)
    return found


_TYPED = _typed_vectors()


def decode_flexbuffer(data: bytes | bytearray | memoryview, where: str) -> FlexValue:
    """Read a flexbuffer: null, truth values, numbers, strings, keys, blobs, vectors and maps.

    Args:
        data: The whole flexbuffer, for example `operator.custom_options.tobytes()`.
        where: Name of the options, for messages.

    Raises:
        FormatError: The data is damaged, or refers to the same bytes so often that it would need far more memory than
            its size.
    """
    reader = _Reader(bytes(data))
    try:
        return reader.root()
    except DamageError as damage:
        raise damage.at(where, "flexbuffer") from None


def encode_flexbuffer(value: FlexValue, where: str = "options") -> bytes:
    """Write a value as a flexbuffer; lists become untyped vectors, the keys of a dict are sorted.

    Raises:
        FormatError: The value, or one within it, is of no kind that a flexbuffer holds, an integer has more than 64
            bits, or lists are nested deeper than the limit `max_depth`.
    """
    from flatbuffers import flexbuffers

    _check(value, where, 0)
    builder = flexbuffers.Builder()
    _add(builder, value)
    return bytes(builder.Finish())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        allowed = limits.current()
        self.max_depth = allowed.max_depth
        self.left = 65536 + allowed.max_expansion * len(data) // 4
        self.text_left = 65536 + allowed.max_expansion * len(data)
        self.depth = 0

    def root(self) -> FlexValue:
        if len(self.data) < 3:
            raise DamageError(f"{len(self.data)} bytes", "at least 3")
        width, packed = self.data[-1], self.data[-2]
        if width not in _UINTS or len(self.data) < width + 2:
            raise DamageError(f"a root of {width} bytes", "1, 2, 4 or 8 within the data")
        return self.value(len(self.data) - 2 - width, width, packed)

    def value(self, position: int, width: int, packed: int) -> FlexValue:
        """Read the value in `width` bytes at a position."""
        self._spend(1)
        kind = packed >> 2
        if kind == _NULL:
            return None
        if kind == _BOOL:
            return bool(self._number(_UINTS, position, width))
        if kind in _INLINE:
            return self._number(_INLINE[kind], position, width)
        target = self._follow(position, width)
        inner = 1 << (packed & 3)
        if kind in _INDIRECT:
            return self._number(_INDIRECT[kind], target, inner)
        if kind == _KEY:
            return self._key(target)
        if kind in (_STRING, _BLOB):
            return self._text(target, inner, kind)
        if self.depth >= self.max_depth:
            raise DamageError(
                f"more than {self.max_depth} vectors within each other",
                f"a depth of {self.max_depth}",
                limits.describe_fix("max_depth"),
            )
        self.depth += 1
        value = self._container(kind, target, inner)
        self.depth -= 1
        return value

    def _container(self, kind: int, target: int, width: int) -> FlexValue:
        if kind == _VECTOR:
            return self._vector(target, width)
        if kind == _MAP:
            keys = self._keys(target, width)
            values = self._vector(target, width)
            if len(keys) != len(values) or len(set(keys)) != len(keys):
                raise DamageError(f"a map of {len(values)} values with {len(set(keys))} keys", "one key for each value")
            return dict(zip(keys, values, strict=True))
        if kind not in _TYPED:
            raise DamageError(f"a value of type {kind}", "the types 0 to 26 and 36")
        element, length = _TYPED[kind]
        count = length or self._count(target, width)
        self._within(target, count * width)
        packed = element << 2
        return [self.value(target + i * width, width, packed) for i in range(count)]

    def _vector(self, target: int, width: int) -> list[FlexValue]:
        count = self._count(target, width)
        types = target + count * width
        self._within(target, count * (width + 1))
        found = []
        for i in range(count):
            try:
                found.append(self.value(target + i * width, width, self.data[types + i]))
            except DamageError as damage:
                raise damage.within(f"[{i}]") from None
        return found

    def _keys(self, target: int, width: int) -> list[str]:
        self._within(target - 3 * width, 3 * width)
        keys = self._follow(target - 3 * width, width)
        key_width = int(self._number(_UINTS, target - 2 * width, width))
        if key_width not in _UINTS:
            raise DamageError(f"keys of {key_width} bytes", "1, 2, 4 or 8")
        count = self._count(keys, key_width)
        self._within(keys, count * key_width)
        self._spend(count)
        return [self._key(self._follow(keys + i * key_width, key_width)) for i in range(count)]

    def _key(self, start: int) -> str:
        end = self.data.find(b"\0", start)
        if end < 0:
            raise DamageError(f"a key without its zero at byte {start}", "text that ends with a zero byte")
        return self._utf8(start, end)

    def _text(self, start: int, width: int, kind: int) -> str | bytes:
        count = self._count(start, width)
        self._within(start, count)
        if kind == _STRING:
            return self._utf8(start, start + count)
        self._spend_text(count)
        return self.data[start : start + count]

    def _utf8(self, start: int, end: int) -> str:
        self._spend_text(end - start)
        try:
            return self.data[start:end].decode()
        except UnicodeDecodeError as error:
            raise DamageError(f"text at byte {start} that is no UTF-8 ({error.reason})", "UTF-8") from None

    def _follow(self, position: int, width: int) -> int:
        offset = int(self._number(_UINTS, position, width))
        if offset > position:  # 0 is right for an empty vector at the end
            raise DamageError(f"an offset of {offset} back from byte {position}", f"0 to {position}")
        return position - offset

    def _count(self, target: int, width: int) -> int:
        return int(self._number(_UINTS, target - width, width))

    def _number(self, formats: dict[int, str], position: int, width: int) -> int | float:
        if width not in formats:
            raise DamageError(f"a number of {width} bytes", f"one of {sorted(formats)}")
        self._within(position, width)
        value: int | float = struct.unpack_from(formats[width], self.data, position)[0]
        return value

    def _within(self, start: int, size: int) -> None:
        if start < 0 or start + size > len(self.data):
            raise DamageError(f"bytes {start} to {start + size}", f"bytes within 0 to {len(self.data)}")

    def _spend(self, elements: int) -> None:
        self.left -= elements
        if self.left < 0:
            raise DamageError(
                "the same bytes referred to over and over",
                "no more values than bytes",
                limits.describe_fix("max_expansion"),
            )

    def _spend_text(self, size: int) -> None:
        self.text_left -= size
        if self.text_left < 0:
            raise DamageError(
                "the same text referred to over and over",
                "little more text than bytes",
                limits.describe_fix("max_expansion"),
            )


def _check(value: object, where: str, depth: int) -> None:
    most = limits.current().max_depth
    if depth > most:
        raise FormatError(
            f"{where}: found lists nested deeper than {most}; allowed is a depth of {most}; "
            f"{limits.describe_fix('max_depth')}"
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or "\0" in key:
                raise FormatError(f"{where}: found the key {key!r}; allowed is text without a zero character")
            _check(item, f"{where}.{key}", depth + 1)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check(item, f"{where}[{i}]", depth + 1)
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise FormatError(f"{where}: found {value}; allowed are integers of 64 bits")
    elif value is not None and not isinstance(value, (bool, int, float, str, bytes)):
        raise FormatError(
            f"{where}: found {type(value).__name__}; allowed are None, bool, int, float, str, bytes, list and dict"
        )


def _add(builder: object, value: FlexValue) -> None:
    """Add a checked value; keys go in as bytes, since the runtime writes text keys as ASCII and skips empty ones."""
    from flatbuffers import flexbuffers

    assert isinstance(builder, flexbuffers.Builder)
    if isinstance(value, dict):
        with builder.Map():
            for key, item in value.items():
                builder.Key(key.encode())
                _add(builder, item)
    elif isinstance(value, list):
        with builder.Vector():
            for item in value:
                _add(builder, item)
    elif isinstance(value, float):
        _add_float(builder, value)
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63:
        builder.UInt(value)
    else:
        builder.Add(value)


def _add_float(builder: object, value: float) -> None:
    """Add a float in 4 bytes if that is exact; the runtime itself raises on finite values beyond 32 bits."""
    from flatbuffers import flexbuffers

    assert isinstance(builder, flexbuffers.Builder)
    try:
        exact = struct.unpack("<f", struct.pack("<f", value))[0] == value
    except OverflowError:
        exact = False
    builder.Float(value, 4 if exact else 8)
