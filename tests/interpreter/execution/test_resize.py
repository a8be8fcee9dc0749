"""Other input shapes: every tensor gets the shape, and the bits, that TFLite gives it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tests.support.draw import affine
from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_to_bytes, read_model
from tflq.errors import GraphError, OracleError, UnsupportedError
from tflq.graph import ABSENT, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.execution.settle import resize
from tflq.oracle import Oracle
from tflq.sampling import RandomSamples

INT8 = DType.INT8
MODELS = [path for path in data_files("models") if "large" not in path.stem]


def leaves_batch_open(graph: Graph, t: int) -> bool:
    return (graph.tensors[t].shape_signature or (0,))[:1] == (-1,)


def batch_of(graph: Graph, batch: int) -> dict[int, tuple[int, ...]]:
    """Return shapes for all inputs: another first size where it is open, or everywhere where none is."""
    opened = [t for t in graph.inputs if leaves_batch_open(graph, t)] or graph.inputs
    shapes = {t: graph.tensors[t].shape for t in graph.inputs}
    return {t: (batch, *shape[1:]) if t in opened else shape for t, shape in shapes.items()}


def with_batch(graph: Graph, batch: int) -> Graph:
    return resize(graph, batch_of(graph, batch))


OPEN = [
    path for path in data_files("corpus") for graph in [read_model(path).main]
    if any(leaves_batch_open(graph, t) for t in graph.inputs)
]  # fmt: skip


def compare_with_tflite(oracle: Oracle, content: bytes, graph: Graph) -> None:
    samples = RandomSamples(graph, 2, seed=1).take(0, 2)
    judged = oracle.run(content, samples, resize=True)
    computed = [t for node in graph.nodes for t in node.outputs]
    ours = Engine(graph).run(samples, computed)
    for t in computed:
        if t in judged.tensors:
            assert_same_bits(ours[t], judged.tensors[t], f"tensor {t} '{graph.tensors[t].name}'")
            assert graph.tensors[t].shape == judged.details[t].shape


@pytest.mark.parametrize("path", MODELS or [None], ids=[p.stem for p in MODELS] or ["no data"])
def test_reference_models_with_another_batch(path, oracle: Oracle) -> None:
    path = path or data_path("models")
    compare_with_tflite(oracle, path.read_bytes(), with_batch(read_model(path).main, 3))


@pytest.mark.parametrize("path", OPEN or [None], ids=[p.stem for p in OPEN] or ["no data"])
def test_corpus_with_another_batch(path, oracle: Oracle) -> None:
    path = path or data_path("corpus")
    graph = read_model(path).main
    try:
        resized = with_batch(graph, 2)
        RandomSamples(resized, 1, seed=1)
    except GraphError:
        inputs = [np.zeros((1, *shape), graph.tensors[t].dtype.storage) for t, shape in batch_of(graph, 2).items()]
        with pytest.raises(OracleError):
            oracle.run(path.read_bytes(), inputs, resize=True)
    else:
        compare_with_tflite(oracle, path.read_bytes(), resized)


def dense() -> Graph:
    b = GraphBuilder()
    q = affine(INT8, 0.5)
    x = b.input("x", (1, 4), INT8, q)
    w = b.constant("w", np.arange(12, dtype=np.int8).reshape(3, 4), q)
    y = b.add("fully_connected", [x, w, ABSENT], (1, 3), INT8, q, fused_activation_function="none")
    return b.build([b.add("reshape", [y], (3,), INT8, q, new_shape=(3,))])


def test_the_graph_itself_does_not_change() -> None:
    graph = dense()
    b = GraphBuilder()
    x = b.input("x", (1, 4), INT8, affine(INT8, 0.5))
    one = b.build([b.add("relu", [x], (1, 4), INT8, affine(INT8, 0.5))])
    resized = resize(one, {0: (7, 2, 5)})
    assert [t.shape for t in resized.tensors] == [(7, 2, 5)] * 2
    assert [t.shape for t in one.tensors] == [(1, 4)] * 2
    assert resize(graph, {}).tensors == graph.tensors


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({0: (2, 4)}, r"operator 1 \(reshape 'RESHAPE_0_1'\): the new input shapes do not fit"),
        ({0: (1, 5)}, r"operator 0 \(fully_connected 'FULLY_CONNECTED_0_0'\): the new input shapes do not fit"),
        ({1: (3, 4)}, r"tensor 1 is no input of the graph; inputs are \[0\]"),
        ({0: (-1, 4)}, r"input 'x': shape \(-1, 4\), sizes must be 0 or more"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[int, tuple[int, ...]], message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        resize(dense(), shapes)
    assert "\n" not in str(caught.value)


def test_a_missing_kernel_is_no_matter_of_shapes() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), INT8, affine(INT8, 0.5))
    graph = b.build([b.add("frobnicate", [x], (1, 4), INT8, affine(INT8, 0.25))])
    with pytest.raises(UnsupportedError, match="operator frobnicate has no kernel in arithmetic 'tflite'"):
        resize(graph, {0: (3, 4)})


def test_the_resized_graph_can_be_written(oracle: Oracle) -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), INT8, affine(INT8, 0.5))
    graph = resize(b.build([b.add("relu", [x], (1, 4), INT8, affine(INT8, 0.25))]), {0: (3, 4)})
    compare_with_tflite(oracle, model_to_bytes(graph), graph)


def test_operators_that_refuse_zeros_are_resized_too(oracle: Oracle) -> None:
    b = GraphBuilder("divide")
    x, y = b.input("x", (1, 3), DType.INT32), b.input("y", (1, 3), DType.INT32)
    graph = b.build([b.add("div", [x, y], (1, 3), DType.INT32, fused_activation_function="none")])
    wide = resize(graph, {x: (4, 3), y: (4, 3)})
    assert wide.tensors[graph.outputs[0]].shape == (4, 3)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-50, 50, (2, 4, 3), np.int32), rng.integers(1, 9, (2, 4, 3), np.int32)]
    judged = oracle.run(model_to_bytes(graph), inputs, resize=True)
    assert_same_bits(Engine(wide).run(inputs)[graph.outputs[0]], judged.outputs[0], "quotients")
