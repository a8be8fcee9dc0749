"""Results of four axes in the layout that is stated (tests/support/four_axes.py), in OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.four_axes import CASES, four_axes
from tests.support.openvino import Runtime, channels_first, files_of
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.graph import Model
from tflq.interpreter import Engine


@pytest.mark.parametrize("name", CASES)
def test_openvino_computes_the_same(name: str) -> None:
    graph, inputs = four_axes(name)
    written = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
    ours = Engine(written, OPENVINO.arithmetic).run(inputs)[written.outputs[0]]
    runtime = Runtime(*files_of(OPENVINO.emit(written, Model([graph], source="four.tflite"))))
    (theirs,) = runtime.run_all([channels_first(x) for x in inputs])
    assert ours.ndim == 5
    assert channels_first(ours).shape == theirs.shape
    assert np.allclose(channels_first(ours), theirs, rtol=1e-5, atol=1e-5)
