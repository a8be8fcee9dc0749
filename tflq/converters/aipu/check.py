"""Which operators of a float TFLite graph the target cannot take, and why: all at once, each with its way out."""

from __future__ import annotations

from tflq.converters.aipu.translate import RULES
from tflq.converters.aipu.translate_others import CONSTANT_SECOND, PAIRS, pair_problem
from tflq.converters.aipu.translation import FUSED
from tflq.graph import ABSENT, Graph, Node
from tflq.interpreter.kernels.aipu.softmax import LARGEST_AXIS

_FILTERS = ("conv_2d", "depthwise_conv_2d", "fully_connected")
_FUSING = (*_FILTERS, "add", "sub", "mul")


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, in order of the file."""
    reasons = ((graph.where(i), _reason(graph, node)) for i, node in enumerate(graph.nodes))
    return tuple(f"{where}: {reason}" for where, reason in reasons if reason)


def _reason(graph: Graph, node: Node) -> str:
    if node.custom_code:
        return f"custom operator '{node.custom_code}' has no mapping; replace it or cut the graph in front of it"
    if node.operator not in RULES:
        return f"no mapping to Zhouyi; it takes {', '.join(sorted(RULES))}"
    x = graph.tensors[node.inputs[0]]
    computed = node.inputs if node.operator == "concatenation" else node.inputs[:1]
    if any(graph.tensors[t].is_constant for t in computed) and node.operator not in PAIRS:
        return "its input is a constant; fold it"
    if node.operator in CONSTANT_SECOND and not graph.tensors[node.inputs[1]].is_constant:
        return "its second input is computed at run time; allowed is a constant"
    fused = node.attributes.text("fused_activation_function", "none")
    if fused != "none" and (node.operator not in _FUSING or fused not in FUSED):
        return f"fused activation {fused}; allowed is relu or relu6 in {', '.join(_FUSING)}: make it an operator"
    if node.operator in _FILTERS:
        return _filter_reason(graph, node)
    if node.operator in PAIRS:
        return pair_problem(graph, node)
    if node.operator == "resize_nearest_neighbor" and node.attributes.boolean("align_corners", False):
        return "align_corners, whose rounding in Compass is not known; allowed are the other two rules of coordinates"
    if node.operator == "softmax":
        return _softmax_reason(node, x.shape[-1] if x.shape else 1)
    return ""


def _filter_reason(graph: Graph, node: Node) -> str:
    if not all(graph.tensors[t].is_constant for t in node.inputs[1:] if t != ABSENT):
        return "weights or bias are computed at run time; allowed are constants"
    weights = graph.tensors[node.inputs[1]]
    if node.operator == "fully_connected" and graph.tensors[node.outputs[0]].shape[-1:] != weights.shape[:1]:
        return f"output {graph.tensors[node.outputs[0]].shape} does not end in the {weights.shape[0]} outputs"
    return ""


def _softmax_reason(node: Node, terms: int) -> str:
    if node.attributes.real("beta", 1.0) != 1.0:
        return f"beta is {node.attributes.real('beta')}; allowed is 1: multiply in front of it"
    return f"softmax over {terms} terms; allowed are {LARGEST_AXIS}" if terms > LARGEST_AXIS else ""
