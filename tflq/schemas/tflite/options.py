"""Options of the operators: a row a table, by its number in the union, its fields in slot order.

Code finds a table under its name with "Options", as all others, and reads options by the names of their fields, never
by their class, so that a row is all there is to one.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.schemas.flatbuffer.declare import boolean, enum, enums, float32, int32, int64, string, uint32, vector
from tflq.schemas.flatbuffer.scalars import INT32, UINT32
from tflq.schemas.flatbuffer.table import Union
from tflq.schemas.tflite.enums import (
    ActivationFunctionType,
    CombinerType,
    CustomOptionsFormat,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    MirrorPadMode,
    Padding,
    ReduceWindowFunction,
    RngAlgorithm,
    StablehloComparisonDirection,
    StablehloComparisonType,
    StablehloPrecisionConfig,
    TensorType,
)


class BuiltinOptions(Union):
    """The options in the first union of Operator."""


class BuiltinOptions2(Union):
    """The options in the second union of Operator."""


def _table(union: type[Union], member: int, name: str, /, **declared: object) -> None:
    """Make a table with the declared fields as a name of this module: "Cast" gives CastOptions."""
    body = {"__doc__": f"Options: {', '.join(declared) or 'no fields'}.", "__module__": __name__, **declared}
    globals()[f"{name}Options"] = type(f"{name}Options", (union,), body, member=member)


def _empty(**members: int) -> None:
    """Make tables without fields in the first union."""
    for name, member in members.items():
        _table(BuiltinOptions, member, name)


_first, _second = partial(_table, BuiltinOptions), partial(_table, BuiltinOptions2)
_activation, _data_type = partial(enum, ActivationFunctionType.NONE), partial(enum, TensorType.FLOAT32)
_int32s, _int64s = partial(vector, np.int32), partial(vector, np.int64)

# fmt: off
# Convolutions, products, activations, recurrent layers, embeddings and quantization.
# CONV_2D; dilations from version 2, quantized_bias_type (bias and accumulator) from version 8
_first(1, "Conv2D", padding=enum(Padding.SAME), stride_w=int32(), stride_h=int32(),
    fused_activation_function=_activation(), dilation_w_factor=int32(1), dilation_h_factor=int32(1),
    quantized_bias_type=_data_type())
# CONV_3D and CONV_3D_TRANSPOSE
_first(106, "Conv3D", padding=enum(Padding.SAME), stride_d=int32(), stride_w=int32(), stride_h=int32(),
    fused_activation_function=_activation(), dilation_d_factor=int32(1), dilation_w_factor=int32(1),
    dilation_h_factor=int32(1))
# DEPTHWISE_CONV_2D; depth_multiplier is redundant and ignored, dilations from version 2
_first(2, "DepthwiseConv2D", padding=enum(Padding.SAME), stride_w=int32(), stride_h=int32(), depth_multiplier=int32(),
    fused_activation_function=_activation(), dilation_w_factor=int32(1), dilation_h_factor=int32(1))
# TRANSPOSE_CONV; the activation from version 4, quantized_bias_type from version 5
_first(49, "TransposeConv", padding=enum(Padding.SAME), stride_w=int32(), stride_h=int32(),
    fused_activation_function=_activation(), quantized_bias_type=_data_type())
# AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D
_first(5, "Pool2D", padding=enum(Padding.SAME), stride_w=int32(), stride_h=int32(), filter_width=int32(),
    filter_height=int32(), fused_activation_function=_activation())
# FULLY_CONNECTED; keep_num_dims from version 5, quantized_bias_type from version 11. quant_spec is in the generated
# code of ai-edge-litert 2.3, newer than the published schema.
_first(8, "FullyConnected", fused_activation_function=_activation(),
    weights_format=enum(FullyConnectedOptionsWeightsFormat.DEFAULT), keep_num_dims=boolean(),
    asymmetric_quantize_inputs=boolean(), quantized_bias_type=_data_type(), quant_spec=vector(np.uint8))
# BATCH_MATMUL; adj_x and adj_y transpose the last two axes
_first(101, "BatchMatMul", adj_x=boolean(), adj_y=boolean(), asymmetric_quantize_inputs=boolean())
_first(9, "Softmax", beta=float32())  # SOFTMAX: softmax(beta * x)
_first(12, "L2Norm", fused_activation_function=_activation())  # L2_NORMALIZATION
_first(13, "LocalResponseNormalization", radius=int32(), bias=float32(), alpha=float32(), beta=float32())
_first(75, "LeakyRelu", alpha=float32())  # LEAKY_RELU: alpha * x for x < 0
_first(116, "Gelu", approximate=boolean())  # GELU, exact or with the tanh approximation
_first(6, "SVDF", rank=int32(), fused_activation_function=_activation(), asymmetric_quantize_inputs=boolean())
_first(7, "RNN", fused_activation_function=_activation(), asymmetric_quantize_inputs=boolean())
# UNIDIRECTIONAL_SEQUENCE_RNN
_first(31, "SequenceRNN", time_major=boolean(), fused_activation_function=_activation(),
    asymmetric_quantize_inputs=boolean())
_first(70, "BidirectionalSequenceRNN", time_major=boolean(), fused_activation_function=_activation(),
    merge_outputs=boolean(), asymmetric_quantize_inputs=boolean())
# LSTM; a clip of 0.0 means no clipping
_first(14, "LSTM", fused_activation_function=_activation(), cell_clip=float32(), proj_clip=float32(),
    kernel_type=enum(LSTMKernelType.FULL), asymmetric_quantize_inputs=boolean())
# UNIDIRECTIONAL_SEQUENCE_LSTM; a clip of 0.0 means no clipping
_first(71, "UnidirectionalSequenceLSTM", fused_activation_function=_activation(), cell_clip=float32(),
    proj_clip=float32(), time_major=boolean(), asymmetric_quantize_inputs=boolean(),
    diagonal_recurrent_tensors=boolean())
# BIDIRECTIONAL_SEQUENCE_LSTM; a clip of 0.0 means no clipping, time_major is true by default
_first(69, "BidirectionalSequenceLSTM", fused_activation_function=_activation(), cell_clip=float32(),
    proj_clip=float32(), merge_outputs=boolean(), time_major=boolean(True), asymmetric_quantize_inputs=boolean())
_first(3, "ConcatEmbeddings", num_channels=int32(), num_columns_per_channel=_int32s(),
    embedding_dim_per_channel=_int32s())
_first(4, "LSHProjection", type=enum(LSHProjectionType.UNKNOWN))
_first(20, "EmbeddingLookupSparse", combiner=enum(CombinerType.SUM))
_first(18, "SkipGram", ngram_size=int32(), max_skip_size=int32(), include_all_ngrams=boolean())
# RESIZE_BILINEAR; new_height and new_width are deprecated, their slots kept
_first(15, "ResizeBilinear", new_height=int32(), new_width=int32(), align_corners=boolean(),
    half_pixel_centers=boolean())
_first(74, "ResizeNearestNeighbor", align_corners=boolean(), half_pixel_centers=boolean())
# FAKE_QUANT; narrow_range from version 2
_first(58, "FakeQuant", min=float32(), max=float32(), num_bits=int32(), narrow_range=boolean())

# Element by element; reductions, moves and data; operators that run other subgraphs.
# ADD; pot_scale_int16 asks for power-of-two scales of int16
_first(11, "Add", fused_activation_function=_activation(), pot_scale_int16=boolean(True))
# SUB; pot_scale_int16 asks for power-of-two scales of int16
_first(28, "Sub", fused_activation_function=_activation(), pot_scale_int16=boolean(True))
_first(21, "Mul", fused_activation_function=_activation())
_first(29, "Div", fused_activation_function=_activation())
# MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL
_first(27, "Reducer", keep_dims=boolean())
_first(102, "Cumsum", exclusive=boolean(), reverse=boolean())
_first(40, "ArgMax", output_type=_data_type())
_first(57, "ArgMin", output_type=_data_type())
_first(115, "Bucketize", boundaries=vector(np.float32))  # BUCKETIZE; the boundaries of the buckets, ascending
_first(114, "Random", seed=int64(), seed2=int64())  # RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL
_first(10, "Concatenation", axis=int32(), fused_activation_function=_activation())
_first(17, "Reshape", new_shape=_int32s())  # RESHAPE; the second input, where there is one, wins over new_shape
_first(30, "Squeeze", squeeze_dims=_int32s())
_first(77, "MirrorPad", mode=enum(MirrorPadMode.REFLECT))
_first(35, "Split", num_splits=int32())
_first(79, "SplitV", num_splits=int32())
_first(59, "Pack", values_count=int32(), axis=int32())
_first(64, "Unpack", num=int32(), axis=int32())
# STRIDED_SLICE; with offset, the end tensor counts from the begin tensor
_first(32, "StridedSlice", begin_mask=int32(), end_mask=int32(), ellipsis_mask=int32(), new_axis_mask=int32(),
    shrink_axis_mask=int32(), offset=boolean())
_first(23, "Gather", axis=int32(), batch_dims=int32())  # GATHER; batch_dims from version 5
_first(19, "SpaceToDepth", block_size=int32())
_first(94, "DepthToSpace", block_size=int32())
_first(87, "ReverseSequence", seq_dim=int32(), batch_dim=int32())
_first(61, "OneHot", axis=int32())
_first(55, "Shape", out_type=_data_type())
_first(80, "Unique", idx_out_type=enum(TensorType.INT32))  # UNIQUE; the type of the indices is INT32 by default
_first(50, "SparseToDense", validate_indices=boolean())
_first(37, "Cast", in_data_type=_data_type(), out_data_type=_data_type())
_first(16, "Call", subgraph=uint32())  # CALL; the subgraph to call
_first(92, "If", then_subgraph_index=int32(), else_subgraph_index=int32())
_first(93, "While", cond_subgraph_index=int32(), body_subgraph_index=int32())
_first(103, "CallOnce", init_subgraph_index=int32())
# HASHTABLE; table_id identifies the table across the subgraphs of an interpreter
_first(107, "Hashtable", table_id=int32(), key_dtype=_data_type(), value_dtype=_data_type())
_first(111, "VarHandle", container=string(), shared_name=string())

# StableHLO, DILATE and REDUCE_WINDOW.
_second(16, "StablehloGather", offset_dims=_int64s(), collapsed_slice_dims=_int64s(), start_index_map=_int64s(),
    index_vector_dim=int64(), slice_sizes=_int64s(), indices_are_sorted=boolean())
_second(17, "StablehloTranspose", permutation=_int64s())
_second(12, "StablehloDotGeneral", lhs_batching_dimensions=_int64s(), rhs_batching_dimensions=_int64s(),
    lhs_contracting_dimensions=_int64s(), rhs_contracting_dimensions=_int64s(),
    precision_config=enums(StablehloPrecisionConfig, UINT32))
_second(13, "StablehloReduceWindow", window_dimensions=_int64s(), window_strides=_int64s(), base_dilations=_int64s(),
    window_dilations=_int64s(), padding=_int64s(), body_subgraph_index=int32())
_second(15, "StablehloWhile", cond_subgraph_index=int32(), body_subgraph_index=int32())
_second(14, "StablehloSort", dimension=int64(), is_stable=boolean(), comparator_subgraph_index=int32())
_second(1, "StablehloConcatenate", dimension=int64())
_second(2, "StablehloBroadcastInDim", broadcast_dimensions=_int64s())
_second(8, "StablehloCompare", comparison_direction=enum(StablehloComparisonDirection(0), UINT32),
    compare_type=enum(StablehloComparisonType(0), UINT32))
_second(9, "StablehloDynamicSlice", slice_sizes=_int64s())
_second(10, "StablehloPad", edge_padding_low=_int64s(), edge_padding_high=_int64s(), interior_padding=_int64s())
_second(11, "StablehloIota", iota_dimension=int64())
# STABLEHLO_CUSTOM_CALL; called_computations are subgraphs
_second(5, "StablehloCustomCall", call_target_name=string(), has_side_effect=boolean(), backend_config=string(),
    api_version=int32(), called_computations=_int32s(), custom_attributes=vector(np.uint8))
_second(6, "StablehloReduce", dimensions=_int64s(), body_subgraph_index=int32())
_second(3, "StablehloSlice", start_indices=_int64s(), limit_indices=_int64s(), strides=_int64s())
_second(4, "StablehloConvolution", window_strides=_int64s(), padding=_int64s(), lhs_dilation=_int64s(),
    rhs_dilation=_int64s(), window_reversal=vector(np.bool_), input_batch_dimension=int64(),
    input_feature_dimension=int64(), input_spatial_dimensions=_int64s(), kernel_input_feature_dimension=int64(),
    kernel_output_feature_dimension=int64(), kernel_spatial_dimensions=_int64s(), output_batch_dimension=int64(),
    output_feature_dimension=int64(), output_spatial_dimensions=_int64s(), feature_group_count=int64(),
    batch_group_count=int64(), precision_config=enums(StablehloPrecisionConfig, UINT32))
_second(7, "StablehloScatter", indices_are_sorted=boolean(), update_window_dims=_int64s(),
    inserted_window_dims=_int64s(), scatter_dims_to_operand_dims=_int64s(), index_vector_dim=int64(),
    unique_indices=boolean(), update_computation_subgraph_index=int32())
_second(23, "StablehloCase", branch_subgraph_indices=_int32s())
_second(19, "StablehloRngBitGenerator", algorithm=enum(RngAlgorithm.DEFAULT))
# STABLEHLO_COMPOSITE; the attributes are a flexbuffer
_second(21, "StableHLOComposite", name=string(), decomposition_subgraph_index=int32(),
    composite_attributes=vector(np.uint8), composite_attributes_format=enum(CustomOptionsFormat.FLEXBUFFERS),
    version=int32())
# REDUCE_WINDOW, deprecated
_second(20, "ReduceWindow", reduce_function=enum(ReduceWindowFunction.UNSUPPORTED, INT32))

# Without fields.
_empty(
    Pad=22, BatchToSpaceND=24, SpaceToBatchND=25, Transpose=26, Exp=33, TopKV2=34, LogSoftmax=36, Dequantize=38,
    MaximumMinimum=39, Less=41, Neg=42, PadV2=43, Greater=44, GreaterEqual=45, LessEqual=46, Select=47, Slice=48,
    Tile=51, ExpandDims=52, Equal=53, NotEqual=54, Pow=56, LogicalOr=60, LogicalAnd=62, LogicalNot=63, FloorDiv=65,
    Square=66, ZerosLike=67, Fill=68, FloorMod=72, Range=73, SquaredDifference=76, Abs=78, ReverseV2=81, AddN=82,
    GatherNd=83, Cos=84, Where=85, Rank=86, MatrixDiag=88, Quantize=89, MatrixSetDiag=90, HardSwish=91,
    NonMaxSuppressionV4=95, NonMaxSuppressionV5=96, ScatterNd=97, SelectV2=98, Densify=99, SegmentSum=100,
    BroadcastTo=104, Rfft2d=105, HashtableFind=108, HashtableImport=109, HashtableSize=110, ReadVariable=112,
    AssignVariable=113, DynamicUpdateSlice=117, UnsortedSegmentProd=118, UnsortedSegmentMax=119,
    UnsortedSegmentMin=120, UnsortedSegmentSum=121, ATan2=122, Sign=123, Bitcast=124, BitwiseXor=125, RightShift=126,
)
_second(18, "Dilate")
_second(22, "StablehloShiftLeft")
# fmt: on
