"""CAST and BITCAST against TFLite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.draw import one_input
from tests.support.outputs import check_outputs
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower
from tflq.interpreter.kernels.plain.cast import _CAST as TYPES
from tflq.interpreter.kernels.plain.cast import _NARROW as NARROW

EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 2.7, -2.7, 127.5, 128.0, -128.9, -129.0, 255.9, 256.0]
EDGES += [32768.0, -32769.0, 65535.5, 65536.0, 2.0**31, -(2.0**31) - 500, 2.0**32, 2.0**63, -(2.0**63), 1e30, -1e30]
VISIBLE = [dtype for dtype in TYPES if dtype is not DType.BFLOAT16]
"""Types that TFLite's Python interface has a name for."""


def cast(shape, source, target):
    stated = {"in_data_type": source.value, "out_data_type": target.value}
    return one_input("cast", shape, (source, None), (target, None), **stated)


def values_of(dtype):
    kind, rng = dtype.storage, np.random.default_rng(1)
    if kind.kind == "c":
        return (rng.normal(size=100) * 300 + 1j * rng.normal(size=100)).astype(kind)[None]
    if dtype.is_floating:
        with np.errstate(over="ignore"):
            return np.concatenate([EDGES, rng.normal(size=100) * 300]).astype(kind)[None]
    if dtype is DType.BOOL:
        return np.array([[True, False]])
    return rng.integers(dtype.minimum, dtype.maximum, 200, kind, endpoint=True)[None]


@pytest.mark.parametrize("source", VISIBLE)
def test_every_pair(oracle, source):
    x = values_of(source)
    for target in VISIBLE:
        check_against_oracle(oracle, cast(x.shape[1:], source, target), [x])


@pytest.mark.parametrize("other", VISIBLE)
def test_through_bfloat16(oracle, other):
    """Its values show by way of another type."""
    x = values_of(other)
    b = GraphBuilder("cast")
    first = b.add("cast", [b.input("x", x.shape[1:], other)], x.shape[1:], DType.BFLOAT16)
    graph = b.build([b.add("cast", [first], x.shape[1:], FLOAT32)])
    back = b.build([b.add("cast", [first], x.shape[1:], other)])
    for built in (graph, back):
        check_outputs(oracle, built, [x])


@pytest.mark.parametrize("narrow", NARROW)
def test_narrow_integers_and_back(oracle, narrow):
    x = values_of(FLOAT32)
    b = GraphBuilder("cast")
    first = b.add("cast", [b.input("x", x.shape[1:], FLOAT32)], x.shape[1:], narrow)
    check_outputs(oracle, b.build([b.add("cast", [first], x.shape[1:], FLOAT32)]), [x])


@pytest.mark.parametrize(
    ("source", "target", "shape", "output"),
    [
        (FLOAT32, DType.INT32, (3, 4), (3, 4)),
        (FLOAT32, DType.UINT8, (3, 4), (3, 4, 4)),
        (DType.INT16, DType.INT64, (3, 4), (3,)),
        (DType.INT64, DType.FLOAT32, (2,), (2, 2)),
        (DType.UINT16, DType.FLOAT16, (5,), (5,)),
        (DType.INT4, DType.UINT4, (3, 4), (3, 4)),
        (DType.UINT4, DType.INT4, (6,), (6,)),
    ],
)
def test_bitcast(oracle, source, target, shape, output):
    graph = one_input("bitcast", shape, (source, None), (target, None), output)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 3))


def test_refusals():
    with pytest.raises(UnsupportedError, match="int4 is cast from and to float32 only"):
        lower(cast((2,), DType.INT4, DType.INT8))
    with pytest.raises(UnsupportedError, match="takes types of whole bytes"):
        lower(one_input("bitcast", (2,), (DType.INT4, None), (DType.INT8, None)))
    with pytest.raises(GraphError, match="must end with an axis of 4"):
        lower(one_input("bitcast", (3, 2), (DType.INT8, None), (FLOAT32, None), (3,)))
