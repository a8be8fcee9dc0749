"""SVDF against TFLite: int8, hybrid and float32, alone and as a stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings
from tests.support.single_op import check_stream, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder
from tflq.interpreter import lower


def svdf_graph(kind: str, sizes: tuple[int, int, int, int, int], seed: int, activation="relu", **changes) -> Graph:
    """Build SVDF of batch, inputs, units, rank, memory; kind is "int8", "float", "hybrid" or "uint8"."""
    batch, inputs, units, rank, memory = sizes
    rng = np.random.default_rng(seed)
    filters = units * rank
    b = GraphBuilder("svdf")
    shapes = ((filters, inputs), (filters, memory), (units,), (batch, memory * filters))
    if kind == "int8":
        operands = _int8_operands(b, rng, batch, inputs, shapes, changes.pop("state", INT16))
        target = (INT8, affine(INT8, rng.uniform(0.01, 0.5), int(rng.integers(-128, 128))))
    else:
        dtype = {"float": FLOAT32, "hybrid": INT8, UINT8.value: UINT8}[kind]
        x = b.input("x", (batch, inputs), FLOAT32)
        weights = [_weights(b, rng, name, shape, dtype) for name, shape in zip(("f", "t"), shapes[:2], strict=True)]
        bias = b.constant("bias", rng.normal(size=units).astype(np.float32))
        operands = [x, *weights, bias, b.variable("state", shapes[3], FLOAT32)]
        target = (FLOAT32, None)
    y = b.add("svdf", operands, (batch, units), *target, version=4 if kind != "int8" else 3, rank=rank,
              fused_activation_function=activation, **changes)  # fmt: skip
    return b.build([y])


def _int8_operands(b, rng, batch, inputs, shapes, state):
    return [
        b.input("x", (batch, inputs), INT8, affine(INT8, rng.uniform(0.01, 0.1), int(rng.integers(-128, 128)))),
        b.constant("f", rng.integers(-128, 128, shapes[0]).astype(np.int8), affine(INT8, rng.uniform(0.001, 0.01))),
        b.constant("t", rng.integers(-900, 900, shapes[1]).astype(np.int16), affine(INT16, 1e-3)),
        b.constant("bias", rng.integers(-9999, 9999, shapes[2]).astype(np.int32), affine(DType.INT32, 1e-4)),
        b.variable("state", shapes[3], state, affine(state, rng.uniform(1e-4, 1e-3))),
    ]


def _weights(b, rng, name, shape, dtype):
    if dtype is FLOAT32:
        return b.constant(name, rng.normal(size=shape).astype(np.float32))
    codes = rng.integers(dtype.minimum, dtype.maximum, shape, dtype.storage, endpoint=True)
    return b.constant(name, codes, affine(dtype, rng.uniform(0.001, 0.1)))


sizes = st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(1, 6), st.integers(1, 5), st.integers(1, 11))


@pytest.mark.parametrize("kind", ["int8", "float", "hybrid", UINT8.value])
@kernel_settings
@given(data=st.data(), sizes=sizes, seed=st.integers(0, 999))
def test_against_tflite(oracle, kind, data, sizes, seed):
    changes = {}
    if kind != "int8":
        changes["activation"] = data.draw(st.sampled_from(["none", "relu", "relu6", "relu_n1_to_1", "tanh"]))
    if kind in ("hybrid", UINT8.value):
        changes["asymmetric_quantize_inputs"] = data.draw(st.booleans())
    graph = svdf_graph(kind, sizes, seed, **changes)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 12))


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("kind", ["hybrid", UINT8.value])
def test_samples_of_zeros(oracle, kind, asymmetric):
    graph = svdf_graph(kind, (2, 19, 4, 2, 5), 3, "none", asymmetric_quantize_inputs=asymmetric)
    (x,) = random_inputs(np.random.default_rng(3), graph, 6)
    x[1:4] = 0
    x[2, 1] = -1
    check_stream(oracle, graph, [x])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"state": INT8}, UnsupportedError, "takes int16"),
        ({"activation": "none"}, UnsupportedError, "takes relu only"),
    ],
)
def test_refusals(changes, error, message):
    with pytest.raises(error, match=message):
        lower(svdf_graph("int8", (1, 4, 3, 2, 5), 0, **changes))


def test_filters_must_be_a_multiple_of_the_rank():
    graph = svdf_graph("float", (1, 4, 3, 2, 5), 0)
    graph.nodes[0] = replace(graph.nodes[0], attributes=graph.nodes[0].attributes.updated(rank=4))
    with pytest.raises(GraphError, match="do not fit rank 4"):
        lower(graph)


@pytest.mark.parametrize("places", [(1,), (2,), (3,), (1, 2, 3)])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("kind", ["int8", "float"])
def test_weights_computed_at_run_time(oracle, kind, batch, places):
    """Each sample has its own."""
    graph = svdf_graph(kind, (batch, 9, 4, 2, 5), 3)
    given = [graph.nodes[0].inputs[p] for p in places]
    constants = [graph.tensors[t].data for t in given]
    for t in given:
        graph.tensors[t] = replace(graph.tensors[t], data=None)
    graph.inputs = (*graph.inputs, *given)
    (x, *_) = random_inputs(np.random.default_rng(3), graph, 4)
    check_stream(oracle, graph, [x, *(np.stack([c, c[::-1], -(c // 2), c]) for c in constants)])
