"""Shapes and operands that are computed at run time: TFLite's own results, and samples that go different ways."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_to_bytes
from tflq.errors import GraphError
from tflq.graph import Affine, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.execution.deferred import Deferred


def reshape_at_run_time() -> Graph:
    b = GraphBuilder("reshape at run time")
    x, shape = b.input("x", (2, 6), DType.FLOAT32), b.input("shape", (2,), DType.INT32)
    y = b.add("reshape", [x, shape], (2, 6), DType.FLOAT32)
    z = b.add("relu", [y], (2, 6), DType.FLOAT32)
    return b.build([z])


def test_samples_of_different_shapes_equal_tflite(oracle):
    graph = reshape_at_run_time()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 2, 6)).astype(np.float32)
    shape = np.array([[3, 4], [4, 3], [3, 4], [12, 1], [2, 6]], np.int32)
    judged = oracle.run(model_to_bytes(graph), [x, shape])
    out = graph.outputs[0]
    for chunk in (None, 1, 2):
        ours = Engine(graph).run([x, shape], chunk_size=chunk)[out]
        assert [a.shape for a in ours] == [(3, 4), (4, 3), (3, 4), (12, 1), (2, 6)]
        for s in range(5):
            assert_same_bits(ours[s], judged.sample(out, s), f"sample {s}")


def test_equal_shapes_come_back_as_one_array(oracle):
    graph = reshape_at_run_time()
    x = np.random.default_rng(1).normal(size=(4, 2, 6)).astype(np.float32)
    shape = np.tile(np.array([4, 3], np.int32), (4, 1))
    ours = Engine(graph).run([x, shape])[graph.outputs[0]]
    judged = oracle.run(model_to_bytes(graph), [x, shape])
    assert_same_bits(ours, judged.tensors[graph.outputs[0]], "output")


def test_weights_that_are_computed(oracle):
    b = GraphBuilder("weights at run time")
    unit = Affine.per_tensor(np.float32(0.05))
    x, w = b.input("x", (3, 8), DType.INT8, unit), b.input("w", (4, 8), DType.INT8, unit)
    y = b.add(
        "fully_connected", [x, w], (3, 4), DType.INT8, Affine.per_tensor(np.float32(0.4), 3),
        fused_activation_function="none", weights_format="default", keep_num_dims=False,
    )  # fmt: skip
    graph = b.build([y])
    rng = np.random.default_rng(2)
    inputs = [rng.integers(-128, 128, (6, 3, 8), np.int8), rng.integers(-127, 128, (6, 4, 8), np.int8)]
    judged = oracle.run(model_to_bytes(graph), inputs)
    assert_same_bits(Engine(graph).run(inputs)[y], judged.tensors[y], "output")


def test_paddings_that_are_computed_wait_for_their_value(oracle):
    b = GraphBuilder("paddings at run time")
    x, amounts = b.input("x", (2, 3), DType.FLOAT32), b.input("amounts", (2, 2), DType.INT32)
    graph = b.build([b.add("pad", [x, amounts], (2, 3), DType.FLOAT32)])
    assert isinstance(Engine(graph).graph.nodes[0].params, Deferred)
    values = np.random.default_rng(3).normal(size=(3, 2, 3)).astype(np.float32)
    pads = np.array([[[0, 1], [2, 0]], [[1, 1], [0, 0]], [[0, 1], [2, 0]]], np.int32)
    judged, out = oracle.run(model_to_bytes(graph), [values, pads]), graph.outputs[0]
    for s, ours in enumerate(Engine(graph).run([values, pads])[out]):
        assert_same_bits(ours, judged.sample(out, s), f"sample {s}")


def test_refusals_at_run_time_name_the_operator():
    graph = reshape_at_run_time()
    x, shape = np.zeros((1, 2, 6), np.float32), np.array([[5, 5]], np.int32)
    with pytest.raises(GraphError, match=r"operator 0 \(reshape 'RESHAPE_0_0'\).*new shape"):
        Engine(graph).run([x, shape])
