"""The table of known differences. The list is complete.

A test that allows a difference takes its bound from here, and so do `tflq verify`, `tflq compare` and the table of
conformance, docs/differences/tflite_operators.md, which prints the rows.
"""

from __future__ import annotations

from typing import Literal

from tflq.diagnosis.known_differences.row import (
    Effect,
    KnownDifference,
    floats_that_do_not_fit,
    has_computed_weights,
    has_float_results,
    has_long_rows,
    has_no_elements,
    has_sparse_constant,
    has_weights_in_blocks,
    host_has_new_tanh,
    label_of,
    leaves_registers,
    results_that_nothing_reads,
    rows_with_nan,
    searches_last_axis,
    slots_behind_the_last_box,
    suppresses_fast,
    writes_variable_in_place,
)
from tflq.graph import Graph, Node
from tflq.interpreter.registry import kernel_name

_LIBM = "TFLite calls libm, whose last bit depends on the host; tflq computes in float64 and rounds once"
_ABORT = "TFLite's own process aborts there (a failed TFLITE_CHECK); tflq refuses in one line"
_UNWRITTEN = "TFLite's kernel does not write its output"
_EIGHT = "int8q uint8q"
_Q = "int8q uint8q int16q"
_HYBRID = "float32*"
_LSTMS = "unidirectional_sequence_lstm bidirectional_sequence_lstm lstm"


def _last_bits(
    operators: str, types: str, units: int, reason: str = _LIBM, of: Literal["result", "input", "largest"] = "result"
) -> KnownDifference:
    return KnownDifference(
        tuple(operators.split()), tuple(types.split()), "last bits", reason, Effect.LAST_BITS, units, of
    )


def _refused(operators: str, types: str, what: str, reason: str, refusal: str = "") -> KnownDifference:
    return KnownDifference(
        tuple(operators.split()), tuple(types.split()), what, reason, Effect.REFUSED, refusal=refusal
    )


LAST_BITS = (
    _last_bits("softmax", "float32 float16", 4, f"{_LIBM}; the sum passes it on"),
    _last_bits("random_standard_normal", "float32", 2, f"{_LIBM}; of 1 if the result is smaller", "largest"),
    _last_bits("logistic", "float32 float16", 3, f"{_LIBM}; the reciprocal doubles it"),
    _last_bits("tanh", "float32 float16", 2),
    _last_bits("exp", "float32", 1),
    _last_bits("log", "float32", 1),
    _last_bits("sin", "float32 float16", 1),
    _last_bits("cos", "float32 float16", 1),
    _last_bits("pow", "float32", 1),
    _last_bits("atan2", "float32 float64 float16", 1),
    _last_bits("elu", "float32", 1, f"{_LIBM} (here Eigen's polynomial)"),
    _last_bits("log_softmax", "float32", 2, f"{_LIBM}; the sum passes it on"),
    _last_bits(
        "gelu",
        "float32 float16",
        2,
        "TFLite uses Eigen's polynomials, which lose their relative precision for a small x Phi(x)",
        "input",
    ),
    _last_bits(
        "rfft2d", "float32", 1, "both compute in float64, with other algorithms, and round once", "largest"
    ),
    KnownDifference(
        tuple(_LSTMS.split()),
        ("float32", _HYBRID),
        "gates of sizes that are no multiple of four, two or more sequences side by side that are longer than 504",
        f"{_LIBM}, for the elements of a gate that do not fill a register; long products are cut by the size of the "
        "first-level cache. The recurrence passes both on",
        Effect.LAST_BITS,
        64,
        "largest",
        when=leaves_registers,
    ),
    KnownDifference(
        ("while",),
        (),
        "results in float32, last bits",
        f"{_LIBM}; the loop passes it on from step to step (Keras' LSTM and GRU)",
        Effect.LAST_BITS,
        4,
        "largest",
        when=has_float_results,
    ),
    KnownDifference(
        ("non_max_suppression_v5",),
        ("float32",),
        "last bits of scores that overlap lowers",
        f"{_LIBM}; no difference was measured, but the next score builds on it",
        Effect.LAST_BITS,
    ),
)  # fmt: skip

