"""Keyword spotting in NNIE's quantized values, calibrated on the first 100 clips.

And in OpenCV from the emitted package.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.kws import clips, right
from tests.support.nnie import quantized, run_in_opencv
from tflq.converters.nnie import NNIE
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.graph import float_view
from tflq.interpreter import Engine


# The published simulation has 90.6 % and 90.1 % of 1000 clips; allowed are 0.5 and 0.3 points.
@pytest.mark.parametrize(("bits", "published", "allowed", "expected"), [(8, 906, 5, 902), (16, 901, 3, 899)])
def test_keyword_spotting(bits: int, published: int, allowed: int, expected: int) -> None:
    model = read_model(data_path("models", "kws_ref_model_float32.tflite"))
    x, labels = clips()
    graph = quantized(model.main, [x[:100]], [f"bits={bits}"])
    found = right(Engine(graph, "nnie").run([x])[graph.outputs[0]], labels)
    assert abs(found - published) <= allowed
    assert found == expected


@pytest.mark.parametrize(("bits", "expected"), [(8, 903), (16, 901)])
def test_a_quantized_file_brings_its_ranges(bits: int, expected: int) -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    x, labels = clips()
    graph = NNIE.quantize(model.main, parse_settings(NNIE.settings, [f"bits={bits}"]))
    assert right(Engine(graph, "nnie").run([x])[graph.outputs[0]], labels) == expected


def test_opencv_reads_the_package() -> None:
    model = read_model(data_path("models", "kws_ref_model_float32.tflite"))
    x, labels = clips()
    files = NNIE.emit(quantized(model.main, [x[:100]]), model)
    found = run_in_opencv(files, [x]).reshape(1000, -1)
    view = float_view(model.main)
    ours = Engine(view, "float").run([x])[view.outputs[0]].reshape(1000, -1)
    assert np.abs(found - ours).max() <= 1e-4 * (ours.max() - ours.min())
    assert right(found, labels) == right(ours, labels) == 901
