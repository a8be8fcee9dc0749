"""TFLite's operators without weights -> Compass's layers: pairs, functions, comparisons (docs/aipu.md, 5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.aipu.fusions import Fusion, sides
from tflq.converters.aipu.translation import FUSED, Translation, as_written
from tflq.graph import Attributes, DType, Node
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
    "sign": "sign",
    "sin": "sine",
    "sqrt": "sqrt",
    "square": "square",
}
_COMPARISONS = {
    "equal": "EQUAL",
    "greater": "GREATER",
    "greater_equal": "GREATER_EQUAL",
    "less": "LESS",
    "less_equal": "LESS_EQUAL",
    "logical_and": "AND",
    "logical_or": "OR",
    "not_equal": "NOT_EQUAL",
}
_LIMITS = {"relu_0_to_1": (0.0, 1.0), "relu_n1_to_1": (-1.0, 1.0)}


def _pair(work: Translation, node: Node) -> None:
    """Equal shapes, and MAX and MIN, whose constant is repeated: Eltwise; others Add, Sub, Mul as they are."""
    fused: Attribute = FUSED[node.attributes.text("fused_activation_function", "none")]
    shapes = [work.shape(t) for t in node.inputs]
    if shapes[0] == shapes[1] or node.operator in ("maximum", "minimum"):
        keys = {"with_activation": fused, "method": _PAIRS[node.operator]}
        work.add(node, "eltwise", work.repeated(node, node.outputs), node.outputs, keys)
    else:
        work.append(node, node.operator, {}, Attributes({"with_activation": fused}), reads=2)


def _sum_of_many(work: Translation, node: Node) -> None:
    """One Eltwise for each operand but the first; those between take the range of the whole."""
    keys: dict[str, Attribute] = {"with_activation": "NONE", "method": "ADD"}
    (t,) = node.outputs
    total, *others, last = (work.operand(i) for i in node.inputs)
    for number, other in enumerate(others):
        suffix = f"_expand_{number}" if number else ""
        total = work.add_between(node, "eltwise", (total, other), work.shape(t), t, keys, suffix)
    work.add(node, "eltwise", (total, last), (t,), keys, suffix=f"_expand_{len(others)}" if others else "")


def _method(work: Translation, node: Node) -> None:
    method = _METHODS[node.operator]
    keys: dict[str, Attribute] = {"method": method}
    if method == "ELU":
        keys["alpha"] = 1.0
    work.append(node, "activation", {}, Attributes(keys))


def _named(work: Translation, node: Node) -> None:
    suffix = "_sqrt" if node.operator == "rsqrt" else ""
    inputs = [work.operand(t) for t in node.inputs]
    work.add(node, _NAMES[node.operator], inputs, node.outputs, suffix=suffix)


def _leaky(work: Translation, node: Node) -> None:
    slope = as_written(node.attributes.real("alpha"))
    keys: dict[str, Attribute] = {
        "method": "LEAKYRELU",
        "negative_slope_type": "float32",
        "negative_slope_value": slope,
    }
    work.append(node, "activation", {}, Attributes(keys))


def _prelu(work: Translation, node: Node) -> None:
    slopes = np.asarray(work.source.tensors[node.inputs[1]].data)
    work.append(node, "activation", {"negative_slope": slopes}, Attributes({"method": "PRELU"}))


def _gelu(work: Translation, node: Node) -> None:
    approximate = "TANH" if node.attributes.boolean("approximate", False) else "NONE"
    work.append(node, "activation", {}, Attributes({"method": "GELU", "approximate": approximate}))


def _limited(work: Translation, node: Node) -> None:
    low, high = _LIMITS[node.operator]
    work.append(node, "activation", {}, Attributes({"method": "CLIP", "clip_min": low, "clip_max": high}))


def _comparison(work: Translation, node: Node) -> None:
    """A constant is repeated to the shape of the result."""
    work.add(node, "logical", work.repeated(node, node.outputs), node.outputs, {"method": _COMPARISONS[node.operator]})


def _logical_not(work: Translation, node: Node) -> None:
    work.append(node, "logical", {}, Attributes({"method": "NOT"}))


def _quotient(work: Translation, node: Node) -> None:
    inputs = [work.operand(t) for t in node.inputs]
    if node.operator == "div":
        work.add(node, "div", inputs, node.outputs)
        return
    quotient = work.add_between(node, "div", inputs, work.shape(node.outputs[0]), node.outputs[0])
    work.add(node, "floor", (quotient,), node.outputs, suffix="_floor")


def _squared_difference(work: Translation, node: Node) -> None:
    work.append(node, "squared_difference", {}, reads=2)


def _mat_mul(work: Translation, node: Node) -> None:
    keys = {f"trans_{side}": node.attributes.boolean(key, False) for side, key in (("a", "adj_x"), ("b", "adj_y"))}
    work.append(node, "mat_mul", {}, Attributes(keys), reads=2)


def _cast(work: Translation, node: Node) -> None:
    to = work.source.tensors[node.outputs[0]].dtype
    keys = {"to_dtype": (DType.UINT8 if to is DType.BOOL else to).value}
    work.append(node, "cast", {}, Attributes({**keys, "clip_mode": "TRUNCATION", "ignore_scale_zp": True}))


def _select(work: Translation, node: Node) -> None:
    work.add(node, "where", work.repeated(node, node.outputs), node.outputs)


def _log_softmax(work: Translation, node: Node) -> None:
    work.append(node, "log_softmax", {}, Attributes({"axis": len(work.shape(node.inputs[0])) - 1}))


def softplus(work: Translation, fusion: Fusion) -> None:
    """Add Activation SOFTPLUS for log(exp(x) + 1)."""
    first, last = (work.source.nodes[fusion.nodes[i]] for i in (0, -1))
    work.add(last, "activation", (work.operand(first.inputs[0]),), last.outputs, {"method": "SOFTPLUS"})


def clip(work: Translation, fusion: Fusion) -> None:
    """Add Activation CLIP for minimum and maximum by numbers."""
    first, last = (work.source.nodes[n] for n in fusion.nodes)
    limits = {
        n.operator: as_written(np.asarray(work.source.tensors[sides(work.source, n)[1]].data).reshape(-1)[0])
        for n in (first, last)
    }
    keys: dict[str, Attribute] = {"method": "CLIP", "clip_min": limits["maximum"], "clip_max": limits["minimum"]}
    work.add(last, "activation", (work.operand(sides(work.source, first)[0]),), last.outputs, keys)


OTHERS: dict[str, Rule] = {
    **dict.fromkeys(_PAIRS, _pair),
    **dict.fromkeys(_METHODS, _method),
    **dict.fromkeys(_NAMES, _named),
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_LIMITS, _limited),
    "add_n": _sum_of_many,
    "batch_matmul": _mat_mul,
    "cast": _cast,
    "div": _quotient,
    "floor_div": _quotient,
    "gelu": _gelu,
    "leaky_relu": _leaky,
    "log_softmax": _log_softmax,
    "logical_not": _logical_not,
    "prelu": _prelu,
    "select": _select,
    "select_v2": _select,
    "squared_difference": _squared_difference,
}
COMPARISONS = tuple(_COMPARISONS)
PAIRS = tuple(_PAIRS)
