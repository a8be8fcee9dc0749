"""REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW against TFLite, beyond what the table of conformance draws."""

from __future__ import annotations

import numpy as np
import pytest

from tests.interpreter.move.test_stablehlo_scatter import computation
from tests.support.nodes import Result, build, check, check_refused, fixed, long, sampled, values
from tests.support.single_op import assert_same_bits
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Model
from tflq.interpreter import Engine
from tflq.interpreter.kernels.plain.windows import TYPES

FOLDS = ["add", "mul", "minimum", "maximum", "all", "any"]
SIZES = [long([2, 3]), long([1, 2]), long([1, 2])]


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.value)
def test_every_function_in_every_type(oracle, dtype, name):
    operands = [sampled(values(0, (3, 4, 7), dtype)), sampled(values(1, (3,), dtype)), *SIZES]
    check(oracle, "reduce_window", operands, [dtype], reduce_function=name)


@pytest.mark.parametrize("sizes", [([0, 3], [1, 1], [1, 1]), ([2, 2], [3, 1], [0, 4]), ([5, 1], [1, 1], [1, 1])])
def test_empty_windows_and_no_distance(oracle, sizes):
    operands = [sampled(values(0, (3, 4, 7), DType.INT32)), fixed(3), *map(long, sizes)]
    check(oracle, "reduce_window", operands, [DType.INT32], reduce_function="add")


def test_special_floats(oracle):
    x = np.array([[np.nan, 1, -0.0, 0.0, np.inf, -np.inf, 0.0, -0.0, np.nan]], np.float32)
    for name in FOLDS:
        for start in (np.nan, 0.0, -0.0):
            operands = [sampled(x), fixed(np.float32(start)), long([2]), long([1]), long([1])]
            check(oracle, "reduce_window", operands, [DType.FLOAT32], reduce_function=name)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [([[2, 3], [0, 1], [1, 1]], "are the least"), ([[2], [1, 1], [1, 1]], "1 numbers for 2 axes")],
)
def test_sizes_refused(sizes, message):
    operands = [sampled(values(0, (1, 4, 7), DType.INT32)), fixed(0), *map(long, sizes)]
    graph = build("reduce_window", operands, [Result(DType.INT32)], [(1, 1)], reduce_function="add")
    with pytest.raises(GraphError, match=message):
        Engine(graph)


def test_refused_as_by_tflite(oracle):
    operands = [sampled(values(0, (1, 4, 7), DType.INT32)), fixed(0)]
    kind = [DType.INT32]
    check_refused(oracle, "reduce_window", [*operands, *SIZES], kind, "folded with", reduce_function="unsupported")
    sizes = [sampled(np.array([[2, 3]], np.int64)), *SIZES[1:]]
    check_refused(oracle, "reduce_window", [*operands, *sizes], kind, "takes a constant", reduce_function="add")


def stablehlo(body: list[str], dtype: DType, **sizes: tuple[int, ...]) -> tuple[Model, list[np.ndarray]]:
    operands = [sampled(values(0, (3, 4, 5), dtype)), sampled(values(1, (3,), dtype))]
    sizes = {"window_dimensions": (2, 2)} | sizes
    graph = build("stablehlo_reduce_window", operands, [Result(dtype)], [(1, 1)], body_subgraph_index=1, **sizes)
    return Model([graph, computation(body, DType.FLOAT32)]), [x.value for x in operands]


@pytest.mark.parametrize("body", ["add", "mul", "minimum", "maximum", "stablehlo_add", "stablehlo_multiply"])
@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"padding": (-1, 2, 3, -2), "base_dilations": (2, 1), "window_strides": (2, 1)},
        {"padding": (-5, 7, 0, 0), "window_dilations": (1, 2)},
        {"padding": (0, 0, -3, -1)},
    ],
    ids=str,
)
def test_bodies_and_cropping(oracle, body, sizes):
    model, inputs = stablehlo([body], DType.INT16, **sizes)
    content = model_to_bytes(model)
    read = model_from_bytes(content, "windows")
    ours = Engine(read.main, graphs=read.graphs).run(inputs)[read.main.outputs[0]]
    assert_same_bits(ours, oracle.run(content, inputs).outputs[0], "windows")


@pytest.mark.parametrize(
    ("body", "sizes", "message"),
    [
        (["sub"], {}, "folded with sub"),
        (["stablehlo_add", "stablehlo_add"], {}, "a single operator"),
        (["stablehlo_add"], {"padding": (-2, -2, 0, 0)}, "leaves nothing"),
        (["stablehlo_add"], {"window_strides": (0, 1)}, "1 is the least"),
        (["stablehlo_add"], {"window_dimensions": (2,)}, "needs 2 numbers"),
    ],
)
def test_stablehlo_refused(body, sizes, message):
    model, _ = stablehlo(body, DType.INT16, **sizes)
    with pytest.raises((GraphError, UnsupportedError), match=message):
        Engine(model.main, graphs=model.graphs)
