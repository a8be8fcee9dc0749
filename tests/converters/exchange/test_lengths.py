"""L2_NORMALIZATION of vectors around the least length, 1e-6 (TFLite's reference: x / max(sqrt(sum), 1e-6))."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import model_bytes, translate
from tflq.graph import DType, GraphBuilder


@pytest.mark.parametrize("length", [0, 1e-8, 5e-7, 9e-7, 1.1e-6, 1.5e-6, 3e-6, 1])
def test_the_least_length(length: float) -> None:
    b = GraphBuilder("length")
    graph = b.build([b.add("l2_normalization", [b.input("x", (1, 2), DType.FLOAT32)], (1, 2), DType.FLOAT32)])
    x = np.array([[[3, -4]]]) / 5 * length
    (found,) = run_onnx(model_bytes(translate(graph)), [x.astype(np.float32)])
    assert np.allclose(found, x / max(length, 1e-6), rtol=1e-5, atol=0)
