"""The network's layers as nodes of a tflq graph, and the three float graphs of the detector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tflq
from detector.network import POOLED, POOLED_MASK, PYRAMID, box_head, first_stage, mask_head
from detector.scenes import HEIGHT, WIDTH

Weights = Mapping[str, NDArray[np.float32]]
_ACTIVATION = {True: "relu", False: "none"}


@dataclass(frozen=True)
class Part:
    """One convolutional part.

    Attributes:
        model: one float graph.
        layers: name of the network's layer -> indices of its nodes.
    """

    model: tflq.Model
    layers: Mapping[str, list[int]]


@dataclass(frozen=True)
class Parts:
    """The detector's convolutional parts.

    Attributes:
        first: image [1, H, W, 3] -> P2 to P5, scores [1, K, 2], deltas [1, K, 4].
        head: [R, POOLED, POOLED, C] -> probabilities [R, classes], deltas [R, 4 * classes].
        mask: [D, POOLED_MASK, POOLED_MASK, C] -> probabilities [D, POOLED_MASK, POOLED_MASK, classes].
    """

    first: Part
    head: Part
    mask: Part


def parts_of(weights: Weights, regions: int, detections: int) -> Parts:
    """Return the parts for R regions and D detections."""
    layers = GraphLayers(weights, "first")
    found = first_stage(layers, layers.input((1, HEIGHT, WIDTH, 3)))
    first = layers.part([*found.pyramid, found.scores, found.deltas])
    layers = GraphLayers(weights, "head")
    head = layers.part([*box_head(layers, layers.input((regions, POOLED, POOLED, PYRAMID)))])
    layers = GraphLayers(weights, "mask")
    pooled = layers.input((detections, POOLED_MASK, POOLED_MASK, PYRAMID))
    return Parts(first, head, layers.part([mask_head(layers, pooled)]))


@dataclass
class GraphLayers:
    """`network.Layers` that adds TFLite's operators to a graph; tensors are indices.

    Attributes:
        weights: name -> weights [O, ...] or biases [O].
        name: of the graph.
    """

    weights: Weights
    name: str
    _shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _constants: dict[str, int] = field(default_factory=dict)
    _layers: dict[str, list[int]] = field(default_factory=dict)
    _nodes: int = 0

    def __post_init__(self) -> None:
        self._builder = tflq.GraphBuilder(self.name)

    def input(self, shape: tuple[int, ...]) -> int:
        """Add the graph's input."""
        t = self._builder.input("input", shape, tflq.DType.FLOAT32)
        self._shapes[t] = shape
        return t

    def part(self, outputs: list[int]) -> Part:
        """Return what was built."""
        return Part(tflq.Model([self._builder.build(outputs)]), self._layers)

    def conv(
        self,
        name: str,
        x: int,
        outputs: int,
        kernel: int = 3,
        stride: int = 1,
        *,
        relu: bool = True,
        norm: bool = False,
    ) -> int:
        """See `network.Layers`; the normalization is in the weights already."""
        del kernel, norm
        n, h, w, _ = self._shapes[x]
        return self._add(
            name,
            "conv_2d",
            [x, *self._filter(name)],
            (n, -(-h // stride), -(-w // stride), outputs),
            padding="same",
            stride_h=stride,
            stride_w=stride,
            fused_activation_function=_ACTIVATION[relu],
        )

    def dense(self, name: str, x: int, outputs: int, *, relu: bool = True) -> int:
        """See `network.Layers`."""
        shape = (self._shapes[x][0], outputs)
        inputs = [x, *self._filter(name)]
        return self._add(name, "fully_connected", inputs, shape, fused_activation_function=_ACTIVATION[relu])

    def add(self, a: int, b: int, *, relu: bool = False) -> int:
        """See `network.Layers`."""
        return self._add("add", "add", [a, b], self._shapes[a], fused_activation_function=_ACTIVATION[relu])

    def pool(self, x: int) -> int:
        """See `network.Layers`."""
        n, h, w, c = self._shapes[x]
        window: dict[str, Any] = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2}
        keys: dict[str, Any] = {"padding": "valid", "fused_activation_function": "none"}
        return self._add("pool", "max_pool_2d", [x], (n, h // 2, w // 2, c), **window, **keys)

    def upsample(self, x: int) -> int:
        """See `network.Layers`."""
        n, h, w, c = self._shapes[x]
        size = self._constant(f"size_{2 * h}_{2 * w}", np.array([2 * h, 2 * w], np.int32))
        keys: dict[str, Any] = {"align_corners": False, "half_pixel_centers": False}
        return self._add("upsample", "resize_nearest_neighbor", [x, size], (n, 2 * h, 2 * w, c), **keys)

    def rows(self, x: int, width: int) -> int:
        """See `network.Layers`."""
        shape = self._shapes[x]
        return self._reshape(x, (shape[0], int(np.prod(shape[1:])) // width, width))

    def flat(self, x: int) -> int:
        """See `network.Layers`."""
        shape = self._shapes[x]
        return self._reshape(x, (shape[0], int(np.prod(shape[1:]))))

    def join(self, parts: list[int]) -> int:
        """See `network.Layers`."""
        n, _, *rest = self._shapes[parts[0]]
        shape = (n, sum(self._shapes[p][1] for p in parts), *rest)
        return self._add("join", "concatenation", parts, shape, axis=1, fused_activation_function="none")

    def softmax(self, name: str, x: int) -> int:
        """See `network.Layers`."""
        return self._add(name, "softmax", [x], self._shapes[x], beta=1.0)

    def sigmoid(self, x: int) -> int:
        """See `network.Layers`."""
        return self._add("sigmoid", "logistic", [x], self._shapes[x])

    def _reshape(self, x: int, shape: tuple[int, ...]) -> int:
        target = self._constant(f"shape_{'_'.join(map(str, shape))}", np.array(shape, np.int32))
        return self._add("reshape", "reshape", [x, target], shape)

    def _filter(self, name: str) -> tuple[int, int]:
        weights, biases = (f"{name}/{key}" for key in ("weights", "biases"))
        return self._constant(weights, self.weights[weights]), self._constant(biases, self.weights[biases])

    def _constant(self, name: str, data: NDArray[np.float32] | NDArray[np.int32]) -> int:
        if name not in self._constants:
            self._constants[name] = self._builder.constant(name, data)
        return self._constants[name]

    def _add(
        self, name: str, operator: str, inputs: list[int], shape: tuple[int, ...], **keys: str | float | bool
    ) -> int:
        self._layers.setdefault(name, []).append(self._nodes)
        self._nodes += 1
        t = self._builder.add(operator, inputs, shape, tflq.DType.FLOAT32, None, 1, **keys)
        self._shapes[t] = shape
        return t
