"""Constants whose elements are no whole bytes or have no fixed size: integers of 2 and 4 bits, and strings.

Integers are packed densely over the whole tensor, the first element in the lowest bits of a byte, unused bits zero
(TFLite, kernels/internal/portable_tensor_utils.cc). A tensor of strings is int32 count, count + 1 offsets from the
start of the buffer, then the bytes of all strings (TFLite, string_util.h).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError

_INT32_MAX = 2**31 - 1


def pack(values: NDArray[np.integer], bits: int) -> NDArray[np.uint8]:
    """Pack integers of 2 or 4 bits.

    Args:
        values: integer[N], two's complement where its type is signed.
        bits: 2 or 4.

    Returns:
        uint8[ceil(N * bits / 8)].

    Raises:
        FormatError: A value lies outside the range of `bits` bits of that signedness.
    """
    per_byte = _per_byte(bits)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if values.dtype.kind == "i" else (0, (1 << bits) - 1)
    if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
        raise FormatError(f"values: found {values.min()} to {values.max()}; allowed in {bits} bits are {low} to {high}")
    fields = np.zeros(-(-values.size // per_byte) * per_byte, np.uint8)
    fields[: values.size] = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    packed = fields[0::per_byte]
    for place in range(1, per_byte):
        packed = np.bitwise_or(packed, np.left_shift(fields[place::per_byte], np.uint8(place * bits)))
    return packed


def unpack(
    packed: NDArray[np.uint8], count: int, bits: int, is_signed: bool, where: str = "packed integers"
) -> NDArray[np.int8] | NDArray[np.uint8]:
    """Unpack integers of 2 or 4 bits.

    Args:
        packed: uint8[ceil(count * bits / 8)].
        count: Number of elements.
        bits: 2 or 4.
        is_signed: Whether the highest bit of an element is its sign.
        where: Name of the constant, for messages.

    Returns:
        int8[count] or uint8[count].

    Raises:
        FormatError: There are more or fewer bytes than `count` elements take.
    """
    per_byte = _per_byte(bits)
    needed = -(-count // per_byte)
    if packed.size != needed:
        raise FormatError(f"{where}: found {packed.size} bytes; {count} elements of {bits} bits take {needed}")
    unpacked = np.empty((needed, per_byte), np.uint8)
    for place in range(per_byte):  # shift the element to the top of the byte
        unpacked[:, place] = packed << (8 - bits - place * bits)
    top = unpacked.reshape(-1)[:count]
    return top.view(np.int8) >> (8 - bits) if is_signed else top >> (8 - bits)


def pack_strings(strings: NDArray[np.object_] | list[bytes]) -> NDArray[np.uint8]:
    """Pack strings of bytes (or of text, as UTF-8) as TFLite keeps a tensor of strings.

    Args:
        strings: object[...], in row-major order.

    Raises:
        FormatError: The result would be larger than its signed 32-bit offsets can count.
    """
    flat = strings.reshape(-1).tolist() if isinstance(strings, np.ndarray) else strings
    raw = [text.encode() if isinstance(text, str) else bytes(text) for text in flat]
    header = 4 * (len(raw) + 2)
    ends = header + np.cumsum([0, *map(len, raw)], dtype=np.int64)
    if ends[-1] > _INT32_MAX:
        raise FormatError(f"strings: found {ends[-1]} bytes; allowed are at most {_INT32_MAX}")
    numbers = np.concatenate([[len(raw)], ends]).astype("<i4")
    return np.frombuffer(numbers.tobytes() + b"".join(raw), np.uint8)


def unpack_strings(packed: NDArray[np.uint8], where: str = "strings") -> NDArray[np.object_]:
    """Unpack a tensor of strings.

    Args:
        packed: The bytes of the tensor.
        where: Name of the constant, for messages.

    Returns:
        object[count] of bytes.

    Raises:
        FormatError: The count or an offset does not fit the bytes.
    """
    most = packed.size // 4 - 2
    count = int(packed[:4].copy().view("<i4")[0]) if packed.size >= 8 else -1
    if not 0 <= count <= most:
        raise FormatError(
            f"{where}: found {packed.size} bytes with {count} strings; allowed are 0 to {max(most, 0)} strings in at "
            "least 8 bytes"
        )
    offsets = packed[4 : 4 * (count + 2)].copy().view("<i4").astype(np.int64)
    header = 4 * (count + 2)
    if offsets[0] != header or offsets[-1] != packed.size or (np.diff(offsets) < 0).any():
        raise FormatError(
            f"{where}: found string offsets that start at {offsets[0]} and end at {offsets[-1]}; allowed are ascending "
            f"ones from {header} to {packed.size}"
        )
    raw = packed.tobytes()
    strings = np.empty(count, np.object_)
    for i, (start, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        strings[i] = raw[start:end]
    return strings


def _per_byte(bits: int) -> int:
    if bits not in (2, 4):
        raise FormatError(f"bits: found {bits}; allowed are 2 and 4")
    return 8 // bits
