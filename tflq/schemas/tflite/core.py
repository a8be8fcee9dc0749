"""The tables of the model, from quantization and tensor to the root."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import (
    VectorOf,
    boolean,
    enum,
    int8,
    int32,
    string,
    table,
    tables,
    uint32,
    uint64,
    union,
    union_type,
    unstored,
    vector,
)
from tflq.schemas.flatbuffer.scalars import INT32
from tflq.schemas.flatbuffer.table import Table, Union
from tflq.schemas.tflite.enums import BuiltinOperator, CustomOptionsFormat, DimensionType, TensorType
from tflq.schemas.tflite.options import BuiltinOptions, BuiltinOptions2


class QuantizationDetails(Union):
    """The quantizations beyond scale and zero point."""


class SparseIndexVector(Union):
    """The index vectors of a sparse dimension."""


class CustomQuantization(QuantizationDetails, member=1):
    """Parameters of a quantization that the schema does not know."""

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
    """real = scale * (quantized - zero_point), per tensor or along quantized_dimension; with details, these win."""

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


class VariantSubType(Table):
    """Type nested in a VARIANT tensor."""

    shape: VectorOf[np.int32] = vector(np.int32)
    type: TensorType = enum(TensorType.FLOAT32)
    has_rank: bool = boolean()


class Tensor(Table):
    """A tensor of a subgraph. buffer 0 means no constant data; shape_signature has -1 for unknown dimensions."""

    shape: VectorOf[np.int32] = vector(np.int32)
    type: TensorType = enum(TensorType.FLOAT32)
    buffer: int = uint32()
    name: str | None = string()
    quantization: QuantizationParameters | None = table(QuantizationParameters)
    is_variable: bool = boolean()
    sparsity: SparsityParameters | None = table(SparsityParameters)
    shape_signature: VectorOf[np.int32] = vector(np.int32)
    has_rank: bool = boolean()
    variant_tensors: list[VariantSubType] | None = tables(VariantSubType)
    external_buffer: int = uint32()


class OperatorCode(Table):
    """Which operator: read it with builtin_code(), the greater of the old and the new field."""

    deprecated_builtin_code: int = int8()
    custom_code: str | None = string()
    version: int = int32(1)
    builtin_code: BuiltinOperator = enum(BuiltinOperator.ADD, INT32)


class Operator(Table):
    """A node: inputs (-1 for one left out), outputs, and its options."""

    opcode_index: int = uint32()
    inputs: VectorOf[np.int32] = vector(np.int32)
    outputs: VectorOf[np.int32] = vector(np.int32)
    builtin_options_type: int = union_type()
    builtin_options: BuiltinOptions | None = union(BuiltinOptions)
    custom_options: VectorOf[np.uint8] = vector(np.uint8)
    custom_options_format: CustomOptionsFormat = enum(CustomOptionsFormat.FLEXBUFFERS)
    mutating_variable_inputs: VectorOf[np.bool_] = vector(np.bool_)
    intermediates: VectorOf[np.int32] = vector(np.int32)
    large_custom_options_offset: int = uint64()
    large_custom_options_size: int = uint64()
    builtin_options_2_type: int = union_type()
    builtin_options_2: BuiltinOptions2 | None = union(BuiltinOptions2)
    debug_metadata_index: int = int32(-1)


class SubGraph(Table):
    """Tensors and operators in execution order."""

    tensors: list[Tensor] | None = tables(Tensor)
    inputs: VectorOf[np.int32] = vector(np.int32)
    outputs: VectorOf[np.int32] = vector(np.int32)
    operators: list[Operator] | None = tables(Operator)
    name: str | None = string()
    debug_metadata_index: int = int32(-1)


class Buffer(Table):
    """Constant data. Absent data with an offset above 1 lies outside the flatbuffer; decode_model resolves it."""

    data: VectorOf[np.uint8] = vector(np.uint8, align=16)
    offset: int = uint64()
    size: int = uint64()


class ExternalBufferGroup(Table):
    """A file or URI that holds external buffers."""

    name: str | None = string()


class ExternalBuffer(Table):
    """A slice of an external file, named by Tensor.external_buffer."""

    id: int = uint32()
    group: int = uint32()
    offset: int = uint64()
    length: int = uint64()
    packing: str | None = string()


class Metadata(Table):
    """Named metadata in a buffer."""

    name: str | None = string()
    buffer: int = uint32()


class TensorMap(Table):
    """Name of an input or output of a signature."""

    name: str | None = string()
    tensor_index: int = uint32()


class SignatureDef(Table):
    """A signature: names of inputs and outputs of a subgraph."""

    inputs: list[TensorMap] | None = tables(TensorMap)
    outputs: list[TensorMap] | None = tables(TensorMap)
    signature_key: str | None = string()
    deprecated_tag: str | None = string()
    subgraph_index: int = uint32()


class Model(Table):
    """The root of the file. `version` is 3 in every file that is read or written.

    `trailing_bytes` is no field of the schema: what follows the model in the file, such as the ZIP archive of TFLite
    Metadata, or tables that a converter left unreferenced.
    """

    version: int = uint32()
    operator_codes: list[OperatorCode] | None = tables(OperatorCode)
    subgraphs: list[SubGraph] | None = tables(SubGraph)
    description: str | None = string()
    buffers: list[Buffer] | None = tables(Buffer)
    metadata_buffer: VectorOf[np.int32] = vector(np.int32)
    metadata: list[Metadata] | None = tables(Metadata)
    signature_defs: list[SignatureDef] | None = tables(SignatureDef)
    external_buffer_groups: list[ExternalBufferGroup] | None = tables(ExternalBufferGroup)
    external_buffers: list[ExternalBuffer] | None = tables(ExternalBuffer)
    trailing_bytes: VectorOf[np.uint8] = unstored(np.uint8)


def builtin_code(code: OperatorCode) -> BuiltinOperator:
    """Return max(deprecated_builtin_code, builtin_code): files before schema 3a have only the old field.

    Every int8 from 0 on is an operator, and a negative one is below any builtin_code, so this cannot fail.
    """
    return BuiltinOperator(max(code.deprecated_builtin_code, code.builtin_code))


def set_builtin_code(code: OperatorCode, operator: BuiltinOperator) -> None:
    """Set both fields: builtin_code = operator, deprecated_builtin_code = min(operator, 127).

    Raises:
        FormatError: The number is no operator.
    """
    code.builtin_code = operator
    code.deprecated_builtin_code = min(operator, BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
