"""Where tflq is not TFLite's reference interpreter bit for bit, each with its reason. There are no others.

A test that allows a difference takes its bound from here, and so does the table of conformance: a last bit, a refusal
of what TFLite runs, or a type that is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownDifference:
    """One exception.

    Attributes:
        operator: names, with commas between them; ALL for all operators.
        types: for which types of the input.
        what: what differs, or what is refused.
        reason: why.
        units: the largest difference in units in the last place; None where tflq refuses instead, or `reason` says
            what holds there.
        of: whose last place: the result's, the input's, or that of the largest element of the result.
        refusal: words of tflq's message where it refuses what TFLite runs, for the table of conformance.
        not_compared: labels of types (as float32*int8) that the table of conformance leaves out.
    """

    operator: str
    types: str
    what: str
    reason: str
    units: int | None = None
    of: str = "result"
    refusal: str = ""
    not_compared: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(self.operator.split(", "))


ALL = "all operators"
_LIBM = "TFLite calls the host's libm, whose last bit depends on the host; tflq computes in float64 and rounds once"
_ABORT = "TFLite's own process aborts there (a failed TFLITE_CHECK); tflq refuses in one line"

KNOWN_DIFFERENCES = (
    KnownDifference("softmax", "float32, float16", "last bits", f"{_LIBM}; the sum passes it on", 4),
    KnownDifference(
        "random_standard_normal", "float32", "last bits", f"{_LIBM}; of 1 where the result is smaller", 2, "largest"
    ),
    KnownDifference("logistic", "float32, float16", "last bits", f"{_LIBM}; the reciprocal doubles it", 3),
    KnownDifference("tanh", "float32, float16", "last bits", _LIBM, 2),
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
        "TFLite shifts by a negative count, undefined in C++ (on x86 the sign of the difference is left); tflq refuses",
        refusal="output multiplier",
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
        not_compared=("int16",),
    ),
    KnownDifference(
        "lstm",
        "int16 with quantisation",
        "nothing",
        "int16 is the state of the basic cell, whose input is uint8; no LSTM has an input of int16",
        not_compared=("int16q",),
    ),
    KnownDifference(
        "lstm",
        "int8 with 12 intermediates",
        "codes of the gates, where the C library is glibc 2.41 or later",
        "TFLite calls the host's tanhf; tflq takes that of fdlibm, as glibc has it up to 2.40",
    ),
    KnownDifference(
        "batch_matmul",
        "float32 with int8 weights, asymmetric",
        "weights of five axes whose stack has more than one matrix in front",
        "TFLite reads sums of weights that it has not written; tflq refuses",
        refusal="sums up",
    ),
    KnownDifference(
        "batch_matmul",
        "float32 with int8 weights, asymmetric",
        "weights that change from one invocation to the next",
        "TFLite keeps the sums of the first invocation's weights; tflq takes those of each sample",
    ),
    KnownDifference(
        "bidirectional_sequence_lstm",
        "float32, float32 with integer weights",
        "merged outputs of several sequences, the batch in front",
        "TFLite looks for the states of the second sequence behind the end of the tensor; tflq refuses",
    ),
    KnownDifference(
        "bidirectional_sequence_rnn",
        "float32 with integer weights",
        "merged outputs of several sequences, time in front, symmetric",
        "TFLite's own process crashes there; tflq refuses",
    ),
    KnownDifference(
        "bidirectional_sequence_rnn",
        "float32, float32 with integer weights",
        "a second input of another shape than the first",
        "TFLite steps through both by the shape of the first, and reads behind the end; tflq refuses",
    ),
    KnownDifference(
        "fully_connected",
        "int8, uint8, int16",
        "input, weights and output of 8 or 16 bits that are not one of the pairings of fully_connected_types.py",
        "TFLite reads the bytes of one type as another; tflq refuses",
    ),
    KnownDifference(
        "fully_connected",
        "float32 with sparse int8 weights",
        "other blocks than 1 x 16",
        "TFLite reads the stored values as such blocks; tflq refuses",
    ),
    KnownDifference(
        "fully_connected",
        "float32 with int4 weights in blocks",
        "the whole result",
        "TFLite's reference kernel takes 0 for the scale of such weights; tflq is held to the optimised kernel",
    ),
    KnownDifference(
        "fully_connected",
        "shuffled weights",
        "other numbers of rows than 1 or 4, sizes that do not fill blocks",
        "TFLite writes no output, or reads behind the end; tflq refuses",
    ),
    KnownDifference(
        "conv_2d, depthwise_conv_2d, transpose_conv, batch_matmul, lstm, unidirectional_sequence_lstm",
        "sparse constants",
        "the whole result",
        "TFLite reads stored values as if they were all of them, or crashes (lstm); tflq takes the constant "
        "that they stand for",
    ),
    KnownDifference(
        "fully_connected, batch_matmul, unidirectional_sequence_lstm, bidirectional_sequence_lstm, lstm, "
        "unidirectional_sequence_rnn, bidirectional_sequence_rnn, rnn, svdf",
        "float32 with integer weights, asymmetric",
        "rows of more than 2048 weights whose sums leave 16 bits",
        "TFLite's SSE code sums each eighth of a row up in int16, which wraps; tflq's sums do not",
    ),
    KnownDifference(
        "reduce_window, stablehlo_reduce_window",
        "all",
        "strides of 0, negative sizes, an empty start value",
        "TFLite divides by zero or reads outside its tensors; tflq refuses",
    ),
    KnownDifference(
        "broadcast_to, dilate, stablehlo_pad, lsh_projection, bitcast to another width",
        "int4, uint4, int2",
        "the whole result",
        "TFLite counts elements as bytes, and moves pairs or reads what is not there; tflq refuses",
    ),
    KnownDifference(
        "fake_quant, sum, reduce_prod, densify, rnn, unidirectional_sequence_rnn, bidirectional_sequence_rnn",
        "types of data or bias that the operator does not have",
        "the whole result",
        "TFLite does not look at the type and reads the bytes as another; tflq refuses",
    ),
    KnownDifference(
        ALL,
        "int8, uint8, int16 without scale and zero point",
        "the result of operators that use them",
        "TFLite computes with a scale of 0; tflq refuses",
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
    KnownDifference(
        "equal, not_equal, greater, greater_equal, less, less_equal",
        "int8, uint8, int16",
        "a scale of exactly 1",
        _ABORT,
    ),
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
    return max((d.units or 0 for d in KNOWN_DIFFERENCES if operator in d.operators), default=0)
