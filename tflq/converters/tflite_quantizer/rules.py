"""What TFLite's 8-bit and 16x8 quantization asks of each operator, as data.

Source: TFLite, "TensorFlow Lite 8-bit quantization specification"; the kernels' own checks where they are stricter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflq.converters.mappings import find_rule
from tflq.graph import DType, Node
from tflq.graph.operators import LINEAR_OPERATORS, RESHAPES

INT8 = "int8"
INT16 = "int16x8"
INTEGER_KINDS = (INT8, INT16)

FUSED = ("none", "relu", "relu6", "relu_n1_to_1")
"""Fused activations that integer kernels clamp to."""


@dataclass(frozen=True)
class Filter:
    """Where an operator has its weights.

    Attributes:
        weights: position of the weights.
        axis: of the output channels.
        bias: position of the bias.
    """

    weights: int
    axis: int
    bias: int


@dataclass(frozen=True)
class Rule:
    """How an operator runs in integers; what it names no weights or bias is an activation.

    Attributes:
        kinds: in which of "int8" and "int16x8" TFLite's reference kernels compute it.
        filter: its weights; None where it has none.
        same: whether all activations that it reads and writes share one scale and zero point.
        fixed: kind -> (scale, zero point) of the output where the kernel demands one.
    """

    kinds: tuple[str, ...] = INTEGER_KINDS
    filter: Filter | None = None
    same: bool = False
    fixed: Mapping[str, tuple[float, int]] = field(default_factory=dict)


_OWN = Rule()
_OWN_INT8 = Rule((INT8,))
_SAME = Rule(same=True)
_SAME_INT8 = Rule((INT8,), same=True)
_PROBABILITY = Rule(fixed={INT8: (2.0**-8, -128), INT16: (2.0**-15, 0)})

RULES: dict[str, Rule] = {
    "conv_2d": Rule(filter=Filter(1, 0, 2)),
    "depthwise_conv_2d": Rule(filter=Filter(1, 3, 2)),
    "fully_connected": Rule(filter=Filter(1, 0, 2)),
    "transpose_conv": Rule(filter=Filter(1, 0, 3)),
    "logistic": _PROBABILITY,
    "softmax": _PROBABILITY,
    "tanh": Rule(fixed={INT8: (2.0**-7, 0), INT16: (2.0**-15, 0)}),
    "l2_normalization": Rule((INT8,), fixed={INT8: (2.0**-7, 0)}),
    "log_softmax": Rule((INT8,), fixed={INT8: (2.0**-4, 127)}),
    **dict.fromkeys(
        (
            *("average_pool_2d", "max_pool_2d", "reduce_max", "reduce_min", "maximum", "minimum"),
            *(*RESHAPES, "transpose", "broadcast_to", "reverse_v2"),
            *("concatenation", "pack", "unpack", "split", "split_v", "slice", "strided_slice", "dynamic_update_slice"),
            *("gather", "gather_nd", "select", "select_v2", "topk_v2"),
            *("pad", "padv2", "mirror_pad", "space_to_batch_nd", "batch_to_space_nd"),
            *("resize_bilinear", "resize_nearest_neighbor"),
        ),
        _SAME,
    ),
    **dict.fromkeys(("tile", "depth_to_space", "space_to_depth", "arg_max", "arg_min"), _SAME_INT8),
    "neg": Rule((INT16,), same=True),
    **dict.fromkeys(("add", "sub", "mul", "mean", "batch_matmul", "abs", "relu", "relu6", "leaky_relu"), _OWN),
    **dict.fromkeys(("exp", "log", "gelu"), _OWN),
    **dict.fromkeys(("squared_difference", "hard_swish", "prelu", "relu_n1_to_1", "relu_0_to_1"), _OWN_INT8),
    **dict.fromkeys(("sqrt", "rsqrt"), _OWN_INT8),
}

LEFT_IN_FLOAT = {
    "sum": "TFLite's reference kernel reads int8 as uint8",
    "div": "TFLite's reference kernel shifts by more than 31 bits for some quotients",
    "neg": "TFLite's kernel negates quantized values and ignores the zero point",
}
"""Operators that have an integer kernel whose results are not the operator's."""

HYBRID = (*LINEAR_OPERATORS, "transpose_conv")
"""Operators that quantize float activations themselves where their weights are int8."""

_SECOND_FOR_INT8 = (
    *("average_pool_2d", "max_pool_2d", "softmax", "logistic", "tanh", "concatenation", "maximum", "minimum"),
    *("mean", "reduce_max", "reduce_min", "pad", "padv2", "relu", "relu6"),
)
VERSIONS: dict[str, dict[str, int]] = {
    "conv_2d": {INT8: 3, INT16: 4, "hybrid": 5},
    "depthwise_conv_2d": {INT8: 3, INT16: 5, "hybrid": 6},
    "fully_connected": {INT8: 4, INT16: 7, "hybrid": 3},
    "transpose_conv": {INT8: 2, INT16: 4},
    "batch_matmul": {INT8: 2, INT16: 3},
    "leaky_relu": {INT8: 2, INT16: 2},
    "mul": {INT8: 2, INT16: 4},
    "sub": {INT8: 2, INT16: 5},
    "select_v2": {INT8: 1, INT16: 1},
    **{name: {INT8: 2, INT16: 3} for name in _SECOND_FOR_INT8},
    "add": {INT8: 2, INT16: 3},
    "quantize": {INT8: 1, INT16: 2},
    "dequantize": {INT8: 2, INT16: 3},
}
"""Lowest version of an operator that takes a kind, as TFLite's tools/versioning/op_version.cc counts; else 1."""


def version_of(operator: str, dtype: DType) -> int:
    """Return the lowest version of an operator on activations of a type; 1 for types without a row."""
    kind = INT16 if dtype is DType.INT16 else INT8
    return VERSIONS.get(operator, {}).get(kind, 1) if dtype in (DType.INT8, DType.INT16) else 1


def rule_of(node: Node) -> Rule | None:
    """Return the rule of a node's operator, of tflq or of another package; None if it has no integer kernel."""
    return RULES.get(node.operator) or find_rule("tflite", node, Rule)


SPECIFICATION: dict[str, object] = {
    "activations": {INT8: "int8, any zero point", INT16: "int16, zero point 0"},
    "weights": "int8, -127..127, zero point 0, a scale for each output channel",
    "bias": {INT8: "int32", INT16: "int64"},
    "operators": {
        kind: {
            operator: {
                "same_scale": rule.same,
                "fixed_output": rule.fixed.get(kind),
                "channel_axis": rule.filter.axis if rule.filter else None,
            }
            for operator, rule in sorted(RULES.items())
            if kind in rule.kinds
        }
        for kind in INTEGER_KINDS
    },
}
"""The target's facts as data."""
