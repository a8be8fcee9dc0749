"""The 900 keyword clips behind the calibration set: the vendor's own counts, the lowest index on ties."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest

from tests.support.aipu_golden import KWS, read_ir, with_ranges
from tests.support.data import data_path
from tests.support.kws import clips, right
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import dequantized
from tflq.converters.tflite import read_model
from tflq.graph import Graph
from tflq.interpreter import Engine, lower


def _count(graph: Graph, sets: list[str], first: int) -> int:
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, sets)), "aipu")
    real, labels = clips()
    codes = AIPU.encode(real[first:], quantized.tensors[quantized.inputs[0]])
    output = quantized.outputs[0]
    return right(np.asarray(Engine(quantized).run([codes], [output])[output]), labels[first:])


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (["activations=symmetric", "weights=per_tensor"], 808),
        (["activations=symmetric", "weights=per_channel"], 811),
        (["activations=asymmetric", "weights=per_tensor"], 811),
        (["activations=asymmetric", "weights=per_channel"], 814),
        (["activation_bits=16", "weight_bits=16", "lut_items_in_bits=10"], 808),
    ],
)
def test_float_model_with_the_vendors_ranges(sets: list[str], expected: int) -> None:
    folder = data_path("golden", "aipu", KWS)
    layers = json.loads((folder / "sym_pt" / "layers.json").read_text(encoding="utf-8"))
    graph = with_ranges(graph_of(read_ir(folder / "float_ir", "kws_ref_model_float32")), layers)
    assert _count(graph, sets, 100) == expected


@lru_cache
def calibrated(strategy: str) -> Graph:
    """The float model with tflq's own ranges of the first 100 clips, in batches of 10."""
    model = dequantized(read_model(data_path("models", "kws_ref_model_float32.tflite")))
    return calibrate(model.main, [clips()[0][:100]], StatisticsOptions(strategy, 10))


@pytest.mark.parametrize(
    ("strategy", "sets", "vendors", "ours"),
    [
        ("mean", (), 808, 808),
        ("mean", ("weights=per_channel",), 811, 811),
        ("mean", ("activations=asymmetric",), 811, 811),
        ("mean", ("activations=asymmetric", "weights=per_channel"), 814, 815),
        ("compass-percentile", (), 808, 808),
        ("aciq-laplace", (), 803, 803),
        ("aciq-gauss", (), 766, 766),
        ("compass-kld", (), 785, 786),
        ("3std", (), 728, 728),
        ("2std", (), 588, 588),
    ],
)
def test_float_model_calibrated_here(strategy: str, sets: tuple[str, ...], vendors: int, ours: int) -> None:
    """Ranges differ from the vendor's by 2^-20 of their value (docs/guides/calibration.md), which moves one clip
    twice."""
    assert _count(calibrated(strategy), list(sets), 100) == ours
    assert abs(ours - vendors) <= 1


def test_int8_model_directly() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    real, labels = clips()
    tensor = model.main.tensors[model.main.inputs[0]]
    codes = np.rint(real / tensor.affine.scale[0] + tensor.affine.zero_point[0]).astype(np.int8)
    output = model.main.outputs[0]
    reference = right(np.asarray(Engine(lower(model.main)).run([codes], [output])[output]), labels)
    assert abs(_count(model.main, [], 0) - reference) <= 5
