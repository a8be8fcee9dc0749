"""Tensor tables <-> neutral tensors: quantization, range, and the bytes of constants."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import TensorExtra
from tflq.converters.tflite.sparsity import densify
from tflq.errors import FormatError, GraphError, UnsupportedError
from tflq.graph import Affine, Array, Blockwise, DType, Quantization, Range, Tensor
from tflq.limits import Tally
from tflq.schemas import tflite as schema
from tflq.schemas.tflite.packing import pack, pack_strings, unpack, unpack_strings


def read_quantization(
    table: schema.QuantizationParameters | None, shape: tuple[int, ...], dtype: DType, where: str
) -> Quantization | None:
    """Return the quantization, None where the table states none that has a neutral form.

    What is refused is what TFLite refuses (core/interpreter_builder.cc, ParseQuantization).

    Raises:
        FormatError: scales and zero points, or the axis and the shape, contradict each other.
    """
    if table is None:
        return None
    details = table.details
    if isinstance(details, schema.BlockwiseQuantization):
        blocks = () if details.block_shape is None else tuple(details.block_shape.tolist())
        return Blockwise(details.scales, details.zero_points, details.block_size, blocks)
    if table.scale is None or table.scale.size == 0:
        return None
    scale, zero_point, axis = table.scale, table.zero_point, table.quantized_dimension
    count = 0 if zero_point is None else zero_point.size
    if zero_point is None or count != scale.size:
        raise FormatError(f"{where}: {scale.size} scales but {count} zero points; the numbers must be equal")
    _check_axis(scale.size, axis, shape, where)
    per_axis = scale.size > 1 or axis != 0
    return Affine(scale, zero_point, axis if per_axis else None, dtype.bits or 8, dtype.is_signed)


def _check_axis(count: int, axis: int, shape: tuple[int, ...], where: str) -> None:
    if not shape:
        if count > 1:
            raise FormatError(f"{where}: {count} scales for a tensor without axes; one is allowed")
        return
    if not 0 <= axis < len(shape):
        raise FormatError(f"{where}: quantized along axis {axis}, the shape {shape} has axes 0..{len(shape) - 1}")
    if count not in (1, shape[axis]):
        raise FormatError(f"{where}: {count} scales along axis {axis}, which has {shape[axis]} channels")


def read_range(table: schema.QuantizationParameters | None) -> Range | None:
    """Return the range that the table states, None where it states none or half of one."""
    if table is None or table.min is None or table.max is None:
        return None
    if table.min.size == 0 or table.min.size != table.max.size:
        return None
    return Range(table.min, table.max)


def kept_table(
    table: schema.QuantizationParameters | None, quantization: Quantization | None, stated: Range | None
) -> schema.QuantizationParameters | None:
    """Return the table itself where its neutral form would lose something of it, else None."""
    if table is None or not table.present():
        return None
    neutral = _neutral_table(quantization, stated)
    if table.is_present("quantized_dimension"):
        neutral.quantized_dimension = neutral.quantized_dimension
    return None if neutral == table else table


def write_quantization(tensor: Tensor) -> schema.QuantizationParameters | None:
    """Return the quantization table of a tensor, None where there is nothing to say.

    The table that was kept on reading is written as long as the tensor still has the quantization and range that stand
    in it.

    Raises:
        GraphError: a quantization that the format does not have.
    """
    if tensor.quantization is not None and not isinstance(tensor.quantization, (Affine, Blockwise)):
        kind = type(tensor.quantization).__name__
        raise GraphError(f"tensor '{tensor.name}' is quantized as {kind}, which has no form in TFLite")
    kept = tensor.extra.quantization if isinstance(tensor.extra, TensorExtra) else None
    if kept is not None and _still_says(kept, tensor):
        return kept
    table = _neutral_table(tensor.quantization, tensor.range)
    return table if table.present() else None


def _still_says(table: schema.QuantizationParameters, tensor: Tensor) -> bool:
    try:
        quantization = read_quantization(table, tensor.shape, tensor.dtype, tensor.name)
    except FormatError:  # the tensor has another shape now
        return False
    return quantization == tensor.quantization and read_range(table) == tensor.range


def _neutral_table(quantization: Quantization | None, stated: Range | None) -> schema.QuantizationParameters:
    table = schema.QuantizationParameters()
    if stated is not None:
        table.min = stated.minimum.astype(np.float32)
        table.max = stated.maximum.astype(np.float32)
    if isinstance(quantization, Affine):
        table.scale = quantization.scale.astype(np.float32)
        table.zero_point = _one_for_each(quantization.zero_point, quantization.scale.shape)
        if quantization.axis:
            table.quantized_dimension = quantization.axis
    if isinstance(quantization, Blockwise):
        table.details = schema.BlockwiseQuantization(
            scales=quantization.scales, zero_points=quantization.zero_points, block_size=quantization.block_size
        )
        if quantization.block_shape:
            table.details.block_shape = np.array(quantization.block_shape, np.int32)
    return table


def _one_for_each(zero_point: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.ascontiguousarray(np.broadcast_to(zero_point, shape), np.int64)


Bytes = NDArray[np.uint8]
_MOST_AXES = 31  # numpy has 32, and the samples take one
_BYTES_OF_STRING = 48  # of Python, beside its characters


class TensorReader:
    """Reads tensors of one model; tensors that share a buffer share one array."""

    def __init__(self, buffers: list[schema.Buffer], tally: Tally) -> None:
        self._buffers = buffers
        self._tally = tally
        self._arrays: dict[tuple[int, DType, tuple[int, ...]], Array] = {}
        self._sparse: dict[int, bytes] = {}

    def read(self, table: schema.Tensor, where: str) -> Tensor:
        """Return the neutral tensor.

        Raises:
            FormatError: a buffer index out of range, a negative size, data that does not fit the shape, a variable with
                data, or a quantization that contradicts the tensor.
            UnsupportedError: more axes than numpy has, or values that take more memory than the limits allow.
        """
        shape = () if table.shape is None else tuple(table.shape.tolist())
        if min(shape, default=0) < 0:
            raise FormatError(f"{where}: found shape {shape}; sizes must be 0 or more")
        if len(shape) > _MOST_AXES:
            raise UnsupportedError(f"{where}: found {len(shape)} axes; up to {_MOST_AXES} are allowed")
        dtype = DType[table.type.name]
        quantization = read_quantization(table.quantization, shape, dtype, where)
        stated = read_range(table.quantization)
        content = self._content(table, where)
        data = None if content is None else self._constant(table, content, shape, dtype, where)
        signature = table.shape_signature
        extra = TensorExtra(
            sparsity=table.sparsity,
            sparse_values=self._sparse_values(table, content, where),
            surplus=self._surplus(table, content, shape, dtype, where),
            variant_tensors=table.variant_tensors,
            quantization=kept_table(table.quantization, quantization, stated),
            external_buffer=table.external_buffer,
        )
        return Tensor(
            name=table.name or "",
            shape=shape,
            dtype=dtype,
            quantization=quantization,
            range=stated,
            data=data,
            shape_signature=None if signature is None else tuple(signature.tolist()),
            is_variable=table.is_variable,
            has_rank=table.has_rank,
            extra=None if extra == TensorExtra() else extra,
        )

    def _content(self, table: schema.Tensor, where: str) -> Bytes | None:
        """Return the bytes of the tensor's constant; buffer 0 means that it has none."""
        count = len(self._buffers)
        if table.buffer and table.buffer >= count:
            raise FormatError(f"{where}: found buffer {table.buffer}; {count_of('buffers', count)}")
        data = self._buffers[table.buffer].data if table.buffer else None
        if data is None or data.size == 0 or table.type.name in ("RESOURCE", "VARIANT"):
            return None
        if table.is_variable:
            raise FormatError(f"{where}: is a variable with data in buffer {table.buffer}; variables start without")
        return data

    def _constant(
        self, table: schema.Tensor, content: Bytes, shape: tuple[int, ...], dtype: DType, where: str
    ) -> Array:
        key = (table.buffer, dtype, shape)
        if table.sparsity is not None:
            self._tally.add(math.prod(shape) * dtype.storage.itemsize, where)
            return densify(table.sparsity, content, shape, dtype, where)
        if key not in self._arrays:
            _require_size(content, shape, dtype, where)
            self._tally.add(_copied_bytes(content, math.prod(shape), dtype), where)
            self._arrays[key] = decode_constant(content, shape, dtype, where)
        return self._arrays[key]

    def _sparse_values(self, table: schema.Tensor, content: Bytes | None, where: str) -> bytes | None:
        if table.sparsity is None or content is None:
            return None
        if table.buffer not in self._sparse:
            self._tally.add(content.size, where)
            self._sparse[table.buffer] = content.tobytes()
        return self._sparse[table.buffer]

    def _surplus(
        self, table: schema.Tensor, content: Bytes | None, shape: tuple[int, ...], dtype: DType, where: str
    ) -> bytes:
        if content is None or table.sparsity is not None or dtype is DType.STRING:
            return b""
        surplus = content[_bytes_of(math.prod(shape), dtype) :]
        self._tally.add(surplus.size, where)
        return surplus.tobytes()