UNDEFINED = (
    KnownDifference(
        ("sum",),
        ("int8q", "int16q"),
        "the sum itself",
        "TFLite's reference kernel reads the data as uint8, so int8 has the wrong sign and half of int16 is missing; "
        "tflq is checked against the same kernel on uint8, with quantized values and zero points 128 higher (int8) or "
        "that fit (int16)",
        Effect.UNDEFINED,
        stand_in=True,
    ),
    KnownDifference(
        ("reduce_prod",),
        ("int8q", "int16q"),
        "the whole result of an input without elements",
        f"{_UNWRITTEN}; tflq returns 0",
        Effect.UNDEFINED,
        when=has_no_elements,
    ),
    KnownDifference(
        ("while",),
        (),
        "results that no operator reads and that are no outputs",
        f"{_UNWRITTEN}; tflq returns the values at the end of the loop",
        Effect.UNDEFINED,
        elements=results_that_nothing_reads,
    ),
    KnownDifference(
        ("not_equal",), ("int16",), "the whole result", f"{_UNWRITTEN}; tflq returns x != y", Effect.UNDEFINED
    ),
    KnownDifference(
        ("lstm",),
        ("int8q",),
        "quantized values of the gates with 12 intermediates, if the C library is glibc 2.41 or later",
        "TFLite calls the host's tanhf; tflq takes that of fdlibm, as glibc has it up to 2.40",
        Effect.UNDEFINED,
        when=host_has_new_tanh,
    ),
    KnownDifference(
        ("batch_matmul",),
        (_HYBRID,),
        "asymmetric: weights that change from one invocation to the next",
        "TFLite keeps the sums of the first invocation's weights; tflq computes them for each sample",
        Effect.UNDEFINED,
        when=has_computed_weights,
    ),
    KnownDifference(
        ("fully_connected",),
        (_HYBRID,),
        "the whole result of int4 weights in blocks",
        "TFLite's reference kernel uses a scale of 0 for such weights; tflq is checked against the optimized kernel",
        Effect.UNDEFINED,
        when=has_weights_in_blocks,
        kernels="BUILTIN_REF",
    ),
    KnownDifference(
        ("conv_2d", "depthwise_conv_2d", "transpose_conv", "batch_matmul", "lstm", "unidirectional_sequence_lstm"),
        (),
        "the whole result of sparse constants",
        "TFLite reads the stored values as if they were the dense tensor, or crashes (lstm); tflq uses the dense "
        "tensor",
        Effect.UNDEFINED,
        when=has_sparse_constant,
    ),
    KnownDifference(
        (
            *("fully_connected", "batch_matmul", *_LSTMS.split()),
            *("unidirectional_sequence_rnn", "bidirectional_sequence_rnn", "rnn", "svdf"),
        ),
        (_HYBRID,),
        "asymmetric: rows of more than 2048 weights with sums beyond 16 bits",
        "TFLite's SSE code sums each eighth of a row up in int16, which wraps; tflq's sums do not",
        Effect.UNDEFINED,
        when=has_long_rows,
    ),
    KnownDifference(
        ("arg_max", "arg_min"),
        ("float32",),
        "the place of a NaN, along a last axis",
        "TFLite's vectorized search leaves it open; tflq passes NaN over, as TFLite does along other axes",
        Effect.UNDEFINED,
        when=searches_last_axis,
        elements=rows_with_nan,
    ),
    KnownDifference(
        ("cast",),
        ("float32", "float64", "float16"),
        "floats to integer types that cannot represent them, TensorFlow 2.21 only",
        "it leaves them to the compiler; tflq clamps, as LiteRT 2.3 does",
        Effect.UNDEFINED,
        elements=floats_that_do_not_fit,
        package="tensorflow",
    ),
    KnownDifference(
        ("TFLite_Detection_PostProcess",),
        ("float32", "uint8q"),
        "slots after the last box, with fast suppression",
        "TFLite does not write them; tflq returns zeros",
        Effect.UNDEFINED,
        when=suppresses_fast,
        elements=slots_behind_the_last_box,
    ),
    KnownDifference(
        ("add", "sub", "mul"),
        (),
        "a variable that is the result, if an operand of its size has no other reader",
        "TFLite's arena lets the result use the memory of the operand: clearing the variable fails, and its value is "
        "lost between two invocations; tflq keeps it",
        Effect.UNDEFINED,
        when=writes_variable_in_place,
    ),
)

