"""Options of operators that move, shape, pick or create data."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, int32, vector
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import ActivationFunctionType, MirrorPadMode, TensorType


class ConcatenationOptions(BuiltinOptions):
    """CONCATENATION."""

    axis: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class ReshapeOptions(BuiltinOptions):
    """RESHAPE; the second input, where there is one, wins over new_shape."""

    new_shape: VectorOf[np.int32] = vector(np.int32)


class SqueezeOptions(BuiltinOptions):
    """SQUEEZE."""

    squeeze_dims: VectorOf[np.int32] = vector(np.int32)


class ExpandDimsOptions(BuiltinOptions):
    """EXPAND_DIMS: no options."""


class TransposeOptions(BuiltinOptions):
    """TRANSPOSE: no options."""


class PadOptions(BuiltinOptions):
    """PAD: no options."""


class PadV2Options(BuiltinOptions):
    """PADV2: no options."""


class MirrorPadOptions(BuiltinOptions):
    """MIRROR_PAD."""

    mode: MirrorPadMode = enum(MirrorPadMode.REFLECT)


class SplitOptions(BuiltinOptions):
    """SPLIT."""

    num_splits: int = int32()


class SplitVOptions(BuiltinOptions):
    """SPLIT_V."""

    num_splits: int = int32()


class PackOptions(BuiltinOptions):
    """PACK."""

    values_count: int = int32()
    axis: int = int32()


class UnpackOptions(BuiltinOptions):
    """UNPACK."""

    num: int = int32()
    axis: int = int32()


class SliceOptions(BuiltinOptions):
    """SLICE: no options."""


class StridedSliceOptions(BuiltinOptions):
    """STRIDED_SLICE; with offset, the end tensor counts from the begin tensor."""

    begin_mask: int = int32()
    end_mask: int = int32()
    ellipsis_mask: int = int32()
    new_axis_mask: int = int32()
    shrink_axis_mask: int = int32()
    offset: bool = boolean()


class DynamicUpdateSliceOptions(BuiltinOptions):
    """DYNAMIC_UPDATE_SLICE: no options."""


class GatherOptions(BuiltinOptions):
    """GATHER; batch_dims from version 5."""

    axis: int = int32()
    batch_dims: int = int32()


class GatherNdOptions(BuiltinOptions):
    """GATHER_ND: no options."""


class ScatterNdOptions(BuiltinOptions):
    """SCATTER_ND: no options."""


class SpaceToBatchNDOptions(BuiltinOptions):
    """SPACE_TO_BATCH_ND: no options."""


class BatchToSpaceNDOptions(BuiltinOptions):
    """BATCH_TO_SPACE_ND: no options."""


class SpaceToDepthOptions(BuiltinOptions):
    """SPACE_TO_DEPTH."""

    block_size: int = int32()


class DepthToSpaceOptions(BuiltinOptions):
    """DEPTH_TO_SPACE."""

    block_size: int = int32()


class ReverseV2Options(BuiltinOptions):
    """REVERSE_V2: no options."""


class ReverseSequenceOptions(BuiltinOptions):
    """REVERSE_SEQUENCE."""

    seq_dim: int = int32()
    batch_dim: int = int32()


class TileOptions(BuiltinOptions):
    """TILE: no options."""


class BroadcastToOptions(BuiltinOptions):
    """BROADCAST_TO: no options."""


class FillOptions(BuiltinOptions):
    """FILL: no options."""


class ZerosLikeOptions(BuiltinOptions):
    """ZEROS_LIKE: no options."""


class RangeOptions(BuiltinOptions):
    """RANGE: no options."""


class OneHotOptions(BuiltinOptions):
    """ONE_HOT."""

    axis: int = int32()


class ShapeOptions(BuiltinOptions):
    """SHAPE."""

    out_type: TensorType = enum(TensorType.FLOAT32)


class RankOptions(BuiltinOptions):
    """RANK: no options."""


class WhereOptions(BuiltinOptions):
    """WHERE: no options."""


class UniqueOptions(BuiltinOptions):
    """UNIQUE; the type of the indices is INT32 by default."""

    idx_out_type: TensorType = enum(TensorType.INT32)


class TopKV2Options(BuiltinOptions):
    """TOPK_V2: no options."""


class SparseToDenseOptions(BuiltinOptions):
    """SPARSE_TO_DENSE."""

    validate_indices: bool = boolean()


class DensifyOptions(BuiltinOptions):
    """DENSIFY: no options."""


class MatrixDiagOptions(BuiltinOptions):
    """MATRIX_DIAG: no options."""


class MatrixSetDiagOptions(BuiltinOptions):
    """MATRIX_SET_DIAG: no options."""


class CastOptions(BuiltinOptions):
    """CAST."""

    in_data_type: TensorType = enum(TensorType.FLOAT32)
    out_data_type: TensorType = enum(TensorType.FLOAT32)


class BitcastOptions(BuiltinOptions):
    """BITCAST: no options."""
