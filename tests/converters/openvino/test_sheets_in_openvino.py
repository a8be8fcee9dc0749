"""Every form of an operator, many in one file (tests/support/exchange_forms.py), in OpenVINO's runtime."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.exchange_forms import SHEETS, sheet
from tests.support.openvino import Runtime, channels_first, files_of
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.graph import Model
from tflq.interpreter import Engine


@pytest.mark.parametrize("name", SHEETS)
def test_openvino_computes_the_same(name: str) -> None:
    graph, inputs = sheet(name)
    written = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
    ours = Engine(written, OPENVINO.arithmetic).run(inputs)
    runtime = Runtime(*files_of(OPENVINO.emit(written, Model([graph], source="sheet.tflite"))))
    theirs = runtime.run_all([channels_first(x) for x in inputs])
    for t, other in zip(written.outputs, theirs, strict=True):
        where, mine = f"{written.tensors[t].name}: ", channels_first(ours[t])
        assert mine.shape == other.shape, where
        assert mine.dtype == other.dtype, where
        assert np.allclose(mine, other, rtol=1e-5, atol=1e-5 * float(np.abs(mine).max())), where
