"""Small int8 networks built in Python: a chain of calls, each adds an operator with the file range that it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tflq.graph import Affine, DType, Graph, GraphBuilder, Model, Range

Limits = tuple[float, float]


def encoding(limits: Limits) -> Affine:
    """The int8 type that TFLite gives a range."""
    low, high = limits
    scale = np.float32((high - low) / 255)
    return Affine.per_tensor(scale, int(np.round(-128 - low / float(scale))))


class Net:
    """Builds a graph; tensors are numbers, images are 8x8x4 at first."""

    def __init__(self, limits: Limits = (-1.0, 1.0), shape: tuple[int, ...] = (1, 8, 8, 4), seed: int = 0) -> None:
        self.builder = GraphBuilder("net")
        self.random = np.random.default_rng(seed)
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.limits: dict[int, Limits] = {}
        self.x = self.input(limits, shape)

    def input(self, limits: Limits, shape: tuple[int, ...]) -> int:
        """Add an input."""
        t = self.builder.input(f"x{len(self.shapes)}", shape, DType.INT8, encoding(limits))
        self.shapes[t], self.limits[t] = shape, limits
        return t

    def add(self, operator: str, inputs: list[int], shape: tuple[int, ...], limits: Limits, **options: Any) -> int:
        """Add any operator."""
        t = self.builder.add(operator, inputs, shape, DType.INT8, encoding(limits), **options)
        self.shapes[t], self.limits[t] = shape, limits
        return t

    def conv(
        self,
        x: int,
        limits: Limits,
        kernel: tuple[int, int] = (1, 1),
        outputs: int = 4,
        activation: str = "none",
        padding: str = "same",
        scale: float = 0.01,
    ) -> int:
        """Add a convolution; 3x3 with "same" pads, 1x1 does not."""
        n, h, w, c = self.shapes[x]
        codes = self.random.integers(-127, 128, (outputs, *kernel, c)).astype(np.int8)
        weights = self.builder.constant("w", codes, self._scales(outputs, scale))
        bias = self._bias(outputs)
        size = (h, w) if padding == "same" else (h - kernel[0] + 1, w - kernel[1] + 1)
        options = {"padding": padding, "stride_h": 1, "stride_w": 1, "fused_activation_function": activation}
        return self.add("conv_2d", [x, weights, bias], (n, *size, outputs), limits, **options)

    def depthwise(self, x: int, limits: Limits, kernel: int = 3, activation: str = "none") -> int:
        """Add a padded depthwise convolution."""
        n, h, w, c = self.shapes[x]
        codes = self.random.integers(-127, 128, (1, kernel, kernel, c)).astype(np.int8)
        scales = Affine(np.full(c, 0.01, np.float32), np.zeros(c, np.int64), 3)
        weights, bias = self.builder.constant("w", codes, scales), self._bias(c)
        options = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": activation}
        return self.add("depthwise_conv_2d", [x, weights, bias], (n, h, w, c), limits, **options)

    def dense(self, x: int, limits: Limits, outputs: int = 4, activation: str = "none") -> int:
        """Add a fully connected layer."""
        inputs = int(np.prod(self.shapes[x]))
        codes = self.random.integers(-127, 128, (outputs, inputs)).astype(np.int8)
        weights = self.builder.constant("w", codes, self._scales(outputs, 0.01))
        return self.add("fully_connected", [x, weights, -1], (1, outputs), limits, fused_activation_function=activation)

    def mean(self, x: int, limits: Limits) -> int:
        """Add a mean over height and width."""
        n, _, _, c = self.shapes[x]
        axes = self.builder.constant("axes", np.array([1, 2], np.int32))
        return self.add("mean", [x, axes], (n, c), limits, keep_dims=False)

    def pool(self, x: int, limits: Limits, kind: str = "max", size: int = 2, padding: str = "valid") -> int:
        """Add a pool with stride 2."""
        n, h, w, c = self.shapes[x]
        shape = (n, -(-h // 2), -(-w // 2), c)
        options = {"padding": padding, "stride_h": 2, "stride_w": 2, "filter_height": size, "filter_width": size}
        return self.add(f"{kind}_pool_2d" if kind == "max" else "average_pool_2d", [x], shape, limits, **options)

    def join(self, inputs: list[int], limits: Limits) -> int:
        """Add a concatenation along channels."""
        n, h, w, _ = self.shapes[inputs[0]]
        channels = sum(self.shapes[t][3] for t in inputs)
        return self.add("concatenation", inputs, (n, h, w, channels), limits, axis=3)

    def unary(self, operator: str, x: int, limits: Limits, **options: Any) -> int:
        """Add an operator that keeps the shape."""
        return self.add(operator, [x], self.shapes[x], limits, **options)

    def binary(self, operator: str, x: int, y: int, limits: Limits, activation: str = "none") -> int:
        """Add an elementwise operator of two tensors."""
        return self.add(operator, [x, y], self.shapes[x], limits, fused_activation_function=activation)

    def graph(self, *outputs: int) -> Graph:
        """Return the graph; its tensors state min and max in float32, as files do."""
        graph = self.builder.build(outputs)
        for t, (low, high) in self.limits.items():
            stated = Range(np.array([low], np.float32), np.array([high], np.float32))
            graph.tensors[t] = replace(graph.tensors[t], range=stated)
        return graph

    def model(self, *outputs: int) -> Model:
        """Return a model of the graph."""
        return Model([self.graph(*outputs)])

    def _scales(self, outputs: int, scale: float) -> Affine:
        return Affine(np.full(outputs, scale, np.float32), np.zeros(outputs, np.int64), 0)

    def _bias(self, outputs: int) -> int:
        codes = self.random.integers(-500, 500, outputs).astype(np.int32)
        scales = Affine(np.full(outputs, 1e-4, np.float32), np.zeros(outputs, np.int64), 0, 32)
        return self.builder.constant("b", codes, scales)
