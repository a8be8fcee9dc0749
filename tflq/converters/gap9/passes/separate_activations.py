"""Fused activations become nodes of their own; ranges that begin at 0 add a ReLU; ReLUs that do nothing go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.operators import LSTM, POOLS, RECTIFIERS, departing, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.patterns import only_reader
from tflq.converters.passes.rewrite import derived_tensor, redirect, with_attributes
from tflq.graph import Attributes, Graph, Node, Range, Tensor, pruned
from tflq.graph.operators import LINEAR_OPERATORS
from tflq.graph.rewriting import fused_activation

_IMPLIED = (*LINEAR_OPERATORS, *POOLS, "add", "sub", "mul", "div")
"""Operators whose range from 0 on counts as a ReLU; never a mean or a concatenation."""
Operand = tuple[int, int]
"""(node, input position)."""
_KEPT = "NNTool may keep the ReLU that its range implies, or fails on it (17.19)"
_LOST = "NNTool leaves out the activation of a fully connected layer that no operator reads (17.30)"
_KEEP_BOUND = (*POOLS, "concatenation", "reshape", "squeeze", "expand_dims", "transpose")
_KEEP_SIGN = (*_KEEP_BOUND, "add", "mul", "div")


def separate_activations(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with each fused or implied activation as a node `<layer>_activation`.

    The activation writes the tensor that the layer wrote; the layer writes a new one with the same range. A fully
    connected layer that no operator reads has no implied one, and in NNTool, and with numerics=nntool, no fused one.
    """
    result = graph.copy()
    result.nodes = []
    read = graph.consumers()
    for node in graph.nodes:
        is_last = node.operator == "fully_connected" and node.outputs[0] not in read
        if is_last and fused_activation(node) != "none":
            node = departing(node, _LOST)
            if options[layer_of(node)].numerics == "nntool":
                node = with_attributes(node, fused_activation_function="none")
        activation = _activation(node, graph.tensors[node.outputs[0]], is_last)
        if activation is None:
            result.nodes.append(node)
            continue
        inner = derived_tensor(result, node.outputs[0], node.name)
        plain = with_attributes(node, fused_activation_function="none")
        result.nodes.append(replace(plain, outputs=(inner,)))
        attributes = Attributes({"layer": node.name})
        result.nodes.append(Node(activation, (inner,), node.outputs, attributes, f"{node.name}_activation"))
    return result


def remove_idle_rectifiers(graph: Graph, quantized: Callable[[], Collection[Operand]]) -> Graph:
    """Return the graph without ReLUs whose input is known not to be negative (ReLU6: and known not to exceed 6).

    The sign is followed from ReLUs and constants through additions, products, pools and moves; the upper bound
    through pools and moves only. Neither is followed through the Quantize nodes of NNTool's loader.

    Args:
        graph: activations are nodes.
        quantized: returns the operands in front of which these stand; asked where a ReLU would go.
    """
    result = _without_idle(graph, ())
    places = quantized() if _rectifiers(result) < _rectifiers(graph) else ()
    return _without_idle(graph, places) if places else result


def _rectifiers(graph: Graph) -> int:
    return sum(node.operator in RECTIFIERS for node in graph.nodes)


def _without_idle(graph: Graph, quantized: Collection[Operand]) -> Graph:
    result = graph.copy()
    bounds: dict[int, float] = {}  # tensors known not to be negative -> upper bound
    mixed: set[int] = set()  # tensors behind a concatenation of what is and is not, or has other bounds
    for index in range(len(graph.nodes)):
        node = result.nodes[index]
        stated = {p: _bound(result, bounds, t) for p, t in enumerate(node.inputs) if t >= 0}
        known = [None if (index, p) in quantized else bound for p, bound in stated.items()]
        if mixed.intersection(node.inputs) or (node.operator == "concatenation" and len({*stated.values()}) > 1):
            mixed.update(node.outputs)
        if node.operator in RECTIFIERS:
            limit = 6.0 if node.operator == "relu6" else np.inf
            if stated[0] is not None and stated[0] <= limit:
                _say_where_kept(result, node.inputs[0], mixed)
            if known[0] is not None and known[0] <= limit:
                _take_name(result, node.inputs[0], node.outputs[0])
                redirect(result, node.outputs[0], node.inputs[0])
            bounds[node.outputs[0]] = min(limit, np.inf if known[0] is None else known[0])
        elif node.operator == "hard_sigmoid":
            bounds[node.outputs[0]] = np.inf
        elif node.operator in _KEEP_SIGN:
            operands = known if node.operator in ("add", "mul", "div", "concatenation") else known[:1]
            if all(b is not None for b in operands):
                kept = max((b for b in operands if b is not None), default=np.inf)
                bounds.update(dict.fromkeys(node.outputs, kept if node.operator in _KEEP_BOUND else np.inf))
    return pruned(result)


def _say_where_kept(graph: Graph, written: int, mixed: set[int]) -> None:
    """Mark a pool whose ReLU goes here, and may stay in NNTool."""
    index = graph.producers().get(written)
    if index is not None and graph.nodes[index].operator in POOLS and written in mixed:
        graph.nodes[index] = with_attributes(graph.nodes[index], departure=_KEPT)


def _take_name(graph: Graph, kept: int, removed: int) -> None:
    """Let what the layer writes carry the file's name of what the ReLU wrote, where both are the same value."""
    if only_reader(graph, kept) is not None:
        graph.tensors[kept] = replace(graph.tensors[kept], name=graph.tensors[removed].name)


def _activation(node: Node, written: Tensor, is_last: bool) -> str | None:
    """The fused one; of a quantized file a range that begins at 0 implies one."""
    fused = fused_activation(node)
    if node.operator == LSTM:
        return None
    if fused != "none":
        return fused
    range_ = None if written.dtype.is_floating or is_last else written.range
    return implied_rectifier(range_) if node.operator in _IMPLIED and range_ is not None else None


def implied_rectifier(range_: Range) -> str | None:
    """Return the activation that the range of a layer without one implies: it begins at 0."""
    if range_.minimum[0] != 0:
        return None
    return "relu6" if np.round(range_.maximum[0]) == 6 else "relu"


def _bound(graph: Graph, bounds: dict[int, float], tensor: int) -> float | None:
    stated = graph.tensors[tensor]
    if stated.data is None:
        return bounds.get(tensor)
    return np.inf if stated.size and real_constant(stated).min() >= 0 else None
