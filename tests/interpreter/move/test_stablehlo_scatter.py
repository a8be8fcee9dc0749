"""STABLEHLO_SCATTER against TFLite: a model of two graphs, the second holds the computation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.move.test_gather import operand
from tests.support.draw import shapes
from tests.support.nodes import Result, build, few, fixed, sampled, values
from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

COMPUTATIONS = [None, "stablehlo_add", "stablehlo_multiply", "stablehlo_maximum", "stablehlo_minimum"]
TYPES = [
    DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8,
    DType.UINT16, DType.UINT32, DType.UINT64, DType.BOOL,
]  # fmt: skip
NUMBERS = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0, 1),
    "index_vector_dim": 1,
    "update_computation_subgraph_index": 1,
}


def computation(names: list[str], dtype: DType) -> Graph:
    b = GraphBuilder("computation")
    old, new = (b.input(name, (), dtype) for name in ("old", "new"))
    result = new
    for name in names:
        result = b.add(name, [old, result], (), dtype)
    return b.build([result])


def check(oracle, operands, dtype, name, **numbers):
    shape = operands[0].value.shape[0 if operands[0].constant else 1 :]
    graph = build("stablehlo_scatter", operands, [Result(dtype)], [shape], **numbers)
    kind = dtype if name in (None, "stablehlo_add") and dtype is DType.FLOAT32 else DType.FLOAT32
    content = model_to_bytes(Model([graph, computation([] if name is None else [name], kind)]))
    model = model_from_bytes(content, "scatter")
    inputs = [x.value for x in operands if not x.constant]
    judged = oracle.run(content, inputs).outputs[0]
    assert_same_bits(Engine(model.main, graphs=model.graphs).run(inputs)[model.main.outputs[0]], judged, "result")


@pytest.mark.parametrize("name", COMPUTATIONS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_type(oracle, dtype, name):
    indices = np.array([[0, 1], [2, -1], [0, 1], [9, 0], [0, 2]])
    operands = [sampled(values(0, (2, 3, 5), dtype)), fixed(indices), sampled(values(1, (2, 5, 2), dtype))]
    check(oracle, operands, dtype, name, **NUMBERS)


@st.composite
def scatters(draw):
    """Shapes of input, indices and updates, and dimension numbers that fit them."""
    shape = draw(shapes(3, 4))
    rank = len(shape)
    inserted = sorted(draw(st.sets(st.sampled_from(range(rank)))))
    mapped = draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))]
    batch = draw(shapes(2, 3))
    vector = draw(st.integers(0, len(batch)))
    total = len(batch) + rank - len(inserted)
    windows = sorted(draw(st.permutations(range(total)))[: rank - len(inserted)])
    sizes = iter([draw(st.integers(1, n)) for i, n in enumerate(shape) if i not in inserted])
    rest = iter(batch)
    updates = tuple(next(sizes) if i in windows else next(rest) for i in range(total))
    numbers = NUMBERS | {
        "update_window_dims": tuple(windows),
        "inserted_window_dims": tuple(inserted),
        "scatter_dims_to_operand_dims": tuple(mapped),
        "index_vector_dim": vector,
    }
    return shape, (*batch[:vector], len(mapped), *batch[vector:]), updates, numbers


@pytest.mark.parametrize(
    "which", [(True, False, False), (False, True, False), (False, False, True), (True, True, True)]
)
@few
@given(drawn=scatters(), name=st.sampled_from(COMPUTATIONS), seed=st.integers(0, 99))
def test_dimension_numbers(oracle, which, drawn, name, seed):
    shape, indices, updates, numbers = drawn
    arrays = (
        values(seed, (2, *shape), DType.INT8),
        values(seed, (2, *indices), DType.INT32) % 5 - 1,
        values(seed + 1, (2, *updates), DType.INT8),
    )
    operands = [operand(array, w) for array, w in zip(arrays, which, strict=True)]
    check(oracle, operands, DType.INT8, name, **numbers)


def test_special_floats(oracle):
    x = sampled(np.array([[np.nan, 1, -0.0, 0.0]], np.float32))
    updates = sampled(np.array([[[1], [np.nan], [0.0], [-0.0]]], np.float32))
    for name in COMPUTATIONS[1:]:
        numbers = NUMBERS | {"inserted_window_dims": (), "scatter_dims_to_operand_dims": (0,)}
        check(oracle, [x, fixed([[0], [1], [2], [3]]), updates], DType.FLOAT32, name, **numbers)


@pytest.mark.parametrize(
    ("names", "changes", "message"),
    [
        (["stablehlo_add", "stablehlo_add"], {}, "a single operator"),
        (["mul"], {}, "the computation is mul"),
        ([], {"update_computation_subgraph_index": 2}, "0..1"),
        ([], {"index_vector_dim": 2}, "do not fit"),
        ([], {"update_window_dims": (0, 1)}, "do not fit"),
        ([], {"scatter_dims_to_operand_dims": (0, 2)}, "do not fit"),
    ],
)
def test_refused(names, changes, message):
    operands = [sampled(values(0, (1, 3, 5), DType.INT8)), fixed([[0, 1]]), fixed(values(1, (1, 2), DType.INT8))]
    graph = build("stablehlo_scatter", operands, [Result(DType.INT8)], [(3, 5)], **(NUMBERS | changes))
    with pytest.raises((GraphError, UnsupportedError), match=message):
        Engine(graph, graphs=[graph, computation(names, DType.FLOAT32)])
