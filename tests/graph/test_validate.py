"""Graphs that contradict themselves are refused, by builder and by validate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tflq.errors import GraphError
from tflq.graph import ABSENT, Affine, Blockwise, DType, Graph, GraphBuilder, Node, Tensor, validate

INT8 = DType.INT8


def two_steps() -> Graph:
    """x -> relu -> relu, beside a constant."""
    b = GraphBuilder("two")
    x = b.input("x", (2, 3), INT8)
    b.constant("c", np.ones((2, 3), np.int8))
    y = b.add("relu", [x], (2, 3), INT8)
    return b.build([b.add("relu", [y], (2, 3), INT8)])


def tensor(graph: Graph, index: int, **changes: object) -> None:
    old = vars(graph.tensors[index])
    graph.tensors[index] = Tensor(**{**old, **changes})


def node(graph: Graph, index: int, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
    graph.nodes[index] = Node("relu", inputs, outputs, name=f"RELU_0_{index}")


def attribute(name: str, value: object) -> Callable[[Graph], None]:
    return lambda graph: setattr(graph, name, value)


def scales(count: int, zero_points: int, axis: int | None) -> Affine:
    return Affine(np.ones(count, np.float32), np.zeros(zero_points, np.int64), axis)


DAMAGE: list[tuple[Callable[[Graph], object], str]] = [
    (attribute("inputs", (4,)), "here: input 4 is out of range; tensors are 0..3"),
    (attribute("outputs", (-1,)), "here: output -1 is out of range; tensors are 0..3"),
    (attribute("tensors", []), "here: input 0 is out of range; the graph has no tensors"),
    (attribute("inputs", (0, 1)), "here: input 1 'c' is a constant"),
    (attribute("inputs", (0, 2)), r"here: operator 0 \(relu 'RELU_0_0'\) writes tensor 2 'relu_0', which has a value"),
    (attribute("nodes", []), "here: output tensor 3 'relu_1' is written by no operator"),
    (lambda g: g.nodes.reverse(), "here: operator 0 .* reads tensor 2 'relu_0', which is neither a constant nor"),
    (lambda g: node(g, 0, (3,), (2,)), "here: operator 0 .* reads tensor 3 'relu_1', which is neither"),
    (lambda g: node(g, 1, (2,), (2,)), "here: operator 1 .* writes tensor 2 'relu_0', which has a value already"),
    (lambda g: node(g, 1, (2,), (1,)), "here: operator 1 .* writes tensor 1 'c', which has a value already"),
    (lambda g: node(g, 1, (2,), (0,)), "here: operator 1 .* writes tensor 0 'x', which has a value already"),
    (lambda g: node(g, 1, (9,), (3,)), "here: operator 1 .* reads tensor 9; tensors are 0..3"),
    (lambda g: node(g, 1, (-2,), (3,)), "here: operator 1 .* reads tensor -2; tensors are 0..3"),
    (lambda g: node(g, 1, (2,), (ABSENT,)), "here: operator 1 .* writes tensor -1; tensors are 0..3"),
    (lambda g: tensor(g, 0, shape=(-1, 3)), r"here: tensor 0 'x': found shape \(-1, 3\); sizes are 0 or more"),
    (lambda g: tensor(g, 0, shape=(1 << 31,) * 3), "here: tensor 0 'x': found shape .* less than 2\\^63 bytes"),
    (lambda g: tensor(g, 1, shape=(3, 2)), r"here: tensor 1 'c': found shape \(3, 2\), but its data has \(2, 3\)"),
    (lambda g: tensor(g, 0, quantization=scales(2, 3, 0)), "here: tensor 0 'x': 2 scales and 3 zero points"),
    (lambda g: tensor(g, 0, quantization=scales(0, 1, 0)), "here: tensor 0 'x': 0 scales"),
    (lambda g: tensor(g, 0, quantization=scales(2, 2, 1)), "here: tensor 0 'x': 2 scales along axis 1 do not fit"),
    (lambda g: tensor(g, 0, quantization=scales(2, 2, 2)), "2 scales along axis 2 do not fit"),
    (lambda g: tensor(g, 0, quantization=scales(2, 2, None)), "2 scales along axis None do not fit"),
    (lambda g: tensor(g, 0, quantization=Blockwise(4, -1, 2)), "its scales are tensor 4; allowed are 0..3"),
    (lambda g: tensor(g, 0, quantization=Blockwise(-1, -1, 2)), "its scales are tensor -1; allowed are 0..3"),
    (lambda g: tensor(g, 0, quantization=Blockwise(1, 4, 2)), "its zero points are tensor 4; allowed are -1..3"),
    (lambda g: tensor(g, 0, quantization=Blockwise(1, -1, 0)), "found blocks of 0 elements; at least 1"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[message for _, message in DAMAGE])
def test_refusals_name_the_place(damage: Callable[[Graph], object], message: str) -> None:
    graph = two_steps()
    validate(graph)
    damage(graph)
    with pytest.raises(GraphError, match=message) as caught:
        validate(graph, "here")
    assert "\n" not in str(caught.value)


def test_the_builder_refuses_too() -> None:
    b = GraphBuilder()
    x = b.input("x", (1,), INT8)
    hole = b.tensor("hole", (1,), INT8)
    with pytest.raises(GraphError, match="reads tensor 1 'hole'"):
        b.build([b.add("add", [x, hole], (1,), INT8)])


def test_variables_and_absent_operands_are_no_holes() -> None:
    b = GraphBuilder()
    x = b.input("x", (1,), INT8)
    graph = b.build([b.add("svdf", [x, ABSENT], (1,), INT8)])
    state = graph.add_tensor(Tensor("state", (1,), INT8, is_variable=True))
    node(graph, 0, (0, state, ABSENT), graph.outputs)
    validate(graph)


def test_the_builder_gives_names_attributes_and_constants() -> None:
    b = GraphBuilder("name")
    x = b.input("x", (2,), INT8)
    c = b.constant("c", np.array([[1, -8]]), dtype=DType.INT4)
    graph = b.build([b.add("add", [x, c], (1, 2), INT8, version=3, fused_activation_function="relu")])
    (only,) = graph.nodes
    assert (graph.name, only.name, only.version) == ("name", "ADD_0_0", 3)
    assert only.attributes.text("fused_activation_function") == "relu"
    constant = graph.tensors[c]
    assert (constant.dtype, constant.data.dtype, constant.shape) == (DType.INT4, np.int8, (1, 2))
    with pytest.raises(ValueError, match="read-only"):
        constant.data[0, 0] = 5


def test_a_scalar_constant_keeps_its_shape() -> None:
    b = GraphBuilder()
    assert b.build([b.constant("c", np.float32(3))]).tensors[0].shape == ()


def test_operands_say_what_is_missing() -> None:
    graph = two_steps()
    operands = graph.operands(1)
    assert operands.input(0).name == "relu_0"
    assert operands.optional(1) is None
    with pytest.raises(GraphError, match=r"operator 1 \(relu 'RELU_0_1'\): input 1 is missing"):
        operands.input(1)
    with pytest.raises(GraphError, match="output 1 is missing"):
        operands.output(1)
    with pytest.raises(GraphError, match=r"input 0 \('relu_0'\) is computed at run time"):
        operands.constant(0)
    with pytest.raises(GraphError, match=r"tensor 'x' \(int8\) has no scale and zero point"):
        _ = graph.tensors[0].affine


def test_who_writes_and_who_reads() -> None:
    graph = two_steps()
    assert graph.producers() == {2: 0, 3: 1}
    assert graph.consumers() == {0: [0], 2: [1]}
    copy = graph.copy()
    copy.nodes.clear()
    assert len(graph.nodes) == 2
