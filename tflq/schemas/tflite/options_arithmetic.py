"""Options of arithmetic, comparisons, reductions and random numbers."""

from __future__ import annotations

import numpy as np

from tflq.schemas.flatbuffer.declare import VectorOf, boolean, enum, int64, vector
from tflq.schemas.tflite.bases import BuiltinOptions
from tflq.schemas.tflite.enums import ActivationFunctionType, TensorType


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


class AddNOptions(BuiltinOptions, member=82):
    """ADD_N: no options."""


class AbsOptions(BuiltinOptions, member=78):
    """ABS: no options."""


class ATan2Options(BuiltinOptions, member=122):
    """ATAN2: no options."""


class CosOptions(BuiltinOptions, member=84):
    """COS: no options."""


class ExpOptions(BuiltinOptions, member=33):
    """EXP: no options."""


class NegOptions(BuiltinOptions, member=42):
    """NEG: no options."""


class PowOptions(BuiltinOptions, member=56):
    """POW: no options."""


class SignOptions(BuiltinOptions, member=123):
    """SIGN: no options."""


class SquareOptions(BuiltinOptions, member=66):
    """SQUARE: no options."""


class SquaredDifferenceOptions(BuiltinOptions, member=76):
    """SQUARED_DIFFERENCE: no options."""


class FloorDivOptions(BuiltinOptions, member=65):
    """FLOOR_DIV: no options."""


class FloorModOptions(BuiltinOptions, member=72):
    """FLOOR_MOD: no options."""


class MaximumMinimumOptions(BuiltinOptions, member=39):
    """MAXIMUM and MINIMUM: no options."""


class EqualOptions(BuiltinOptions, member=53):
    """EQUAL: no options."""


class NotEqualOptions(BuiltinOptions, member=54):
    """NOT_EQUAL: no options."""


class GreaterOptions(BuiltinOptions, member=44):
    """GREATER: no options."""


class GreaterEqualOptions(BuiltinOptions, member=45):
    """GREATER_EQUAL: no options."""


class LessOptions(BuiltinOptions, member=41):
    """LESS: no options."""


class LessEqualOptions(BuiltinOptions, member=46):
    """LESS_EQUAL: no options."""


class LogicalAndOptions(BuiltinOptions, member=62):
    """LOGICAL_AND: no options."""


class LogicalOrOptions(BuiltinOptions, member=60):
    """LOGICAL_OR: no options."""


class LogicalNotOptions(BuiltinOptions, member=63):
    """LOGICAL_NOT: no options."""


class BitwiseXorOptions(BuiltinOptions, member=125):
    """BITWISE_XOR: no options."""


class RightShiftOptions(BuiltinOptions, member=126):
    """RIGHT_SHIFT: no options."""


class SelectOptions(BuiltinOptions, member=47):
    """SELECT: no options."""


class SelectV2Options(BuiltinOptions, member=98):
    """SELECT_V2: no options."""


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


class SegmentSumOptions(BuiltinOptions, member=100):
    """SEGMENT_SUM: no options."""


class UnsortedSegmentProdOptions(BuiltinOptions, member=118):
    """UNSORTED_SEGMENT_PROD: no options."""


class UnsortedSegmentMaxOptions(BuiltinOptions, member=119):
    """UNSORTED_SEGMENT_MAX: no options."""


class UnsortedSegmentMinOptions(BuiltinOptions, member=120):
    """UNSORTED_SEGMENT_MIN: no options."""


class UnsortedSegmentSumOptions(BuiltinOptions, member=121):
    """UNSORTED_SEGMENT_SUM: no options."""


class Rfft2dOptions(BuiltinOptions, member=105):
    """RFFT2D: no options."""


class BucketizeOptions(BuiltinOptions, member=115):
    """BUCKETIZE; the boundaries of the buckets, ascending."""

    boundaries: VectorOf[np.float32] = vector(np.float32)


class RandomOptions(BuiltinOptions, member=114):
    """RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL."""

    seed: int = int64()
    seed2: int = int64()
