"""Windows, weights and results of filters as matrices: their product is what the float kernel computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.converters.settled import settled_graph
from tflq.graph import Attributes, DType, Graph, Node, Tensor
from tflq.interpreter import Engine
from tflq.precision.recover.filters import Filter, filter_of

SIZE = st.integers(1, 3)


def network(node: Node, x: tuple[int, ...], weights: np.ndarray, pad: np.ndarray | None) -> Graph:
    channels = weights.shape[3] if node.operator == "depthwise_conv_2d" else weights.shape[0]
    padded = x if pad is None else tuple(n + int(p.sum()) for n, p in zip(x, pad, strict=True))
    tensors = [
        Tensor("x", x, DType.FLOAT32),
        Tensor("w", weights.shape, DType.FLOAT32, data=weights),
        Tensor("b", (channels,), DType.FLOAT32, data=np.zeros(channels, np.float32)),
        Tensor("y", (1, 1, 1, channels), DType.FLOAT32),
    ]
    if pad is None:
        return Graph(tensors, [node], (0,), (3,))
    tensors += [Tensor("padded", padded, DType.FLOAT32), Tensor("pads", (4, 2), DType.INT32, data=pad)]
    nodes = [Node("pad", (0, 5), (4,), name="pad"), Node(node.operator, (4, 1, 2), (3,), node.attributes, node.name)]
    return Graph(tensors, nodes, (0,), (3,))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from(("conv_2d", "grouped", "depthwise_conv_2d")),
    st.tuples(SIZE, SIZE, SIZE, SIZE, SIZE, SIZE),
    st.sampled_from(("same", "valid")),
    st.booleans(),
)
def test_windows_times_weights_is_the_convolution(
    seed: int, kind: str, sizes: tuple[int, ...], padding: str, has_pad: bool
) -> None:
    random = np.random.default_rng(seed)
    kh, kw, sh, sw, depth, outputs = sizes
    groups = 2 if kind == "grouped" else 1
    shape = (1, 7, 8, depth * groups)
    weights_shape = (1, kh, kw, depth * outputs) if kind == "depthwise_conv_2d" else (outputs * groups, kh, kw, depth)
    operator = "conv_2d" if kind == "grouped" else kind
    attributes = {"padding": padding, "stride_h": sh, "stride_w": sw, "fused_activation_function": "none"}
    if operator == "depthwise_conv_2d":
        attributes["depth_multiplier"] = outputs
    weights = random.integers(-4, 5, weights_shape).astype(np.float32)
    pad = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32) if has_pad else None
    node = Node(operator, (0, 1, 2), (3,), Attributes(attributes), "filter")
    graph = settled_graph(network(node, shape, weights, pad))
    of = filter_of(graph, len(graph.nodes) - 1)
    assert isinstance(of, Filter)
    assert of.source == 0
    x = random.integers(-9, 10, (3, *shape)).astype(np.float32)
    expected = Engine(graph, "float").run([x])[3]
    rows = np.arange(3 * of.positions)
    found = of.windows(x, rows).astype(np.float64) @ of.matrix(weights).astype(np.float64)
    assert np.array_equal(np.transpose(found, (1, 0, 2)).reshape(expected.shape), expected)
    assert np.array_equal(of.weights(of.matrix(weights)), weights)
    some = np.sort(random.choice(rows, min(5, rows.size), replace=False))
    assert np.array_equal(of.windows(x, some), of.windows(x, rows)[:, some])


def test_fully_connected_rows() -> None:
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    node = Node("fully_connected", (0, 1, 2), (3,), Attributes({"fused_activation_function": "none"}), "filter")
    graph = settled_graph(network(node, (2, 4), weights, None))
    of = filter_of(graph, 0)
    assert isinstance(of, Filter)
    x = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    found = of.windows(x, np.arange(6))[0] @ of.matrix(weights)[0]
    assert np.array_equal(found.reshape(3, 2, 3), Engine(graph, "float").run([x])[3])


@pytest.mark.parametrize("shared", [False, True])
def test_weights_of_two_layers_are_left(shared: bool) -> None:
    weights = np.ones((4, 4), np.float32)
    node = Node("fully_connected", (0, 1, 2), (3,), Attributes({"fused_activation_function": "none"}), "filter")
    graph = settled_graph(network(node, (1, 4), weights, None))
    if shared:
        graph.nodes.append(Node("mul", (3, 1), (0,), Attributes(), "other"))
    found = filter_of(graph, 0)
    assert found == "other layers read the same weights" if shared else isinstance(found, Filter)
