"""Walks a graph and makes its Caffe layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tflq.converters.nnie.caffe import elementwise, windows
from tflq.converters.nnie.caffe.layer import CaffeLayer, Site
from tflq.converters.passes.layouts import shape_first
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Graph, Node

_PLAIN = {"logistic": "Sigmoid", "relu": "ReLU", "relu6": "ReLU", "tanh": "TanH"}
"""Layers without parameters; RELU6 where check.py lets it pass."""
_BUILDERS: dict[str, Callable[[Site], list[CaffeLayer]]] = {
    **{name: elementwise.plain(kind) for name, kind in _PLAIN.items()},
    "add": elementwise.eltwise("SUM"),
    "average_pool_2d": windows.average_pool,
    "concatenation": elementwise.concatenation,
    "conv_2d": windows.convolution,
    "depthwise_conv_2d": windows.depthwise,
    "fully_connected": windows.fully_connected,
    "leaky_relu": elementwise.leaky,
    "max_pool_2d": windows.max_pool,
    "mean": windows.mean,
    "mul": elementwise.eltwise("PROD"),
    "prelu": elementwise.prelu,
    "resize_nearest_neighbor": windows.upsample,
    "softmax": elementwise.softmax,
}
_FLATTENING = ("reshape", "squeeze", "expand_dims")


def supported_operators() -> tuple[str, ...]:
    """Return the operators that have a layer, all or in part."""
    return tuple(sorted({*_BUILDERS, *_FLATTENING}))


@dataclass(frozen=True)
class CaffeNetwork:
    """A graph in Caffe.

    Attributes:
        layers: in order of execution; Input layers first.
        blobs: tensor -> the blob that holds it.
        problems: node -> why it has no layer.
    """

    layers: tuple[CaffeLayer, ...]
    blobs: dict[int, str]
    problems: dict[int, str]


def caffe_network(graph: Graph, suffixes: dict[str, str] | None = None) -> CaffeNetwork:
    """Return the network of a graph of real numbers.

    Args:
        graph: `prepared`, or quantised for NNIE.
        suffixes: node name -> what to put behind its layer's name.
    """
    walk = _Walk(graph)
    for index, node in enumerate(graph.nodes):
        try:
            walk.add(node, (suffixes or {}).get(node.name, ""))
        except (UnsupportedError, GraphError) as error:
            walk.problems[index] = str(error)
    return CaffeNetwork(tuple(walk.layers), walk.blobs, walk.problems)


class _Walk:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.layers: list[CaffeLayer] = []
        self.blobs: dict[int, str] = {}
        self.problems: dict[int, str] = {}
        # Tensor -> the tensor whose blob it is, where they differ: behind a reshape that flattens.
        self.source: dict[int, int] = {}
        # Tensors whose blob has 2 axes, as an InnerProduct writes it; all others have 4.
        self.rows: set[int] = set()
        for number, t in enumerate(graph.inputs):
            name = "data" if len(graph.inputs) == 1 else f"data{number}"
            self.blobs[t] = name
            shape = {"shape": {"dim": caffe_shape(graph.tensors[t].shape)}}
            self.layers.append(CaffeLayer(name, "Input", (), (name,), {"input_param": shape}))

    def add(self, node: Node, suffix: str) -> None:
        """Add a node's layers.

        Raises:
            UnsupportedError: it has none.
        """
        for t in node.outputs:
            self.blobs[t] = node.name
        computed = tuple(t for t in node.inputs if t != ABSENT and not self.graph.tensors[t].is_constant)
        if node.operator in _FLATTENING and computed:
            self._flatten(node, computed[0])
            return
        if node.operator not in _BUILDERS:
            what = f"custom operator '{node.custom_code}'" if node.custom_code else "no layer of Caffe 1.0"
            raise UnsupportedError(f"{what}; NNIE's package takes {', '.join(supported_operators())}: replace it")
        sources = tuple(self.source.get(t, t) for t in computed)
        self._refuse_flat(node, computed)
        site = Site(
            self.graph,
            node,
            node.name + suffix,
            tuple(self.blobs[t] for t in computed),
            sources,
            self.blobs[node.outputs[0]],
        )
        self.layers += _BUILDERS[node.operator](site)
        self._note_axes(node, sources)

    def _flatten(self, node: Node, t: int) -> None:
        before, after = self.graph.tensors[t].shape, self.graph.tensors[node.outputs[0]].shape
        if not _is_flattening(before, after):
            raise UnsupportedError(
                f"reshape from {before} to {after}; Caffe's order of axes allows [N, ...] to [N, K] only"
            )
        source = self.source.get(t, t)
        self.source[node.outputs[0]] = source
        self.blobs[node.outputs[0]] = self.blobs[t]
        if node.outputs[0] in self.graph.outputs and self._is_flat_map(source):
            raise UnsupportedError(f"a map of shape {before} is flattened for an output; Caffe would order it c, h, w")

    def _refuse_flat(self, node: Node, computed: tuple[int, ...]) -> None:
        flat = [t for t in computed if t in self.source and self._is_flat_map(self.source[t])]
        if flat and node.operator != "fully_connected":
            raise UnsupportedError(
                f"it reads '{self.graph.tensors[flat[0]].name}', a flattened map, which Caffe orders c, h, w; only "
                f"fully_connected can follow"
            )

    def _note_axes(self, node: Node, sources: tuple[int, ...]) -> None:
        among = self.rows.intersection(sources)
        if node.operator == "fully_connected":
            self.rows.update(node.outputs)
        elif among and len(among) < len(set(sources)):
            raise UnsupportedError(
                "one operand comes from a fully_connected layer, whose blob has 2 axes in Caffe, another from an image "
                "of 4: make both the same kind"
            )
        elif among:
            self.rows.update(node.outputs)

    def _is_flat_map(self, source: int) -> bool:
        shape = self.graph.tensors[source].shape
        return len(shape) == 4 and shape[1] * shape[2] > 1


def _is_flattening(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether a reshape only makes rows of what Caffe flattens by itself: [N, ...] to [N, K], or back to 1x1 images."""
    rows = bool(before) and bool(after) and before[0] == after[0]
    return rows and (
        len(after) == 2 or (len(after) == 4 and after[1:3] == (1, 1) and math.prod(before[1:]) == before[-1])
    )


def caffe_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return an input's shape as Caffe has it: [N, H, W, C] becomes [N, C, H, W]; rows become 1x1 images.

    Raises:
        UnsupportedError: neither 2 nor 4 axes.
    """
    if len(shape) == 4:
        return shape_first(shape)
    if len(shape) == 2:
        return (shape[0], shape[1], 1, 1)
    raise UnsupportedError(f"an input of shape {shape} ({math.prod(shape)} elements); NNIE takes 2 or 4 axes")
