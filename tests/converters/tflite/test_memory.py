"""What the constants of a file take beside the file itself, to the byte: nothing where they are views of it."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import FormatError, LimitError
from tflq.graph import Array, DType, Graph, GraphBuilder
from tflq.limits import Limits, apply_limits
from tflq.schemas import tflite as schema


def constants(*given: tuple[Array, DType]) -> Graph:
    b = GraphBuilder("constants")
    for i, (data, dtype) in enumerate(given):
        b.constant(f"c{i}", data, dtype=dtype)
    return b.build([])


def shifted(content: bytes, offset: int) -> memoryview:
    """Return the same bytes at an address that is so far off a multiple of 64."""
    room = np.zeros(len(content) + 128, np.uint8)
    start = -room.ctypes.data % 64 + offset
    room[start : start + len(content)] = np.frombuffer(content, np.uint8)
    return memoryview(room)[start : start + len(content)]


def check_bytes(content: memoryview, wanted: int) -> None:
    """Just so many are enough, and one less is refused."""
    with apply_limits(Limits(max_memory=max(wanted, 1))):
        model_from_bytes(content)
    if wanted > 1:
        words = f"found {wanted}, {wanted - 1} are allowed"
        with apply_limits(Limits(max_memory=wanted - 1)), pytest.raises(LimitError, match=words):
            model_from_bytes(content)


WIDE = (DType.INT8, DType.UINT8, DType.BOOL, DType.INT16, DType.FLOAT16, DType.INT32, DType.FLOAT32, DType.INT64,
        DType.FLOAT64)  # fmt: skip


@pytest.mark.parametrize("offset", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("dtype", WIDE, ids=lambda t: t.value)
def test_views_and_copies(dtype: DType, offset: int) -> None:
    """Numbers are read in place where the processor may; a copy takes what it holds."""
    data = np.arange(50).astype(dtype.storage)
    size = data.dtype.itemsize
    content = shifted(model_to_bytes(constants((data, dtype))), offset)
    check_bytes(content, 50 * size if offset % size else 0)


@pytest.mark.parametrize("count", [2, 7, 64])
@pytest.mark.parametrize("dtype", [DType.INT4, DType.UINT4, DType.INT2], ids=lambda t: t.value)
def test_packed_numbers_take_a_byte_each(dtype: DType, count: int) -> None:
    data = np.ones(count, dtype.storage)
    check_bytes(shifted(model_to_bytes(constants((data, dtype))), 0), count)
    check_bytes(shifted(model_to_bytes(constants((data, dtype), (np.ones(3, dtype.storage), dtype))), 0), count + 3)


def test_texts() -> None:
    """48 bytes each beside their characters; the packed form has 4 bytes a text, and 8."""
    texts = np.array([b"one", b"", b"three"], object)
    check_bytes(shifted(model_to_bytes(constants((texts, DType.STRING))), 0), 3 * 48 + (8 + 4 * 3 + 4 + 8) - 4)


@pytest.mark.parametrize("tensors", [1, 2, 3])
@pytest.mark.parametrize("kept", [0, 10, 999, 1000])
def test_bytes_behind_the_last_element(kept: int, tensors: int) -> None:
    """They are kept for writing, once for each tensor that leaves them."""
    data = np.zeros(1000, np.int8)
    table = schema.decode_model(model_to_bytes(constants(*[(data, DType.INT8)] * tensors)), "constants")
    table.metadata = None
    for tensor in table.subgraphs[0].tensors:
        tensor.shape = np.array([kept], np.int32)
    check_bytes(shifted(schema.encode_model(table), 0), tensors * (1000 - kept))


@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT4])
def test_tensors_that_share_a_buffer(dtype: DType) -> None:
    """Of one type and shape they share the value, too."""
    data = np.ones(100, dtype.storage)
    table = schema.decode_model(model_to_bytes(constants((data, dtype), (data, dtype))), "constants")
    first, second = table.subgraphs[0].tensors
    second.buffer = first.buffer
    check_bytes(shifted(schema.encode_model(table), 0), 0 if dtype is DType.FLOAT32 else 100)


@pytest.mark.parametrize(("dtype", "count", "needed"), [(DType.INT8, 9, 9), (DType.FLOAT32, 3, 12), (DType.INT4, 7, 4),
                                                        (DType.INT4, 8, 4), (DType.INT2, 9, 3)])  # fmt: skip
def test_a_buffer_that_is_too_short(dtype: DType, count: int, needed: int) -> None:
    table = schema.decode_model(model_to_bytes(constants((np.zeros(count, dtype.storage), dtype))), "constants")
    model_from_bytes(schema.encode_model(table))
    (buffer,) = (b for b in table.buffers if b.data is not None and b.data.size == needed)
    buffer.data = buffer.data[:-1]
    words = rf"shape \({count},\) of {dtype.value} needs {needed} bytes, the buffer holds {needed - 1}$"
    with pytest.raises(FormatError, match=words):
        model_from_bytes(schema.encode_model(table))
