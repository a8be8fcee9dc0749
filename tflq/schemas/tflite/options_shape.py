"""Options of operators that move, shape, pick or create data."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, int32, vector
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import ActivationFunctionType, MirrorPadMode, TensorType


class ConcatenationOptions(BuiltinOptions, member=10):
    """CONCATENATION."""

    axis: int = int32()
    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class ReshapeOptions(BuiltinOptions, member=17):
    """RESHAPE; the second input, where there is one, wins over new_shape."""

    new_shape: VectorOf[np.int32] = vector(np.int32)


class SqueezeOptions(BuiltinOptions, member=30):
    """SQUEEZE."""

    squeeze_dims: VectorOf[np.int32] = vector(np.int32)


class ExpandDimsOptions(BuiltinOptions, member=52):
    """EXPAND_DIMS: no options."""


class TransposeOptions(BuiltinOptions, member=26):
    """TRANSPOSE: no options."""


class PadOptions(BuiltinOptions, member=22):
    """PAD: no options."""


class PadV2Options(BuiltinOptions, member=43):
    """PADV2: no options."""


class MirrorPadOptions(BuiltinOptions, member=77):
    """MIRROR_PAD."""

    mode: MirrorPadMode = enum(MirrorPadMode.REFLECT)


class SplitOptions(BuiltinOptions, member=35):
    """SPLIT."""

    num_splits: int = int32()


class SplitVOptions(BuiltinOptions, member=79):
    """SPLIT_V."""

    num_splits: int = int32()


class PackOptions(BuiltinOptions, member=59):
    """PACK."""

    values_count: int = int32()
    axis: int = int32()


class UnpackOptions(BuiltinOptions, member=64):
    """UNPACK."""

    num: int = int32()
    axis: int = int32()


class SliceOptions(BuiltinOptions, member=48):
    """SLICE: no options."""


class StridedSliceOptions(BuiltinOptions, member=32):
    """STRIDED_SLICE; with offset, the end tensor counts from the begin tensor."""

    begin_mask: int = int32()
    end_mask: int = int32()
    ellipsis_mask: int = int32()
    new_axis_mask: int = int32()
    shrink_axis_mask: int = int32()
    offset: bool = boolean()


class DynamicUpdateSliceOptions(BuiltinOptions, member=117):
    """DYNAMIC_UPDATE_SLICE: no options."""


class GatherOptions(BuiltinOptions, member=23):
    """GATHER; batch_dims from version 5."""

    axis: int = int32()
    batch_dims: int = int32()


class GatherNdOptions(BuiltinOptions, member=83):
    """GATHER_ND: no options."""


class ScatterNdOptions(BuiltinOptions, member=97):
    """SCATTER_ND: no options."""


class SpaceToBatchNDOptions(BuiltinOptions, member=25):
    """SPACE_TO_BATCH_ND: no options."""


class BatchToSpaceNDOptions(BuiltinOptions, member=24):
    """BATCH_TO_SPACE_ND: no options."""


class SpaceToDepthOptions(BuiltinOptions, member=19):
    """SPACE_TO_DEPTH."""

    block_size: int = int32()


class DepthToSpaceOptions(BuiltinOptions, member=94):
    """DEPTH_TO_SPACE."""

    block_size: int = int32()


class ReverseV2Options(BuiltinOptions, member=81):
    """REVERSE_V2: no options."""


class ReverseSequenceOptions(BuiltinOptions, member=87):
    """REVERSE_SEQUENCE."""

    seq_dim: int = int32()
    batch_dim: int = int32()


class TileOptions(BuiltinOptions, member=51):
    """TILE: no options."""


class BroadcastToOptions(BuiltinOptions, member=104):
    """BROADCAST_TO: no options."""


class FillOptions(BuiltinOptions, member=68):
    """FILL: no options."""


class ZerosLikeOptions(BuiltinOptions, member=67):
    """ZEROS_LIKE: no options."""


class RangeOptions(BuiltinOptions, member=73):
    """RANGE: no options."""


class OneHotOptions(BuiltinOptions, member=61):
    """ONE_HOT."""

    axis: int = int32()


class ShapeOptions(BuiltinOptions, member=55):
    """SHAPE."""

    out_type: TensorType = enum(TensorType.FLOAT32)


class RankOptions(BuiltinOptions, member=86):
    """RANK: no options."""


class WhereOptions(BuiltinOptions, member=85):
    """WHERE: no options."""


class UniqueOptions(BuiltinOptions, member=80):
    """UNIQUE; the type of the indices is INT32 by default."""

    idx_out_type: TensorType = enum(TensorType.INT32)


class TopKV2Options(BuiltinOptions, member=34):
    """TOPK_V2: no options."""


class SparseToDenseOptions(BuiltinOptions, member=50):
    """SPARSE_TO_DENSE."""

    validate_indices: bool = boolean()


class DensifyOptions(BuiltinOptions, member=99):
    """DENSIFY: no options."""


class MatrixDiagOptions(BuiltinOptions, member=88):
    """MATRIX_DIAG: no options."""


class MatrixSetDiagOptions(BuiltinOptions, member=90):
    """MATRIX_SET_DIAG: no options."""


class CastOptions(BuiltinOptions, member=37):
    """CAST."""

    in_data_type: TensorType = enum(TensorType.FLOAT32)
    out_data_type: TensorType = enum(TensorType.FLOAT32)


class BitcastOptions(BuiltinOptions, member=124):
    """BITCAST: no options."""
