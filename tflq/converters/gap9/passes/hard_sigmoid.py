"""ReLU6 times 1/6 is a hard sigmoid: one activation, which its filter takes along (docs/gap9.md, 11)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.converters.gap9.operators import departing, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.patterns import constant_operand, only_reader
from tflq.converters.passes.rewrite import constant, with_attributes, with_input, without_nodes
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Attributes, Graph, Node

_TOLERANCE = 1 / 127
_ASKING = ("quantize", "average_pool_2d")
_ASKED = "NNTool fails on a hard sigmoid of three operators in a filter's fusion that is asked for another type (17.33)"
SHARED = "NNTool loses the scale of a constant that a hard sigmoid took before (17.10)"


def find_hard_sigmoids(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with HARD_SIGMOID in place of RELU6 and a product with one constant c, |c - 1/6| < 1/127.

    Nobody else reads the ReLU6; of several products with one constant the first is found, and NNTool loses the scale
    of the constant for the others: numerics=nntool multiplies by its quantized value. A ReLU6 in front of the ReLU6, as
    the range of a filter implies it, goes with it. An addition of one constant about 3 in front of the ReLU6 belongs to
    it; most often TensorFlow's converter has folded that into the filter's bias, and the offset is 0.
    """
    result, gone, used = graph.copy(), set[int](), set[int]()
    producers = graph.producers()
    for index, node in enumerate(graph.nodes):
        source = _factor_of(graph, node, 1 / 6) if node.operator == "mul" else None
        relu = None if source is None else producers.get(source)
        if relu is None or not _is_lone_relu6(graph, relu):
            continue
        if used.intersection(node.inputs):
            product = with_attributes(node, departure=SHARED)
            exact = options[layer_of(node)].numerics == "exact"
            result.nodes[index] = product if exact else _without_scale(result, product)
            continue
        used.update(node.inputs)
        inner, name, offset = graph.nodes[relu].inputs[0], f"{node.name}_hsigmoid", 0.0
        gone.add(relu)
        while (first := producers.get(inner)) is not None and _is_lone_relu6(graph, first):
            inner = graph.nodes[first].inputs[0]
            gone.add(first)
        addition = producers.get(inner)
        three = None if addition is None else _three_added_to(graph, addition)
        if addition is not None and three is not None:
            inner, name, offset = three, f"{node.name}_fused_far_hsigmoid", 3.0
            gone.add(addition)
        attributes = Attributes({"layer": node.name, "offset": offset})
        result.nodes[index] = Node("hard_sigmoid", (inner,), node.outputs, attributes, name)
    return without_nodes(result, gone)


def refuse_asked_hard_sigmoids(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph in which a hard sigmoid of three operators, in a filter's fusion, says where NNTool fails on it.

    It does where it writes uint8, or a Quantize node or an average pool reads it.

    Raises:
        UnsupportedError: with numerics=nntool.
    """
    result, readers = graph.copy(), graph.consumers()
    for index, node in enumerate(graph.nodes):
        if (
            node.operator != "hard_sigmoid"
            or "fusion" not in node.attributes
            or node.attributes.real("offset", 3.0) == 0
        ):
            continue
        asking = {graph.nodes[i].operator for i in readers.get(node.outputs[0], ())}.intersection(_ASKING)
        written = graph.tensors[node.outputs[0]].affine
        if not asking and (written.signed or written.bits > 8):
            continue
        if options[layer_of(node)].numerics == "nntool":
            raise UnsupportedError(f"{graph.where(index)}: {_ASKED}; numerics=exact converts it")
        result.nodes[index] = departing(node, _ASKED)
    return result


def _without_scale(graph: Graph, node: Node) -> Node:
    """Return the product with its constant as a number of its own: the quantized value, scale 1."""
    position = constant_operand(graph, node)
    assert position is not None
    given = graph.tensors[node.inputs[position]]
    assert given.data is not None
    bare = constant(f"{given.name}_bare", given.data, Affine.per_tensor(np.float64(1), 0))
    return with_input(node, position, graph.add_tensor(bare))


def _is_lone_relu6(graph: Graph, index: int) -> bool:
    node = graph.nodes[index]
    return node.operator == "relu6" and only_reader(graph, node.outputs[0]) is not None


def _three_added_to(graph: Graph, index: int) -> int | None:
    node = graph.nodes[index]
    is_read_once = node.operator == "add" and only_reader(graph, node.outputs[0]) is not None
    return _factor_of(graph, node, 3.0) if is_read_once else None


def _factor_of(graph: Graph, node: Node, value: float) -> int | None:
    """Return the computed operand of a node whose other one is a constant of one element about `value`."""
    position = constant_operand(graph, node)
    if position is None or len(node.inputs) != 2:
        return None
    tensor = graph.tensors[node.inputs[position]]
    if tensor.size != 1:
        return None
    near = abs(float(real_constant(tensor).reshape(-1)[0]) - value) < _TOLERANCE
    return node.inputs[1 - position] if near else None
