"""Where NNTool's integers are not the right result: one line a layer (docs/gap9.md, 17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.converters.gap9.check import vendor_failure
from tflq.converters.gap9.emit.constants import filter_integers
from tflq.converters.gap9.operators import FILTERS
from tflq.graph import Affine, Graph, Node
from tflq.interpreter.kernels.gap9.expressions.kernel import ExpressionParams


def departures_of(graph: Graph) -> dict[str, str]:
    """Return name of a node -> why NNTool's result, which the chip computes, is not the right one.

    Args:
        graph: lowered.
    """
    found = {}
    for node in graph.nodes:
        rule = _RULES.get(node.operator)
        reason = node.attributes.text("departure", "") or (rule(graph, node) if rule is not None else "")
        if isinstance(node.params, ExpressionParams):
            reason = "; ".join(filter(None, (reason, *node.params.flaws)))
        if reason:
            found[node.name] = reason
    return found


def _sum(_graph: Graph, _node: Node) -> str:
    return "NNTool's SUM is 1/128 of the sum (17.2)"


def _tile(graph: Graph, node: Node) -> str:
    shape, times = graph.tensors[node.inputs[0]].shape, graph.tensors[node.inputs[1]].data
    repeats = times is not None and any(n > 1 and size > 1 for n, size in zip(times.tolist(), shape, strict=False))
    return "NNTool repeats each element in its place (17.3)" if repeats else ""


def _average_pool(graph: Graph, node: Node) -> str:
    wide = graph.tensors[node.inputs[0]].affine.bits == 16
    return "NNTool's product of the sum and 65536/n wraps in 32 bits (17.4)" if wide else ""


def _hard_swish(graph: Graph, node: Node) -> str:
    wide = graph.tensors[node.outputs[0]].affine.bits == 16
    return "NNTool's product wraps in 32 bits (17.4)" if wide else ""


def _sub(graph: Graph, node: Node) -> str:
    types = [graph.tensors[t].quantisation for t in node.inputs]
    shifted = any(isinstance(q, Affine) and q.zero_point.any() for q in types)
    return "NNTool keeps + on both zero points (17.5)" if shifted else ""


def _filter(_graph: Graph, node: Node) -> str:
    channels = filter_integers(node).overflowing
    if not channels:
        return ""
    named = ", ".join(map(str, channels[:4])) + (", ..." if len(channels) > 4 else "")
    return f"NNTool's product with M can wrap in 32 bits in {len(channels)} channels: {named} (17.6)"


_RULES: Mapping[str, Callable[[Graph, Node], str]] = {
    "sum": _sum,
    "tile": _tile,
    "gather": vendor_failure,
    "average_pool_2d": _average_pool,
    "hard_swish": _hard_swish,
    "sub": _sub,
    **dict.fromkeys(FILTERS, _filter),
}
