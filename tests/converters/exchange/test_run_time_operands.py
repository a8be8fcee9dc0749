"""Operands that most files hold as constants, computed at run time, as ONNX in onnxruntime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tests.support.run_time_operands import Form, cases, unstated
from tflq.converters.onnx import ONNX
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Model
from tflq.interpreter import Engine

SETTINGS = parse_settings(ONNX.settings, ["opset=16"])


def written(form: Form, computed: int) -> dict[str, bytes]:
    graph, _ = form.graph(computed)
    return dict(ONNX.emit(ONNX.quantize(graph, SETTINGS), Model([graph])))


@pytest.mark.parametrize(("name", "form", "position"), [*cases("taken")], ids=str)
def test_onnxruntime_computes_the_same(name: str, form: Form, position: int) -> None:
    graph, inputs = form.graph(position)
    ours = Engine(graph, "float").run(inputs)[graph.outputs[0]]
    (data,) = written(form, position).values()
    (theirs,) = run_onnx(data, inputs)
    assert ours.shape == theirs.shape
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5), name


@pytest.mark.parametrize(("name", "form", "position"), [*cases("refused")], ids=str)
def test_what_must_be_constant(name: str, form: Form, position: int) -> None:
    where = rf"^operator 0 \({form.operator} .*'operand_{position}' is computed at run time; a constant is needed$"
    with pytest.raises(UnsupportedError, match=where):
        written(form, position)
    assert written(form, form.data), name


@pytest.mark.parametrize(("name", "form", "key"), [*unstated()], ids=str)
def test_an_option_that_is_not_stated(name: str, form: Form, key: str) -> None:
    bare = replace(form, options={k: v for k, v in form.options.items() if k != key})
    assert written(bare, form.data) == written(form, form.data), name
