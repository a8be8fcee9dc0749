"""Tensor tables <-> neutral tensors: types, constants, quantisation."""

from __future__ import annotations

from types import ModuleType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import TensorExtra
from tflq.converters.tflite.sparsity import densify
from tflq.errors import FormatError
from tflq.graph import Affine, Array, Blockwise, DType, Quantisation, Range, Tensor
from tflq.schemas import tflite as schema

Bytes = NDArray[np.uint8]


class TensorReader:
    """Reads tensors of one model; tensors that share a buffer share one array."""

    def __init__(self, buffers: list[schema.Buffer]) -> None:
        self._buffers = buffers
        self._arrays: dict[tuple[int, DType, tuple[int, ...]], Array] = {}

    def read(self, table: schema.Tensor, where: str) -> Tensor:
        """Return the neutral tensor.

        Raises:
            FormatError: a buffer index out of range, data that does not fit the shape, or a quantisation that
                contradicts the tensor.
        """
        shape = _sizes(table.shape)
        dtype = DType[table.type.name]
        quantisation, details = _read_quantisation(table, shape, dtype, where)
        signature = table.shape_signature
        return Tensor(
            name=table.name or "",
            shape=shape,
            dtype=dtype,
            quantisation=quantisation,
            range=_read_range(table.quantization),
            data=self._constant(table, shape, dtype, where),
            shape_signature=None if signature is None else tuple(signature.tolist()),
            is_variable=table.is_variable,
            has_rank=table.has_rank,
            extra=self._extra(table, details),
        )

    def _extra(self, table: schema.Tensor, details: schema.Table | None) -> TensorExtra | None:
        values = self._buffers[table.buffer].data if table.sparsity is not None else None
        extra = TensorExtra(
            table.sparsity,
            None if values is None else values.tobytes(),
            table.variant_tensors,
            details,
            table.external_buffer,
        )
        return None if extra == TensorExtra() else extra

    def _constant(self, table: schema.Tensor, shape: tuple[int, ...], dtype: DType, where: str) -> Array | None:
        if not 0 <= table.buffer < max(1, len(self._buffers)):
            raise FormatError(
                f"{where}: buffer {table.buffer} is out of range, buffers are 0..{len(self._buffers) - 1}"
            )
        data = self._buffers[table.buffer].data if self._buffers else None
        if data is None or data.size == 0 or dtype in (DType.RESOURCE, DType.VARIANT):
            return None
        if min(shape, default=0) < 0:
            raise FormatError(f"{where}: a constant has shape {shape}; its sizes must be 0 or more")
        key = (table.buffer, dtype, shape)
        if table.sparsity is not None:
            return densify(table.sparsity, data, shape, dtype, where)
        if key not in self._arrays:
            self._arrays[key] = decode_constant(data, shape, dtype, where)
        return self._arrays[key]


def decode_constant(data: Bytes, shape: tuple[int, ...], dtype: DType, where: str) -> Array:
    """Return a buffer's bytes as a read-only array of the tensor's shape.

    Raises:
        FormatError: the number of bytes does not fit the shape and type.
    """
    count = int(np.prod(shape, dtype=object))
    if dtype is DType.STRING:
        values = _packing().unpack_strings(data, where)
        if values.size != count:
            raise FormatError(f"{where}: shape {shape} needs {count} strings, the buffer holds {values.size}")
        return values.reshape(shape)
    needed = -(-count * dtype.bits // 8)
    if data.size != needed:
        raise FormatError(f"{where}: shape {shape} of {dtype.value} needs {needed} bytes, the buffer holds {data.size}")
    if dtype.bits < 8:
        return _packing().unpack(data, count, dtype.bits, dtype.is_signed).reshape(shape)
    if data.ctypes.data % dtype.storage.itemsize:
        data = data.copy()
    array = data.view(dtype.storage).reshape(shape)
    array.setflags(write=False)
    return array


def encode_constant(data: Array, dtype: DType) -> Bytes:
    """Return the bytes of a constant as the file holds them."""
    if dtype is DType.STRING:
        return _packing().pack_strings(data)
    if dtype.bits < 8:
        return _packing().pack(data.reshape(-1), dtype.bits)
    little = data.astype(data.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8)


def _packing() -> ModuleType:
    from tflq.schemas.tflite import packing

    return packing


def _sizes(shape: NDArray[np.int32] | None) -> tuple[int, ...]:
    return () if shape is None else tuple(shape.tolist())


def _read_range(quantization: schema.QuantizationParameters | None) -> Range | None:
    if quantization is None or quantization.min is None or quantization.max is None:
        return None
    if quantization.min.size == 0 or quantization.min.size != quantization.max.size:
        return None
    return Range(quantization.min, quantization.max)


def _read_quantisation(
    table: schema.Tensor, shape: tuple[int, ...], dtype: DType, where: str
) -> tuple[Quantisation | None, schema.Table | None]:
    quantization = table.quantization
    if quantization is None:
        return None, None
    details = quantization.details
    if isinstance(details, schema.BlockwiseQuantization):
        return Blockwise(details.scales, details.zero_points, details.block_size), None
    if quantization.scale is None or quantization.scale.size == 0:
        return None, details
    scale = quantization.scale
    zero_point = quantization.zero_point
    if zero_point is None or zero_point.size == 0:
        zero_point = np.zeros(scale.size, np.int64)
    axis = quantization.quantized_dimension
    _check_quantisation(scale, zero_point, axis, shape, where)
    per_axis = scale.size > 1 or axis != 0
    return Affine(scale, zero_point, axis if per_axis else None, dtype.bits or 8, dtype.is_signed), details


def _check_quantisation(
    scale: NDArray[np.float32], zero_point: NDArray[np.int64], axis: int, shape: tuple[int, ...], where: str
) -> None:
    if zero_point.size not in (1, scale.size):
        raise FormatError(f"{where}: {scale.size} scales but {zero_point.size} zero points; the numbers must be equal")
    if scale.size > 1:
        if not 0 <= axis < len(shape):
            raise FormatError(f"{where}: quantised along axis {axis}, the shape {shape} has axes 0..{len(shape) - 1}")
        if shape[axis] != scale.size:
            raise FormatError(f"{where}: {scale.size} scales along axis {axis}, which has {shape[axis]} channels")


def write_quantisation(tensor: Tensor) -> schema.QuantizationParameters | None:
    """Return the quantisation table of a tensor, None where there is nothing to say."""
    quantization = schema.QuantizationParameters()
    if tensor.range is not None:
        quantization.min = tensor.range.minimum.astype(np.float32)
        quantization.max = tensor.range.maximum.astype(np.float32)
    if isinstance(tensor.quantisation, Affine):
        affine = tensor.quantisation
        quantization.scale = affine.scale.astype(np.float32)
        quantization.zero_point = np.broadcast_to(affine.zero_point, affine.scale.shape).astype(np.int64)
        quantization.quantized_dimension = affine.axis or 0
    if isinstance(tensor.quantisation, Blockwise):
        blocks = tensor.quantisation
        quantization.details = schema.BlockwiseQuantization(
            scales=blocks.scales, zero_points=blocks.zero_points, block_size=blocks.block_size
        )
    if isinstance(tensor.extra, TensorExtra) and tensor.extra.details is not None:
        quantization.details = cast("schema.QuantizationDetails", tensor.extra.details)
    return quantization if quantization.present() else None
