"""The operator table: a row for each builtin operator of TFLite with its traits and the roles of its operands.

Code outside the kernels reads the properties of an operator here:

    POOLS = with_traits(Trait.POOL)
    if has_trait(node, Trait.WEIGHTS): weights = node.inputs[row_of(node).weights]

Source: TFLite's schema (BuiltinOperator, the options with `fused_activation_function`) and lite/kernels for the
order of the operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto
from typing import Protocol


class Trait(Flag):
    """A property that operators share.

    Attributes:
        UNARY: A function of each element of one operand: y[i] = f(x[i]).
        PAIR: A function of the elements of two operands that broadcast: y[i] = f(a[i], b[i]).
        ARITHMETIC: ADD, SUB, MUL, DIV.
        COMMUTATIVE: The order of the operands does not change the result.
        COMPARISON: A pair with a bool result.
        LOGICAL: bool operands and a bool result.
        BITWISE: Integer operands that are taken bit by bit.
        RECTIFIER: A clamp with fixed bounds, such as RELU6.
        ACTIVATION: A function that networks use as an activation; includes RECTIFIER.
        TWO_SIDED: An activation with bounded results on both sides, such as TANH.
        REDUCTION: A reduction over axes that operand 1 states.
        ARG: An index of an extreme element along an axis.
        MOVEMENT: The result contains elements of the data operands, unchanged, and possibly constants.
        RESHAPE: A movement that keeps the order of the elements in memory.
        JOIN: A movement of several operands into one result.
        SPLIT: A movement of one operand into several results.
        CROP: A movement that selects a rectangular part: SLICE, STRIDED_SLICE.
        PAD: A movement that surrounds the data with constants.
        LOOKUP: A movement by indices that are data: GATHER, GATHER_ND, EMBEDDING_LOOKUP.
        BLOCKS: A movement between pixels and channels or batches.
        REPEAT: A movement that repeats the data: TILE, BROADCAST_TO.
        WINDOW: The result depends on a window of each position: convolutions and pools.
        POOL: A window without weights.
        WEIGHTS: The operator has a weights operand (`weights`) with output channels (`channel_axis`).
        CONVOLUTION: CONV_2D and DEPTHWISE_CONV_2D.
        LINEAR: CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: weights, bias and data in the usual order.
        TRANSPOSED: A convolution with the roles of input and output exchanged.
        RECURRENT: A layer with state along a sequence.
        RESIZE: An interpolation of images.
        CONVERSION: A change of type of the same numbers: QUANTIZE, DEQUANTIZE, FAKE_QUANT.
        KEEPS_SCALE: TFLite requires or a converter writes the same quantization for data and result.
        FUSES: The options have a field `fused_activation_function`.
        CHOICE: Elements of several operands chosen by a condition: SELECT, WHERE's relatives.
        SOFTMAX: SOFTMAX and LOG_SOFTMAX.
        RANDOM: Each run draws new values.
        STATEFUL: The operator reads or writes state that outlives a run.
        CONTROL: The operator runs other graphs.
        SHAPE_ONLY: The result depends on shapes, not on values.
    """

    UNARY = auto()
    PAIR = auto()
    ARITHMETIC = auto()
    COMMUTATIVE = auto()
    COMPARISON = auto()
    LOGICAL = auto()
    BITWISE = auto()
    RECTIFIER = auto()
    ACTIVATION = auto()
    TWO_SIDED = auto()
    REDUCTION = auto()
    ARG = auto()
    MOVEMENT = auto()
    RESHAPE = auto()
    JOIN = auto()
    SPLIT = auto()
    CROP = auto()
    PAD = auto()
    LOOKUP = auto()
    BLOCKS = auto()
    REPEAT = auto()
    WINDOW = auto()
    POOL = auto()
    WEIGHTS = auto()
    CONVOLUTION = auto()
    LINEAR = auto()
    TRANSPOSED = auto()
    RECURRENT = auto()
    RESIZE = auto()
    CONVERSION = auto()
    KEEPS_SCALE = auto()
    FUSES = auto()
    CHOICE = auto()
    SOFTMAX = auto()
    RANDOM = auto()
    STATEFUL = auto()
    CONTROL = auto()
    SHAPE_ONLY = auto()


@dataclass(frozen=True)
class Operator:
    """A row of the table.

    Attributes:
        name: TFLite's builtin name in snake case.
        traits: Properties of the operator.
        data: Position of the operand with the activations.
        weights: Position of the weights; None without.
        bias: Position of the bias; None without.
        channel_axis: Axis of the weights along which the output channels lie; None without weights.
    """

    name: str
    traits: Trait
    data: int = 0
    weights: int | None = None
    bias: int | None = None
    channel_axis: int | None = None


class HasOperator(Protocol):
    """Anything with the name of an operator, such as a node."""

    @property
    def operator(self) -> str:
        """Name of the operator."""


_NONE = Trait(0)
_FUNCTION = Trait.UNARY
_CURVE = Trait.UNARY | Trait.ACTIVATION
_CLAMP = _CURVE | Trait.RECTIFIER
_PAIR = Trait.PAIR
_SYMMETRIC = Trait.PAIR | Trait.COMMUTATIVE
_COMPARISON = Trait.PAIR | Trait.COMPARISON
_MOVE = Trait.MOVEMENT | Trait.KEEPS_SCALE
_POOL = Trait.WINDOW | Trait.POOL | Trait.FUSES
_FILTER = Trait.WEIGHTS | Trait.FUSES
_CELL = Trait.RECURRENT | Trait.STATEFUL | Trait.FUSES
_STATE = Trait.STATEFUL

_ROWS = (
    Operator("conv_2d", _FILTER | Trait.WINDOW | Trait.CONVOLUTION | Trait.LINEAR, 0, 1, 2, 0),
    Operator("depthwise_conv_2d", _FILTER | Trait.WINDOW | Trait.CONVOLUTION | Trait.LINEAR, 0, 1, 2, 3),
    Operator("fully_connected", _FILTER | Trait.LINEAR, 0, 1, 2, 0),
    Operator("transpose_conv", _FILTER | Trait.WINDOW | Trait.TRANSPOSED, 2, 1, 3, 0),
    Operator("conv_3d", _FILTER | Trait.WINDOW, 0, 1, 2, 4),
    Operator("conv_3d_transpose", _FILTER | Trait.WINDOW | Trait.TRANSPOSED, 2, 1, 3, 3),
    Operator("batch_matmul", _NONE),
    Operator("average_pool_2d", _POOL | Trait.KEEPS_SCALE),
    Operator("max_pool_2d", _POOL | Trait.KEEPS_SCALE),
    Operator("l2_pool_2d", _POOL),
    Operator("reduce_window", Trait.WINDOW),
    Operator("add", _SYMMETRIC | Trait.ARITHMETIC | Trait.FUSES),
    Operator("sub", _PAIR | Trait.ARITHMETIC | Trait.FUSES),
    Operator("mul", _SYMMETRIC | Trait.ARITHMETIC | Trait.FUSES),
    Operator("div", _PAIR | Trait.ARITHMETIC | Trait.FUSES),
    Operator("maximum", _SYMMETRIC),
    Operator("minimum", _SYMMETRIC),
    Operator("pow", _PAIR),
    Operator("squared_difference", _SYMMETRIC),
    Operator("floor_div", _PAIR),
    Operator("floor_mod", _PAIR),
    Operator("atan2", _PAIR),
    Operator("add_n", Trait.COMMUTATIVE),
    Operator("equal", _COMPARISON | Trait.COMMUTATIVE),
    Operator("not_equal", _COMPARISON | Trait.COMMUTATIVE),
    Operator("greater", _COMPARISON),
    Operator("greater_equal", _COMPARISON),
    Operator("less", _COMPARISON),
    Operator("less_equal", _COMPARISON),
    Operator("logical_and", _SYMMETRIC | Trait.LOGICAL),
    Operator("logical_or", _SYMMETRIC | Trait.LOGICAL),
    Operator("logical_not", Trait.UNARY | Trait.LOGICAL),
    Operator("bitwise_xor", _SYMMETRIC | Trait.BITWISE),
    Operator("right_shift", _PAIR | Trait.BITWISE),
    Operator("select", Trait.CHOICE, 1),
    Operator("select_v2", Trait.CHOICE, 1),
    Operator("where", _NONE),
    Operator("relu", _CLAMP),
    Operator("relu6", _CLAMP),
    Operator("relu_n1_to_1", _CLAMP | Trait.TWO_SIDED),
    Operator("relu_0_to_1", _CLAMP),
    Operator("leaky_relu", _CURVE),
    Operator("prelu", Trait.ACTIVATION),
    Operator("elu", _CURVE),
    Operator("gelu", _CURVE),
    Operator("hard_swish", _CURVE),
    Operator("logistic", _CURVE | Trait.TWO_SIDED),
    Operator("tanh", _CURVE | Trait.TWO_SIDED),
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
    Operator("softmax", Trait.SOFTMAX),
    Operator("log_softmax", Trait.SOFTMAX),
    Operator("l2_normalization", Trait.FUSES),
    Operator("local_response_normalization", _NONE),
    Operator("mean", Trait.REDUCTION),
    Operator("sum", Trait.REDUCTION),
    Operator("reduce_max", Trait.REDUCTION | Trait.KEEPS_SCALE),
    Operator("reduce_min", Trait.REDUCTION | Trait.KEEPS_SCALE),
    Operator("reduce_prod", Trait.REDUCTION),
    Operator("reduce_any", Trait.REDUCTION | Trait.LOGICAL),
    Operator("reduce_all", Trait.REDUCTION | Trait.LOGICAL),
    Operator("arg_max", Trait.ARG),
    Operator("arg_min", Trait.ARG),
    Operator("cumsum", _NONE),
    Operator("reshape", _MOVE | Trait.RESHAPE),
    Operator("squeeze", _MOVE | Trait.RESHAPE),
    Operator("expand_dims", _MOVE | Trait.RESHAPE),
    Operator("transpose", _MOVE),
    Operator("concatenation", _MOVE | Trait.JOIN | Trait.FUSES),
    Operator("pack", _MOVE | Trait.JOIN),
    Operator("split", _MOVE | Trait.SPLIT, 1),
    Operator("split_v", _MOVE | Trait.SPLIT),
    Operator("unpack", _MOVE | Trait.SPLIT),
    Operator("slice", _MOVE | Trait.CROP),
    Operator("strided_slice", _MOVE | Trait.CROP),
    Operator("dynamic_update_slice", _MOVE),
    Operator("pad", _MOVE | Trait.PAD),
    Operator("padv2", _MOVE | Trait.PAD),
    Operator("mirror_pad", _MOVE | Trait.PAD),
    Operator("dilate", _MOVE),
    Operator("tile", _MOVE | Trait.REPEAT),
    Operator("broadcast_to", _MOVE | Trait.REPEAT),
    Operator("reverse_v2", _MOVE),
    Operator("reverse_sequence", _MOVE),
    Operator("gather", _MOVE | Trait.LOOKUP),
    Operator("gather_nd", _MOVE | Trait.LOOKUP),
    Operator("embedding_lookup", _MOVE | Trait.LOOKUP, 1),
    Operator("scatter_nd", _MOVE, 1),
    Operator("space_to_depth", _MOVE | Trait.BLOCKS),
    Operator("depth_to_space", _MOVE | Trait.BLOCKS),
    Operator("space_to_batch_nd", _MOVE | Trait.BLOCKS),
    Operator("batch_to_space_nd", _MOVE | Trait.BLOCKS),
    Operator("matrix_diag", _MOVE),
    Operator("matrix_set_diag", _MOVE),
    Operator("sparse_to_dense", _MOVE, 2),
    Operator("densify", _MOVE),
    Operator("topk_v2", Trait.KEEPS_SCALE),
    Operator("unique", _NONE),
    Operator("bitcast", _NONE),
    Operator("cast", _NONE),
    Operator("quantize", Trait.CONVERSION),
    Operator("dequantize", Trait.CONVERSION),
    Operator("fake_quant", Trait.CONVERSION),
    Operator("resize_bilinear", Trait.RESIZE | Trait.KEEPS_SCALE),
    Operator("resize_nearest_neighbor", Trait.RESIZE | _MOVE),
    Operator("shape", Trait.SHAPE_ONLY),
    Operator("rank", Trait.SHAPE_ONLY),
    Operator("zeros_like", Trait.SHAPE_ONLY),
    Operator("broadcast_args", _NONE),
    Operator("fill", _NONE, 1),
    Operator("range", _NONE),
    Operator("one_hot", _NONE),
    Operator("bucketize", _NONE),
    Operator("segment_sum", _NONE),
    Operator("unsorted_segment_max", _NONE),
    Operator("unsorted_segment_min", _NONE),
    Operator("unsorted_segment_prod", _NONE),
    Operator("unsorted_segment_sum", _NONE),
    Operator("non_max_suppression_v4", _NONE),
    Operator("non_max_suppression_v5", _NONE),
    Operator("lsh_projection", _NONE),
    Operator("hashtable_lookup", _NONE, 2),
    Operator("embedding_lookup_sparse", _NONE),
    Operator("concat_embeddings", _NONE),
    Operator("skip_gram", _NONE),
    Operator("rfft2d", _NONE),
    Operator("real", _FUNCTION),
    Operator("imag", _FUNCTION),
    Operator("complex_abs", _FUNCTION),
    Operator("lstm", _CELL),
    Operator("rnn", _CELL),
    Operator("svdf", _CELL),
    Operator("unidirectional_sequence_lstm", _CELL),
    Operator("unidirectional_sequence_rnn", _CELL),
    Operator("bidirectional_sequence_lstm", _CELL),
    Operator("bidirectional_sequence_rnn", _CELL),
    Operator("random_uniform", Trait.RANDOM | Trait.SHAPE_ONLY),
    Operator("random_standard_normal", Trait.RANDOM | Trait.SHAPE_ONLY),
    Operator("multinomial", Trait.RANDOM),
    Operator("var_handle", _STATE),
    Operator("read_variable", _STATE),
    Operator("assign_variable", _STATE),
    Operator("hashtable", _STATE),
    Operator("hashtable_find", _STATE),
    Operator("hashtable_import", _STATE),
    Operator("hashtable_size", _STATE),
    Operator("if", Trait.CONTROL),
    Operator("while", Trait.CONTROL),
    Operator("call", Trait.CONTROL),
    Operator("call_once", Trait.CONTROL | Trait.STATEFUL),
    Operator("stablehlo_case", Trait.CONTROL),
    Operator("stablehlo_while", Trait.CONTROL),
    Operator("stablehlo_composite", Trait.CONTROL),
    Operator("stablehlo_add", _SYMMETRIC),
    Operator("stablehlo_multiply", _SYMMETRIC),
    Operator("stablehlo_maximum", _SYMMETRIC),
    Operator("stablehlo_minimum", _SYMMETRIC),
    Operator("stablehlo_and", _SYMMETRIC | Trait.BITWISE),
    Operator("stablehlo_shift_left", _PAIR | Trait.BITWISE),
    Operator("stablehlo_gather", _MOVE | Trait.LOOKUP),
    Operator("stablehlo_pad", _MOVE),
    Operator("stablehlo_reduce_window", Trait.WINDOW),
    Operator("stablehlo_scatter", _NONE),
    Operator("stablehlo_rng_bit_generator", _NONE),
    Operator("custom", _NONE),
)

OPERATORS = {row.name: row for row in _ROWS}
"""Name -> row; a target's own operator and an operator without a kernel in TFLite have no row."""


def row_of(node: HasOperator) -> Operator:
    """Return the row of a node's operator; an operator that is not in the table has a row without traits."""
    return OPERATORS.get(node.operator) or Operator(node.operator, _NONE)


def has_trait(node: HasOperator, traits: Trait) -> bool:
    """Return True if the node's operator has at least one of the traits."""
    row = OPERATORS.get(node.operator)
    return row is not None and bool(row.traits & traits)


def with_traits(*traits: Trait) -> frozenset[str]:
    """Return the names of the operators that have all of the traits."""
    return frozenset(_names(*traits))


def _names(*traits: Trait) -> tuple[str, ...]:
    return tuple(row.name for row in _ROWS if all(row.traits & trait for trait in traits))


CONVOLUTIONS = _names(Trait.CONVOLUTION)
"""CONV_2D and DEPTHWISE_CONV_2D."""
LINEAR_OPERATORS = _names(Trait.LINEAR)
"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED."""
RESHAPES = _names(Trait.RESHAPE)
"""RESHAPE, SQUEEZE and EXPAND_DIMS."""
CONVERSIONS = ("quantize", "dequantize")
"""Changes of type that only a quantized file contains."""
