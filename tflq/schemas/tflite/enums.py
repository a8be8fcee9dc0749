"""The enums of the TFLite schema, without the operators' numbers."""

from __future__ import annotations

from enum import IntEnum


class TensorType(IntEnum):
    """Type of the data of a tensor. INT4, UINT4 and INT2 are packed, the first element in the low bits."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22


class DimensionType(IntEnum):
    """How a dimension of a sparse tensor is stored: every coordinate, or compressed sparse rows."""

    DENSE = 0
    SPARSE_CSR = 1


class StablehloPrecisionConfig(IntEnum):
    """Precision that a StableHLO product asks for."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


class StablehloComparisonDirection(IntEnum):
    """Which comparison STABLEHLO_COMPARE makes."""

    STABLEHLO_COMPARISON_DIRECTION_EQ = 0
    STABLEHLO_COMPARISON_DIRECTION_NE = 1
    STABLEHLO_COMPARISON_DIRECTION_GE = 2
    STABLEHLO_COMPARISON_DIRECTION_GT = 3
    STABLEHLO_COMPARISON_DIRECTION_LE = 4
    STABLEHLO_COMPARISON_DIRECTION_LT = 5


class StablehloComparisonType(IntEnum):
    """As which numbers STABLEHLO_COMPARE compares."""

    STABLEHLO_COMPARISON_TYPE_NOTYPE = 0
    STABLEHLO_COMPARISON_TYPE_FLOAT = 1
    STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER = 2
    STABLEHLO_COMPARISON_TYPE_SIGNED = 3
    STABLEHLO_COMPARISON_TYPE_UNSIGNED = 4


class RngAlgorithm(IntEnum):
    """Random generator of STABLEHLO_RNG_BIT_GENERATOR."""

    DEFAULT = 0
    PHILOX = 1
    THREEFRY = 2


class Padding(IntEnum):
    """Padding of convolutions and pools: the output keeps the size (divided by the stride), or there is none."""

    SAME = 0
    VALID = 1


class ActivationFunctionType(IntEnum):
    """Function fused behind an operator."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3
    TANH = 4
    SIGN_BIT = 5


class LSHProjectionType(IntEnum):
    """Kind of result of LSH_PROJECTION."""

    UNKNOWN = 0
    SPARSE = 1
    DENSE = 2


class FullyConnectedOptionsWeightsFormat(IntEnum):
    """Layout of the weights of FULLY_CONNECTED."""

    DEFAULT = 0
    SHUFFLED4x16INT8 = 1


class LSTMKernelType(IntEnum):
    """Full kernel with peepholes and projection, or the basic cell."""

    FULL = 0
    BASIC = 1


class CombinerType(IntEnum):
    """How EMBEDDING_LOOKUP_SPARSE combines rows."""

    SUM = 0
    MEAN = 1
    SQRTN = 2


class MirrorPadMode(IntEnum):
    """Whether MIRROR_PAD leaves the border element out (REFLECT) or repeats it (SYMMETRIC)."""

    REFLECT = 0
    SYMMETRIC = 1


class ReduceWindowFunction(IntEnum):
    """Reduction of the deprecated REDUCE_WINDOW."""

    UNSUPPORTED = 0
    ADD = 1
    MUL = 2
    MINIMUM = 3
    MAXIMUM = 4
    ALL = 5
    ANY = 6


class CustomOptionsFormat(IntEnum):
    """Encoding of the options of a custom operator."""

    FLEXBUFFERS = 0
