"""Single passes of the converter on the smallest graph that shows their rule (docs/gap9.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.estimate import Grade
from tflq.converters.gap9.cluster_cycles import cluster_cycles
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.emit.tflite_view import _channels_last_pools
from tflq.converters.gap9.passes.constants import requantize_operands
from tflq.converters.gap9.passes.hard_sigmoid import find_hard_sigmoids
from tflq.converters.gap9.passes.move_up import raise_activations
from tflq.graph import Affine, DType, Graph, GraphBuilder, Range
from tflq.interpreter import Engine

FLOAT, IMAGE = DType.FLOAT32, (1, 4, 4, 2)


def rewritten(run: Callable[[Gap9Editor], None], graph: Graph) -> Graph:
    editor = Gap9Editor(graph, {})
    run(editor)
    return editor.graph()


def hard_sigmoid(factor: float, three: float | None) -> Graph:
    b = GraphBuilder("hard")
    x = b.input("x", IMAGE, FLOAT)
    if three is not None:
        x = b.add("add", [x, b.constant("three", np.array([three], np.float32))], IMAGE, FLOAT)
    y = b.add("relu6", [x], IMAGE, FLOAT)
    return b.build([b.add("mul", [y, b.constant("factor", np.array([factor], np.float32))], IMAGE, FLOAT)])


@pytest.mark.parametrize(
    ("off", "three", "found"),
    [
        (0, None, ["hard_sigmoid"]),
        (1 / 127.4, 3.0, ["hard_sigmoid"]),
        (-1 / 127.4, 3.0, ["hard_sigmoid"]),
        (1 / 126.6, None, ["relu6", "mul"]),
        (-1 / 126.6, 3.0, ["add", "relu6", "mul"]),
        (0, 3 + 1 / 127.4, ["hard_sigmoid"]),
        (0, 3 + 1 / 126.6, ["add", "hard_sigmoid"]),
    ],
)
def test_relu6_times_about_a_sixth_is_a_hard_sigmoid(off: float, three: float | None, found: list[str]) -> None:
    """Constants are less than 1/127 off; an addition of 3 belongs to it (docs/gap9.md, 11)."""
    graph = rewritten(find_hard_sigmoids, hard_sigmoid(1 / 6 + off, three))
    assert [n.operator for n in graph.nodes] == found
    if found == ["hard_sigmoid"]:
        assert graph.nodes[0].attributes.real("offset") == (0.0 if three is None else 3.0)


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        (("relu6", "relu6"), ["hard_sigmoid"]),
        (("relu6", "relu6", "relu6"), ["hard_sigmoid"]),
        (("relu", "relu6"), ["relu", "hard_sigmoid"]),
    ],
)
def test_a_second_relu6_goes_with_the_first(operators: tuple[str, ...], found: list[str]) -> None:
    """As NNTool has a filter of range [0, 6] in front of a RELU6 and the product: the filter and the hard sigmoid."""
    b = GraphBuilder("hard")
    x = b.input("x", IMAGE, FLOAT)
    for operator in operators:
        x = b.add(operator, [x], IMAGE, FLOAT)
    y = b.add("mul", [x, b.constant("factor", np.array([1 / 6], np.float32))], IMAGE, FLOAT)
    assert [n.operator for n in rewritten(find_hard_sigmoids, b.build([y])).nodes] == found


@pytest.mark.parametrize(("limits", "largest"), [(None, 3.0), ((-4.0, 4.0), 4.0), ((-5.0, 1.0), 5.0)])
def test_a_constant_operand_has_its_range_or_that_of_its_values(
    limits: tuple[float, float] | None, largest: float
) -> None:
    b = GraphBuilder("add")
    x = b.input("x", (3,), DType.INT8, Affine.per_tensor(np.float32(0.1), 0, 8))
    c = b.constant("c", np.array([-1, 0.5, 3], np.float32))
    graph = b.build([b.add("add", [x, c], (3,), DType.INT8, Affine.per_tensor(np.float32(0.1), 0, 8))])
    if limits is not None:
        found = Range(*(np.array([limit], np.float32) for limit in limits))
        graph.tensors[c] = replace(graph.tensors[c], range=found)
    graph = rewritten(lambda editor: requantize_operands(editor, editor.nodes[0]), graph)
    made = graph.tensors[graph.nodes[0].inputs[1]]
    assert made.data is not None
    scale = float(made.affine.scale[0])
    assert largest / 128 <= scale <= largest / 127 * (1 + 1e-6)
    assert made.data.tolist() == [min(round(v / scale), 127) for v in (-1, 0.5, 3)]


@pytest.mark.parametrize("count", [1, 2])
def test_an_activation_that_moves_up_is_numbered_where_it_has_copies(count: int) -> None:
    b = GraphBuilder("moved")
    branches = []
    for i in range(count):
        pool = b.add("average_pool_2d", [b.input(f"x{i}", IMAGE, FLOAT)], IMAGE, FLOAT)
        branches.append(b.add("reshape", [pool], (1, 32), FLOAT))
    y = b.add("concatenation", branches, (1, 32 * count), FLOAT, axis=1) if count > 1 else branches[0]
    graph = b.build([b.add("tanh", [y], (1, 32 * count), FLOAT)])
    name = graph.nodes[-1].name
    moved = [n.name for n in rewritten(raise_activations, graph).nodes if n.operator == "tanh"]
    assert moved == ([name] if count == 1 else [f"{name}_0", f"{name}_1"])


def test_a_change_of_type_that_no_log_shows_has_no_cycles() -> None:
    """Only the one behind the first convolution is part of what the published figures hold."""
    b = GraphBuilder("change")
    types = [Affine.per_tensor(np.float32(0.1), z, 8) for z in (0, 5)]
    x = b.input("x", IMAGE, DType.INT8, types[0])
    graph = b.build([b.add("quantize", [x], IMAGE, DType.INT8, types[1])])
    found = cluster_cycles(graph, 0)
    assert found.value is None
    assert found.grade is Grade.NOT_OFFERED


def test_a_global_pool_reads_the_image_as_the_file_has_it() -> None:
    b = GraphBuilder("pool")
    x = b.input("x", (1, 4, 6, 3), FLOAT)
    turned = b.add("transpose", [x, b.constant("order", np.array([0, 3, 1, 2], np.int32))], (1, 3, 4, 6), FLOAT)
    axes = b.constant("axes", np.array([2, 3], np.int32))
    graph = b.build([b.add("mean", [turned, axes], (1, 3), FLOAT, keep_dims=False)])
    _channels_last_pools(graph)
    assert graph.nodes[-1].inputs[0] == x
    data = np.random.default_rng(9).integers(-50, 50, (5, 1, 4, 6, 3)).astype(np.float32)
    found = Engine(graph, "float").run([data])[graph.outputs[0]]
    assert np.allclose(found, data.mean(axis=(2, 3)), atol=1e-5)
