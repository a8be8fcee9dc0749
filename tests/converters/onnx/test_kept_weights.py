"""form=weights: the file's integers behind DequantizeLinear stand for the very numbers that form=float writes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import ONNX
from tflq.converters.settings import parse_settings
from tflq.graph import Affine, Array, Blockwise, DType, Graph, GraphBuilder, Model

onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")

WINDOW: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
FILTERS = {
    "conv_2d": ((2, 5, 6, 4), (7, 3, 2, 4), 0, (2, 3, 5, 7)),
    "depthwise_conv_2d": ((2, 5, 6, 7), (1, 3, 2, 7), 3, (2, 3, 5, 7)),
    "fully_connected": ((2, 24), (7, 24), 0, (2, 7)),
    "conv_3d": ((1, 3, 4, 5, 2), (2, 2, 3, 2, 7), 4, (1, 2, 3, 3, 7)),
}
"""Shapes of input and weights, axis of the output channels, shape of the output."""
TYPES = (DType.INT8, DType.UINT8, DType.INT16, DType.INT4)


def filter_graph(operator: str, codes: Array, kind: Affine, dtype: DType) -> Graph:
    shape, _, _, output = FILTERS[operator]
    b = GraphBuilder(operator)
    given = [b.input("x", shape, DType.FLOAT32), b.constant("w", codes, kind, dtype)]
    options: dict[str, Any] = {**WINDOW, "stride_d": 1} if operator == "conv_3d" else WINDOW
    return b.build([b.add(operator, given, output, DType.FLOAT32, **({} if len(shape) == 2 else options))])


def constants(graph: Graph, form: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the constants of a file by name, and its nodes."""
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, [f"form={form}", "opset=21"]))
    (data,) = ONNX.emit(written, Model([graph])).values()
    found = onnx.load_from_string(data).graph
    return {i.name: onnx.numpy_helper.to_array(i) for i in found.initializer}, list(found.node)


def dequantized(graph: Graph) -> tuple[Array, Array]:
    """Return the integers that a file keeps, and what they stand for as ONNX's page of DequantizeLinear has it."""
    values, nodes = constants(graph, "weights")
    (node,) = (n for n in nodes if n.op_type == "DequantizeLinear")
    codes, scale, zero_point = (values[name] for name in node.input)
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    if scale.ndim:
        shape = [-1 if a == axis else 1 for a in range(codes.ndim)]
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    real = (codes.astype(np.float64) - zero_point.astype(np.float64)) * scale.astype(np.float64)
    return codes.astype(np.int64), real.astype(np.float32)


@pytest.mark.parametrize(("operator", "dtype", "each", "has_zero"), [*product(FILTERS, TYPES, *[(False, True)] * 2)])
def test_integers_stay(operator: str, dtype: DType, each: bool, has_zero: bool) -> None:
    _, shape, axis, _ = FILTERS[operator]
    draw = np.random.default_rng([len(operator), dtype.minimum % 1000, each, has_zero])
    count = 7 if each else 1
    for _ in range(3):
        codes = draw.integers(dtype.minimum, dtype.maximum + 1, shape).astype(dtype.storage)
        scale = np.exp(draw.uniform(-12, 3, count)).astype(np.float32)
        zero = draw.integers(dtype.minimum, dtype.maximum + 1, count) if has_zero else np.zeros(count, np.int64)
        graph = filter_graph(operator, codes, Affine(scale, zero, axis if each else None), dtype)
        (real,) = (v for v in constants(graph, "float")[0].values() if v.size == codes.size)
        kept, stands_for = dequantized(graph)
        assert sorted(kept.reshape(-1)) == sorted(codes.reshape(-1))
        assert real.dtype == np.float32
        assert np.array_equal(stands_for, real)


