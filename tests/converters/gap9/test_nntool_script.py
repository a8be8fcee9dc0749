"""The script for NNTool names every decision by NNTool's names; scripts/peer nntool runs mixed settings in the tool."""

from __future__ import annotations

import ast

from tests.support.data import data_path
from tests.support.gap9_golden import quantized
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model

MIXED = ["0:use_ne16=false", "2:weight_bits=4", "4:weight_bits=3", "6:weight_bits=2"]


def options(target: str, sets: list[str], layers: list[str], name: str = "kws_ref_model") -> dict[str, dict]:
    model = read_model(data_path("models", f"{name}.tflite"))
    graph = quantized(model, target, sets, layers)
    text = find_target(target).emit(graph, model)["nntool.py"].decode()
    assigned = [n for n in ast.parse(text).body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
    return {n.targets[0].id: ast.literal_eval(n.value) for n in assigned}


def test_mixed_kws() -> None:
    found = options("gap9-ne16", [], MIXED)
    assert found["GRAPH_OPTIONS"] == {"use_ne16": True, "hwc": True, "clip_type": "none", "weight_bits": 8}
    assert found["NODE_OPTIONS"] == {
        "CONV_2D_0_0_fusion": {"use_ne16": False},
        "CONV_2D_0_2_fusion": {"weight_bits": 4},
        "CONV_2D_0_4_fusion": {"weight_bits": 3},
        "CONV_2D_0_6_fusion": {"weight_bits": 2},
    }


def test_options_of_the_graph() -> None:
    found = options("gap9-ne16", ["feature_bits=16", "max_precision_limit=1"], [])
    assert found["GRAPH_OPTIONS"]["force_input_size"] == found["GRAPH_OPTIONS"]["force_output_size"] == 16
    assert found["NODE_OPTIONS"]["CONV_2D_0_0_fusion"] == {"max_precision_limit": 1}
    found = options("gap9-sq8", ["softmax_out_8bits=true", "allow_asymmetric_out=true"], [])
    assert found["GRAPH_OPTIONS"]["use_ne16"] is False
    assert found["GRAPH_OPTIONS"]["allow_asymmetric_out"] is True
    assert found["NODE_OPTIONS"]["SOFTMAX_0_12"] == {"softmax_out_8bits": True}
