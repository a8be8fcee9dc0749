"""Every form of an operator, many in one file (tests/support/exchange_forms.py), in onnxruntime.

Rules that write something else for OpenVINO run there, too; all sheets do in tests/converters/openvino.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.support.exchange_forms import SHEETS, sheet
from tests.support.onnx_run import run_onnx, stated_values, wrongly_stated
from tests.support.openvino import Runtime, channels_first, files_of
from tflq.converters.onnx import ONNX
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.graph import Model
from tflq.interpreter import Engine

OF_OTHER_ORDERS = ("turns", "upwards", "products")
"""Sheets whose operators put axes in another order themselves."""


def turned_twice(data: bytes) -> list[str]:
    """Return the values that come in another layout more than once; one of the two may be an output of the network."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    graph = onnx.load_from_string(data).graph
    ends = {value.name for value in graph.output}
    sources = Counter(n.input[0] for n in graph.node if n.op_type == "Transpose" and n.output[0] not in ends)
    return [name for name, count in sources.items() if count > 1]


@pytest.mark.parametrize("options", [["opset=13"], ["opset=21", "layout=nhwc"]], ids=str)
@pytest.mark.parametrize("name", SHEETS)
def test_onnxruntime_computes_the_same(name: str, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    graph, inputs = sheet(name)
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, options))
    with stated_values(monkeypatch) as stated:
        (data,) = ONNX.emit(written, Model([graph])).values()
    assert wrongly_stated(data, stated) == []
    assert name in OF_OTHER_ORDERS or turned_twice(data) == []
    ours = Engine(written, ONNX.arithmetic).run(inputs)
    theirs = run_onnx(data, inputs, in_layout=len(options) == 1)
    for t, other in zip(written.outputs, theirs, strict=True):
        where = f"{written.tensors[t].name}: "
        assert ours[t].shape == other.shape, where
        assert ours[t].dtype == other.dtype, where
        assert np.allclose(ours[t], other, rtol=1e-5, atol=1e-5 * float(np.abs(ours[t]).max())), where


@pytest.mark.parametrize("name", ["floor_mod of two", "functions", "reduce_any of all axes", "reduce_all of all axes"])
def test_what_openvino_has_and_onnx_has_not(name: str) -> None:
    graph, inputs = sheet(name)
    written = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
    ours = Engine(written, OPENVINO.arithmetic).run(inputs)
    runtime = Runtime(*files_of(OPENVINO.emit(written, Model([graph], source="sheet.tflite"))))
    for t, other in zip(written.outputs, runtime.run_all([channels_first(x) for x in inputs]), strict=True):
        mine = channels_first(ours[t])
        assert np.allclose(mine, other, rtol=1e-5, atol=1e-5 * float(np.abs(mine).max())), written.tensors[t].name
