"""What each operator may be asked for, as ai-edge-quantizer's default policy has it, and how its tensors share scales.

Operators have that package's names, which are TFLite's but for CONV_2D_TRANSPOSE (TRANSPOSE_CONV), and INPUT and OUTPUT
for the borders of the graph. Source: ai-edge-quantizer 0.10 (Apache-2.0), default_policy.py, algorithm_manager.py and
uniform_quantize/common_quantize.py.
"""

from __future__ import annotations

from tflq.converters.tflite_quantiser.recipes.rules import (
    CHANNELWISE,
    FLOAT_CASTING,
    GPTQ,
    HADAMARD,
    MIN_MAX,
    MSE,
    OCTAV,
    OSCAR,
    TENSORWISE,
    Config,
    Widths,
)

INPUT, OUTPUT = "INPUT", "OUTPUT"
_BORDERS = frozenset({INPUT, OUTPUT})

WEIGHT_AXIS: dict[str, int | None] = {
    "CONV_2D": 0,
    "CONV_2D_TRANSPOSE": 0,
    "FULLY_CONNECTED": 0,
    "EMBEDDING_LOOKUP": 0,
    "DEPTHWISE_CONV_2D": 3,
    "BATCH_MATMUL": None,  # its columns: the last axis, or the one before where y is transposed
}
"""Operators whose constants are weights -> axis of the channels."""

BIAS = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "CONV_2D_TRANSPOSE": 3}
"""Operators with a bias -> its position; their weights stand at 1."""

AS_INPUT = frozenset(
    (
        *("RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "SPLIT", "UNPACK", "GATHER", "GATHER_ND", "BROADCAST_TO"),
        *("AVERAGE_POOL_2D", "MAX_POOL_2D", "PAD", "MIRROR_PAD", "SPACE_TO_DEPTH", "REDUCE_MIN"),
        *("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
    )
)
"""Outputs take the quantisation of the input."""

AS_OUTPUT = frozenset({"CONCATENATION", "PACK", "MAXIMUM", "PADV2", "SELECT", "SELECT_V2", "DYNAMIC_UPDATE_SLICE"})
"""All inputs take the quantisation of the output."""

FIXED = {
    "SOFTMAX": {8: (2.0**-8, -128), 16: (2.0**-15, 0)},
    "LOGISTIC": {8: (2.0**-8, -128), 16: (2.0**-15, 0)},
    "TANH": {8: (2.0**-7, 0), 16: (2.0**-15, 0)},
}
"""Operator -> bits -> scale and zero point of the output that its kernel demands."""

_FREE = frozenset({"ADD", "SUB", "MUL", "DIV", "MEAN", "SUM", "GELU", "RSQRT", "SQRT", "EQUAL", "NOT_EQUAL", "RELU"})
_STATIC_16 = (WEIGHT_AXIS.keys() | AS_INPUT | AS_OUTPUT | FIXED.keys() | _FREE | _BORDERS) - {
    "EMBEDDING_LOOKUP",
    "SPACE_TO_DEPTH",
}
_STATIC_8 = _STATIC_16 | {"SPACE_TO_DEPTH", "SQUARED_DIFFERENCE", "HARD_SWISH"}
_NARROW = frozenset({"CONV_2D", "FULLY_CONNECTED"})
_WITH_WEIGHTS = frozenset(WEIGHT_AXIS)
_CONVOLUTIONS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D_TRANSPOSE"})
_LOOKED_UP = frozenset({"FULLY_CONNECTED", "EMBEDDING_LOOKUP"})

OPERATIONS = _STATIC_8 | _WITH_WEIGHTS
"""Operators that a recipe may name."""

_WEIGHTS_OF = {  # activation bits, weight bits, computed in integers -> operators with weights; None: float32
    (8, 8, True): _WITH_WEIGHTS - {"EMBEDDING_LOOKUP"},
    (16, 8, True): _WITH_WEIGHTS - {"EMBEDDING_LOOKUP"},
    (8, 4, True): _NARROW,
    (16, 4, True): _NARROW,
    (None, 8, True): _WITH_WEIGHTS,
    (None, 4, True): _NARROW | _LOOKED_UP,
    (None, 2, True): _NARROW | _LOOKED_UP,
    (None, 8, False): _WITH_WEIGHTS,
    (None, 4, False): _NARROW | _LOOKED_UP | {"BATCH_MATMUL"},
}
_BLOCKS_OF = {4: _LOOKED_UP, 2: frozenset({"FULLY_CONNECTED"})}

ALGORITHMS = {
    MIN_MAX: OPERATIONS,
    OCTAV: OPERATIONS,
    MSE: _CONVOLUTIONS | _LOOKED_UP,
    FLOAT_CASTING: _CONVOLUTIONS | _LOOKED_UP,
    GPTQ: frozenset({"FULLY_CONNECTED"}),
    OSCAR: frozenset({"FULLY_CONNECTED"}),
    HADAMARD: _LOOKED_UP,
}
"""Algorithm -> operators that it is registered for."""


def operation_of(operator: str) -> str:
    """Return ai-edge-quantizer's name of a TFLite operator."""
    return "CONV_2D_TRANSPOSE" if operator == "transpose_conv" else operator.upper()


def why_not(algorithm: str, operation: str, config: Config) -> str:
    """Return why a rule passes an operator by; empty where it is carried out."""
    if operation not in ALGORITHMS[algorithm]:
        return f"{algorithm} is not for {operation}"
    if algorithm == FLOAT_CASTING:
        weights = config.weights
        is_half = weights is not None and (weights.bits, weights.dtype) == (16, "FLOAT")
        good = is_half and config.activations is None and not config.is_integer
        return "" if good else f"{algorithm} takes float16 weights only"
    if config.activations is not None and not _is_activation(config.activations, operation, config.is_integer):
        return f"no kernel of {operation} with such activations"
    if operation not in _WITH_WEIGHTS:
        return "" if config.activations is not None else "no weights"
    return _why_weights(operation, config)


def _is_activation(widths: Widths, operation: str, is_integer: bool) -> bool:
    if not is_integer or widths.granularity != TENSORWISE:
        return False
    if widths.dtype == "UINT":
        return operation in _BORDERS and widths.bits == 8 and not widths.symmetric
    if widths.dtype != "INT" or (widths.bits != 8 and not (widths.bits == 16 and widths.symmetric)):
        return False
    return operation in (_STATIC_8 if widths.bits == 8 else _STATIC_16) or operation in _WITH_WEIGHTS


def _why_weights(operation: str, config: Config) -> str:
    weights, bits = config.weights, None if config.activations is None else config.activations.bits
    if weights is None or weights.dtype != "INT":
        return f"{operation} needs integer weights"
    if weights.granularity in (TENSORWISE, CHANNELWISE):
        names = _WEIGHTS_OF.get((bits, weights.bits, config.is_integer), frozenset())
    else:
        names = _BLOCKS_OF.get(weights.bits, frozenset()) if bits is None and config.is_integer else frozenset()
    if operation not in names or not (weights.symmetric or not config.is_integer):
        return f"no {config.kind} kernel of {operation} with weights of {weights.bits} bits, {weights.granularity}"
    return ""
