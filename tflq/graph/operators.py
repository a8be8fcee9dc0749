"""The operator table: a row for each builtin operator of TFLite with its traits and the roles of its operands.

Code outside the kernels reads the properties of an operator here:

    POOLS = with_traits(Trait.POOL)
    if has_trait(node, Trait.WEIGHTS): weights = node.inputs[row_of(node).weights]

Source: TFLite's schema (BuiltinOperator, the options with `fused_activation_function`) and lite/kernels for the
order and the number of the operands (`NumInputs`, `NumOutputs` in each Prepare).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tflq.graph.traits import Trait as Trait


@dataclass(frozen=True)
class Operator:
    """A row of the table.

    Attributes:
        name: TFLite's builtin name in snake case.
        traits: Properties of the operator.
        inputs: Allowed numbers of operands; empty for one or more, None for any.
        outputs: Allowed numbers of results, as `inputs`.
        data: Position of the operand with the activations.
        weights: Position of the weights; None without.
        bias: Position of the bias; None without.
        channel_axis: Axis of the weights along which the output channels lie; None without weights.
        optional: True if operands may be absent.
        bounds: Least and greatest result of a rectifier; None for no greatest result.
    """

    name: str
    traits: Trait
    inputs: tuple[int, ...] | None = (1,)
    outputs: tuple[int, ...] | None = (1,)
    data: int = 0
    weights: int | None = None
    bias: int | None = None
    channel_axis: int | None = None
    optional: bool = False
    bounds: tuple[float, float | None] | None = None


class HasOperator(Protocol):
    """Anything with the name of an operator, such as a node."""

    @property
    def operator(self) -> str:
        """Name of the operator."""


_NONE = Trait(0)
_FUNCTION = Trait.UNARY | Trait.SAME_SHAPE
_CURVE = _FUNCTION | Trait.ACTIVATION
_CLAMP = _CURVE | Trait.RECTIFIER
_MOVE = Trait.MOVEMENT | Trait.KEEPS_SCALE
_POOL = Trait.WINDOW | Trait.POOL | Trait.FUSES
_CELL = Trait.RECURRENT | Trait.STATEFUL | Trait.FUSES
_STATE = Trait.STATEFUL
_VOLUME = Trait.WINDOW | Trait.VOLUME


def _pair(name: str, traits: Trait = _NONE) -> Operator:
    return Operator(name, Trait.PAIR | traits, (2,))


def _filter(
    name: str,
    traits: Trait,
    channel_axis: int,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...] = (1,),
    data: int = 0,
    optional: bool = False,
) -> Operator:
    """Return the row of an operator with weights at position 1 and a bias after weights and data."""
    traits |= Trait.WEIGHTS | Trait.FUSES
    return Operator(name, traits, inputs, outputs, data, 1, max(data, 1) + 1, channel_axis, optional)


_BUILTIN = (
    _filter("conv_2d", Trait.WINDOW | Trait.CONVOLUTION | Trait.LINEAR, channel_axis=0, inputs=(3,)),
    _filter("depthwise_conv_2d", Trait.WINDOW | Trait.CONVOLUTION | Trait.LINEAR, channel_axis=3, inputs=(2, 3)),
    _filter("fully_connected", Trait.LINEAR, channel_axis=0, inputs=(2, 3), outputs=(1, 2), optional=True),
    _filter("transpose_conv", Trait.WINDOW | Trait.TRANSPOSED, channel_axis=0, inputs=(3, 4), data=2, optional=True),
    _filter("conv_3d", _VOLUME, channel_axis=4, inputs=(2, 3), optional=True),
    _filter(
        "conv_3d_transpose",
        Trait.VOLUME | Trait.WINDOW | Trait.TRANSPOSED,
        channel_axis=3,
        inputs=(3, 4),
        data=2,
        optional=True,
    ),
    Operator("batch_matmul", _NONE, inputs=(2,)),
    Operator("average_pool_2d", _POOL | Trait.KEEPS_SCALE),
    Operator("max_pool_2d", _POOL | Trait.KEEPS_SCALE),
    Operator("l2_pool_2d", _POOL),
    Operator("reduce_window", Trait.WINDOW, inputs=(5,)),
    _pair("add", Trait.AFFINE | Trait.SCALED | Trait.COMMUTATIVE | Trait.ARITHMETIC | Trait.FUSES),
    _pair("sub", Trait.AFFINE | Trait.SCALED | Trait.ARITHMETIC | Trait.FUSES),
    _pair("mul", Trait.AFFINE | Trait.SCALED | Trait.COMMUTATIVE | Trait.ARITHMETIC | Trait.FUSES),
    _pair("div", Trait.SCALED | Trait.ARITHMETIC | Trait.FUSES),
    _pair("maximum", Trait.EXTREME | Trait.SCALED | Trait.COMMUTATIVE),
    _pair("minimum", Trait.EXTREME | Trait.SCALED | Trait.COMMUTATIVE),
    _pair("pow"),
    _pair("squared_difference", Trait.SCALED | Trait.COMMUTATIVE),
    _pair("floor_div"),
    _pair("floor_mod"),
    _pair("atan2"),
    Operator("add_n", Trait.COMMUTATIVE, inputs=()),
    _pair("equal", Trait.COMPARISON | Trait.COMMUTATIVE),
    _pair("not_equal", Trait.COMPARISON | Trait.COMMUTATIVE),
    _pair("greater", Trait.COMPARISON),
    _pair("greater_equal", Trait.COMPARISON),
    _pair("less", Trait.COMPARISON),
    _pair("less_equal", Trait.COMPARISON),
    _pair("logical_and", Trait.COMMUTATIVE | Trait.LOGICAL),
    _pair("logical_or", Trait.COMMUTATIVE | Trait.LOGICAL),
    Operator("logical_not", _FUNCTION | Trait.LOGICAL),
    _pair("bitwise_xor", Trait.COMMUTATIVE | Trait.BITWISE),
    _pair("right_shift", Trait.BITWISE),
    Operator("select", Trait.CHOICE, inputs=(3,), data=1),
    Operator("select_v2", Trait.CHOICE, inputs=(3,), data=1),
    Operator("where", _NONE),
    Operator("relu", _CLAMP, bounds=(0.0, None)),
    Operator("relu6", _CLAMP, bounds=(0.0, 6.0)),
    Operator("relu_n1_to_1", _CLAMP | Trait.TWO_SIDED, bounds=(-1.0, 1.0)),
    Operator("relu_0_to_1", _CLAMP, bounds=(0.0, 1.0)),
    Operator("leaky_relu", _CURVE),
    _pair("prelu", Trait.ACTIVATION),
    Operator("elu", _CURVE),
    Operator("gelu", _CURVE),
    Operator("hard_swish", _CURVE),
    Operator("logistic", Trait.FIXED_SCALE | _CURVE | Trait.TWO_SIDED),
    Operator("tanh", Trait.FIXED_SCALE | _CURVE | Trait.TWO_SIDED),
    Operator("abs", _FUNCTION),
    Operator("ceil", _FUNCTION),
    Operator("cos", _FUNCTION),
    Operator("exp", _FUNCTION),
    Operator("floor", _FUNCTION),
    Operator("log", _FUNCTION),
    Operator("neg", _FUNCTION),
    Operator("round", _FUNCTION),
    Operator("rsqrt", _FUNCTION),
    Operator("sign", _FUNCTION),
    Operator("sin", _FUNCTION),
    Operator("sqrt", _FUNCTION),
    Operator("square", _FUNCTION),
    Operator("softmax", Trait.FIXED_SCALE | Trait.SOFTMAX | Trait.SAME_SHAPE),
    Operator("log_softmax", Trait.FIXED_SCALE | Trait.SOFTMAX | Trait.SAME_SHAPE),
    Operator("l2_normalization", Trait.FIXED_SCALE | Trait.FUSES | Trait.SAME_SHAPE),
    Operator("local_response_normalization", _NONE),
    Operator("mean", Trait.REDUCTION, inputs=(2,)),
    Operator("sum", Trait.REDUCTION, inputs=(2,)),
    Operator("reduce_max", Trait.REDUCTION | Trait.KEEPS_SCALE, inputs=(2,)),
    Operator("reduce_min", Trait.REDUCTION | Trait.KEEPS_SCALE, inputs=(2,)),
    Operator("reduce_prod", Trait.REDUCTION, inputs=(2,)),
    Operator("reduce_any", Trait.REDUCTION | Trait.LOGICAL, inputs=(2,)),
    Operator("reduce_all", Trait.REDUCTION | Trait.LOGICAL, inputs=(2,)),
    Operator("arg_max", Trait.ARG, inputs=(2,)),
    Operator("arg_min", Trait.ARG, inputs=(2,)),
    Operator("cumsum", _NONE, inputs=(2,)),
    Operator("reshape", _MOVE | Trait.RESHAPE, inputs=(1, 2)),
    Operator("squeeze", _MOVE | Trait.RESHAPE),
    Operator("expand_dims", _MOVE | Trait.RESHAPE, inputs=(2,)),
    Operator("transpose", _MOVE, inputs=(2,)),
    Operator("concatenation", _MOVE | Trait.JOIN | Trait.FUSES, inputs=()),
    Operator("pack", _MOVE | Trait.JOIN, inputs=()),
    Operator("split", _MOVE | Trait.SPLIT, inputs=(2,), outputs=(), data=1),
    Operator("split_v", _MOVE | Trait.SPLIT, inputs=(3,), outputs=()),
    Operator("unpack", _MOVE | Trait.SPLIT, outputs=()),
    Operator("slice", _MOVE | Trait.CROP, inputs=(3,)),
    Operator("strided_slice", _MOVE | Trait.CROP, inputs=(4,)),
    Operator("dynamic_update_slice", _MOVE, inputs=(3,)),
    Operator("pad", Trait.CONSTANT_PAD | _MOVE | Trait.PAD, inputs=(2, 3), optional=True),
    Operator("padv2", Trait.CONSTANT_PAD | _MOVE | Trait.PAD, inputs=(2, 3), optional=True),
    Operator("mirror_pad", _MOVE | Trait.PAD, inputs=(2,)),
    Operator("dilate", _MOVE, inputs=(3,)),
    Operator("tile", _MOVE | Trait.REPEAT, inputs=(2,)),
    Operator("broadcast_to", _MOVE | Trait.REPEAT, inputs=(2,)),
    Operator("reverse_v2", _MOVE, inputs=(2,)),
    Operator("reverse_sequence", _MOVE, inputs=(2,)),
    Operator("gather", _MOVE | Trait.LOOKUP, inputs=(2,)),
    Operator("gather_nd", _MOVE | Trait.LOOKUP, inputs=(2,)),
    Operator("embedding_lookup", _MOVE | Trait.LOOKUP, inputs=(2,), data=1),
    Operator("scatter_nd", _MOVE, inputs=(3,), data=1),
    Operator("space_to_depth", _MOVE | Trait.BLOCKS),
    Operator("depth_to_space", _MOVE | Trait.BLOCKS),
    Operator("space_to_batch_nd", _MOVE | Trait.BLOCKS, inputs=(3,)),
    Operator("batch_to_space_nd", _MOVE | Trait.BLOCKS, inputs=(3,)),
    Operator("matrix_diag", _MOVE),
    Operator("matrix_set_diag", _MOVE, inputs=(2,)),
    Operator("sparse_to_dense", _MOVE, inputs=(4,), data=2),
    Operator("densify", _MOVE),
    Operator("topk_v2", Trait.KEEPS_SCALE, inputs=(2,), outputs=(2,)),
    Operator("unique", _NONE, outputs=(2,)),
    Operator("bitcast", _NONE),
    Operator("cast", Trait.SAME_SHAPE),
    Operator("quantize", Trait.CONVERSION | Trait.SAME_SHAPE),
    Operator("dequantize", Trait.CONVERSION | Trait.SAME_SHAPE),
    Operator("fake_quant", Trait.CONVERSION | Trait.SAME_SHAPE),
    Operator("resize_bilinear", Trait.RESIZE | Trait.KEEPS_SCALE, inputs=(2,)),
    Operator("resize_nearest_neighbor", Trait.RESIZE | _MOVE, inputs=(2,)),
    Operator("shape", Trait.SHAPE_ONLY),
    Operator("rank", Trait.SHAPE_ONLY),
    Operator("zeros_like", Trait.SHAPE_ONLY | Trait.SAME_SHAPE),
    Operator("broadcast_args", _NONE, inputs=(2,)),
    Operator("fill", _NONE, inputs=(2,), data=1),
    Operator("range", _NONE, inputs=(3,)),
    Operator("one_hot", _NONE, inputs=(4,)),
    Operator("bucketize", _NONE),
    Operator("segment_sum", _NONE, inputs=(2,)),
    Operator("unsorted_segment_max", _NONE, inputs=(3,)),
    Operator("unsorted_segment_min", _NONE, inputs=(3,)),
    Operator("unsorted_segment_prod", _NONE, inputs=(3,)),
    Operator("unsorted_segment_sum", _NONE, inputs=(3,)),
    Operator("non_max_suppression_v4", _NONE, inputs=(5,), outputs=(2,)),
    Operator("non_max_suppression_v5", _NONE, inputs=(6,), outputs=(3,)),
    Operator("lsh_projection", _NONE, inputs=(2, 3), optional=True),
    Operator("hashtable_lookup", _NONE, inputs=(3,), outputs=(2,), data=2),
    Operator("embedding_lookup_sparse", _NONE, inputs=(5,)),
    Operator("concat_embeddings", _NONE, inputs=None, outputs=None),
    Operator("skip_gram", _NONE),
    Operator("rfft2d", _NONE, inputs=(2,)),
    Operator("real", _FUNCTION),
    Operator("imag", _FUNCTION),
    Operator("complex_abs", _FUNCTION),
    Operator("lstm", _CELL, inputs=(5, 20, 24), outputs=(1, 4), optional=True),
    Operator("rnn", _CELL, inputs=(5,), optional=True),
    Operator("svdf", _CELL, inputs=(5,), optional=True),
    Operator("unidirectional_sequence_lstm", _CELL, inputs=(20, 24), optional=True),
    Operator("unidirectional_sequence_rnn", _CELL, inputs=(5,), optional=True),
    Operator("bidirectional_sequence_lstm", _CELL, inputs=(48,), outputs=(1, 2), optional=True),
    Operator("bidirectional_sequence_rnn", _CELL, inputs=(12,), outputs=(1, 2), optional=True),
    Operator("random_uniform", Trait.RANDOM | Trait.SHAPE_ONLY),
    Operator("random_standard_normal", Trait.RANDOM | Trait.SHAPE_ONLY),
    Operator("multinomial", Trait.RANDOM, inputs=(2,)),
    Operator("var_handle", _STATE, inputs=(0,)),
    Operator("read_variable", _STATE),
    Operator("assign_variable", _STATE, inputs=(2,), outputs=(0,)),
    Operator("hashtable", _STATE, inputs=(0,)),
    Operator("hashtable_find", _STATE, inputs=(3,)),
    Operator("hashtable_import", _STATE, inputs=(3,), outputs=(0,)),
    Operator("hashtable_size", _STATE),
    Operator("if", Trait.CONTROL, inputs=None, outputs=None),
    Operator("while", Trait.CONTROL, inputs=None, outputs=None),
    Operator("call", Trait.CONTROL, inputs=None, outputs=None),
    Operator("call_once", Trait.CONTROL | Trait.STATEFUL, inputs=(0,), outputs=(0,)),
    Operator("custom", _NONE, inputs=None, outputs=None, optional=True),
)

_STABLEHLO = {
    "add": "add",
    "multiply": "mul",
    "maximum": "maximum",
    "minimum": "minimum",
    "and": "bitwise_xor",
    "shift_left": "right_shift",
    "gather": "gather",
    "pad": "pad",
    "reduce_window": "reduce_window",
    "scatter": "unsorted_segment_sum",
    "rng_bit_generator": "random_uniform",
    "case": "if",
    "while": "while",
    "composite": "call",
}
"""Operator of StableHLO -> operator of TFLite with the same traits."""
_ARITY = {"pad": (2,), "reduce_window": (2,), "rng_bit_generator": (1,)}
"""Number of operands where it differs."""


def _stablehlo(name: str, relative: Operator) -> Operator:
    """Return the row of `stablehlo_<name>`: as its relative, without a fused activation."""
    outputs = (2,) if name == "rng_bit_generator" else relative.outputs
    inputs = _ARITY.get(name, relative.inputs)
    return Operator(f"stablehlo_{name}", relative.traits & ~Trait.FUSES, inputs, outputs, relative.data)


def _layer(name: str, traits: Trait) -> Operator:
    """Return the row of a layer of Compass with weights; its bias has a scale."""
    return Operator(name, Trait.WEIGHTS | traits, (3,), weights=1, channel_axis=0)


_OWN = (
    Operator("activation", _CURVE),
    Operator("bnll", _FUNCTION),
    Operator("cosine", _FUNCTION),
    Operator("erf", _FUNCTION),
    Operator("negative", _FUNCTION),
    Operator("reciprocal", _FUNCTION),
    Operator("sine", _FUNCTION),
    Operator("hard_sigmoid", _CURVE),
    Operator("silu", _CURVE),
    Operator("softsign", _CURVE),
    _layer("convolution", Trait.WINDOW),
    _layer("convolution_3d", _VOLUME),
    _layer("conv_transpose", Trait.WINDOW | Trait.TRANSPOSED),
    _layer("depthwise_conv", Trait.WINDOW),
    Operator("eltwise", Trait.PAIR | Trait.SCALED, inputs=(2,)),
)
"""Operators of targets: layers of Compass, and what passes recognize. No .tflite has them."""

_ROWS = (
    *_BUILTIN,
    *(_stablehlo(name, row) for name, other in _STABLEHLO.items() for row in _BUILTIN if row.name == other),
)

OPERATORS = {row.name: row for row in _ROWS}
"""Name -> row of TFLite's operators; an operator without a kernel in TFLite has no row."""
_ALL = OPERATORS | {row.name: row for row in _OWN}


