"""Attributes that layers have whatever the operator, as OpenVINO's operator pages name and mean them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from tests.converters.exchange.test_suppression import suppressed
from tests.support.exchange_forms import sheet
from tests.support.lstm import Lstm, lstm_graph
from tests.support.openvino import Runtime, files_of
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.reader import model_from_bytes
from tflq.converters.settings import parse_settings
from tflq.graph import DType, Graph, GraphBuilder, Model

FLOAT = DType.FLOAT32
POOL = {"rounding_type": "floor", "auto_pad": "explicit"}
ALWAYS: dict[str, dict[str, str]] = {
    "AvgPool": {**POOL, "exclude-pad": "true"},
    "Broadcast": {"mode": "numpy"},
    "Convolution": {"auto_pad": "explicit"},
    "ConvolutionBackpropData": {"auto_pad": "explicit", "dilations": "1, 1"},
    "DepthToSpace": {"mode": "blocks_first"},
    "Elu": {"alpha": "1.0"},
    "Gather": {"batch_dims": "0"},
    "GroupConvolution": {"auto_pad": "explicit"},
    "Interpolate": {"shape_calculation_mode": "sizes", "antialias": "false", "pads_begin": "0", "pads_end": "0",
                    "cube_coeff": "-0.75"},
    "LSTMSequence": {"direction": "forward", "activations": "sigmoid,tanh,tanh"},
    "MatMul": {"transpose_a": "false"},
    "MaxPool": POOL,
    "NonMaxSuppression": {"box_encoding": "corner", "sort_result_descending": "false", "output_type": "i64"},
    "NonZero": {"output_type": "i64"},
    "Pad": {"pad_mode": "constant"},
    "Reshape": {"special_zero": "false"},
    "ReverseSequence": {"batch_axis": "0", "seq_axis": "1"},
    "Round": {"mode": "half_to_even"},
    "ShapeOf": {"output_type": "i64"},
    "SpaceToDepth": {"mode": "blocks_first"},
    "TopK": {"sort": "value", "stable": "true", "index_element_type": "i64"},
    **{kind: {"auto_broadcast": "numpy"} for kind in (
        "Add", "Divide", "Equal", "FloorMod", "Greater", "LogicalAnd", "Maximum", "Multiply", "Power", "Select",
        "Subtract")},
}  # fmt: skip
SHEETS = ("windows", "upwards", "places", "parts", "products", "choices", "functions", "borders", "turns", "gathers",
          "div of two", "pow of two", "floor_mod of two", "equal of two")  # fmt: skip


def graphs() -> Iterator[Graph]:
    yield from (sheet(name)[0] for name in SHEETS)
    yield suppressed(3, 0.5, 0.25, None)
    b = GraphBuilder("places")
    number = b.add("fill", [b.constant("shape", np.array([2, 3], np.int32)), b.input("n", (), FLOAT)], (2, 3), FLOAT)
    yield b.build([b.add("where", [b.input("x", (2, 5), DType.BOOL)], (1, 2), DType.INT64), number])
    yield lstm_graph("unidirectional_sequence_lstm", Lstm(), "float", fused_activation_function="tanh")


@pytest.fixture(scope="module")
def written() -> dict[str, list[dict[str, str]]]:
    """Type of layer -> the attributes of each that is written."""
    found: dict[str, list[dict[str, str]]] = {}
    for graph in graphs():
        made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
        xml, _ = files_of(OPENVINO.emit(made, Model([graph], source="sheet.tflite")))
        for kind, data in re.findall(r'<layer [^>]*type="(\w+)"[^>]*>(?:<data([^>]*)/>)?', xml.decode()):
            found.setdefault(kind, []).append(dict(re.findall(r'(\S+)="([^"]*)"', data)))
    return found


@pytest.mark.parametrize("kind", ALWAYS)
def test_what_stands_in_every_layer(kind: str, written: dict[str, list[dict[str, str]]]) -> None:
    if kind not in written:
        pytest.fail(f"no sheet has a {kind}")
    for data in written[kind]:
        assert {key: data.get(key) for key in ALWAYS[kind]} == ALWAYS[kind]


def test_how_images_are_resized(written: dict[str, list[dict[str, str]]]) -> None:
    """Nearest: halves of aligned corners and half-pixel centers go up, other places down; bilinear has no rounding."""
    keys = ("mode", "coordinate_transformation_mode", "nearest_mode")
    found = {tuple(data[key] for key in keys) for data in written["Interpolate"]}
    places = ("asymmetric", "align_corners", "half_pixel")
    nearest = dict(zip(places, ("floor", "round_prefer_ceil", "round_prefer_ceil"), strict=True))
    assert found == {
        *(("linear_onnx", place, "floor") for place in places),
        *(("nearest", place, rounding) for place, rounding in nearest.items()),
    }


def test_names_of_inputs_and_outputs() -> None:
    """OpenVINO and our reader find them as the model names them, commas too; nothing else has a name."""
    b = GraphBuilder("named")
    x, y = b.input("x,1:0", (2, 3), FLOAT), b.input("\u00fc", (2, 3), FLOAT)
    total = b.tensor("a,b,c", (2, 3), FLOAT)
    b.node("add", [x, y], (total,))
    graph = b.build([b.add("relu", [total], (2, 3), FLOAT), total])
    names = [graph.tensors[t].name for t in (*graph.inputs, *graph.outputs)]
    made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, ["precision=float"]))
    xml, content = files_of(OPENVINO.emit(made, Model([graph], source="named.tflite")))
    model = Runtime(xml, content).model
    assert [port.get_names() for port in (*model.inputs, *model.outputs)] == [{name} for name in names]
    again = model_from_bytes(xml, content, "named.xml").main
    assert [again.tensors[t].name for t in again.inputs] == names[:2]
    assert len(re.findall(' names="', xml.decode())) == len(names)