def decode_constant(data: Bytes, shape: tuple[int, ...], dtype: DType, where: str) -> Array:
    """Return a buffer's bytes as a read-only array of the tensor's shape; bytes behind its last element are left out.

    Raises:
        FormatError: there are fewer bytes than the shape and type need, or another number of strings.
    """
    count = math.prod(shape)
    if dtype is DType.STRING:
        strings = unpack_strings(data, where)
        if strings.size != count:
            raise FormatError(f"{where}: shape {shape} needs {count} strings, the buffer holds {strings.size}")
        return _read_only(strings.reshape(shape))
    _require_size(data, shape, dtype, where)
    data = data[: _bytes_of(count, dtype)]
    if dtype.bits < 8:
        return _read_only(unpack(data, count, dtype.bits, dtype.is_signed, where).reshape(shape))
    if data.ctypes.data % dtype.storage.itemsize:
        data = data.copy()
    return _read_only(data.view(dtype.storage).reshape(shape))


def encode_constant(data: Array, dtype: DType) -> Bytes:
    """Return the bytes of a constant as the file holds them."""
    if dtype is DType.STRING:
        return pack_strings(np.asarray(data, object))
    if dtype.bits < 8:
        return pack(np.asarray(data, dtype.storage).reshape(-1), dtype.bits)
    little = data.astype(data.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)


def _require_size(data: Bytes, shape: tuple[int, ...], dtype: DType, where: str) -> None:
    """Refuse a buffer with fewer bytes than the shape needs; strings say themselves how many they are."""
    needed = _bytes_of(math.prod(shape), dtype)
    if dtype is not DType.STRING and data.size < needed:
        raise FormatError(f"{where}: shape {shape} of {dtype.value} needs {needed} bytes, the buffer holds {data.size}")


def _copied_bytes(data: Bytes, count: int, dtype: DType) -> int:
    """Return what the value of a constant takes beside the file: nothing where it is a view of it."""
    if dtype is DType.STRING:
        return data.size + _BYTES_OF_STRING * min(count, data.size)
    if dtype.bits < 8:
        return count
    return _bytes_of(count, dtype) if data.ctypes.data % dtype.storage.itemsize else 0


def _bytes_of(count: int, dtype: DType) -> int:
    return -(-count * dtype.bits // 8)


def _read_only(array: Array) -> Array:
    array.setflags(write=False)
    return array


def count_of(what: str, count: int) -> str:
    """Say which indices are allowed, for messages."""
    return f"{what} are 0..{count - 1}" if count else f"the file has no {what}"
