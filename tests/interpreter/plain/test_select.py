"""SELECT and SELECT_V2 against TFLite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.draw import affine
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower

TYPES = [DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.INT64, INT16, INT8, DType.UINT8, DType.BOOL]


def select(operator, condition, x, y, output, dtype=INT8, quantization=None):
    b = GraphBuilder(operator)
    operands = [b.input("condition", condition, DType.BOOL)]
    operands += [b.input(name, shape, dtype, quantization) for name, shape in (("x", x), ("y", y))]
    return b.build([b.add(operator, operands, output, dtype, quantization)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operator", ["select", "select_v2"])
def test_types(oracle, operator, dtype):
    graph = select(operator, *[(3, 4)] * 4, dtype)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 5))


@pytest.mark.parametrize("condition", [(), (3,), (3, 4, 2)])
def test_shapes_of_the_condition(oracle, condition):
    graph = select("select", condition, *[(3, 4, 2)] * 3, INT16, affine(INT16, 0.5))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 5))


@pytest.mark.parametrize(
    ("condition", "x", "y", "output"),
    [
        ((4,), (3, 1), (1,), (3, 4)),
        ((2, 1, 1, 1, 3), (2, 1), (2, 1, 1), (2, 1, 2, 2, 3)),
        ((), (2, 3), (), (2, 3)),
        ((1, 1), (1,), (), (1,)),
    ],
)
def test_broadcast(oracle, condition, x, y, output):
    graph = select("select_v2", condition, x, y, output, DType.FLOAT32)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 5))


def test_refusals():
    with pytest.raises(GraphError, match="takes equal ones"):
        lower(select("select", (3,), (3, 4), (3, 1), (3, 4)))
    with pytest.raises(GraphError, match="fits neither"):
        lower(select("select", (4,), (3, 4), (3, 4), (3, 4)))
    with pytest.raises(GraphError, match="do not broadcast"):
        lower(select("select_v2", (2,), (3, 4), (3, 4), (3, 4)))
    with pytest.raises(UnsupportedError, match="8, 16, 32 or 64 bits"):
        lower(select("select_v2", (2,), (2,), (2,), (2,), DType.COMPLEX128))
