"""TFLite's operators without weights -> Compass's layers: pairs, functions, layout (docs/aipu.md, 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.aipu.translation import FUSED, Translation
from tflq.graph import Attributes, Graph, Node
from tflq.graph.attributes import Attribute

Rule = Callable[[Translation, Node], None]

_PAIRS = {"add": "ADD", "sub": "SUB", "mul": "MUL", "maximum": "MAX", "minimum": "MIN"}
_METHODS = {
    "elu": "ELU",
    "hard_swish": "HARDSWISH",
    "logistic": "SIGMOID",
    "relu": "RELU",
    "relu6": "RELU6",
    "tanh": "TANH",
}
_NAMES = {
    "abs": "abs",
    "ceil": "ceil",
    "cos": "cosine",
    "exp": "exp",
    "floor": "floor",
    "log": "log",
    "neg": "negative",
    "round": "round",
    "rsqrt": "rsqrt",
    "sin": "sine",
    "sqrt": "sqrt",
    "square": "square",
}


def pair_problem(graph: Graph, node: Node) -> str:
    """Say why a pair cannot be mapped; empty where it can."""
    a, b = (graph.tensors[t] for t in node.inputs)
    if a.is_constant or b.is_constant:
        return "one operand is a constant, which Compass folds into a BatchNorm: allowed are two computed operands"
    if a.shape != b.shape and node.operator in ("maximum", "minimum"):
        return f"shapes {a.shape} and {b.shape} differ; allowed are equal ones"
    return ""


def _pair(work: Translation, node: Node) -> None:
    a, b = (work.source.tensors[t].shape for t in node.inputs)
    fused: Attribute = FUSED[node.attributes.text("fused_activation_function", "none")]
    if a == b:
        keys = Attributes({"with_activation": fused, "method": _PAIRS[node.operator]})
        work.append(node, "eltwise", {}, keys, reads=2)
    else:
        work.append(node, node.operator, {}, Attributes({"with_activation": fused}), reads=2)


def _method(work: Translation, node: Node) -> None:
    method = _METHODS[node.operator]
    keys: dict[str, Attribute] = {"method": method}
    if method == "ELU":
        keys["alpha"] = 1.0
    work.append(node, "activation", {}, Attributes(keys))


def _named(work: Translation, node: Node) -> None:
    work.append(node, _NAMES[node.operator], {})


def _leaky(work: Translation, node: Node) -> None:
    slope = node.attributes.real("alpha")
    keys: dict[str, Attribute] = {
        "method": "LEAKYRELU",
        "negative_slope_type": "float32",
        "negative_slope_value": slope,
    }
    work.append(node, "activation", {}, Attributes(keys))


def _concatenation(work: Translation, node: Node) -> None:
    rank = len(work.source.tensors[node.outputs[0]].shape)
    axis = Attributes({"axis": node.attributes.integer("axis") % rank})
    work.append(node, "concat", {}, axis, reads=len(node.inputs))


def _pad(work: Translation, node: Node) -> None:
    pads = np.asarray(work.source.tensors[node.inputs[1]].data, np.int64)
    work.append(node, "pad", {}, Attributes({"constant_value": 0.0, "mode": "CONSTANT", "pads": pads}))


def _transpose(work: Translation, node: Node) -> None:
    order = work.source.tensors[node.inputs[1]].data
    work.append(node, "transpose", {}, Attributes({"perm": tuple(int(a) for a in np.asarray(order, np.int64))}))


def _resize(work: Translation, node: Node) -> None:
    is_half = node.attributes.boolean("half_pixel_centers", False)
    keys: dict[str, Attribute] = {
        "method": "NEAREST",
        "size": work.source.tensors[node.outputs[0]].shape,
        "mode": "TF_HALF_PIXEL_FOR_NN" if is_half else "ASYMMETRIC",
        "antialias": False,
        "exclude_outside": False,
        "nearest_mode": "FLOOR",
    }
    work.append(node, "resize", {}, Attributes(keys))


OTHERS: dict[str, Rule] = {
    **dict.fromkeys(_PAIRS, _pair),
    **dict.fromkeys(_METHODS, _method),
    **dict.fromkeys(_NAMES, _named),
    "concatenation": _concatenation,
    "leaky_relu": _leaky,
    "pad": _pad,
    "resize_nearest_neighbor": _resize,
    "transpose": _transpose,
}
PAIRS = tuple(_PAIRS)
CONSTANT_SECOND = ("pad", "resize_nearest_neighbor", "transpose")
