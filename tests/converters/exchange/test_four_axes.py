"""Results of four axes in the layout that is stated (tests/support/four_axes.py), in onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.four_axes import CASES, four_axes
from tests.support.onnx_run import run_onnx, stated_values, wrongly_stated
from tflq.converters.onnx import ONNX
from tflq.converters.settings import parse_settings
from tflq.graph import Model
from tflq.interpreter import Engine


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_computes_the_same(name: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, inputs = four_axes(name)
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, [f"layout={layout}"]))
    with stated_values(monkeypatch) as stated:
        (data,) = ONNX.emit(written, Model([graph])).values()
    assert wrongly_stated(data, stated) == []
    ours = Engine(written, ONNX.arithmetic).run(inputs)[written.outputs[0]]
    (theirs,) = run_onnx(data, inputs, in_layout=layout == "nchw")
    assert ours.ndim == 5
    assert ours.shape == theirs.shape
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)
