"""TFLiteConverter's own files: float16, dynamic range and uint8 borders, made by tflq of the float and int8 ones."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.converters.tflite_quantizer.helpers import quantize, same_in_tflite
from tests.support.data import data_files
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import model_from_bytes, read_model
from tflq.converters.tflite_quantizer import TFLITE
from tflq.converters.tflite_quantizer.scales import weight_codes, weights
from tflq.graph import ABSENT, DType, Graph, GraphBuilder, Model, pruned
from tflq.oracle import Oracle

FLOATS = [
    path
    for path in data_files("cases", "keras", pattern="*.float.tflite")[::2]
    if not re.search("lstm|gru_(last|seq)|bidirectional", path.name)  # they run other graphs
]
INTEGERS = [p for p in data_files("cases", "keras", pattern="*.int8.tflite") if p.name < "e"]
FILES = {
    "float16": ("type=float16",),
    "dynamic": ("type=hybrid", "least_weights=1024", "asymmetric_inputs=true"),
}


def made(path: Path, settings: tuple[str, ...]) -> Graph:
    model = read_model(path)
    quantized = TFLITE.quantize(settled_graph(model.main), parse_settings(TFLITE.settings, settings))
    (content,) = TFLITE.emit(quantized, model).values()
    return model_from_bytes(content).main


def content(graph: Graph) -> Counter[object]:
    """Return operators, and what they read and write: types, scales, and the bytes of constants."""
    graph = pruned(settled_graph(graph))
    found: Counter[object] = Counter(node.operator for node in graph.nodes)
    for node in graph.nodes:
        for t in (*node.inputs, *node.outputs):
            if t != ABSENT:
                tensor = graph.tensors[t]
                scales = None if tensor.quantization is None else tensor.affine.scale.tobytes()
                found[node.operator, tensor.dtype, scales, None if tensor.data is None else tensor.data.tobytes()] += 1
        if node.operator == "fully_connected":
            found[node.attributes.boolean("asymmetric_quantize_inputs", False)] += 1
    return found


@pytest.mark.parametrize("scheme", FILES)
@pytest.mark.parametrize("path", FLOATS, ids=lambda path: path.name.partition(".")[0])
def test_the_file_is_the_converters(path: Path, scheme: str) -> None:
    theirs = read_model(path.with_name(path.name.replace(".float.", f".{scheme}.")))
    assert content(made(path, FILES[scheme])) == content(theirs.main)


@pytest.mark.parametrize("path", INTEGERS, ids=lambda path: path.name.partition(".")[0])
def test_uint8_borders_are_the_converters(path: Path) -> None:
    theirs = read_model(path.with_name(path.name.replace(".int8.", ".int8_uint8_io."))).main
    ours = made(path, ("inputs=uint8", "outputs=uint8"))
    for mine, yours in zip((*ours.inputs, *ours.outputs), (*theirs.inputs, *theirs.outputs), strict=True):
        a, b = ours.tensors[mine], theirs.tensors[yours]
        assert a.dtype is b.dtype is DType.UINT8
        assert a.affine.zero_point.tolist() == b.affine.zero_point.tolist()
        assert np.allclose(a.affine.scale, b.affine.scale, rtol=1e-6, atol=0)  # of the int8 file, dequantized and back


def small() -> Model:
    draw = np.random.default_rng(8)
    b = GraphBuilder("small")
    x = b.input("x", (1, 3, 3, 4), DType.FLOAT32)
    w = b.constant("w", draw.normal(size=(5, 2, 2, 4)).astype(np.float32))
    shape = b.constant("shape", np.array([1, 6, 6, 5], np.int32))
    y = b.add("transpose_conv", [shape, w, x], (1, 6, 6, 5), DType.FLOAT32, padding="same", stride_h=2, stride_w=2,
              fused_activation_function="none")  # fmt: skip
    limit = b.constant("limit", np.array([1e6], np.float32))
    return Model([b.build([b.add("minimum", [y, limit], (1, 6, 6, 5), DType.FLOAT32)])])


@pytest.mark.parametrize(
    "settings",
    [("inputs=uint8", "outputs=uint8"), ("type=float16",), ("type=hybrid",), ("type=hybrid", "least_weights=99")],
)
def test_tflite_runs_them(settings: tuple[str, ...], oracle: Oracle) -> None:
    x = np.random.default_rng(1).normal(size=(4, 1, 3, 3, 4)).astype(np.float32)
    found = quantize(small(), [x], *settings)
    same_in_tflite(found, [x], oracle)
    types = {t.dtype for t in found.read.tensors if t.is_constant and t.shape == (5, 2, 2, 4)}
    halves = [t.data for t in found.read.tensors if t.dtype is DType.FLOAT16 and t.shape == (1,)]
    if settings == ("type=float16",):
        assert (types, halves[0]) == ({DType.FLOAT16}, [65504])
    assert (types == {DType.FLOAT32}) == (settings[-1] == "least_weights=99")


def test_weights_beside_float_activations_round_in_float64() -> None:
    """A weight just below 75.5 steps, which float32 takes for 75.5; TFLiteConverter writes -75 and -76."""
    values = np.array([[0.16519989, -0.09820938]], np.float32)
    found = weights(values, 0, None, 0.0, "int8", None, 127)
    assert weight_codes(values, found, is_hybrid=True).tolist() == [[127, -75]]
    assert weight_codes(values, found, is_hybrid=False).tolist() == [[127, -76]]
