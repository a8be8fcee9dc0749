"""The three filters as matrices: windows [G, N, K], weights [G, K, C], results [G, N, C].

G groups see inputs of their own: 1 for a dense filter, one for each input channel of a depthwise convolution, the
groups of a grouped one. Output channel o = g C + c, in every filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.passes.patterns import bias_of
from tflq.converters.passes.take_in import foldable_padding
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Array, Graph, Node
from tflq.graph.operators import LINEAR_OPERATORS
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node


@dataclass(frozen=True)
class Filter:
    """A filter of the float network.

    Attributes:
        node: of the float network.
        index: of that node.
        source: tensor whose windows it reads: its input, or that of a PAD of zeros in front of it.
        shape: of its weights.
        groups: G.
        window: where it stands on its input; None for a fully connected layer.
        output: (rows, columns) of its output positions.
        batch: images of one sample, or rows of a fully connected layer.
    """

    node: Node
    index: int
    source: int
    shape: tuple[int, ...]
    groups: int
    window: Window | None
    output: tuple[int, int]
    batch: int

    @property
    def positions(self) -> int:
        """Output positions of one sample."""
        return self.batch * self.output[0] * self.output[1]

    @property
    def is_depthwise(self) -> bool:
        """Whether each input channel is a group."""
        return self.node.operator == "depthwise_conv_2d"

    @property
    def channels(self) -> int:
        """Output channels, of all groups."""
        return self.shape[3] if self.is_depthwise else self.shape[0]

    def matrix(self, weights: Array) -> Array:
        """Return weights as [G, K, C]."""
        if self.is_depthwise:
            return np.transpose(weights.reshape(-1, self.groups, self.channels // self.groups), (1, 0, 2))
        return np.transpose(weights.reshape(self.groups, self.channels // self.groups, -1), (0, 2, 1))

    def weights(self, matrix: Array) -> Array:
        """Return [G, K, C] as weights of the file's shape."""
        order = (1, 0, 2) if self.is_depthwise else (0, 2, 1)
        return np.ascontiguousarray(matrix.transpose(order)).reshape(self.shape)

    def windows(self, x: Array, rows: Array) -> Array:
        """Return the windows of some output positions: [G, N, K].

        Args:
            x: real values of the input, or quantized values less their zero point: [S, *shape]; padding is 0.
            rows: N numbers below S * positions.
        """
        if self.window is None:
            return np.asarray(x.reshape(-1, self.shape[1])[rows][None])
        window = self.window
        images = x.reshape(-1, *x.shape[-3:])
        padded = np.pad(images, ((0, 0), (window.top, window.bottom), (window.left, window.right), (0, 0)))
        height, width = window.output_size((images.shape[1], images.shape[2]))
        image, place = np.divmod(rows, height * width)
        top, left = (p * s for p, s in zip(np.divmod(place, width), window.stride, strict=True))
        ys = top[:, None, None] + np.arange(window.kernel[0])[:, None] * window.dilation[0]
        xs = left[:, None, None] + np.arange(window.kernel[1]) * window.dilation[1]
        taps = padded[image[:, None, None], ys, xs].reshape(len(rows), window.taps, self.groups, -1)
        return np.ascontiguousarray(taps.transpose(2, 0, 1, 3)).reshape(self.groups, len(rows), -1)


def filter_of(graph: Graph, index: int) -> Filter | str:
    """Return a node of the float network as a filter; in words why it is none that can be recovered."""
    node = graph.nodes[index]
    if node.operator not in LINEAR_OPERATORS:
        return f"recovery knows no weights of {node.operator}"
    x, weights = (graph.tensors[t] for t in node.inputs[:2])
    bias = bias_of(graph, node)
    if weights.data is None or weights.data.dtype != np.float32 or (bias is not None and bias.data is None):
        return "its weights or its bias are computed, or no real numbers"
    if sum(weights_read(graph, other, node.inputs[1]) for other in graph.nodes) > 1:
        return "other layers read the same weights"
    if node.operator == "fully_connected":
        if node.attributes.text("weights_format", "default") != "default" or len(weights.shape) != 2:
            return "its weights are shuffled"
        return Filter(node, index, node.inputs[0], weights.shape, 1, None, (1, 1), x.size // weights.shape[1])
    try:
        window = window_of_node(node, x.shape, weights.shape)
    except (GraphError, UnsupportedError) as error:
        return str(error)
    depth = x.shape[3]
    groups = depth if node.operator == "depthwise_conv_2d" else depth // weights.shape[3]
    output = window.output_size((x.shape[1], x.shape[2]))
    source, window = _before_pad(graph, node.inputs[0], window)
    return Filter(node, index, source, weights.shape, groups, window, output, x.shape[0])


def _before_pad(graph: Graph, tensor: int, window: Window) -> tuple[int, Window]:
    """Return the input of a PAD of zeros and the window on it; the tensor itself where no such PAD writes it."""
    for node in graph.nodes:
        amounts = foldable_padding(graph.tensors, node) if node.outputs == (tensor,) else None
        if amounts is not None:
            top, bottom, left, right = (a + b for a, b in zip(window.padding, amounts, strict=True))
            return node.inputs[0], replace(window, top=top, bottom=bottom, left=left, right=right)
    return tensor, window


def weights_read(graph: Graph, node: Node, tensor: int) -> int:
    """Return how often a node reads a tensor, or another one that shares its values."""
    data = graph.tensors[tensor].data
    return sum(t == tensor or (t != ABSENT and graph.tensors[t].data is data) for t in node.inputs)
