"""Options of the second union: StableHLO operators and DILATE."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, enums, int32, int64, string, vector
from tflq.schemas.flatbuffer.scalars import INT32, UINT32
from tflq.schemas.tflite.bases import BuiltinOptions2
from tflq.schemas.tflite.enums import (
    CustomOptionsFormat,
    ReduceWindowFunction,
    RngAlgorithm,
    StablehloComparisonDirection,
    StablehloComparisonType,
    StablehloPrecisionConfig,
)


class StablehloGatherOptions(BuiltinOptions2, member=16):
    """STABLEHLO_GATHER."""

    offset_dims: VectorOf[np.int64] = vector(np.int64)
    collapsed_slice_dims: VectorOf[np.int64] = vector(np.int64)
    start_index_map: VectorOf[np.int64] = vector(np.int64)
    index_vector_dim: int = int64()
    slice_sizes: VectorOf[np.int64] = vector(np.int64)
    indices_are_sorted: bool = boolean()


class StablehloTransposeOptions(BuiltinOptions2, member=17):
    """STABLEHLO_TRANSPOSE."""

    permutation: VectorOf[np.int64] = vector(np.int64)


class StablehloDotGeneralOptions(BuiltinOptions2, member=12):
    """STABLEHLO_DOT_GENERAL."""

    lhs_batching_dimensions: VectorOf[np.int64] = vector(np.int64)
    rhs_batching_dimensions: VectorOf[np.int64] = vector(np.int64)
    lhs_contracting_dimensions: VectorOf[np.int64] = vector(np.int64)
    rhs_contracting_dimensions: VectorOf[np.int64] = vector(np.int64)
    precision_config: list[StablehloPrecisionConfig] | None = enums(StablehloPrecisionConfig, UINT32)


class StablehloReduceWindowOptions(BuiltinOptions2, member=13):
    """STABLEHLO_REDUCE_WINDOW."""

    window_dimensions: VectorOf[np.int64] = vector(np.int64)
    window_strides: VectorOf[np.int64] = vector(np.int64)
    base_dilations: VectorOf[np.int64] = vector(np.int64)
    window_dilations: VectorOf[np.int64] = vector(np.int64)
    padding: VectorOf[np.int64] = vector(np.int64)
    body_subgraph_index: int = int32()


class StablehloWhileOptions(BuiltinOptions2, member=15):
    """STABLEHLO_WHILE."""

    cond_subgraph_index: int = int32()
    body_subgraph_index: int = int32()


class StablehloSortOptions(BuiltinOptions2, member=14):
    """STABLEHLO_SORT."""

    dimension: int = int64()
    is_stable: bool = boolean()
    comparator_subgraph_index: int = int32()


class StablehloConcatenateOptions(BuiltinOptions2, member=1):
    """STABLEHLO_CONCATENATE."""

    dimension: int = int64()


class StablehloBroadcastInDimOptions(BuiltinOptions2, member=2):
    """STABLEHLO_BROADCAST_IN_DIM."""

    broadcast_dimensions: VectorOf[np.int64] = vector(np.int64)


class StablehloCompareOptions(BuiltinOptions2, member=8):
    """STABLEHLO_COMPARE."""

    comparison_direction: StablehloComparisonDirection = enum(
        StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_EQ, UINT32
    )
    compare_type: StablehloComparisonType = enum(StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_NOTYPE, UINT32)


class StablehloDynamicSliceOptions(BuiltinOptions2, member=9):
    """STABLEHLO_DYNAMIC_SLICE."""

    slice_sizes: VectorOf[np.int64] = vector(np.int64)


class StablehloPadOptions(BuiltinOptions2, member=10):
    """STABLEHLO_PAD."""

    edge_padding_low: VectorOf[np.int64] = vector(np.int64)
    edge_padding_high: VectorOf[np.int64] = vector(np.int64)
    interior_padding: VectorOf[np.int64] = vector(np.int64)


class StablehloIotaOptions(BuiltinOptions2, member=11):
    """STABLEHLO_IOTA."""

    iota_dimension: int = int64()


class StablehloCustomCallOptions(BuiltinOptions2, member=5):
    """STABLEHLO_CUSTOM_CALL; called_computations are subgraphs."""

    call_target_name: str | None = string()
    has_side_effect: bool = boolean()
    backend_config: str | None = string()
    api_version: int = int32()
    called_computations: VectorOf[np.int32] = vector(np.int32)
    custom_attributes: VectorOf[np.uint8] = vector(np.uint8)


class StablehloReduceOptions(BuiltinOptions2, member=6):
    """STABLEHLO_REDUCE."""

    dimensions: VectorOf[np.int64] = vector(np.int64)
    body_subgraph_index: int = int32()


class StablehloSliceOptions(BuiltinOptions2, member=3):
    """STABLEHLO_SLICE."""

    start_indices: VectorOf[np.int64] = vector(np.int64)
    limit_indices: VectorOf[np.int64] = vector(np.int64)
    strides: VectorOf[np.int64] = vector(np.int64)


class StablehloConvolutionOptions(BuiltinOptions2, member=4):
    """STABLEHLO_CONVOLUTION."""

    window_strides: VectorOf[np.int64] = vector(np.int64)
    padding: VectorOf[np.int64] = vector(np.int64)
    lhs_dilation: VectorOf[np.int64] = vector(np.int64)
    rhs_dilation: VectorOf[np.int64] = vector(np.int64)
    window_reversal: VectorOf[np.bool_] = vector(np.bool_)
    input_batch_dimension: int = int64()
    input_feature_dimension: int = int64()
    input_spatial_dimensions: VectorOf[np.int64] = vector(np.int64)
    kernel_input_feature_dimension: int = int64()
    kernel_output_feature_dimension: int = int64()
    kernel_spatial_dimensions: VectorOf[np.int64] = vector(np.int64)
    output_batch_dimension: int = int64()
    output_feature_dimension: int = int64()
    output_spatial_dimensions: VectorOf[np.int64] = vector(np.int64)
    feature_group_count: int = int64()
    batch_group_count: int = int64()
    precision_config: list[StablehloPrecisionConfig] | None = enums(StablehloPrecisionConfig, UINT32)


class StablehloScatterOptions(BuiltinOptions2, member=7):
    """STABLEHLO_SCATTER."""

    indices_are_sorted: bool = boolean()
    update_window_dims: VectorOf[np.int64] = vector(np.int64)
    inserted_window_dims: VectorOf[np.int64] = vector(np.int64)
    scatter_dims_to_operand_dims: VectorOf[np.int64] = vector(np.int64)
    index_vector_dim: int = int64()
    unique_indices: bool = boolean()
    update_computation_subgraph_index: int = int32()


class StablehloCaseOptions(BuiltinOptions2, member=23):
    """STABLEHLO_CASE."""

    branch_subgraph_indices: VectorOf[np.int32] = vector(np.int32)


class StablehloRngBitGeneratorOptions(BuiltinOptions2, member=19):
    """STABLEHLO_RNG_BIT_GENERATOR."""

    algorithm: RngAlgorithm = enum(RngAlgorithm.DEFAULT)


class StableHLOCompositeOptions(BuiltinOptions2, member=21):
    """STABLEHLO_COMPOSITE; the attributes are a flexbuffer."""

    name: str | None = string()
    decomposition_subgraph_index: int = int32()
    composite_attributes: VectorOf[np.uint8] = vector(np.uint8)
    composite_attributes_format: CustomOptionsFormat = enum(CustomOptionsFormat.FLEXBUFFERS)
    version: int = int32()


class ReduceWindowOptions(BuiltinOptions2, member=20):
    """REDUCE_WINDOW, deprecated."""

    reduce_function: ReduceWindowFunction = enum(ReduceWindowFunction.UNSUPPORTED, INT32)
