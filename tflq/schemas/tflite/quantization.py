"""Tables of quantisation and sparsity."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, enum, int32, tables, union, union_type, vector
from tflq.schemas.flatbuffer.table import Table, Union
from tflq.schemas.tflite.enums import DimensionType


class QuantizationDetails(Union):
    """The quantisations beyond scale and zero point."""


class SparseIndexVector(Union):
    """The index vectors of a sparse dimension."""


class CustomQuantization(QuantizationDetails, member=1):
    """Parameters of a quantisation that the schema does not know."""

    custom: VectorOf[np.uint8] = vector(np.uint8, align=16)


class BlockwiseQuantization(QuantizationDetails, member=2):
    """Scales and zero points (tensor indices, -1 for none) per block of block_size elements, or of block_shape."""

    scales: int = int32()
    zero_points: int = int32()
    block_size: int = int32()
    block_shape: VectorOf[np.int32] = vector(np.int32)


class MultiAxisQuantization(QuantizationDetails, member=3):
    """Scales and zero points (tensor indices, -1 for none) along several dimensions; block_size 0 without blocks."""

    scales: int = int32()
    zero_points: int = int32()
    block_size: int = int32()
    quantized_dimensions: VectorOf[np.int32] = vector(np.int32)


class QuantizationParameters(Table):
    """real = scale * (quantised - zero_point), per tensor or along quantized_dimension; with details, these win."""

    min: VectorOf[np.float32] = vector(np.float32)
    max: VectorOf[np.float32] = vector(np.float32)
    scale: VectorOf[np.float32] = vector(np.float32)
    zero_point: VectorOf[np.int64] = vector(np.int64)
    details_type: int = union_type()
    details: QuantizationDetails | None = union(QuantizationDetails)
    quantized_dimension: int = int32()


class Int32Vector(SparseIndexVector, member=1):
    """Indices of a sparse dimension, 32 bits."""

    values: VectorOf[np.int32] = vector(np.int32)


class Uint16Vector(SparseIndexVector, member=2):
    """Indices of a sparse dimension, 16 bits."""

    values: VectorOf[np.uint16] = vector(np.uint16, align=4)


class Uint8Vector(SparseIndexVector, member=3):
    """Indices of a sparse dimension, 8 bits."""

    values: VectorOf[np.uint8] = vector(np.uint8, align=4)


class DimensionMetadata(Table):
    """A dimension of a sparse tensor: dense_size, or segments and indices as in compressed sparse rows."""

    format: DimensionType = enum(DimensionType.DENSE)
    dense_size: int = int32()
    array_segments_type: int = union_type()
    array_segments: SparseIndexVector | None = union(SparseIndexVector)
    array_indices_type: int = union_type()
    array_indices: SparseIndexVector | None = union(SparseIndexVector)


class SparsityParameters(Table):
    """Traversal order, block map and dimensions of a sparse tensor (the TACO format)."""

    traversal_order: VectorOf[np.int32] = vector(np.int32)
    block_map: VectorOf[np.int32] = vector(np.int32)
    dim_metadata: list[DimensionMetadata] | None = tables(DimensionMetadata)
