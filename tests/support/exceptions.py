"""Where tflq is not TFLite's reference interpreter bit for bit, each with its reason. There are no others.

A test that allows a difference takes its bound from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownDifference:
    """One exception.

    Attributes:
        operator: name.
        types: for which types of the input.
        what: what differs, or what is refused.
        reason: why.
        units: the largest difference in units in the last place; None where tflq refuses instead, or `reason` says
            what holds there.
        of: whose last place: the result's, the input's, or that of the largest element of the result.
    """

    operator: str
    types: str
    what: str
    reason: str
    units: int | None = None
    of: str = "result"


_LIBM = "TFLite calls the host's libm, whose last bit depends on the host; tflq computes in float64 and rounds once"
_ABORT = "TFLite's own process aborts there (a failed TFLITE_CHECK); tflq refuses in one line"

KNOWN_DIFFERENCES = (
    KnownDifference("softmax", "float32", "last bits", f"{_LIBM}; the sum passes it on", 4),
    KnownDifference(
        "random_standard_normal", "float32", "last bits", f"{_LIBM}; of 1 where the result is smaller", 2, "largest"
    ),
    KnownDifference("logistic", "float32", "last bits", f"{_LIBM}; the reciprocal doubles it", 3),
    KnownDifference("tanh", "float32", "last bits", _LIBM, 2),
    KnownDifference("exp", "float32", "last bits", _LIBM, 1),
    KnownDifference("log", "float32", "last bits", _LIBM, 1),
    KnownDifference("sin", "float32, float16", "last bits", _LIBM, 1),
    KnownDifference("cos", "float32, float16", "last bits", _LIBM, 1),
    KnownDifference("pow", "float32", "last bits", _LIBM, 1),
    KnownDifference("atan2", "float32, float64, float16", "last bits", _LIBM, 1),
    KnownDifference("elu", "float32", "last bits", f"{_LIBM} (here Eigen's polynomial)", 1),
    KnownDifference("log_softmax", "float32", "last bits", f"{_LIBM}; the sum passes it on", 2),
    KnownDifference(
        "gelu",
        "float32, float16",
        "last bits",
        "TFLite takes Eigen's polynomials; where x Phi(x) is small it has lost its relative precision",
        2,
        "input",
    ),
    KnownDifference(
        "rfft2d", "float32", "last bits", "both compute in float64, with other algorithms, and round once", 1, "largest"
    ),
    KnownDifference("add", "int8, uint8, int16", "an output multiplier of 1 or more", _ABORT),
    KnownDifference("sub", "int8, uint8, int16", "an output multiplier of 1", _ABORT),
    KnownDifference(
        "sub",
        "int8, uint8, int16",
        "an output multiplier above 1",
        "TFLite shifts by a negative count, undefined in C++: on x86 only the sign of the difference is left",
    ),
    KnownDifference("softmax", "int8, uint8", "beta * scale * 2^26 of 1 or less, NaN", _ABORT),
    KnownDifference("softmax", "int8, uint8", "an 8-bit output whose exponentials sum up to 512 or more", _ABORT),
    KnownDifference(
        "sum",
        "int8, int16",
        "the sum itself",
        "TFLite's reference kernel reads the data as uint8, so int8 has the wrong sign and half of int16 is missing; "
        "tflq is held to the same kernel on uint8, with codes and zero points 128 higher (int8) or that fit (int16)",
    ),
    KnownDifference(
        "reduce_prod",
        "int8, int16 with quantisation, an input without elements",
        "the whole result",
        "TFLite's kernel does not write its output; tflq gives 0",
    ),
    KnownDifference(
        "not_equal",
        "int16 without quantisation",
        "the whole result",
        "TFLite's kernel does not write its output; tflq gives x != y",
    ),
    KnownDifference(
        "arg_max, arg_min",
        "float32 along a last axis",
        "the place where NaN occurs",
        "TFLite's vectorised search leaves it open; tflq passes NaN over, as TFLite does along other axes",
    ),
    KnownDifference(
        "unidirectional_sequence_lstm, bidirectional_sequence_lstm, lstm",
        "float32, float32 with integer weights",
        "gates of sizes that are no multiple of four, two or more sequences side by side that are longer than 504",
        f"{_LIBM}, for the elements of a gate that do not fill a register; long products are cut by the size of the "
        "first-level cache. The recurrence passes both on",
        64,
        "largest",
    ),
    KnownDifference(
        "cast",
        "floats to integers that do not hold them",
        "TensorFlow 2.21 only",
        "it leaves them to the compiler; tflq clamps, as LiteRT 2.3 does",
    ),
    KnownDifference(
        "div",
        "int8, uint8, int16",
        "which divisor is refused, TensorFlow 2.21 only",
        "it refuses the code 0; tflq refuses the zero point, as LiteRT 2.3 does",
    ),
    KnownDifference("equal and the other comparisons", "int8, uint8, int16", "a scale of exactly 1", _ABORT),
    KnownDifference("div, floor_mod", "int32, int64", "the lowest integer by -1", "the processor ends TFLite there"),
    KnownDifference(
        "l2_normalization, log_softmax",
        "int8, uint8",
        "rows whose sum does not fit int32",
        "TFLite's accumulator overflows, undefined in C++; tflq refuses",
    ),
    KnownDifference(
        "non_max_suppression_v5",
        "float32",
        "last bits of scores that overlap lowers",
        f"{_LIBM}; no difference was found, but the next score builds on it",
    ),
    KnownDifference(
        "TFLite_Detection_PostProcess",
        "float32, uint8",
        "slots behind the last box, with fast suppression",
        "TFLite does not write them; tflq gives zeros",
    ),
    KnownDifference(
        "strided_slice",
        "all",
        "an index of shrink_axis_mask outside its axis",
        "TFLite does not write its output; tflq refuses",
    ),
    KnownDifference(
        "reverse_sequence, matrix_set_diag, dilate, hashtable_lookup",
        "all",
        "lengths, diagonals or steps that do not fit, an empty table",
        "TFLite checks only the first of them or none, and leaves the tensor; tflq refuses",
    ),
    KnownDifference(
        "gather",
        "int4",
        "slices that do not fill whole bytes",
        "TFLite copies whole bytes; tflq refuses",
    ),
    KnownDifference(
        "stablehlo_gather, stablehlo_scatter",
        "all",
        "index_vector_dim that is the rank of the indices",
        "TFLite's own process crashes there; tflq refuses",
    ),
    KnownDifference(
        "embedding_lookup",
        "float results of tables other than uint8, int8, int4, int2",
        "the whole result",
        "TFLite reads the table's bytes as int8; tflq refuses",
    ),
    KnownDifference(
        "matrix_diag, matrix_set_diag",
        "other types than integers of 8 to 64 bits and float32",
        "the whole result",
        "TFLite takes elements of any other type for float32, whatever their size; tflq refuses",
    ),
)


def units_allowed(operator: str) -> int:
    """Return the largest difference that an operator's float32 results may show, in units in the last place."""
    return max((d.units or 0 for d in KNOWN_DIFFERENCES if d.operator == operator), default=0)
