"""Concat and Where of branches whose types differ, beside their formulas in Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.types import INT8
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.branches import ConcatParams

UINT8, INT16 = DType.UINT8, DType.INT16
TYPES = {INT8: (8, True), UINT8: (8, False), INT16: (16, True)}


def _concat(
    branches: list[tuple[DType, float, int]], output: tuple[DType, float, int], codes: list[list[int]]
) -> tuple[ConcatParams, list[int]]:
    """Of rows of quantized values with type, s and zero point."""
    b = GraphBuilder()

    def affine(one: tuple[DType, float, int]) -> Affine:
        dtype, s, zero = one
        return Affine.per_tensor(1 / s, zero, *TYPES[dtype])

    named = enumerate(zip(branches, codes, strict=True))
    x = [b.input(f"x{k}", (len(row),), one[0], affine(one)) for k, (one, row) in named]
    y = b.add("concat", x, (sum(map(len, codes)),), output[0], affine(output), axis=0)
    graph = lower(b.build([y]), "aipu")
    given = [np.array([row], one[0].storage) for row, one in zip(codes, branches, strict=True)]
    params = graph.nodes[0].params
    assert isinstance(params, ConcatParams)
    return params, Engine(graph).run(given)[y][0].tolist()


@pytest.mark.parametrize("other", [UINT8, INT16])
def test_quantized_values_that_move_are_limited_to_the_outputs_type(other: DType) -> None:
    """Scales and zero points are equal, types are not."""
    beyond = [0, 127, 128, 200, 255]
    params, found = _concat([(INT8, 2.0, 0), (other, 2.0, 0)], (INT8, 2.0, 0), [[-128, 5], beyond])
    assert not params.rescales
    assert found == [-128, 5, 0, 127, 127, 127, 127]
    params, found = _concat([(other, 2.0, 0), (INT8, 2.0, 0)], (INT8, 2.0, 0), [beyond, [-128, 5]])
    assert found == [0, 127, 127, 127, 127, -128, 5]


@pytest.mark.parametrize(
    ("scales", "zero_points", "moves"),
    [
        ((1.0, 1.0, 1.0), (0, 0, 0), True),
        ((1.0, 1.04, 1.0), (3, 3, 3), True),
        ((1.0, 1.0, 1.04), (3, 3, 3), True),
        ((1.0, 1.06, 1.0), (0, 0, 0), False),
        ((1.06, 1.0, 1.0), (0, 0, 0), False),
        ((1.0, 1.0, 1.06), (0, 0, 0), False),
        ((1.0, 1.0, 1.0), (0, 1, 0), False),
        ((1.0, 1.0, 1.0), (0, 0, -1), False),
    ],
)
def test_branches_move_where_they_are_near(
    scales: tuple[float, ...], zero_points: tuple[int, ...], moves: bool
) -> None:
    """Within 1.05 of each other and of the output; else r = s_y / s_x in whole numbers."""
    codes = [[-100, -1, 0, 1, 90], [-50, 7]]
    *branches, output = [(INT8, s, z) for s, z in zip(scales, zero_points, strict=True)]
    params, found = _concat(branches, output, codes)
    assert (not params.rescales) == moves
    real = [(q - z) / s for row, (_, s, z) in zip(codes, branches, strict=True) for q in row]
    wanted = [q for row in codes for q in row] if moves else [round(r * output[1]) + output[2] for r in real]
    assert np.abs(np.array(found) - np.array(wanted)).max() <= (0 if moves else 1)
    if not moves:
        assert len(params.rescales) == 2
