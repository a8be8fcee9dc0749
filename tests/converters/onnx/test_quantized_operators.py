"""Random quantized operators between QuantizeLinear and DequantizeLinear: TFLite's integers but for one step."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.support.exchange import cases_of, cells
from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import ONNX, supported_operators
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_model
from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import Engine

OTHERWISE = {"neg", "reduce_prod", "div", "scatter_nd"}
"""TFLite wraps, or overflows; of SCATTER_ND it leaves the code 0 where nothing is written, not the real 0."""
OF_TABLES = {"exp", "gelu", "log", "rsqrt", "softmax"}
"""Of 16 bits TFLite takes them from tables of few bits."""


@pytest.mark.parametrize("kind", ["int8q", "uint8q", "int16q"])
def test_within_one_step(kind: str) -> None:
    settings = parse_settings(ONNX.settings, ["form=qdq", "opset=21" if kind == "int16q" else "opset=13"])
    without = OTHERWISE | (OF_TABLES if kind == "int16q" else set())
    compared, wrong = set[str](), list[str]()
    for entry in (e for e in cells(supported_operators(), (kind,)) if e.cell.operator not in without):
        for case in cases_of(entry, 2, 3):
            model = settled_model(case.model)
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    graph = ONNX.quantize(model.main, settings)
                    ours = Engine(graph, ONNX.arithmetic, state="independent").run(case.inputs)
            except TflqError:
                continue
            (data,) = ONNX.emit(graph, model).values()
            for t, other in zip(graph.outputs, run_onnx(data, case.inputs), strict=True):
                mine, compared = ours[t], compared | {entry.cell.operator}
                if (
                    mine.shape != other.shape
                    or np.abs(mine.astype(np.float64) - other.astype(np.float64)).max(initial=0) > 1
                ):
                    wrong.append(f"{entry.cell}: {mine.shape} {other.shape}")
    assert wrong == []
    assert len(compared) > 45, sorted(compared)


def test_what_quantize_linear_does_not_write() -> None:
    b = GraphBuilder("wide")
    x = b.input("x", (1, 4), DType.INT8, Affine.per_tensor(np.float32(0.5)))
    y = b.add("quantize", [x], (1, 4), DType.INT32, Affine.per_tensor(np.float32(0.25), 0, 32))
    with pytest.raises(UnsupportedError, match="tensor 'quantize_0' is int32; QuantizeLinear has no such type"):
        ONNX.quantize(b.build([y]), parse_settings(ONNX.settings, ["form=qdq", "opset=21"]))


def test_channels_of_activations() -> None:
    b = GraphBuilder("channels")
    each = Affine(np.array([0.5, 0.25], np.float32), np.zeros(2, np.int64), 1)
    graph = b.build([b.add("tanh", [b.input("x", (1, 2), DType.INT8, each)], (1, 2), DType.INT8, each)])
    with pytest.raises(UnsupportedError, match="tensor 'x' is quantized per channel; activations have one scale"):
        ONNX.quantize(graph, parse_settings(ONNX.settings, ["form=qdq"]))
