"""Reductions over every set of axes: the nodes that are written, and the numbers that onnxruntime computes."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import ONNX, OnnxOptions, model_bytes, translate
from tflq.converters.settings import parse_settings
from tflq.graph import DType, GraphBuilder

SHAPE = (2, 3, 4, 5)
AXES = [*chain.from_iterable(combinations(range(4), count) for count in range(5))]
KINDS = {
    "mean": np.mean, "sum": np.sum, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    "reduce_all": np.all, "reduce_any": np.any,
}  # fmt: skip


@pytest.mark.parametrize("operator", KINDS)
@pytest.mark.parametrize("keep", [False, True])
def test_every_set_of_axes(operator: str, keep: bool) -> None:
    dtype = DType.BOOL if operator in ("reduce_all", "reduce_any") else DType.FLOAT32
    draw = np.random.default_rng(len(operator))
    image = draw.random((2, *SHAPE)) < 0.5 if dtype is DType.BOOL else draw.uniform(-2, 2, (2, *SHAPE))
    image = image.astype(dtype.storage)
    for axes in AXES:
        wanted = KINDS[operator](image, axis=tuple(a + 1 for a in axes), keepdims=keep) if axes else image
        b = GraphBuilder("reduced")
        given = [b.input("x", SHAPE, dtype), b.constant("axes", np.array(axes, np.int32))]
        graph = b.build([b.add(operator, given, wanted.shape[1:], dtype, keep_dims=keep)])
        found = translate(ONNX.quantize(graph, parse_settings(ONNX.settings)), OnnxOptions())
        types = [node.op_type for node in found.nodes]
        # the order of the axes that stay decides; reductions over height and width need no other one
        assert types.count("Transpose") == (bool(axes) and not keep and axes != (1, 2)), axes
        (theirs,) = run_onnx(model_bytes(found), [image])
        assert theirs.dtype == dtype.storage
        assert np.allclose(theirs, wanted, rtol=1e-5, atol=1e-5), axes
