"""Reading and writing a .tflite file as a Model, constants outside the flatbuffer included.

A model of more than 2 GB keeps constants behind its flatbuffer: `Buffer.offset` and `size` (for custom options,
`Operator.large_custom_options_offset` and `_size`) count from the start of the file. Offsets 0 and 1 mean that there
is nothing outside (TFLite schema, table Buffer). Data inside the flatbuffer wins over an offset, as it does in
TFLite's interpreter (core/interpreter_builder.cc).
"""

from __future__ import annotations

import copy
import mmap
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError
from tflq.schemas.flatbuffer import decode, encode
from tflq.schemas.tflite.core import Buffer, Model, Operator, SubGraph

IDENTIFIER = b"TFL3"
VERSION = 3
ALIGNMENT_BYTES = 16
PADDING_BYTES = 4096
"""Zero bytes behind the last constant, up to this many, are padding: writers align the end. They are not kept."""
_LONGEST_ARCHIVE_END = 22 + 65535
"""The last record of a ZIP archive, and its comment."""


def decode_model(data: bytes | bytearray | memoryview | mmap.mmap, where: str) -> Model:
    """Read a .tflite file.

    Vectors are read-only views of `data`, which must not change while the model is used. Constants outside the
    flatbuffer become ordinary `data` and `custom_options`, and their offset and size absent. TFLite follows offsets and
    never looks behind the last table; what old converters and metadata tools left there is kept as `trailing_bytes`.

    Args:
        data: The whole file.
        where: Name of the file, for messages.

    Raises:
        FormatError: The file is damaged, truncated, of another format or version, or uses fields, enum members or
            operators newer than the schema.
    """
    view = memoryview(data).toreadonly().cast("B")
    if not view.nbytes:
        raise FormatError(f"{where}: found an empty file; allowed is a TFLite model (identifier TFL3)")
    decoded = decode(view, Model, IDENTIFIER, where)
    model = decoded.root
    _check_version(model, where)
    whole = np.frombuffer(view, np.uint8)
    end = max([decoded.end_bytes, *_resolve_buffers(model, whole, where), *_resolve_options(model, whole, where)])
    rest = _unpadded(whole, end)
    if rest is not None:
        model.trailing_bytes = whole[rest:]
    return model


def encode_model(model: Model, external_buffers_above: int | None = None) -> bytes:
    """Write a .tflite file; the same model always gives the same bytes.

    Args:
        model: The model; it is not changed.
        external_buffers_above: Constants and custom options of more than this many bytes are written behind the
            flatbuffer, each once, at multiples of 16 bytes; None keeps everything inside.

    Raises:
        FormatError: The version is not 3, a list holds a table of a wrong class, the threshold is negative, or the
            flatbuffer itself would be 2 GiB or more.
    """
    _check_version(model, "model")
    if external_buffers_above is None:
        outside: list[NDArray[np.uint8]] = []
        content = encode(model, IDENTIFIER)
    elif external_buffers_above < 0:
        raise FormatError(f"external_buffers_above: found {external_buffers_above}; allowed are 0 and more, or None")
    else:
        content, outside = _encode_outside(model, external_buffers_above)
    parts: list[bytes | memoryview] = [content]
    size = len(content)
    for array in outside:
        parts += [bytes(-size % ALIGNMENT_BYTES), array.data]
        size += -size % ALIGNMENT_BYTES + array.size
    if outside:
        parts.append(bytes(-size % ALIGNMENT_BYTES + ALIGNMENT_BYTES))  # XNNPACK reads up to 16 bytes beyond a constant
    if model.trailing_bytes is not None:
        parts.append(model.trailing_bytes.data)
    return b"".join(parts) if len(parts) > 1 else content


def _check_version(model: Model, where: str) -> None:
    if model.version != VERSION:
        raise FormatError(
            f"{where}: Model.version: found {model.version}; allowed is {VERSION}; convert the model again"
        )


def _resolve_buffers(model: Model, whole: NDArray[np.uint8], where: str) -> Iterator[int]:
    for i, buffer in enumerate(model.buffers or ()):
        if buffer.data is None and buffer.offset > 1:
            buffer.data = _outside(whole, buffer.offset, buffer.size, f"{where}: Model.buffers[{i}].offset")
            yield buffer.offset + buffer.size
            del buffer.offset, buffer.size


