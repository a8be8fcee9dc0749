"""What is written is read back: layouts of joined, padded and grouped images, widths of elements."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.openvino.networks import WINDOW, image_network, weights, with_ranges
from tests.support.openvino import channels_first, converted
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.ir.element_types import from_bytes, size_bytes, to_bytes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.converters.openvino.reader.filters import _is_symmetric
from tflq.converters.openvino.reader.graph import Codes
from tflq.converters.settings import parse_settings
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

IMAGE = (1, 6, 6, 4)


def read_back(graph: Graph) -> tuple[Array, Array]:
    """Return the outputs of a network and of what is read of its files, channels first."""
    engine, xml, content = converted(Model([graph], source="small.tflite"))
    again = model_from_bytes(xml, content, "small.xml").main
    read = Engine(OPENVINO.quantise(again, parse_settings(OPENVINO.settings)), "openvino")
    x = np.random.default_rng(4).normal(size=(5, *IMAGE)).astype(np.float32)
    ours = engine.run([x])[engine.graph.outputs[0]]
    return channels_first(ours), read.run([channels_first(x)])[read.graph.outputs[0]]


def joined(b: GraphBuilder, x: int) -> int:
    y = b.add("relu", [x], IMAGE, DType.FLOAT32)
    return b.add("concatenation", [x, y], (1, 6, 6, 8), DType.FLOAT32, axis=3, fused_activation_function="none")


def padded(b: GraphBuilder, x: int, *value: float) -> int:
    amounts = b.constant("p", np.array([[0, 0], [1, 2], [0, 3], [0, 0]], np.int32))
    fill = [b.constant("v", np.array(v, np.float32)) for v in value]
    return b.add("padv2" if value else "pad", [x, amounts, *fill], (1, 9, 9, 4), DType.FLOAT32)


def grouped(b: GraphBuilder, x: int) -> int:
    operands = [x, b.constant("w", weights(6, 3, 2, 2)), b.constant("b", weights(6))]
    return b.add("conv_2d", operands, (1, 6, 6, 6), DType.FLOAT32, **WINDOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make", [joined, padded, lambda b, x: padded(b, x, 0.5), grouped], ids=["concat", "pad", "pad of 0.5", "groups"]
)
def test_what_is_written_is_read(make) -> None:
    b = GraphBuilder("one")
    graph = with_ranges(b.build([make(b, b.input("x", IMAGE, DType.FLOAT32))]))
    ours, again = read_back(graph)
    assert ours.shape == again.shape
    assert np.array_equal(ours, again)


@pytest.mark.parametrize("count", [1, 2, 7, 16])
@pytest.mark.parametrize(("name", "low", "high"), [("i4", -8, 7), ("u4", 0, 15), ("i8", -128, 127), ("i32", -9, 9)])
def test_elements(name: str, low: int, high: int, count: int) -> None:
    kind = {"i4": np.int8, "u4": np.uint8, "i8": np.int8, "i32": np.int32}[name]
    values = np.random.default_rng(count).integers(low, high + 1, (count, 1)).astype(kind)
    data = to_bytes(name, values)
    assert len(data) == size_bytes(name, count)
    assert np.array_equal(from_bytes(name, data, (count, 1)), values)


@pytest.mark.parametrize(("assignments", "scales"), [([], 8), (["weight_granularity=per-tensor"], 1)])
def test_scales_of_weights(assignments: list[str], scales: int) -> None:
    graph = OPENVINO.quantise(image_network(), parse_settings(OPENVINO.settings, assignments, []))
    layer = next(n for n in graph.nodes if n.operator == "conv_2d")
    assert graph.tensors[layer.inputs[1]].affine.scale.size == scales


@pytest.mark.parametrize(
    ("values", "zero_point", "kept"),
    [([-128, 127], 0, True), ([0, 255], 128, True), ([0, 255], 129, False), ([0, 255], 127, False), ([3], 0.5, False)],
)
def test_weights_that_int8_holds_without_their_zero_point(values: list[int], zero_point: float, kept: bool) -> None:
    codes = np.array(values, np.uint8 if max(values) > 127 else np.int8).reshape(-1, 1)
    found = Codes(codes, np.array(zero_point, np.float32), np.ones(1, np.float32))
    assert _is_symmetric(found) == kept
