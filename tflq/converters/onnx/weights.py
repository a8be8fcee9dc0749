"""Weights of a float network that stay the file's integers behind DequantizeLinear (form=weights)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.converters.onnx.options import OnnxOptions
from tflq.graph import Affine, Array, Blockwise, DType, Graph
from tflq.graph.float_view import dequantize_blocks

_NARROW = (DType.INT8, DType.UINT8, DType.INT4, DType.UINT4, DType.INT16, DType.UINT16)


@dataclass(frozen=True)
class KeptWeights(OnnxOptions):
    """The options of form=weights.

    Attributes:
        source: the graph as the file has it; tensors have the indices of the float view.
    """

    source: Graph | None = None


@dataclass(frozen=True, eq=False)
class Codes:
    """A constant as DequantizeLinear takes it: (code - zero point) * scale.

    Attributes:
        codes: quantized values, laid out as the constant.
        dtype: their type.
        scale: float32: a scalar, [C] along the axis, or one a block, [..., K / block_size].
        zero_point: of the same shape, as the codes are stored.
        axis: of the channels, or of the blocks.
        block_size: 0 where there are none.
    """

    codes: Array
    dtype: DType
    scale: NDArray[np.float32]
    zero_point: Array
    axis: int = 0
    block_size: int = 0


def kept(options: OnnxOptions, t: int, value: Array, axis: int) -> Codes | None:
    """Return the file's integers of a constant, laid out as its real values are.

    None where the constant has none, or where not every real value is exactly float32((code - zero point) * scale).

    Args:
        options: with the file's graph for form=weights.
        t: the tensor.
        value: real numbers of the tensor, perhaps rearranged.
        axis: that channels have in `value`.
    """
    if not isinstance(options, KeptWeights) or options.source is None or t >= len(options.source.tensors):
        return None
    source, tensor = options.source, options.source.tensors[t]
    if tensor.dtype not in _NARROW or value.dtype != np.float32:
        return None
    if isinstance(tensor.quantization, Blockwise):
        return _blocks(source, t, value)
    affine = tensor.quantization
    if not isinstance(affine, Affine) or (affine.is_per_axis and value.shape[axis] != affine.scale.size):
        return None
    scale, zero_point = replace(affine, axis=axis).along(value.ndim)
    wide, zeros = scale.astype(np.float64), np.broadcast_to(zero_point, scale.shape)
    codes = np.rint(value.astype(np.float64) / wide) + zeros
    if not np.array_equal(((codes - zeros) * wide).astype(np.float32), value):
        return None
    shape = (-1,) if affine.is_per_axis else ()
    stored = codes.astype(tensor.dtype.storage), tensor.dtype, affine.scale.astype(np.float32).reshape(shape)
    return Codes(*stored, zeros.astype(tensor.dtype.storage).reshape(shape), axis)


def _blocks(source: Graph, t: int, value: Array) -> Codes | None:
    tensor = source.tensors[t]
    blocks, data = tensor.quantization, tensor.data
    assert isinstance(blocks, Blockwise)
    if data is None or not np.array_equal(dequantize_blocks(source, data, blocks).astype(np.float32), value):
        return None  # rearranged: a block no longer stands in one place
    shape = (*data.shape[:-1], data.shape[-1] // blocks.block_size)
    scale, zeros = source.tensors[blocks.scales].data, np.zeros(shape, tensor.dtype.storage)
    assert scale is not None
    given = source.tensors[blocks.zero_points] if blocks.zero_points >= 0 else None
    if given is not None and given.data is not None and given.dtype.is_integer:
        zeros = given.data.astype(tensor.dtype.storage).reshape(shape)
    wide = scale.astype(np.float32).reshape(shape)
    return Codes(data, tensor.dtype, wide, zeros, data.ndim - 1, blocks.block_size)
