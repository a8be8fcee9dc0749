"""Compass's layers: the names of their types, and which type of integers their outputs get (docs/aipu.md, 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.aipu.eltwise import method_of
from tflq.interpreter.kernels.aipu.scales import code_limits, is_signed, offset_of


class Signs(Enum):
    """Where the type of an output comes from."""

    PASS = "the input's own type"
    OWN = "the output's range"
    FIXED = "a rule of its own (outputs.py)"


Signed = Callable[[Node, Operands], bool]
"""Whether the codes of an output are signed; the inputs of the operands have their types."""


@dataclass(frozen=True)
class LayerRule:
    """What the quantiser knows of a layer.

    Attributes:
        type: as in the IR.
        signs: where the output's type comes from.
        signed: for Signs.OWN.
        is_linear: whether it has weights and biases on the scale of its input.
        passed: outputs that have the input's own type all the same.
        keeps_whole: whether whole numbers in give whole numbers out, at scale 1.
        needs_range: whether a rule of its own reads the output's range.
    """

    type: str
    signs: Signs
    signed: Signed = lambda _node, _operands: True
    is_linear: bool = False
    passed: tuple[int, ...] = ()
    keeps_whole: bool = False
    needs_range: bool = False


UNSIGNED_ACTIVATIONS = ("RELU", "RELU6")
UNSIGNED_METHODS = (*UNSIGNED_ACTIVATIONS, "SIGMOID", "SOFTPLUS")


def _never(_node: Node, _operands: Operands) -> bool:
    return False


def _unless_rectified(node: Node, _operands: Operands) -> bool:
    fused = node.attributes.text("with_activation", "NONE")
    return node.attributes.real("clip_min") < 0 if fused == "CLIP" else fused not in UNSIGNED_ACTIVATIONS


def _always(_node: Node, _operands: Operands) -> bool:
    return True


def _activation(node: Node, _operands: Operands) -> bool:
    method = node.attributes.text("method")
    if method == "CLIP":
        return node.attributes.real("clip_min") < 0
    return method not in UNSIGNED_METHODS


def follows_input(_node: Node, operands: Operands) -> bool:
    """Signed where any input that is no constant is."""
    return any(is_signed(t) for t in operands.inputs if t is not None and not t.is_constant)


def _pair(node: Node, operands: Operands) -> bool:
    rectified = not _unless_rectified(node, operands)
    is_difference = method_of(node) == "SUB"
    return not rectified and (is_difference or any(is_signed(t) for t in operands.inputs if t is not None))


def _curve(type_name: str, signed: Signed) -> LayerRule:
    return LayerRule(type_name, Signs.OWN, signed)


def _layout(type_name: str) -> LayerRule:
    return LayerRule(type_name, Signs.PASS)


def _normalised(_node: Node, operands: Operands) -> bool:
    x = operands.input(0)
    return code_limits(x)[0] + offset_of(x) < 0


def _segmented(_node: Node, operands: Operands) -> bool:
    return is_signed(operands.input(0))


def _scattered(_node: Node, operands: Operands) -> bool:
    return is_signed(operands.input(0)) or is_signed(operands.input(2))


def _whole(type_name: str, signed: Signed) -> LayerRule:
    return LayerRule(type_name, Signs.OWN, signed, keeps_whole=True)


RULES = {
    "abs": LayerRule("Abs", Signs.OWN, _never),
    "add": _whole("Add", _pair),
    "arg_min_max": LayerRule("ArgMinMax", Signs.FIXED),
    "batch_norm": LayerRule("BatchNorm", Signs.OWN, _unless_rectified, True),
    "batch_to_depth": _layout("BatchToDepth"),
    "batch_to_space": _layout("BatchToSpace"),
    "bias_add": LayerRule("BiasAdd", Signs.OWN),
    "bounding_box": LayerRule("BoundingBox", Signs.FIXED),
    "bnll": _curve("BNLL", _never),
    "cast": LayerRule("Cast", Signs.FIXED),
    "ceil": _curve("Ceil", follows_input),
    "concat": LayerRule("Concat", Signs.OWN, follows_input),
    "constant": LayerRule("Constant", Signs.OWN),
    "conv_transpose": LayerRule("ConvTranspose", Signs.OWN, _unless_rectified, True),
    "cosine": LayerRule("Cosine", Signs.FIXED, needs_range=True),
    "count": LayerRule("Count", Signs.FIXED),
    "crelu": LayerRule("CRELU", Signs.OWN, _never),
    "crop": _layout("Crop"),
    "ctc_greedy_decoder": LayerRule("CTCGreedyDecoder", Signs.FIXED),
    "cumulate": _whole("Cumulate", follows_input),
    "data_stride": _layout("DataStride"),
    "depth_to_space": _layout("DepthToSpace"),
    "detection_output": LayerRule("DetectionOutput", Signs.FIXED),
    "div": LayerRule("Div", Signs.OWN, follows_input),
    "eltwise": _whole("Eltwise", _pair),
    "exp": _curve("Exp", _never),
    "filter": LayerRule("Filter", Signs.FIXED),
    "floor": _curve("Floor", follows_input),
    "gather": _layout("Gather"),
    "gather_nd": _layout("GatherND"),
    "in_top_k": LayerRule("InTopK", Signs.FIXED),
    "log": _curve("Log", _always),
    "log_softmax": LayerRule("LogSoftmax", Signs.FIXED),
    "lrn": LayerRule("LRN", Signs.OWN, follows_input),
    "logical": LayerRule("Logical", Signs.FIXED),
    "mat_mul": LayerRule("MatMul", Signs.OWN, follows_input),
    "moments": LayerRule("Moments", Signs.OWN, _never, passed=(0,)),
    "max_pooling_with_arg_max": LayerRule("MaxPoolingWithArgMax", Signs.FIXED),
    "max_roi_pool": _layout("MaxRoiPool"),
    "mul": _whole("Mul", _pair),
    "negative": LayerRule("Negative", Signs.FIXED),
    "nms": LayerRule("NMS", Signs.FIXED),
    "normalization": LayerRule("Normalization", Signs.OWN, _normalised),
    "segment_reduce": LayerRule("SegmentReduce", Signs.OWN, _segmented),
    "squared_difference": LayerRule("SquaredDifference", Signs.FIXED, needs_range=True),
    "one_hot": LayerRule("OneHot", Signs.FIXED),
    "pow": LayerRule("Pow", Signs.FIXED, needs_range=True),
    "reverse_sequence": _layout("ReverseSequence"),
    "scatter_nd": _whole("ScatterND", _scattered),
    "top_k": LayerRule("TopK", Signs.FIXED),
    "pad": _layout("Pad"),
    "proposal": LayerRule("Proposal", Signs.FIXED),
    "pyramid_roi_align": LayerRule("PyramidROIAlign", Signs.FIXED),
    "reduce": _whole("Reduce", follows_input),
    "repeat": _layout("Repeat"),
    "resize": _layout("Resize"),
    "roi_align": _layout("RoiAlign"),
    "round": _curve("Round", follows_input),
    "rsqrt": _curve("Rsqrt", _never),
    "sign": LayerRule("Sign", Signs.FIXED),
    "sine": LayerRule("Sine", Signs.FIXED, needs_range=True),
    "slice": _layout("Slice"),
    "space_to_batch": _layout("SpaceToBatch"),
    "space_to_depth": _layout("SpaceToDepth"),
    "split": _layout("Split"),
    "sqrt": _curve("Sqrt", _never),
    "square": _curve("Square", _never),
    "sub": _whole("Sub", _pair),
    "tile": _layout("Tile"),
    "transpose": _layout("Transpose"),
    "where": _whole("Where", follows_input),
    "upsample_by_index": _layout("UpsampleByIndex"),
    "activation": LayerRule("Activation", Signs.OWN, _activation),
    "convolution": LayerRule("Convolution", Signs.OWN, _unless_rectified, True),
    "depthwise_conv": LayerRule("DepthwiseConv", Signs.OWN, _unless_rectified, True),
    "fully_connected": LayerRule("FullyConnected", Signs.OWN, _unless_rectified, True),
    "pooling": LayerRule("Pooling", Signs.PASS),
    "reshape": LayerRule("Reshape", Signs.PASS),
    "softmax": LayerRule("Softmax", Signs.OWN, _never),
}
OPERATORS = {rule.type: operator for operator, rule in RULES.items()}
ARITHMETIC = "aipu"
