"""An image that is flattened for products only stays in the order (c, h, w); for other readers it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import model_bytes, translate
from tflq.graph import DType, GraphBuilder


@pytest.mark.parametrize("readers", ["fc", "add", "fc add", "add fc", "fc fc", "add add"])
def test_readers_of_a_flattened_image(readers: str) -> None:
    b, draw, outputs, wanted = GraphBuilder("flat"), np.random.default_rng(2), [], []
    x = draw.normal(size=(3, 1, 2, 3, 4)).astype(np.float32)
    image = b.add("neg", [b.input("x", (1, 2, 3, 4), DType.FLOAT32)], (1, 2, 3, 4), DType.FLOAT32)
    flat = b.add("reshape", [image], (1, 24), DType.FLOAT32, new_shape=(1, 24))
    for number, reader in enumerate(readers.split()):
        values = draw.normal(size=(5 if reader == "fc" else 1, 24)).astype(np.float32)
        given = [flat, b.constant(f"c{number}", values)]
        rows = -x.reshape(3, 1, 24)
        if reader == "fc":
            outputs.append(b.add("fully_connected", given, (1, 5), DType.FLOAT32))
            wanted.append(rows @ values.T)
        else:
            outputs.append(b.add("add", given, (1, 24), DType.FLOAT32, fused_activation_function="none"))
            wanted.append(rows + values)
    for found, right in zip(run_onnx(model_bytes(translate(b.build(outputs))), [x]), wanted, strict=True):
        assert np.allclose(found, right, rtol=1e-5, atol=1e-5)
