"""Options of convolutions, products, activations, recurrent layers, embeddings and quantisation."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, float32, int32, vector
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import (
    ActivationFunctionType,
    CombinerType,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    Padding,
    TensorType,
)


class Conv2DOptions(BuiltinOptions, member=1):
    """CONV_2D; dilations from version 2, quantized_bias_type (bias and accumulator) from version 8."""

    padding: Padding = enum(Padding.SAME)
    stride_w: int = int32()
    stride_h: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    dilation_w_factor: int = int32(1)
    dilation_h_factor: int = int32(1)
    quantized_bias_type: TensorType = enum(TensorType.FLOAT32)


class Conv3DOptions(BuiltinOptions, member=106):
    """CONV_3D and CONV_3D_TRANSPOSE."""

    padding: Padding = enum(Padding.SAME)
    stride_d: int = int32()
    stride_w: int = int32()
    stride_h: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    dilation_d_factor: int = int32(1)
    dilation_w_factor: int = int32(1)
    dilation_h_factor: int = int32(1)


class DepthwiseConv2DOptions(BuiltinOptions, member=2):
    """DEPTHWISE_CONV_2D; depth_multiplier is redundant and ignored, dilations from version 2."""

    padding: Padding = enum(Padding.SAME)
    stride_w: int = int32()
    stride_h: int = int32()
    depth_multiplier: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    dilation_w_factor: int = int32(1)
    dilation_h_factor: int = int32(1)


class TransposeConvOptions(BuiltinOptions, member=49):
    """TRANSPOSE_CONV; the activation from version 4, quantized_bias_type from version 5."""

    padding: Padding = enum(Padding.SAME)
    stride_w: int = int32()
    stride_h: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    quantized_bias_type: TensorType = enum(TensorType.FLOAT32)


class Pool2DOptions(BuiltinOptions, member=5):
    """AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

    padding: Padding = enum(Padding.SAME)
    stride_w: int = int32()
    stride_h: int = int32()
    filter_width: int = int32()
    filter_height: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class FullyConnectedOptions(BuiltinOptions, member=8):
    """FULLY_CONNECTED; keep_num_dims from version 5, quantized_bias_type from version 11.

    quant_spec is in the generated code of ai-edge-litert 2.3, newer than the published schema.
    """

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    weights_format: FullyConnectedOptionsWeightsFormat = enum(FullyConnectedOptionsWeightsFormat.DEFAULT)
    keep_num_dims: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    quantized_bias_type: TensorType = enum(TensorType.FLOAT32)
    quant_spec: VectorOf[np.uint8] = vector(np.uint8)


class BatchMatMulOptions(BuiltinOptions, member=101):
    """BATCH_MATMUL; adj_x and adj_y transpose the last two axes."""

    adj_x: bool = boolean()
    adj_y: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()


class SoftmaxOptions(BuiltinOptions, member=9):
    """SOFTMAX: softmax(beta * x)."""

    beta: float = float32()


class L2NormOptions(BuiltinOptions, member=12):
    """L2_NORMALIZATION."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class LocalResponseNormalizationOptions(BuiltinOptions, member=13):
    """LOCAL_RESPONSE_NORMALIZATION."""

    radius: int = int32()
    bias: float = float32()
    alpha: float = float32()
    beta: float = float32()


class LeakyReluOptions(BuiltinOptions, member=75):
    """LEAKY_RELU: alpha * x for x < 0."""

    alpha: float = float32()


class GeluOptions(BuiltinOptions, member=116):
    """GELU, exact or with the tanh approximation."""

    approximate: bool = boolean()


class SVDFOptions(BuiltinOptions, member=6):
    """SVDF."""

    rank: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean()


class RNNOptions(BuiltinOptions, member=7):
    """RNN."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean()


class SequenceRNNOptions(BuiltinOptions, member=31):
    """UNIDIRECTIONAL_SEQUENCE_RNN."""

    time_major: bool = boolean()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean()


class BidirectionalSequenceRNNOptions(BuiltinOptions, member=70):
    """BIDIRECTIONAL_SEQUENCE_RNN."""

    time_major: bool = boolean()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    merge_outputs: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()


class LSTMOptions(BuiltinOptions, member=14):
    """LSTM; a clip of 0.0 means no clipping."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    cell_clip: float = float32()
    proj_clip: float = float32()
    kernel_type: LSTMKernelType = enum(LSTMKernelType.FULL)
    asymmetric_quantize_inputs: bool = boolean()


class UnidirectionalSequenceLSTMOptions(BuiltinOptions, member=71):
    """UNIDIRECTIONAL_SEQUENCE_LSTM; a clip of 0.0 means no clipping."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    cell_clip: float = float32()
    proj_clip: float = float32()
    time_major: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    diagonal_recurrent_tensors: bool = boolean()


class BidirectionalSequenceLSTMOptions(BuiltinOptions, member=69):
    """BIDIRECTIONAL_SEQUENCE_LSTM; a clip of 0.0 means no clipping, time_major is true by default."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    cell_clip: float = float32()
    proj_clip: float = float32()
    merge_outputs: bool = boolean()
    time_major: bool = boolean(True)
    asymmetric_quantize_inputs: bool = boolean()


class ConcatEmbeddingsOptions(BuiltinOptions, member=3):
    """CONCAT_EMBEDDINGS."""

    num_channels: int = int32()
    num_columns_per_channel: VectorOf[np.int32] = vector(np.int32)
    embedding_dim_per_channel: VectorOf[np.int32] = vector(np.int32)


class LSHProjectionOptions(BuiltinOptions, member=4):
    """LSH_PROJECTION."""

    type: LSHProjectionType = enum(LSHProjectionType.UNKNOWN)


class EmbeddingLookupSparseOptions(BuiltinOptions, member=20):
    """EMBEDDING_LOOKUP_SPARSE."""

    combiner: CombinerType = enum(CombinerType.SUM)


class SkipGramOptions(BuiltinOptions, member=18):
    """SKIP_GRAM."""

    ngram_size: int = int32()
    max_skip_size: int = int32()
    include_all_ngrams: bool = boolean()


class ResizeBilinearOptions(BuiltinOptions, member=15):
    """RESIZE_BILINEAR; new_height and new_width are deprecated, their slots kept."""

    new_height: int = int32()
    new_width: int = int32()
    align_corners: bool = boolean()
    half_pixel_centers: bool = boolean()


class ResizeNearestNeighborOptions(BuiltinOptions, member=74):
    """RESIZE_NEAREST_NEIGHBOR."""

    align_corners: bool = boolean()
    half_pixel_centers: bool = boolean()


class FakeQuantOptions(BuiltinOptions, member=58):
    """FAKE_QUANT; narrow_range from version 2."""

    min: float = float32()
    max: float = float32()
    num_bits: int = int32()
    narrow_range: bool = boolean()
