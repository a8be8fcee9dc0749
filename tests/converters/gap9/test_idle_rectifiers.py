"""Which ReLUs GAP9's converter leaves out: those of what is known not to be negative.

Source: docs/rules/gap9/types.md#types.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tflq.converters.calibration import calibrate
from tflq.converters.gap9.passes.separate_activations import remove_idle_rectifiers
from tflq.converters.targets import find_target
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder, Model
from tflq.graph.float_view import dequantize
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter import Engine, lower

IMAGE, FLOAT = (1, 4, 4, 2), DType.FLOAT32


def _operators(graph: Graph, quantized: tuple[str, int] | None = None) -> list[str]:
    editor = GraphEditor(graph)
    remove_idle_rectifiers(editor, tuple if quantized is None else lambda: {quantized})
    return [node.operator for node in editor.nodes]


def _behind(operator: str, constant: Array, affine: Affine | None = None, rectifier: str = "relu") -> Graph:
    b = GraphBuilder("idle")
    x = b.add("relu", [b.input("x", IMAGE, FLOAT)], IMAGE, FLOAT)
    y = b.add(operator, [x, b.constant("k", constant, affine)], IMAGE, FLOAT)
    return b.build([b.add(rectifier, [y], IMAGE, FLOAT)])


@pytest.mark.parametrize("operator", ["add", "mul", "div"])
@pytest.mark.parametrize(
    ("values", "zero_point", "idle"),
    [
        *(([0.0], None, True), ([0.5], None, True), ([-0.5], None, False), ([-1e-9], None, False)),
        *(([3.0, -0.25], None, False), ([3.0, 0.25], None, True)),
        *(([-3, 5], -3, True), ([-3, 5], -2, False), ([4, 9], 4, True), ([4, 9], 5, False), ([0, 1], 0, True)),
        ([-1, 1], 0, False),
    ],
)
def test_behind_a_constant(operator: str, values: list[float], zero_point: int | None, idle: bool) -> None:
    """A constant counts by its real numbers."""
    affine = None if zero_point is None else Affine.per_tensor(np.float32(0.25), zero_point)
    data = np.array(values, np.float32 if affine is None else np.int8)
    assert _operators(_behind(operator, data, affine)) == ["relu", operator, *([] if idle else ["relu"])]


@pytest.mark.parametrize(("operator", "idle"), [("sub", False), ("maximum", False)])
def test_operators_that_keep_no_sign(operator: str, idle: bool) -> None:
    assert ("relu" in _operators(_behind(operator, np.array([0.5], np.float32)))[1:]) is not idle


@pytest.mark.parametrize("operator", ["add", "mul"])
def test_a_relu6_stays_behind_what_may_exceed_6(operator: str) -> None:
    assert _operators(_behind(operator, np.array([0.5], np.float32), None, "relu6")) == ["relu", operator, "relu6"]


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        *(("relu", "relu", ["relu"]), ("relu6", "relu", ["relu6"]), ("relu6", "relu6", ["relu6"])),
        ("relu", "relu6", ["relu", "relu6"]),
    ],
)
@pytest.mark.parametrize("between", ["none", "reshape", "max_pool_2d", "average_pool_2d", "concatenation", "tanh"])
def test_bounds_through_moves_and_pools(first: str, second: str, left: list[str], between: str) -> None:
    b = GraphBuilder("moves")
    x = b.add(first, [b.input("x", IMAGE, FLOAT)], IMAGE, FLOAT)
    inputs = [x, x] if between == "concatenation" else [x]
    shape = (1, 4, 4, 4) if between == "concatenation" else IMAGE
    y = x if between == "none" else b.add(between, inputs, shape, FLOAT)
    found = _operators(b.build([b.add(second, [y], shape, FLOAT)]))
    kept = [first, second] if between == "tanh" else left
    assert [name for name in found if name.startswith("relu")] == kept


def test_where_a_quantize_node_stands_in_front() -> None:
    """NNTool's loader has one there, behind which nothing is known."""
    graph = _behind("add", np.array([0.5], np.float32))
    for node in graph.nodes[1:]:
        assert _operators(graph, (node.name, 0)) == ["relu", "add", "relu"]
    assert _operators(graph, (graph.nodes[0].name, 0)) == ["relu", "add"]


@pytest.mark.parametrize("value", [-1.0, -0.5, 0.5])
def test_a_float_model_keeps_the_relu_behind_a_negative_constant(value: float) -> None:
    graph = _behind("add", np.full((1, 4, 4, 1), value, np.float32))
    given = np.random.default_rng(0).normal(size=(8, *IMAGE)).astype(np.float32)
    found = lower(quantized(Model([calibrate(graph, [given])]), "gap9-sq8"), "gap9")
    codes = find_target("gap9-sq8").encode(given, found.tensors[found.inputs[0]])
    output = found.tensors[found.outputs[0]]
    ours = dequantize(Engine(found).run([codes])[found.outputs[0]], output.affine)
    assert np.abs(ours - Engine(graph, "float").run([given])[graph.outputs[0]]).max() <= 0.05
