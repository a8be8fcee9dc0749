"""MatMul and the positive number that its product is multiplied by: merged, but where the number is read twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.aipu import AIPU
from tflq.converters.settings import parse_settings
from tflq.graph import DType, Graph, Range
from tflq.graph.builder import GraphBuilder


def _products(count: int, number: float) -> Graph:
    """So many products of 4 x 4 matrices, one behind the other, all multiplied by the same constant."""
    builder = GraphBuilder()
    x = y = builder.input("x", (1, 4, 4), DType.FLOAT32)
    factor = builder.constant("factor", np.float32(number))
    for _ in range(count):
        product = builder.add("batch_matmul", (x, y), (1, 4, 4), DType.FLOAT32, adj_x=False, adj_y=False)
        y = builder.add("mul", (product, factor), (1, 4, 4), DType.FLOAT32, fused_activation_function="none")
    graph = builder.build((y,))
    one = Range(np.array([-1], np.float32), np.array([1], np.float32))
    graph.tensors[:] = [t if t.data is not None else replace(t, range=one) for t in graph.tensors]
    return graph


@pytest.mark.parametrize(
    ("count", "number", "wanted"),
    [
        (1, 0.5, {"mat_mul": 1, "crop": 1}),
        (1, -0.5, {"mat_mul": 1, "batch_norm": 1}),
        (2, 0.5, {"mat_mul": 2, "constant": 1, "mul": 2}),
    ],
)
def test_a_number_that_is_read_once_is_merged(count: int, number: float, wanted: dict[str, int]) -> None:
    graph = AIPU.quantize(_products(count, number), parse_settings(AIPU.settings))
    assert Counter(node.operator for node in graph.nodes) == wanted
