"""Options of arithmetic, comparisons, reductions and random numbers."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, int64, vector
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import ActivationFunctionType, TensorType


class AddOptions(BuiltinOptions):
    """ADD; pot_scale_int16 asks for power-of-two scales of int16."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    pot_scale_int16: bool = boolean(True)


class SubOptions(BuiltinOptions):
    """SUB; pot_scale_int16 asks for power-of-two scales of int16."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)
    pot_scale_int16: bool = boolean(True)


class MulOptions(BuiltinOptions):
    """MUL."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class DivOptions(BuiltinOptions):
    """DIV."""

    fused_activation_function: ActivationFunctionType = enum(ActivationFunctionType.NONE)


class AddNOptions(BuiltinOptions):
    """ADD_N: no options."""


class AbsOptions(BuiltinOptions):
    """ABS: no options."""


class ATan2Options(BuiltinOptions):
    """ATAN2: no options."""


class CosOptions(BuiltinOptions):
    """COS: no options."""


class ExpOptions(BuiltinOptions):
    """EXP: no options."""


class NegOptions(BuiltinOptions):
    """NEG: no options."""


class PowOptions(BuiltinOptions):
    """POW: no options."""


class SignOptions(BuiltinOptions):
    """SIGN: no options."""


class SquareOptions(BuiltinOptions):
    """SQUARE: no options."""


class SquaredDifferenceOptions(BuiltinOptions):
    """SQUARED_DIFFERENCE: no options."""


class FloorDivOptions(BuiltinOptions):
    """FLOOR_DIV: no options."""


class FloorModOptions(BuiltinOptions):
    """FLOOR_MOD: no options."""


class MaximumMinimumOptions(BuiltinOptions):
    """MAXIMUM and MINIMUM: no options."""


class EqualOptions(BuiltinOptions):
    """EQUAL: no options."""


class NotEqualOptions(BuiltinOptions):
    """NOT_EQUAL: no options."""


class GreaterOptions(BuiltinOptions):
    """GREATER: no options."""


class GreaterEqualOptions(BuiltinOptions):
    """GREATER_EQUAL: no options."""


class LessOptions(BuiltinOptions):
    """LESS: no options."""


class LessEqualOptions(BuiltinOptions):
    """LESS_EQUAL: no options."""


class LogicalAndOptions(BuiltinOptions):
    """LOGICAL_AND: no options."""


class LogicalOrOptions(BuiltinOptions):
    """LOGICAL_OR: no options."""


class LogicalNotOptions(BuiltinOptions):
    """LOGICAL_NOT: no options."""


class BitwiseXorOptions(BuiltinOptions):
    """BITWISE_XOR: no options."""


class RightShiftOptions(BuiltinOptions):
    """RIGHT_SHIFT: no options."""


class SelectOptions(BuiltinOptions):
    """SELECT: no options."""


class SelectV2Options(BuiltinOptions):
    """SELECT_V2: no options."""


class ReducerOptions(BuiltinOptions):
    """MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL."""

    keep_dims: bool = boolean()


class CumsumOptions(BuiltinOptions):
    """CUMSUM."""

    exclusive: bool = boolean()
    reverse: bool = boolean()


class ArgMaxOptions(BuiltinOptions):
    """ARG_MAX."""

    output_type: TensorType = enum(TensorType.FLOAT32)


class ArgMinOptions(BuiltinOptions):
    """ARG_MIN."""

    output_type: TensorType = enum(TensorType.FLOAT32)


class SegmentSumOptions(BuiltinOptions):
    """SEGMENT_SUM: no options."""


class UnsortedSegmentProdOptions(BuiltinOptions):
    """UNSORTED_SEGMENT_PROD: no options."""


class UnsortedSegmentMaxOptions(BuiltinOptions):
    """UNSORTED_SEGMENT_MAX: no options."""


class UnsortedSegmentMinOptions(BuiltinOptions):
    """UNSORTED_SEGMENT_MIN: no options."""


class UnsortedSegmentSumOptions(BuiltinOptions):
    """UNSORTED_SEGMENT_SUM: no options."""


class Rfft2dOptions(BuiltinOptions):
    """RFFT2D: no options."""


class BucketizeOptions(BuiltinOptions):
    """BUCKETIZE; the boundaries of the buckets, ascending."""

    boundaries: VectorOf[np.float32] = vector(np.float32)


class RandomOptions(BuiltinOptions):
    """RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL."""

    seed: int = int64()
    seed2: int = int64()
