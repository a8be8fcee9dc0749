"""Which nodes run in integers, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.converters.tflite_quantizer.rules import FUSED, HYBRID, INTEGER_KINDS, LEFT_IN_FLOAT, Rule, rule_of
from tflq.graph import ABSENT, DType, Graph, Node, Tensor
from tflq.graph.operators import LINEAR_OPERATORS
from tflq.graph.rewriting import fused_activation

PLAIN = "plain"
"""Nodes without real numbers: shapes, indices, booleans."""


@dataclass(frozen=True)
class Choice:
    """How a node runs.

    Attributes:
        kind: "int8", "int16x8", "weights", "hybrid", "float16", "float", or PLAIN.
        reason: why it is not what was asked for; empty where it is.
    """

    kind: str
    reason: str = ""

    @property
    def is_integer(self) -> bool:
        """Whether its activations are integers."""
        return self.kind in INTEGER_KINDS


def choose_kinds(graph: Graph, options: Mapping[str, LayerOptions]) -> list[Choice]:
    """Return one choice for each node of a float view."""
    return [_choose(graph, node, options[node.name]) for node in graph.nodes]


def _choose(graph: Graph, node: Node, options: LayerOptions) -> Choice:
    operands = [graph.tensors[t] for t in (*node.inputs, *node.outputs) if t != ABSENT]
    if not any(tensor.dtype.is_floating for tensor in operands):
        return Choice(PLAIN)
    if options.kind == "float":
        return Choice("float")
    reason = (
        _why_weights(graph, node, options) or _why_bits(node, options) or _why_integer(operands, node, options.kind)
    )
    return Choice("float", reason) if reason else Choice(options.kind)


def _why_weights(graph: Graph, node: Node, options: LayerOptions) -> str:
    """Return why weights cannot be int8; empty for operators without weights that do not need any."""
    rule, kind = rule_of(node) or Rule(), options.kind
    if kind == "float16":
        return "" if float_constants(graph, node) else "no constants"
    if rule.filter is None:
        return "" if kind in INTEGER_KINDS else "no weights"
    weights = graph.tensors[node.inputs[rule.filter.weights]]
    if weights.data is None or weights.dtype is not DType.FLOAT32:
        return "its weights are computed at run time" if weights.data is None else f"{weights.dtype.value} weights"
    bias = node.inputs[rule.filter.bias] if rule.filter.bias < len(node.inputs) else ABSENT
    if kind in INTEGER_KINDS and bias != ABSENT and graph.tensors[bias].data is None:
        return "its bias is computed at run time"
    if kind == "hybrid" and node.operator not in HYBRID:
        return "no hybrid kernel"
    if kind not in INTEGER_KINDS and weights.size < options.least_weights:
        return f"{weights.size} weights, fewer than {options.least_weights}"
    return ""


def _why_bits(node: Node, options: LayerOptions) -> str:
    """Return why weights cannot have the bits that are asked for; empty for operators without weights."""
    if options.kind == "float16":
        return ""
    has_weights = (rule_of(node) or Rule()).filter is not None
    if not has_weights or options.weight_bits == 8 or node.operator in NARROW.get(options.kind, ()):
        return ""
    return f"no {options.kind} kernel with weights of {options.weight_bits} bits"


def float_constants(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the constants of float32 that a node reads."""
    read = (t for t in node.inputs if t != ABSENT and graph.tensors[t].data is not None)
    return tuple(t for t in read if graph.tensors[t].dtype is DType.FLOAT32)


NARROW = {
    "hybrid": ("conv_2d", "fully_connected"),
    "weights": ("conv_2d", "fully_connected"),
    "int8": LINEAR_OPERATORS,
    "int16x8": ("fully_connected",),
}
"""Operators with kernels for int4 weights; for a DEQUANTIZE behind them those that ai-edge-quantizer's policy has."""


def _why_integer(operands: list[Tensor], node: Node, kind: str) -> str:
    if kind not in INTEGER_KINDS:
        return ""
    rule = rule_of(node)
    if rule is None or kind not in rule.kinds:
        return LEFT_IN_FLOAT.get(node.operator, f"no {kind} kernel")
    fused = fused_activation(node)
    if fused not in FUSED:
        return f"no {kind} kernel with fused {fused}"
    other = [t for t in operands if t.dtype.is_floating and t.dtype is not DType.FLOAT32]
    if other:
        return f"operand '{other[0].name}' is {other[0].dtype.value}"
    state = [t for t in operands if t.is_variable]
    return f"operand '{state[0].name}' keeps its value between invocations" if state else ""
