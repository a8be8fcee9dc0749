"""What Zhouyi cannot take of TFLite's operators: found, allowed and what to do, before anything is converted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflq.converters.aipu import AIPU
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder

X = (1, 4, 4, 3)


def _single(operator: str, inputs: list[tuple[int, ...] | np.ndarray], **options: Any) -> Graph:
    """One operator; shapes are inputs, arrays constants."""
    builder = GraphBuilder()
    operands = [
        builder.constant(f"c{i}", given)
        if isinstance(given, np.ndarray)
        else builder.input(f"x{i}", given, DType.FLOAT32)
        for i, given in enumerate(inputs)
    ]
    return builder.build((builder.add(operator, operands, X, DType.FLOAT32, **options),))


AXIS = np.array([1], np.int32)
REFUSALS = [
    (_single("strided_slice", [X, AXIS, AXIS, AXIS], ellipsis_mask=1), "ellipsis_mask set; allowed are begin, end"),
    (_single("strided_slice", [X, AXIS, AXIS, AXIS], offset=True), "offset set; allowed are begin, end"),
    (_single("reverse_v2", [X, np.array([1, 2], np.int32)]), "2 axes of 4; allowed is one of two or more"),
    (_single("depth_to_space", [(4, 3)], block_size=2), "its input has the shape (4, 3); allowed are 4 axes"),
    *(
        (_single(operator, [(4, 3), AXIS]), "its input has the shape (4, 3); allowed are 4 axes")
        for operator in ("resize_nearest_neighbor", "resize_bilinear", "average_pool_2d", "max_pool_2d")
    ),
    (_single("add", [X, np.array([1e12], np.float32)]), "its input 1 holds 1e+12; allowed are whole numbers of 32"),
    (
        _single("space_to_batch_nd", [X, AXIS, np.zeros((1, 2), np.int32)]),
        "blocks along 1 axes of 4; allowed are 1 of 3",
    ),
    (_single("cumsum", [X, (1,)]), "its input 1 is computed at run time; allowed is a constant"),
    (_single("cast", [X]), "from float32 to float32; allowed is from or to integers: take it out"),
    (_single("div", [X, X], fused_activation_function="sign_bit"), "fused activation sign_bit has no mapping"),
    (_single("sub", [X]), "its input 1 is missing; the operator has 2"),
    (_single("conv_2d", [X, (3, 1, 1, 3)]), "weights or bias are computed at run time; allowed are constants"),
]


@pytest.mark.parametrize(("graph", "message"), REFUSALS)
def test_restrictions(graph: Graph, message: str) -> None:
    (line,) = AIPU.check(graph, parse_settings(AIPU.settings))
    assert message in line
    with pytest.raises(UnsupportedError):
        AIPU.quantize(graph, parse_settings(AIPU.settings))


def test_arithmetic_on_integers_is_refused() -> None:
    builder = GraphBuilder()
    x = builder.input("x", X, DType.INT32)
    graph = builder.build((builder.add("exp", (x,), X, DType.INT32),))
    (line,) = AIPU.check(graph, parse_settings(AIPU.settings))
    assert "its input is int32; allowed are real numbers" in line
