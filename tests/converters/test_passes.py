"""The passes that targets share: what each changes, and where it must leave a graph alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.passes.conversions import Conversions, remove_conversions
from tflq.converters.passes.merge_equal import merge_equal
from tflq.converters.passes.patterns import (
    axis_first,
    branches,
    computed_inputs,
    constant_operand,
    leads_to,
    only_reader,
    order_first,
    shape_first,
)
from tflq.converters.passes.requirements import collect_problems, refuse, refuse_custom, refuse_missing_ranges
from tflq.converters.passes.rewrite import channel_maxima, constant, sorted_nodes
from tflq.converters.passes.take_in import fold_pad, fuse_activations
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Node

REAL = DType.FLOAT32


def _chain(*operators: str, fused: str = "none") -> Graph:
    """Return x and operators behind each other; sums add a constant."""
    b = GraphBuilder()
    t = b.input("x", (1, 4), REAL)
    for operator in operators:
        inputs = [t, b.constant("c", np.ones(4, np.float32))] if operator == "add" else [t]
        t = b.add(operator, inputs, (1, 4), REAL, fused_activation_function=fused)
    return b.build([t])


def _operators(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


def test_an_activation_goes_into_the_layer_in_front_of_it() -> None:
    graph = _chain("add", "relu6", "softmax")
    fused = fuse_activations(graph, ("add",), ("relu", "relu6"))
    assert _operators(fused) == ["add", "softmax"]
    assert fused.nodes[0].attributes.text("fused_activation_function") == "relu6"
    assert fused.nodes[0].outputs == graph.nodes[1].outputs
    assert _operators(graph) == ["add", "relu6", "softmax"]


@pytest.mark.parametrize("case", ["two readers", "an output", "fused already", "another operator"])
def test_an_activation_stays_where_it_cannot_go(case: str) -> None:
    graph = _chain("add", "relu", fused="relu6" if case == "fused already" else "none")
    middle = graph.nodes[0].outputs[0]
    if case == "two readers":
        graph.nodes.append(replace(graph.nodes[1], outputs=(graph.add_tensor(graph.tensors[middle]),)))
    if case == "an output":
        graph.outputs = (*graph.outputs, middle)
    into = ("mul",) if case == "another operator" else ("add",)
    assert _operators(fuse_activations(graph, into, ("relu",))) == _operators(graph)


def _padded(value: float, channels: int = 0) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (1, 4, 4, 1), REAL)
    amounts = b.constant("p", np.array([[0, 0], [1, 2], [0, 1], [channels, 0]], np.int32))
    inputs = [x, amounts, b.constant("v", np.array([value], np.float32))]
    t = b.add("padv2", inputs, (1, 7, 5, 1 + channels), REAL)
    weights = b.constant("w", np.ones((1, 2, 2, 1 + channels), np.float32))
    same = {"padding": "valid", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    return b.build([b.add("conv_2d", [t, weights], (1, 6, 4, 1), REAL, fused_activation_function="none", **same)])


def test_a_pad_of_zeros_becomes_the_convolutions_own() -> None:
    folded = fold_pad(_padded(0.0))
    assert _operators(folded) == ["conv_2d"]
    assert folded.nodes[0].attributes.integers("explicit_padding") == (1, 2, 0, 1)


@pytest.mark.parametrize("graph", [_padded(1.0), _padded(0.0, channels=1)])
def test_other_pads_stay(graph: Graph) -> None:
    assert _operators(fold_pad(graph)) == ["padv2", "conv_2d"]


def test_equal_nodes_are_made_once() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), REAL)
    first, second, other = (b.add(name, [x], (1, 4), REAL) for name in ("tanh", "tanh", "abs"))
    graph = b.build([b.add("add", [first, second], (1, 4), REAL), b.add("add", [second, other], (1, 4), REAL)])
    merged = merge_equal(graph)
    assert _operators(merged) == ["tanh", "abs", "add", "add"]
    tanh = merged.nodes[0].outputs[0]
    assert merged.nodes[2].inputs == (tanh, tanh)


def test_conversions_of_a_file_go() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), REAL)
    code = b.add("quantize", [x], (1, 4), DType.INT8, Affine.per_tensor(np.float32(0.5)))
    moved = b.add("reshape", [code], (4,), DType.INT8, Affine.per_tensor(np.float32(0.5)))
    graph = remove_conversions(b.build([moved]), lambda tensor: tensor.quantization is not None)
    assert _operators(graph) == ["reshape"]
    assert graph.tensors[graph.inputs[0]].quantization == Affine.per_tensor(np.float32(0.5))


def test_conversions_are_made_once_for_each_type() -> None:
    graph = _chain("relu")
    graph.nodes = []
    conversions = Conversions(graph)
    half, third = (
        replace(graph.tensors[0], name=name, dtype=DType.INT8, quantization=Affine.per_tensor(np.float32(scale)))
        for name, scale in (("half", 0.5), ("third", 0.3))
    )
    made = [conversions.convert(0, tensor, Node("quantize", (), ())) for tensor in (half, third, half)]
    assert made[0] == made[2] != made[1]
    assert [(node.inputs, node.outputs) for node in graph.nodes] == [((0,), (made[0],)), ((0,), (made[1],))]


def test_patterns() -> None:
    graph = _chain("add", "relu", "reshape", "tanh")
    add, relu = graph.nodes[0], graph.nodes[1]
    assert only_reader(graph, add.outputs[0]) == only_reader(graph, add.outputs[0], graph.consumers()) == 1
    assert only_reader(graph, graph.outputs[0]) is None
    assert constant_operand(graph, add) == 1
    assert constant_operand(graph, relu) is None
    assert computed_inputs(graph, add) == [(0, add.inputs[0])]
    assert branches(add) == add.inputs[:1]
    assert branches(replace(add, operator="concatenation")) == add.inputs
    moves = {"relu", "reshape"}
    assert leads_to(graph, graph.nodes[2].outputs[0], ("add",), lambda node: node.operator in moves)
    assert not leads_to(graph, graph.nodes[2].outputs[0], ("add",), lambda node: node.operator == "relu")
    assert not leads_to(graph, graph.inputs[0], ("add",), lambda _: True)


def test_refusals_come_all_at_once() -> None:
    graph = _chain("add", "relu", "add")
    found = collect_problems(graph, lambda index, node: f"no {index}" if node.operator == "add" else "")
    assert found == ("operator 0 (add 'ADD_0_0'): no 0", "operator 2 (add 'ADD_0_2'): no 2")
    with pytest.raises(UnsupportedError, match=r"no 0; operator 2"):
        refuse(found)
    refuse(())
    with pytest.raises(UnsupportedError, match=r"^2 of 5 tensors have no range \(first 'a'\): calibrate$"):
        refuse_missing_ranges(["a", "b"], 5, "calibrate")
    refuse_missing_ranges([], 5, "calibrate")
    assert "'Mine' has no mapping" in refuse_custom(replace(graph.nodes[0], custom_code="Mine"))
    assert not refuse_custom(graph.nodes[0])


def test_constants_are_read_only_and_know_their_type() -> None:
    made = constant("c", np.arange(3, dtype=np.int8), dtype=DType.INT4)
    assert (made.shape, made.dtype, constant("d", np.zeros(2, np.int32)).dtype) == ((3,), DType.INT4, DType.INT32)
    assert made.data is not None
    assert not made.data.flags.writeable


def test_largest_magnitudes_of_channels() -> None:
    values = np.array([[1.0, -4.0], [-3.0, 2.0]], np.float32)
    assert channel_maxima(values, 0).tolist() == [4, 3]
    assert channel_maxima(values, 1).tolist() == [3, 4]
    assert channel_maxima(values, None).tolist() == [4]
    assert channel_maxima(np.zeros((2, 0), np.float32), 0).tolist() == [0, 0]


def test_nodes_sort_behind_what_they_read() -> None:
    nodes = [Node("c", (2,), (3,)), Node("a", (0,), (1,)), Node("b", (1,), (2,))]
    assert [node.operator for node in sorted_nodes(nodes, {0})] == ["a", "b", "c"]


def test_channels_first() -> None:
    assert shape_first((1, 2, 3, 4)) == (1, 4, 2, 3)
    assert shape_first((5, 6)) == (5, 6)
    assert [axis_first(axis, 4) for axis in (0, 1, 2, -1)] == [0, 2, 3, 1]
    assert axis_first(-1, 3) == 2
    x = np.arange(24).reshape(1, 2, 3, 4)
    order = (0, 2, 1, 3)
    turned = x.transpose(0, 3, 1, 2).transpose(order_first(order))
    assert np.array_equal(turned, x.transpose(order).transpose(0, 3, 1, 2))
