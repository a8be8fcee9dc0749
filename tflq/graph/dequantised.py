"""Real values of integer constants: per tensor, along an axis, and in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph.graph import Array, Graph, Tensor
from tflq.graph.quantisation import Affine, Blockwise

Reals = NDArray[np.float64]


def dequantise(codes: Array, quantisation: Affine) -> Array:
    """Return scale * (q - zero_point): float64[shape] of integer quantized values [shape].

    Per tensor or along the axis.

    Raises:
        GraphError: the number of scales is not the size of the axis.
    """
    axis, count = quantisation.axis, quantisation.scale.size
    if quantisation.is_per_axis and (axis is None or axis >= codes.ndim or codes.shape[axis] != count):
        raise GraphError(f"{count} scales along axis {axis} do not fit a tensor of shape {codes.shape}")
    scale, zero_point = quantisation.along(codes.ndim)
    return np.asarray((codes.astype(np.int64) - zero_point) * scale.astype(np.float64))


def dequantise_blocks(graph: Graph, codes: Array, blocks: Blockwise) -> Array:
    """Return scale[block] * (q - zero_point[block]): float64[..., K] of integer quantized values [..., K].

    Scales are the values of another tensor of the graph, [..., K / block_size]; so are zero points, which are 0 where
    that tensor is no constant (files name none by -1 or by 0).

    Raises:
        GraphError: the scales are no constant, or do not fit the quantized values.
    """
    if blocks.block_shape:
        raise GraphError(f"blocks of shape {blocks.block_shape}; blocks along the last axis are known")
    scales = graph.tensors[blocks.scales]
    if scales.data is None:
        raise GraphError(f"its scales, tensor '{scales.name}', are no constant")
    scale = _of_each(scales, scales.data.astype(np.float64), codes.shape, blocks.block_size)
    zero_points = graph.tensors[blocks.zero_points] if blocks.zero_points >= 0 else None
    if zero_points is None or zero_points.data is None or not zero_points.dtype.is_integer:
        return np.asarray(codes.astype(np.float64) * scale)
    shift = _of_each(zero_points, zero_points.data.astype(np.float64), codes.shape, blocks.block_size)
    return np.asarray((codes.astype(np.float64) - shift) * scale)


def _of_each(tensor: Tensor, values: Reals, shape: tuple[int, ...], block_size: int) -> Reals:
    """Repeat one value a block for each element of the block."""
    length = shape[-1] if shape else 1
    wanted = int(np.prod(shape[:-1], dtype=np.int64)) * (length // block_size)
    if length % block_size or values.size != wanted:
        raise GraphError(
            f"blocks of {block_size} along the last axis of {shape} do not fit '{tensor.name}', which has shape "
            f"{tensor.shape}"
        )
    return np.repeat(values.reshape(*shape[:-1], length // block_size), block_size, axis=-1)