def _resolve_options(model: Model, whole: NDArray[np.uint8], where: str) -> Iterator[int]:
    for i, subgraph in enumerate(model.subgraphs or ()):
        for j, operator in enumerate(subgraph.operators or ()):
            offset, size = operator.large_custom_options_offset, operator.large_custom_options_size
            if operator.custom_options is None and offset > 1:
                path = f"{where}: Model.subgraphs[{i}].operators[{j}].large_custom_options_offset"
                operator.custom_options = _outside(whole, offset, size, path)
                yield offset + size
                del operator.large_custom_options_offset, operator.large_custom_options_size


def _outside(whole: NDArray[np.uint8], offset: int, size: int, where: str) -> NDArray[np.uint8]:
    if offset + size > whole.size:
        raise FormatError(
            f"{where}: found bytes {offset} to {offset + size}; allowed is an end within the {whole.size} bytes of "
            "the file; it is truncated or damaged: get it again"
        )
    return whole[offset : offset + size]


def _unpadded(whole: NDArray[np.uint8], end: int) -> int | None:
    """Return the first byte behind the model and its padding of zeros, or None if the file ends there."""
    padding = whole[end : end + PADDING_BYTES]
    used = np.flatnonzero(padding)
    if used.size:
        return end + int(used[0])
    return None if end + padding.size == whole.size else end + padding.size


def describe_trailing(content: bytes) -> str:
    """Say in words what stands behind a model: an archive of associated files, or bytes that nothing refers to."""
    size = f"{len(content)} bytes behind the model"
    if content[:4] == b"PK\x03\x04" and b"PK\x05\x06" in content[-_LONGEST_ARCHIVE_END:]:
        return f"{size}: a ZIP archive of associated files"
    if content[:4] == b"PK\x05\x06":
        return f"{size}: an empty ZIP archive"
    return f"{size} that nothing refers to"


def _encode_outside(model: Model, above: int) -> tuple[bytes, list[NDArray[np.uint8]]]:
    """Return the flatbuffer with offsets to the arrays that follow it, and these arrays."""
    thin = _thin_copy(model)
    moved = [*_large_buffers(thin, above), *_large_options(thin, above)]
    for table, _ in moved:
        _place(table, 2, 0)
    size = len(encode(thin, IDENTIFIER)) if moved else 0
    place = size + -size % ALIGNMENT_BYTES
    placed: dict[tuple[int, int], int] = {}
    arrays = []
    for table, array in moved:
        key = (array.__array_interface__["data"][0], array.size)
        if key not in placed:
            placed[key] = place
            place += array.size + -array.size % ALIGNMENT_BYTES
            arrays.append(array)
        _place(table, placed[key], array.size)
    return encode(thin, IDENTIFIER), arrays


def _thin_copy(model: Model) -> Model:
    """Copy the tables that get offsets, and the lists that lead to them; everything else stays shared."""
    thin = copy.copy(model)
    if model.buffers is not None:
        thin.buffers = [copy.copy(buffer) for buffer in model.buffers]
    if model.subgraphs is not None:
        thin.subgraphs = [_thin_subgraph(subgraph) for subgraph in model.subgraphs]
    return thin


def _thin_subgraph(subgraph: SubGraph) -> SubGraph:
    thin = copy.copy(subgraph)
    if subgraph.operators is not None:
        thin.operators = [copy.copy(operator) for operator in subgraph.operators]
    return thin


def _large_buffers(model: Model, above: int) -> Iterator[tuple[Buffer | Operator, NDArray[np.uint8]]]:
    for buffer in model.buffers or ():
        data = buffer.data
        if data is not None and data.size > above:
            del buffer.data
            yield buffer, data


def _large_options(model: Model, above: int) -> Iterator[tuple[Buffer | Operator, NDArray[np.uint8]]]:
    for subgraph in model.subgraphs or ():
        for operator in subgraph.operators or ():
            options = operator.custom_options
            if options is not None and options.size > above:
                del operator.custom_options
                yield operator, options


def _place(table: Buffer | Operator, offset: int, size: int) -> None:
    if isinstance(table, Buffer):
        table.offset, table.size = offset, size
    else:
        table.large_custom_options_offset, table.large_custom_options_size = offset, size