@pytest.mark.parametrize("has_zero", [False, True])
@pytest.mark.parametrize(("block", "dtype"), [(8, DType.INT4), (24, DType.INT4), (4, DType.INT8)])
def test_blocks_stay(block: int, dtype: DType, has_zero: bool) -> None:
    b, draw = GraphBuilder("blocks"), np.random.default_rng(block)
    codes = draw.integers(dtype.minimum, dtype.maximum + 1, (7, 24)).astype(np.int8)
    scales = draw.uniform(0.01, 0.1, (7, 24 // block)).astype(np.float16)
    zeros = draw.integers(dtype.minimum, dtype.maximum + 1, scales.shape).astype(np.int8)
    places = [b.constant("scales", scales), b.constant("zeros", zeros, dtype=dtype) if has_zero else -1]
    x = b.input("x", (2, 24), DType.FLOAT32)
    w = b.constant("w", codes, Blockwise(*places, block), dtype)
    values, nodes = constants(b.build([b.add("fully_connected", [x, w], (2, 7), DType.FLOAT32)]), "weights")
    (node,) = (n for n in nodes if n.op_type == "DequantizeLinear")
    kept, scale, zero_point = (values[name] for name in node.input)
    assert {a.name: a.i for a in node.attribute} == {"axis": 1, "block_size": block}
    assert np.array_equal(kept.astype(int), codes)
    assert np.array_equal(scale, scales.astype(np.float32))
    assert np.array_equal(zero_point.astype(int), zeros if has_zero else np.zeros_like(zeros))


@pytest.mark.parametrize("block", [4, 8])
@pytest.mark.parametrize("shape", [(8,), (3, 8), (2, 3, 8), (2, 1, 3, 8)])
def test_blocks_of_any_rank(shape: tuple[int, ...], block: int) -> None:
    """A constant that meets an image stands in another order there: float32."""
    b, draw = GraphBuilder("blocks"), np.random.default_rng(len(shape))
    codes = draw.integers(-8, 8, shape).astype(np.int8)
    scales = draw.uniform(0.01, 0.1, (*shape[:-1], 8 // block)).astype(np.float16)
    kind = Blockwise(b.constant("scales", scales), -1, block)
    x = b.input("x", shape, DType.FLOAT32)
    graph = b.build([b.add("add", [x, b.constant("w", codes, kind, DType.INT4)], shape, DType.FLOAT32)])
    values, nodes = constants(graph, "weights")
    real = codes.astype(np.float32) * np.repeat(scales.astype(np.float32), block, axis=-1)
    found = [n for n in nodes if n.op_type == "DequantizeLinear"]
    if len(shape) == 4:
        assert found == []
        assert any(v.size == real.size and v.dtype == np.float32 for v in values.values())
        return
    kept, scale, zero_point = (values[name] for name in found[0].input)
    assert {a.name: a.i for a in found[0].attribute} == {"axis": len(shape) - 1, "block_size": block}
    assert np.array_equal(kept.astype(int), codes)
    assert scale.shape == zero_point.shape == scales.shape
    stands_for = kept.astype(np.float32) * np.repeat(scale, block, axis=-1)
    assert np.array_equal(stands_for, real)


@pytest.mark.parametrize("filters", [1, 2, 3])
@pytest.mark.parametrize("has_scale", [False, True])
def test_a_bias_that_filters_share(filters: int, has_scale: bool) -> None:
    """Without a scale of its own it stands for another number in each of them."""
    b, draw = GraphBuilder("shared"), np.random.default_rng(filters)
    kind = Affine.per_tensor(np.float32(0.25)) if has_scale else None
    bias = b.constant("bias", draw.integers(-99, 99, 3).astype(np.int32), kind)
    x, step, rows = b.input("x", (2, 4), DType.INT8, Affine.per_tensor(np.float32(0.5), 3)), 0.125, []
    for i in range(filters):
        w = b.constant(f"w{i}", draw.integers(-9, 9, (3, 4)).astype(np.int8), Affine.per_tensor(np.float32(step)))
        rows.append(b.add("fully_connected", [x, w, bias], (2, 3), DType.INT8, Affine.per_tensor(np.float32(1))))
        step *= 2
    graph = b.build(rows)
    given, found = draw.normal(size=(2, 2, 4)).astype(np.float32), []
    for form in ("float", "weights"):
        written = ONNX.quantize(graph, parse_settings(ONNX.settings, [f"form={form}"]))
        (data,) = ONNX.emit(written, Model([graph])).values()
        found.append(run_onnx(data, [given]))
    numbers = graph.tensors[bias].data
    for i, (real, kept) in enumerate(zip(*found, strict=True)):
        w = graph.tensors[graph.nodes[i].inputs[1]]
        scale = 0.25 if has_scale else 0.5 * float(w.affine.scale[0])
        wanted = given @ (w.data * float(w.affine.scale[0])).T + numbers * scale
        assert np.allclose(real, wanted, rtol=1e-6, atol=1e-5)
        assert np.allclose(kept, wanted, rtol=1e-6, atol=1e-5)
