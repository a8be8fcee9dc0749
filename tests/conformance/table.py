"""Which operators exist, in which types, who generates their cases, and which kernels of TFLite judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from tests.conformance.case import Case
from tests.conformance.cells import Cell, Kind
from tests.conformance.draws import Draw
from tests.conformance.families import binary, control, indexing, layers, recurrent, reductions, rest, shaping, unary

Generator = Callable[[Draw, Cell], Case]
_Q = "int8q uint8q int16q"
_EIGHT = "int8q uint8q"
_BITS = "int8 uint8 int16 uint16 int32 uint32"
_FIXED = f"float32 float16 int8 uint8 int16 int32 int64 bool uint32 {_Q}"
_COMPARED = f"float32 float16 int16 int32 int64 {_Q}"
_WIDE = f"float32 int32 int64 {_Q}"


@dataclass(frozen=True)
class Family:
    """Operators that share a generator.

    Attributes:
        generator: draws a case of a cell.
        operators: name -> labels of kinds.
        kernels: the reference kernels, or the optimized ones where there are no others.
    """

    generator: Generator
    operators: dict[str, str]
    kernels: Literal["BUILTIN_REF", "BUILTIN"] = "BUILTIN_REF"


FAMILIES = (
    Family(
        unary.function,
        {
            "abs": "float32 int16 int32 int8q int16q", "cos": "float32 float16", "sin": "float32 float16",
            "exp": "float32 int8q int16q", "floor": "float32 float16", "gelu": f"float32 float16 {_Q}",
            "hard_swish": f"float32 {_EIGHT}", "l2_normalization": f"float32 {_EIGHT}",
            "leaky_relu": f"float32 {_Q}", "log": "float32 int8q int16q", "log_softmax": f"float32 {_EIGHT}",
            "logical_not": "bool", "logistic": f"float32 float16 {_Q}",
            "neg": "float32 float16 int8 int16 int32 int64 int8q int16q", "relu": f"float32 {_Q}",
            "relu6": f"float32 {_Q}", "relu_0_to_1": f"float32 {_EIGHT}", "relu_n1_to_1": f"float32 {_EIGHT}",
            "rsqrt": "float32 int8q int16q", "sign": "float32 float64 int32", "softmax": f"float32 float16 {_Q}",
            "sqrt": "float32 int8q int16q", "square": "float32", "tanh": f"float32 float16 {_Q}",
            "zeros_like": "float32 int32 int64",
        },
    ),
    Family(unary.function, {"ceil": "float32", "elu": "float32 int8q", "round": "float32 float16"}, "BUILTIN"),
    Family(unary.raw, dict.fromkeys(("real", "imag", "complex_abs"), "complex64 complex128")),
    Family(unary.about, {"rank": "float32 int8 bool", "shape": "float32 int8 int64"}),
    Family(unary.normalization, {"local_response_normalization": "float32"}),
    Family(unary.fake_quant, {"fake_quant": "float32"}),
    Family(
        unary.cast,
        {"cast": "float32 float64 float16 int8 uint8 int16 uint16 int32 uint32 int64 bool complex64"},
    ),
    Family(unary.bitcast, {"bitcast": f"float32 {_BITS} int64 int4 uint4"}),
    Family(unary.bucketize, {"bucketize": "float32 float64 int32 int64"}),
    Family(unary.quantize, {"quantize": f"float32 int32q int4q {_Q}"}),
    Family(unary.dequantize, {"dequantize": f"float16 int4q {_Q}"}),
    Family(
        binary.broadcast,
        {
            "mul": f"float32 float16 int32 int64 uint32 int16 complex64 {_Q}", "div": f"float32 int32 {_Q}",
            "maximum": f"float32 float16 int32 int64 {_Q}", "minimum": f"float32 float16 int32 int64 {_Q}",
            "squared_difference": "float32 int32 int8q", "pow": "float32 int32",
            "floor_div": "float32 int8 int16 int32", "floor_mod": "float32 int8 int16 int32 int64",
            "logical_and": "bool", "logical_or": "bool", "bitwise_xor": _BITS, "right_shift": _BITS,
            "equal": f"bool string {_COMPARED}",
            "not_equal": f"bool string {_COMPARED}",
            **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), _COMPARED),
        },
    ),
    Family(binary.power_of_two, {"add": f"float32 float16 int32 int64 int16 {_Q}", "sub": f"float32 int32 int64 {_Q}"}),
    Family(
        binary.equal_shapes,
        {f"stablehlo_{name}": f"float32 float16 float64 {_BITS} int64 uint64 bool"
         for name in ("add", "multiply", "maximum", "minimum")},
    ),
    Family(
        binary.equal_shapes,
        {"stablehlo_and": "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool",
         "stablehlo_shift_left": "int8 int16 int32"},
        "BUILTIN",
    ),
    Family(binary.equal_shapes, {"atan2": "float32 float64 float16"}),
    Family(binary.prelu, {"prelu": f"float32 {_Q}"}),
    Family(binary.add_n, {"add_n": "float32 int32"}),
    Family(binary.select, {"select": _FIXED, "select_v2": _FIXED}),
    Family(
        reductions.reduction,
        {
            "mean": _WIDE, "sum": "float32 int32 int64 uint8q", "reduce_prod": "float32 int32 int64 int8q int16q",
            "reduce_max": f"bool {_WIDE}", "reduce_min": f"bool {_WIDE}", "reduce_all": "bool", "reduce_any": "bool",
        },
    ),
    Family(reductions.sum_of_signed, {"sum": "int8q int16q"}),
    Family(reductions.arg_extreme, dict.fromkeys(("arg_max", "arg_min"), f"float32 int32 bool {_EIGHT}")),
    Family(reductions.cumsum, {"cumsum": "float32 int32 int64"}),
    Family(layers.pool, {"average_pool_2d": f"float32 {_Q}", "max_pool_2d": f"float32 {_Q}", "l2_pool_2d": "float32"}),
    Family(
        layers.convolution,
        {"conv_2d": f"float32 float32*int8 float32*int4 {_Q} int8q*int4",
         "depthwise_conv_2d": f"float32 float32*int8 {_Q} int8q*int4"},
    ),
    Family(
        layers.fully_connected,
        {"fully_connected": f"float32 float32*int8 float32*uint8 float32*int4 float32*int2 {_Q} int8q*int4 int8q*int2 "
                            "int16q*int4 int16q*int2 int16q*int16"},
    ),
    Family(layers.transpose_conv, {"transpose_conv": f"float32 {_Q}"}),
    Family(layers.conv_3d, {"conv_3d": "float32", "conv_3d_transpose": "float32"}),
    Family(layers.resize, {"resize_bilinear": f"float32 {_Q}", "resize_nearest_neighbor": f"float32 int32 {_Q}"}),
    Family(layers.batch_matmul, {"batch_matmul": "float32 int8q int16q float32*int8"}),
    Family(layers.svdf, {"svdf": "float32 float32*int8 float32*uint8 int8q"}),
    Family(shaping.reshape, {"reshape": f"{_FIXED} string"}),
    Family(shaping.squeeze, {"squeeze": f"{_FIXED} string"}),
    Family(shaping.expand_dims, {"expand_dims": f"{_FIXED} string"}),
    Family(shaping.transpose, {"transpose": f"{_FIXED} float64"}),
    Family(shaping.part, {"slice": f"{_FIXED} float64 string"}),
    Family(shaping.strided, {"strided_slice": f"{_FIXED} string"}),
    Family(shaping.pad, {"pad": f"bool {_WIDE}", "padv2": f"bool {_WIDE}", "mirror_pad": f"bool {_WIDE}"}),
    Family(
        shaping.blocks,
        {"batch_to_space_nd": _WIDE, "space_to_batch_nd": _WIDE,
         "depth_to_space": f"float32 int32 int64 {_EIGHT}", "space_to_depth": f"float32 int32 int64 {_EIGHT}"},
    ),
    Family(shaping.repeat, {"tile": f"{_WIDE} bool string"}),
    Family(shaping.broadcast_to, {"broadcast_to": _FIXED}),
    Family(shaping.fill, {"fill": f"float32 float16 int32 int64 bool string {_Q}"}),
    Family(shaping.reverse, {"reverse_v2": f"{_WIDE} float16 bool"}),
    Family(shaping.concatenation, {"concatenation": f"{_WIDE} bool uint32"}),
    Family(shaping.pack, {"pack": f"uint32 {_WIDE}"}),
    Family(shaping.unpack, {"unpack": f"float32 float16 int32 bool {_Q}"}),
    Family(shaping.split, {"split": _WIDE, "split_v": _WIDE}),
    Family(indexing.gather, {"gather": f"float16 bool string {_WIDE}"}),
    Family(indexing.gather_nd, {"gather_nd": f"float16 bool string {_WIDE}"}),
    Family(indexing.scatter_nd, {"scatter_nd": f"float32 int32 int64 bool {_EIGHT}"}),
    Family(indexing.sparse_to_dense, {"sparse_to_dense": f"float32 int32 int64 {_EIGHT}"}),
    Family(indexing.one_hot, {"one_hot": f"float32 int32 int64 bool {_EIGHT}"}),
    Family(indexing.embedding_lookup, {"embedding_lookup": f"float32 float16 int32 {_EIGHT} int4q"}),
    Family(indexing.embedding_lookup_sparse, {"embedding_lookup_sparse": "float32"}),
    Family(indexing.hashtable_lookup, {"hashtable_lookup": "float32 int32 int8 string"}),
    Family(indexing.segments, {f"unsorted_segment_{n}": "float32 int32" for n in ("max", "min", "prod", "sum")}),
    Family(indexing.segments, {"segment_sum": "float32 int32"}, "BUILTIN"),
    Family(indexing.topk, {"topk_v2": _WIDE}),
    Family(indexing.reverse_sequence, {"reverse_sequence": "float32 int32 int64 uint8q int16q"}),
    Family(indexing.diagonal, {"matrix_diag": _WIDE, "matrix_set_diag": _WIDE}),
    Family(indexing.update, {"dynamic_update_slice": f"bool {_WIDE}"}),
    Family(indexing.dilate, {"dilate": _WIDE}),
    Family(indexing.range_of, {"range": "float32 int32 int64"}),
    Family(indexing.broadcast_args, {"broadcast_args": "int32 int64"}),
    Family(indexing.where, {"where": "bool float32 int64 int32 int8 uint8 uint32"}),
    Family(indexing.unique, {"unique": _WIDE}),
    Family(indexing.densify, {"densify": "float32 float16 int8q"}),
    Family(rest.suppression, {"non_max_suppression_v4": "float32", "non_max_suppression_v5": "float32"}),
    Family(rest.detection, {"TFLite_Detection_PostProcess": "float32 uint8q"}),
    Family(rest.rfft2d, {"rfft2d": "float32"}),
    Family(rest.stablehlo_gather, {"stablehlo_gather": _FIXED}),
    Family(rest.stablehlo_pad, {"stablehlo_pad": _FIXED}),
    Family(control.branches, {"if": f"float32 {_Q}"}),
    Family(control.branches, {"stablehlo_case": f"float32 {_Q}"}, "BUILTIN"),
    Family(control.loop, {"while": f"float32 {_Q}"}),
    Family(control.composite, {"stablehlo_composite": f"float32 {_Q}"}),
    Family(
        control.variable,
        dict.fromkeys(("var_handle", "assign_variable", "read_variable", "call_once"), f"float32 {_Q}"),
    ),
    Family(
        recurrent.lstm,
        {"lstm": "float32 float32*int8 int8q", "unidirectional_sequence_lstm": "float32 float32*int8 int8q"},
    ),
    Family(recurrent.basic, {"lstm": "uint8q"}),
    Family(recurrent.rnn, {"rnn": "float32 float32*int8", "unidirectional_sequence_rnn": "float32 float32*int8"}),
    Family(recurrent.rnn_both_ways, {"bidirectional_sequence_rnn": "float32 float32*int8"}),
    Family(recurrent.both_ways, {"bidirectional_sequence_lstm": "float32 float32*int8"}),
    Family(rest.stablehlo_scatter, {"stablehlo_scatter": f"float32 float16 float64 int64 bool {_BITS}"}),
    Family(rest.lsh_projection, {"lsh_projection": "float32 int32 string"}),
    Family(rest.skip_gram, {"skip_gram": "string"}),
    Family(rest.random_numbers, dict.fromkeys(("random_uniform", "random_standard_normal", "multinomial"), "float32")),
    Family(rest.random_bits, {"stablehlo_rng_bit_generator": "uint32 int32 uint64 int64"}),
    Family(rest.reduce_window, {"stablehlo_reduce_window": "float32 int32 int8"}),
    Family(rest.reduce_window, {"stablehlo_reduce_window": "bool"}, "BUILTIN"),
    Family(reductions.reduce_window, {"reduce_window": "float32 float64 int8 int16 int32 int64 uint8 bool"}),
    Family(
        control.table,
        dict.fromkeys(("hashtable", "hashtable_import", "hashtable_find", "hashtable_size"), "int64 string"),
        "BUILTIN",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A cell with what it takes to run it."""

    cell: Cell
    generator: Generator
    kernels: Literal["BUILTIN_REF", "BUILTIN"]


def entries() -> Iterator[Entry]:
    """Yield every cell, operators in alphabetical order."""
    found = [
        Entry(Cell(operator, Kind.of(label)), family.generator, family.kernels)
        for family in FAMILIES
        for operator, labels in family.operators.items()
        for label in labels.split()
    ]
    yield from sorted(found, key=lambda e: e.cell.operator.lower())
