"""The quantisation table of a tensor <-> its neutral quantisation and range."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import TensorExtra
from tflq.errors import FormatError, GraphError
from tflq.graph import Affine, Blockwise, DType, Quantisation, Range, Tensor
from tflq.schemas import tflite as schema


def read_quantisation(
    table: schema.QuantizationParameters | None, shape: tuple[int, ...], dtype: DType, where: str
) -> Quantisation | None:
    """Return the quantisation, None where the table states none that has a neutral form.

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
        raise FormatError(f"{where}: quantised along axis {axis}, the shape {shape} has axes 0..{len(shape) - 1}")
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
    table: schema.QuantizationParameters | None, quantisation: Quantisation | None, stated: Range | None
) -> schema.QuantizationParameters | None:
    """Return the table itself where its neutral form would lose something of it, else None."""
    if table is None or not table.present():
        return None
    neutral = _neutral_table(quantisation, stated)
    if table.is_present("quantized_dimension"):
        neutral.quantized_dimension = neutral.quantized_dimension
    return None if neutral == table else table


def write_quantisation(tensor: Tensor) -> schema.QuantizationParameters | None:
    """Return the quantisation table of a tensor, None where there is nothing to say.

    The table that was kept on reading is written as long as the tensor still has the quantisation and range that stand
    in it.

    Raises:
        GraphError: a quantisation that the format does not have.
    """
    if tensor.quantisation is not None and not isinstance(tensor.quantisation, (Affine, Blockwise)):
        kind = type(tensor.quantisation).__name__
        raise GraphError(f"tensor '{tensor.name}' is quantised as {kind}, which has no form in TFLite")
    kept = tensor.extra.quantization if isinstance(tensor.extra, TensorExtra) else None
    if kept is not None and _still_says(kept, tensor):
        return kept
    table = _neutral_table(tensor.quantisation, tensor.range)
    return table if table.present() else None


def _still_says(table: schema.QuantizationParameters, tensor: Tensor) -> bool:
    try:
        quantisation = read_quantisation(table, tensor.shape, tensor.dtype, tensor.name)
    except FormatError:  # the tensor has another shape now
        return False
    return quantisation == tensor.quantisation and read_range(table) == tensor.range


def _neutral_table(quantisation: Quantisation | None, stated: Range | None) -> schema.QuantizationParameters:
    table = schema.QuantizationParameters()
    if stated is not None:
        table.min = stated.minimum.astype(np.float32)
        table.max = stated.maximum.astype(np.float32)
    if isinstance(quantisation, Affine):
        table.scale = quantisation.scale.astype(np.float32)
        table.zero_point = _one_for_each(quantisation.zero_point, quantisation.scale.shape)
        if quantisation.axis:
            table.quantized_dimension = quantisation.axis
    if isinstance(quantisation, Blockwise):
        table.details = schema.BlockwiseQuantization(
            scales=quantisation.scales, zero_points=quantisation.zero_points, block_size=quantisation.block_size
        )
        if quantisation.block_shape:
            table.details.block_shape = np.array(quantisation.block_shape, np.int32)
    return table


def _one_for_each(zero_point: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.ascontiguousarray(np.broadcast_to(zero_point, shape), np.int64)