REFUSED = (
    _refused("add", _Q, "an output multiplier of 1 or more", _ABORT),
    _refused("sub", _Q, "an output multiplier of 1", _ABORT),
    _refused(
        "sub",
        _Q,
        "an output multiplier above 1",
        "TFLite shifts by a negative count, undefined in C++ (on x86 the sign of the difference is left); tflq refuses",
        refusal="output multiplier",
    ),
    _refused("softmax", _EIGHT, "beta * scale * 2^26 of 1 or less, NaN", _ABORT),
    _refused("softmax", _EIGHT, "an 8-bit output with exponentials that sum up to 512 or more", _ABORT),
    _refused(
        "batch_matmul",
        _HYBRID,
        "asymmetric: int8 weights of five axes with a leading stack of more than one matrix",
        "TFLite reads sums of weights that it has not written; tflq refuses",
        refusal="sums up",
    ),
    _refused(
        "bidirectional_sequence_lstm",
        f"float32 {_HYBRID}",
        "merged outputs of several sequences, batch-major",
        "TFLite reads the states of the second sequence after the end of the tensor; tflq refuses",
    ),
    _refused(
        "bidirectional_sequence_rnn",
        _HYBRID,
        "merged outputs of several sequences, time-major, symmetric",
        "TFLite's own process crashes there; tflq refuses",
    ),
    _refused(
        "bidirectional_sequence_rnn",
        f"float32 {_HYBRID}",
        "a second input of another shape than the first",
        "TFLite steps through both by the shape of the first, and reads after the end; tflq refuses",
    ),
    _refused(
        "fully_connected",
        _Q,
        "input, weights and output of 8 or 16 bits that are not one of the pairings of fully_connected.py",
        "TFLite reads the bytes of one type as another; tflq refuses",
    ),
    _refused(
        "fully_connected",
        _HYBRID,
        "sparse int8 weights in other blocks than 1 x 16",
        "TFLite reads the stored values as such blocks; tflq refuses",
    ),
    _refused(
        "fully_connected",
        "",
        "shuffled weights: other numbers of rows than 1 or 4, sizes that do not fill blocks",
        "TFLite writes no output, or reads after the end; tflq refuses",
    ),
    _refused(
        "reduce_window stablehlo_reduce_window",
        "",
        "strides of 0, negative sizes, an empty start value",
        "TFLite divides by zero or reads outside its tensors; tflq refuses",
    ),
    _refused(
        "broadcast_to dilate stablehlo_pad lsh_projection bitcast",
        "int4 uint4 int2",
        "the whole result (of bitcast to another width)",
        "TFLite counts elements as bytes, and moves pairs or reads absent data; tflq refuses",
    ),
    _refused(
        "fake_quant sum reduce_prod densify rnn unidirectional_sequence_rnn bidirectional_sequence_rnn",
        "",
        "types of data or bias that the operator does not have",
        "TFLite does not look at the type and reads the bytes as another; tflq refuses",
    ),
    _refused(
        "",
        "int8 uint8 int16",
        "the result of operators that use scale and zero point, without them",
        "TFLite computes with a scale of 0; tflq refuses",
    ),
    KnownDifference(
        ("div",),
        tuple(_Q.split()),
        "which divisor is refused, TensorFlow 2.21 only",
        "it refuses the quantized value 0; tflq refuses the zero point, as LiteRT 2.3 does",
        Effect.REFUSED,
        package="tensorflow",
    ),
    _refused("equal not_equal greater greater_equal less less_equal", _Q, "a scale of exactly 1", _ABORT),
    _refused("div floor_mod", "int32 int64", "the lowest integer by -1", "the processor ends TFLite there"),
    _refused(
        "l2_normalization log_softmax",
        _EIGHT,
        "rows with a sum that does not fit int32",
        "TFLite's accumulator overflows, undefined in C++; tflq refuses",
    ),
    _refused("strided_slice", "", "an index of shrink_axis_mask outside its axis", f"{_UNWRITTEN}; tflq refuses"),
    _refused(
        "reverse_sequence matrix_set_diag dilate hashtable_lookup",
        "",
        "lengths, diagonals or steps that do not fit, an empty table",
        "TFLite checks only the first of them or none, and leaves the tensor; tflq refuses",
    ),
    _refused(
        "gather", "int4", "slices that do not fill whole bytes", "TFLite copies whole bytes; tflq refuses"
    ),
    _refused(
        "stablehlo_gather stablehlo_scatter",
        "",
        "index_vector_dim that is the rank of the indices",
        "TFLite's own process crashes there; tflq refuses",
    ),
    _refused(
        "embedding_lookup",
        "",
        "float results of tables other than uint8, int8, int4, int2",
        "TFLite reads the table's bytes as int8; tflq refuses",
    ),
    _refused(
        "matrix_diag matrix_set_diag",
        "",
        "other types than integers of 8 to 64 bits and float32",
        "TFLite takes elements of any other type for float32, whatever their size; tflq refuses",
    ),
)  # fmt: skip

KNOWN_DIFFERENCES = (*LAST_BITS, *UNDEFINED, *REFUSED)


def rows_of(operator: str, label: str) -> tuple[KnownDifference, ...]:
    """Return the rows about an operator in a type, whatever their conditions."""
    return tuple(row for row in KNOWN_DIFFERENCES if row.covers(operator, label))


def rows_of_node(graph: Graph, node: Node, package: str = "", kernels: str = "") -> tuple[KnownDifference, ...]:
    """Return the rows that explain differing elements of a node's results.

    Args:
        graph: Graph of the node.
        node: Node with TFLite's operator.
        package: Package of TFLite to compare with; "" excludes rows of one package.
        kernels: Kernels of TFLite to compare with; "" excludes rows of one set.
    """
    operator, label = kernel_name(node), label_of(graph, node)
    return tuple(
        row
        for row in (*LAST_BITS, *UNDEFINED)
        if row.covers(operator, label)
        and row.package in ("", package)
        and row.kernels in ("", kernels)
        and (row.when is None or row.when(graph, node))
    )
