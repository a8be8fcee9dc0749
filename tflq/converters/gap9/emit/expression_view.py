"""Expressions as TFLite can run them: real numbers between DEQUANTIZE and QUANTIZE."""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.passes.constants import EXPRESSION, real_constant
from tflq.converters.passes.rewrite import constant
from tflq.graph import Attributes, DType, Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.expressions.tree import CONSTANT, INPUT, Symbol, Tree


def expand_expressions(graph: Graph) -> None:
    """Replace each expression by its operators in float32; int8 kernels of most of them do not exist in TFLite."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        if node.operator == EXPRESSION:
            _expand(graph, node)
        else:
            graph.nodes.append(node)


def _expand(graph: Graph, node: Node) -> None:
    tree = Tree.of(node.attributes)
    places: list[int] = []
    for number, symbol in enumerate(tree.symbols):
        name = f"{node.name}_{symbol.operator}_{number}"
        if symbol.operator == CONSTANT:
            places.append(graph.add_tensor(constant(name, np.array([symbol.number], np.float32))))
        elif symbol.operator == INPUT:
            places.append(_real(graph, node.inputs[int(symbol.number)], name))
        else:
            places.append(_computed(graph, symbol, [places[o] for o in symbol.operands], name))
    for place, output in zip(tree.outputs, node.outputs, strict=True):
        graph.nodes.append(Node("quantize", (places[place],), (output,), Attributes(), f"{node.name}_quantize_{place}"))


def _real(graph: Graph, t: int, name: str) -> int:
    tensor = graph.tensors[t]
    if tensor.is_constant:
        return graph.add_tensor(constant(name, real_constant(tensor).astype(np.float32)))
    made = graph.add_tensor(_float(name, tensor.shape))
    graph.nodes.append(Node("dequantize", (t,), (made,), Attributes(), name))
    return made


def _computed(graph: Graph, symbol: Symbol, operands: list[int], name: str) -> int:
    shape = np.broadcast_shapes(*(graph.tensors[t].shape for t in operands))
    made = graph.add_tensor(_float(name, tuple(int(n) for n in shape)))
    graph.nodes.append(Node(symbol.operator, tuple(operands), (made,), Attributes(), name))
    return made


def _float(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name, shape, DType.FLOAT32)
