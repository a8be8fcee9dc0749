"""Random float networks with calibrated ranges: combinations of readers and producers that the targets must type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.calibration import calibrate
from tflq.graph import Array, Attribute, DType, Graph, GraphBuilder
from tflq.interpreter import Engine

Shape = tuple[int, ...]
SAMPLES = 16


class RandomNet:
    """Draws operators one after another; each reads one of the last four tensors."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = GraphBuilder(f"random{seed}")
        shape = (1, 8, 8, 4)
        self.tensors: list[tuple[int, Shape]] = [(self.builder.input("x", shape, DType.FLOAT32), shape)]

    def draw(self) -> Graph:
        """Return a graph of some layers, a fully connected one, and perhaps a mean before or a softmax behind it."""
        kinds: tuple[Callable[[int, Shape], None], ...] = (
            *[self._conv] * 3,
            *[self._binary] * 2,
            self._depthwise,
            self._unary,
            self._pool,
            self._join,
            self._reshape,
        )
        for _ in range(self.random.integers(3, 12)):
            recent = self.tensors[-4:]
            tensor, shape = recent[self.random.integers(len(recent))]
            kinds[self.random.integers(len(kinds))](tensor, shape)
        return self._finish(*self.tensors[-1], int(self.random.integers(3)))

    def _finish(self, tensor: int, shape: Shape, end: int) -> Graph:
        size = int(np.prod(shape))
        if end == 0:
            size = shape[3]
            axes = self.builder.constant("axes", np.array([1, 2], np.int32))
            tensor = self.builder.add("mean", [tensor, axes], (1, size), DType.FLOAT32, keep_dims=False)
        weights = self.builder.constant("w", self._normal((6, size), size))
        options = {"fused_activation_function": "none", "keep_num_dims": False, "weights_format": "default"}
        y = self.builder.add("fully_connected", [tensor, weights, -1], (1, 6), DType.FLOAT32, **options)
        if end == 2:
            y = self.builder.add("softmax", [y], (1, 6), DType.FLOAT32, beta=1.0)
        return self.builder.build([y])

    def _normal(self, shape: Shape, reduction: int) -> Array:
        return (self.random.normal(size=shape) / np.sqrt(reduction)).astype(np.float32)

    def _activation(self) -> str:
        return ("none", "relu", "relu6")[self.random.integers(3)]

    def _add(self, operator: str, inputs: list[int], shape: Shape, **options: Attribute) -> None:
        self.tensors.append((self.builder.add(operator, inputs, shape, DType.FLOAT32, **options), shape))

    def _conv(self, tensor: int, shape: Shape) -> None:
        n, h, w, c = shape
        kernel, stride = (1, 3, 5)[self.random.integers(3)], 2 if self.random.integers(4) == 0 else 1
        weights = self.builder.constant("w", self._normal((4, kernel, kernel, c), kernel * kernel * c))
        bias = self.builder.constant("b", self._normal((4,), 9))
        options = {"padding": "same", "stride_h": stride, "stride_w": stride}
        out = (n, -(-h // stride), -(-w // stride), 4)
        self._add("conv_2d", [tensor, weights, bias], out, fused_activation_function=self._activation(), **options)

    def _depthwise(self, tensor: int, shape: Shape) -> None:
        kernel, c = (3, 5)[self.random.integers(2)], shape[3]
        weights = self.builder.constant("w", self._normal((1, kernel, kernel, c), kernel * kernel))
        bias = self.builder.constant("b", self._normal((c,), 9))
        options = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": self._activation()}
        self._add("depthwise_conv_2d", [tensor, weights, bias], shape, depth_multiplier=1, **options)

    def _unary(self, tensor: int, shape: Shape) -> None:
        names = ("relu", "relu6", "leaky_relu", "hard_swish", "logistic", "tanh")
        name = names[self.random.integers(len(names))]
        self._add(name, [tensor], shape, **({"alpha": 0.2} if name == "leaky_relu" else {}))

    def _binary(self, tensor: int, shape: Shape) -> None:
        fitting = [t for t, s in self.tensors if s == shape]
        other = fitting[self.random.integers(len(fitting))]
        name = ("add", "mul", "sub")[self.random.integers(3)]
        self._add(name, [tensor, other], shape, fused_activation_function=self._activation())

    def _pool(self, tensor: int, shape: Shape) -> None:
        if min(shape[1:3]) < 2:
            return
        n, h, w, c = shape
        name = ("max_pool_2d", "average_pool_2d")[self.random.integers(2)]
        options = {"padding": "valid", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
        self._add(name, [tensor], (n, h // 2, w // 2, c), fused_activation_function="none", **options)

    def _join(self, tensor: int, shape: Shape) -> None:
        fitting = [(t, s) for t, s in self.tensors if s[:3] == shape[:3]]
        other, size = fitting[self.random.integers(len(fitting))]
        out = (*shape[:3], shape[3] + size[3])
        self._add("concatenation", [tensor, other], out, axis=3, fused_activation_function="none")
        self._conv(*self.tensors[-1])

    def _reshape(self, tensor: int, shape: Shape) -> None:
        flat = (1, shape[1] * shape[2], 1, shape[3])
        for wanted in (flat, shape):
            target = self.builder.constant("shape", np.array(wanted, np.int32))
            self._add("reshape", [tensor, target], wanted)
            tensor = self.tensors[-1][0]


def random_network(seed: int) -> tuple[Graph, Array, Array]:
    """Return a network with ranges, its real inputs [S, ...] and its real outputs."""
    graph = RandomNet(seed).draw()
    given = np.random.default_rng(seed + 1).normal(size=(SAMPLES, 1, 8, 8, 4)).astype(np.float32)
    real = Engine(graph, "float").run([given])[graph.outputs[0]]
    return calibrate(graph, [given]), given, real
