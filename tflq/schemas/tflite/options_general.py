"""Options of operators that compute element by element, reduce, move or make data, or run other subgraphs."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, int32, int64, string, uint32, vector
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import ActivationFunctionType, MirrorPadMode, TensorType


class AddOptions(BuiltinOptions, member=11):
    """ADD; pot_scale_int16 asks for power-of-two scales of int16."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    pot_scale_int16: bool = boolean(True)


class SubOptions(BuiltinOptions, member=28):
    """SUB; pot_scale_int16 asks for power-of-two scales of int16."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    pot_scale_int16: bool = boolean(True)


class MulOptions(BuiltinOptions, member=21):
    """MUL."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class DivOptions(BuiltinOptions, member=29):
    """DIV."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class ReducerOptions(BuiltinOptions, member=27):
    """MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL."""

    keep_dims: bool = boolean()


class CumsumOptions(BuiltinOptions, member=102):
    """CUMSUM."""

    exclusive: bool = boolean()
    reverse: bool = boolean()


class ArgMaxOptions(BuiltinOptions, member=40):
    """ARG_MAX."""

    output_type: TensorType = enum(TensorType.FLOAT32)


class ArgMinOptions(BuiltinOptions, member=57):
    """ARG_MIN."""

    output_type: TensorType = enum(TensorType.FLOAT32)


class BucketizeOptions(BuiltinOptions, member=115):
    """BUCKETIZE; the boundaries of the buckets, ascending."""

    boundaries: VectorOf[np.float32] = vector(np.float32)


class RandomOptions(BuiltinOptions, member=114):
    """RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL."""

    seed: int = int64()
    seed2: int = int64()


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


class StridedSliceOptions(BuiltinOptions, member=32):
    """STRIDED_SLICE; with offset, the end tensor counts from the begin tensor."""

    begin_mask: int = int32()
    end_mask: int = int32()
    ellipsis_mask: int = int32()
    new_axis_mask: int = int32()
    shrink_axis_mask: int = int32()
    offset: bool = boolean()


class GatherOptions(BuiltinOptions, member=23):
    """GATHER; batch_dims from version 5."""

    axis: int = int32()
    batch_dims: int = int32()


class SpaceToDepthOptions(BuiltinOptions, member=19):
    """SPACE_TO_DEPTH."""

    block_size: int = int32()


class DepthToSpaceOptions(BuiltinOptions, member=94):
    """DEPTH_TO_SPACE."""

    block_size: int = int32()


class ReverseSequenceOptions(BuiltinOptions, member=87):
    """REVERSE_SEQUENCE."""

    seq_dim: int = int32()
    batch_dim: int = int32()


class OneHotOptions(BuiltinOptions, member=61):
    """ONE_HOT."""

    axis: int = int32()


class ShapeOptions(BuiltinOptions, member=55):
    """SHAPE."""

    out_type: TensorType = enum(TensorType.FLOAT32)


class UniqueOptions(BuiltinOptions, member=80):
    """UNIQUE; the type of the indices is INT32 by default."""

    idx_out_type: TensorType = enum(TensorType.INT32)


class SparseToDenseOptions(BuiltinOptions, member=50):
    """SPARSE_TO_DENSE."""

    validate_indices: bool = boolean()


class CastOptions(BuiltinOptions, member=37):
    """CAST."""

    in_data_type: TensorType = enum(TensorType.FLOAT32)
    out_data_type: TensorType = enum(TensorType.FLOAT32)


class CallOptions(BuiltinOptions, member=16):
    """CALL; the subgraph to call."""

    subgraph: int = uint32()


class IfOptions(BuiltinOptions, member=92):
    """IF."""

    then_subgraph_index: int = int32()
    else_subgraph_index: int = int32()


class WhileOptions(BuiltinOptions, member=93):
    """WHILE."""

    cond_subgraph_index: int = int32()
    body_subgraph_index: int = int32()


class CallOnceOptions(BuiltinOptions, member=103):
    """CALL_ONCE."""

    init_subgraph_index: int = int32()


class HashtableOptions(BuiltinOptions, member=107):
    """HASHTABLE; table_id identifies the table across the subgraphs of an interpreter."""

    table_id: int = int32()
    key_dtype: TensorType = enum(TensorType.FLOAT32)
    value_dtype: TensorType = enum(TensorType.FLOAT32)


class VarHandleOptions(BuiltinOptions, member=111):
    """VAR_HANDLE."""

    container: str | None = string()
    shared_name: str | None = string()
