"""Reads the small ONNX models of TPU-MLIR's golden data into tflq graphs: NCHW -> NHWC, one rule an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.graph import Array, DType, Graph, GraphBuilder

FLOAT = DType.FLOAT32
TO_LAST = (0, 2, 3, 1)


class OnnxReader:
    """Builds a graph node by node; tensors keep ONNX's names."""

    def __init__(self, model: Any, rules: Mapping[str, Callable[..., None]] | None = None) -> None:
        from onnx import helper, numpy_helper

        graph = model.graph
        self.constants: dict[str, Array] = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        self.builder = GraphBuilder(graph.name)
        self.tensors: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.images: dict[str, tuple[int, ...]] = {}  # flattened value -> [N, H, W, C] that it was
        for value in graph.input:
            shape = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
            self.shapes[value.name] = last(shape)
            self.tensors[value.name] = self.builder.input(value.name, last(shape), FLOAT)
        for node in graph.node:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            attributes["outputs"] = list(node.output)
            (rules or RULES)[node.op_type](self, list(node.input), node.output[0], attributes)
        self.outputs = [value.name for value in graph.output]

    def constant(self, name: str, value: Array) -> int:
        return self.builder.constant(name, np.ascontiguousarray(value))

    def write(self, operator: str, inputs: list[int], output: str, shape: tuple[int, ...], **options: Any) -> None:
        self.tensors[output] = self.builder.tensor(output, shape, FLOAT)
        self.shapes[output] = shape
        self.builder.node(operator, inputs, [self.tensors[output]], **options)


def read_onnx(path: Path) -> Graph:
    """Return the float graph of a model."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    reader = OnnxReader(onnx.load(path))
    return reader.builder.build([reader.tensors[name] for name in reader.outputs])


def last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[a] for a in TO_LAST) if len(shape) == 4 else shape


def _window(shape: tuple[int, ...], options: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, int]]:
    """Return TFLite's attributes and the output's size; explicit padding must be what SAME means."""
    kernel, stride = options["kernel_shape"], options.get("strides", [1, 1])
    pads = options.get("pads", [0, 0, 0, 0])
    size = tuple((shape[1 + a] + pads[a] + pads[2 + a] - kernel[a]) // stride[a] + 1 for a in (0, 1))
    same = all(size[a] == -(-shape[1 + a] // stride[a]) for a in (0, 1))
    for a in (0, 1):
        total = max(0, (size[a] - 1) * stride[a] + kernel[a] - shape[1 + a])
        assert not any(pads) or (same and (pads[a], pads[2 + a]) == (total // 2, total - total // 2))
    found = {"padding": "same" if any(pads) else "valid", "stride_h": stride[0], "stride_w": stride[1]}
    return found, (size[0], size[1])


def conv(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
    shape, weights = r.shapes[inputs[0]], r.constants[inputs[1]]
    window, size = _window(shape, options)
    depthwise = options.get("group", 1) > 1
    order = (1, 2, 3, 0) if depthwise else (0, 2, 3, 1)
    bias = r.constant(inputs[2], r.constants[inputs[2]]) if len(inputs) > 2 else -1
    operands = [r.tensors[inputs[0]], r.constant(inputs[1], weights.transpose(order)), bias]
    operator = "depthwise_conv_2d" if depthwise else "conv_2d"
    r.write(operator, operands, output, (shape[0], *size, weights.shape[0]), **window)


def gemm(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
    assert options["transB"] == 1
    weights = r.constants[inputs[1]]
    n, h, w, c = r.images[inputs[0]]
    columns = weights.reshape(-1, c, h, w).transpose(0, 2, 3, 1).reshape(weights.shape)
    bias = r.constant(inputs[2], r.constants[inputs[2]]) if len(inputs) > 2 else -1
    operands = [r.tensors[inputs[0]], r.constant(inputs[1], columns), bias]
    r.write("fully_connected", operands, output, (n, weights.shape[0]))


def pool(operator: str) -> Callable[..., None]:
    def rule(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
        shape = r.shapes[inputs[0]]
        options.setdefault("kernel_shape", shape[1:3])  # GlobalAveragePool
        window, size = _window(shape, options)
        kernel = options["kernel_shape"]
        window.update(filter_height=kernel[0], filter_width=kernel[1])
        r.write(operator, [r.tensors[inputs[0]]], output, (shape[0], *size, shape[3]), **window)

    return rule


def same_shape(operator: str) -> Callable[..., None]:
    def rule(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
        operands = [r.tensors[name] for name in inputs if name in r.tensors]
        r.write(
            operator,
            operands,
            output,
            r.shapes[inputs[0]],
            **({"alpha": options["alpha"]} if "alpha" in options else {}),
        )

    return rule


def prelu(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
    slopes = r.constant(inputs[1], r.constants[inputs[1]].reshape(1, 1, -1))
    r.write("prelu", [r.tensors[inputs[0]], slopes], output, r.shapes[inputs[0]])


def pad(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
    amounts = r.constants[inputs[1]].reshape(2, 4).T[list(TO_LAST)].astype(np.int32)
    shape = tuple(int(s + a.sum()) for s, a in zip(r.shapes[inputs[0]], amounts, strict=True))
    operands = [r.tensors[inputs[0]], r.constant("amounts", amounts), r.constant(inputs[2], r.constants[inputs[2]])]
    r.write("padv2", operands, output, shape)


def flatten(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
    shape = r.images[output] = r.shapes[inputs[0]]
    flat = (shape[0], int(np.prod(shape[1:])))
    r.write("reshape", [r.tensors[inputs[0]], r.constant("flat", np.array(flat, np.int32))], output, flat)


def concat(r: OnnxReader, inputs: list[str], output: str, options: dict[str, Any]) -> None:
    assert options["axis"] == 1
    shapes = [r.shapes[name] for name in inputs]
    shape = (*shapes[0][:3], sum(s[3] for s in shapes))
    r.write("concatenation", [r.tensors[name] for name in inputs], output, shape, axis=3)


RULES: dict[str, Callable[..., None]] = {
    "Add": same_shape("add"),
    "AveragePool": pool("average_pool_2d"),
    "Clip": same_shape("relu6"),
    "Concat": concat,
    "Conv": conv,
    "Flatten": flatten,
    "Gemm": gemm,
    "GlobalAveragePool": pool("average_pool_2d"),
    "LeakyRelu": same_shape("leaky_relu"),
    "MaxPool": pool("max_pool_2d"),
    "Mul": same_shape("mul"),
    "PRelu": prelu,
    "Pad": pad,
    "Relu": same_shape("relu"),
    "Sigmoid": same_shape("logistic"),
    "Softmax": same_shape("softmax"),
    "Sub": same_shape("sub"),
    "Tanh": same_shape("tanh"),
}
