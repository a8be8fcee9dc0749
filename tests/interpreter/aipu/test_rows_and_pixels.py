"""Softmax of short rows against its formula in Python's integers, and where pixels of resized images lie."""

from __future__ import annotations

from math import ceil, log2

import numpy as np
import pytest

from tests.support.types import INT8
from tflq.graph import Affine, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.resize import coordinates


def test_softmax_of_short_rows() -> None:
    b = GraphBuilder()
    x = b.input("x", (128, 3), INT8, Affine.per_tensor(0.06, 0, 8))
    y = b.add("softmax", [x], (128, 3), INT8, Affine.per_tensor(1 / 127, 0, 8), axis=1)
    graph = lower(b.build([y]), "aipu")
    params = graph.nodes[0].params
    assert params.is_small
    codes = np.random.default_rng(3).integers(-128, 128, (1, 128, 3)).astype(np.int8)
    found = Engine(graph).run([codes])[graph.outputs[0]][0]
    largest = int(params.table.entries.max())
    shift = 31 - ceil(log2(largest))
    m, n = int(params.rescale.first_m), int(params.rescale.first_n)
    for row, result in zip(codes[0].astype(int), found, strict=True):
        e = [int(params.table.lookup(np.int64(q - max(row) + params.span))) for q in row]
        shares = [((v << shift) + (sum(e) >> 1)) // sum(e) for v in e]
        assert result.tolist() == [min(round(z * m * 2.0 ** -(n + shift)), 127) for z in shares]


@pytest.mark.parametrize(
    ("old", "new", "mode", "places"),
    [
        (5, 1, "ALIGN_CORNERS", [0]),
        (5, 1, "PYTORCH_HALF_PIXEL", [0]),
        (5, 1, "HALF_PIXEL", [2]),
        (4, 2, "ALIGN_CORNERS", [0, 3]),
        (4, 2, "PYTORCH_HALF_PIXEL", [0.5, 2.5]),
    ],
)
def test_few_pixels(old: int, new: int, mode: str, places: list[float]) -> None:
    assert coordinates(old, new, mode).tolist() == places