def row_of(node: HasOperator) -> Operator:
    """Return the row of a node's operator; an operator that is not in the table has a row without traits."""
    return _ALL.get(node.operator) or Operator(node.operator, _NONE, None, None)


def has_trait(node: HasOperator, traits: Trait) -> bool:
    """Return True if the node's operator has at least one of the traits."""
    row = _ALL.get(node.operator)
    return row is not None and bool(row.traits & traits)


def with_traits(*traits: Trait) -> frozenset[str]:
    """Return the names of the operators that have all of the traits."""
    return frozenset(_names(*traits))


def _names(*traits: Trait) -> tuple[str, ...]:
    return tuple(row.name for row in _ALL.values() if all(row.traits & trait for trait in traits))


CONVOLUTIONS = _names(Trait.CONVOLUTION)
"""CONV_2D and DEPTHWISE_CONV_2D."""
LINEAR_OPERATORS = _names(Trait.LINEAR)
"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""
RESHAPES = _names(Trait.RESHAPE)
"""RESHAPE, SQUEEZE and EXPAND_DIMS."""
RECTIFIER_BOUNDS = {row.name: row.bounds for row in _BUILTIN if row.bounds is not None}
"""Rectifier -> least and greatest result; None for no greatest result."""
FUSED_ACTIVATIONS = ("none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")
"""Values of the attribute `fused_activation_function`."""
CONVERSIONS = ("quantize", "dequantize")
"""Changes of type that only a quantized file contains."""
