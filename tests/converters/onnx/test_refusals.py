"""What cannot be written as ONNX, and what is missing to write it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.converters.onnx import ONNX, model_bytes, translate
from tflq.converters.settings import parse_settings
from tflq.errors import MissingExtraError, OptionError, UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def product(weights: DType, bias: Affine | None, dtype: DType = DType.INT8) -> Graph:
    b = GraphBuilder("fc")
    kind = Affine.per_tensor(np.float32(0.1))
    x = b.input("x", (1, 4), dtype, kind)
    w = b.constant("w", np.ones((2, 4), weights.storage), kind, weights)
    c = b.constant("b", np.ones(2, np.int32), bias)
    return b.build([b.add("fully_connected", [x, w, c], (1, 2), dtype, kind)])


def refused(graph: Graph, form: str) -> str:
    with pytest.raises((UnsupportedError, OptionError)) as caught:
        ONNX.quantize(graph, parse_settings(ONNX.settings, [f"form={form}"]))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_narrow_weights() -> None:
    message = refused(product(DType.INT4, Affine.per_tensor(np.float32(0.01))), "qdq")
    assert "operator 0 (fully_connected 'FULLY_CONNECTED_0_0'): tensor 'w' is int4" in message
    assert "from opset 21 on: set opset=21, or form=float" in message


def test_a_bias_without_a_scale() -> None:
    assert "bias 'b' has no scale; use form=float" in refused(product(DType.INT8, None), "qdq")


def test_wide_activations() -> None:
    graph = product(DType.INT8, Affine.per_tensor(np.float32(0.01)), DType.INT16)
    assert "is int16, which QuantizeLinear has from opset 21 on: set opset=21" in refused(graph, "qdq")
    assert ONNX.quantize(graph, parse_settings(ONNX.settings))


def test_a_constant_that_holds_an_open_batch() -> None:
    b = GraphBuilder("spread")
    x, shape = b.input("x", (2, 1, 3), DType.FLOAT32), b.constant("shape", np.array([2, 4, 3], np.int32))
    graph = b.build([b.add("broadcast_to", [x, shape], (2, 4, 3), DType.FLOAT32)])
    lines = ONNX.check(graph, parse_settings(ONNX.settings, ["batch=dynamic"]))
    assert lines == ("batch=dynamic: Expand 'broadcast_to_0' holds the batch; convert with batch=static",)


def test_a_float_model_needs_ranges() -> None:
    b = GraphBuilder("float")
    graph = b.build([b.add("relu", [b.input("x", (1, 4), DType.FLOAT32)], (1, 4), DType.FLOAT32)])
    assert "2 of 2 tensors have no range (first 'x')" in refused(graph, "qdq")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = translate(ONNX.quantize(product(DType.INT8, None), parse_settings(ONNX.settings)))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tflq\[onnx\]'"):
        model_bytes(graph)


def test_command_writes_one_file(tmp_path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    for form in ("float", "qdq"):
        done = tflq("convert", DIGITS, "-t", "onnx", "-s", f"form={form}", "-o", form, "--json", cwd=tmp_path)
        assert (done.status, done.err) == (0, "")
        assert [path.name for path in (tmp_path / form).iterdir()] == ["digits.onnx"]


def test_an_unknown_form_writes_nothing(tmp_path) -> None:
    line = tflq("convert", DIGITS, "-t", "onnx", "-s", "form=int4", "-o", "out", cwd=tmp_path).refused()
    assert "form=int4: allowed is float, qdq" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [0, 1])
def test_what_reads_a_refused_result_is_no_problem_of_its_own(place: int) -> None:
    b = GraphBuilder("behind")
    x = b.input("x", (1, 4), DType.FLOAT32)
    lost = b.add("unique", [x], (1, 4), DType.FLOAT32)
    both = [lost, x] if place == 0 else [x, lost]
    total = b.add("add", both, (1, 4), DType.FLOAT32)
    second = b.add("unique", [x], (1, 4), DType.FLOAT32)
    with pytest.raises(UnsupportedError) as caught:
        translate(b.build([b.add("relu", [total], (1, 4), DType.FLOAT32), second]))
    assert [words.split(" (")[0] for words in str(caught.value).split("; operator")] == ["operator 0", " 2"]
