"""The float network to quantize: constants as float32, ranges from calibration, file and FAKE_QUANT operators."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.converters.calibration import ranges_from_quantization
from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.passes.conversions import widen_halves
from tflq.errors import UnsupportedError
from tflq.graph import Attributes, DType, Graph, Node, Range, Tensor, float_view
from tflq.graph.rewriting import GraphEditor, Pass, graph_pass, rewrite_graph

_SOURCE = "docs/targets/tflite.md"
_MINUS_INFINITY = -1e30


@dataclass(frozen=True)
class FakeQuantized:
    """What a FAKE_QUANT operator says about a tensor.

    Attributes:
        minimum: of the range.
        maximum: of the range.
        bits: width of the quantized values.
        narrow: whether the lowest quantized value is unused.
    """

    minimum: float
    maximum: float
    bits: int
    narrow: bool


@dataclass(frozen=True)
class Prepared:
    """A float graph and what is known about its tensors.

    Attributes:
        graph: the float view; tensors keep their indices, activations have their ranges.
        stated: tensor -> what a FAKE_QUANT operator says about it, constants included.
    """

    graph: Graph
    stated: dict[int, FakeQuantized]


def prepare(graph: Graph) -> Prepared:
    """Return the float network of a float, dynamic-range or quantized graph.

    Raises:
        UnsupportedError: Two FAKE_QUANT operators that contradict each other.
    """
    stated = _stated(graph)
    passes: tuple[Pass[GraphEditor], ...] = (
        graph_pass("widen_halves", widen_halves, "constants of float16 are quantized as float32 numbers", _SOURCE),
        graph_pass(
            "state_ranges",
            lambda known: _state_ranges(known, stated),
            "FAKE_QUANT comes first, then a calibrated range or that of the file, then the range of a quantization",
            _SOURCE,
        ),
        graph_pass("float_view", float_view, "each tensor is quantized again from its real numbers", _SOURCE),
    )
    return Prepared(rewrite_graph(graph, passes, owner="tflite"), stated)


def _state_ranges(graph: Graph, stated: dict[int, FakeQuantized]) -> Graph:
    known = _without_differences(ranges_from_quantization(graph))
    for t, fake in stated.items():
        bounds = (np.array([fake.minimum], np.float32), np.array([fake.maximum], np.float32))
        known.tensors[t] = replace(known.tensors[t], range=Range(*bounds))
    for node in graph.nodes:
        if node.operator == "padv2" and _pads_with_the_lowest(known.tensors[node.inputs[2]]):
            source = known.tensors[node.inputs[0]]
            known.tensors[node.outputs[0]] = replace(known.tensors[node.outputs[0]], range=source.range)
    return known


def _without_differences(graph: Graph) -> Graph:
    """Return the graph without the ranges of differences that a calibration leaves on nodes: no file has them."""
    kept = [{k: v for k, v in node.attributes.items() if k != DIFFERENCE_RANGE} for node in graph.nodes]
    nodes = [replace(node, attributes=Attributes(own)) for node, own in zip(graph.nodes, kept, strict=True)]
    return replace(graph, nodes=nodes)


def _stated(graph: Graph) -> dict[int, FakeQuantized]:
    """Return what FAKE_QUANT says about its input, which is what stays in the float view."""
    stated: dict[int, FakeQuantized] = {}
    source: dict[int, int] = {}
    for index, node in enumerate(graph.nodes):
        if node.operator in ("quantize", "dequantize", "fake_quant"):
            source[node.outputs[0]] = source.get(node.inputs[0], node.inputs[0])
        if node.operator == "fake_quant":
            t = source[node.outputs[0]]
            found = _of(node)
            if stated.setdefault(t, found) != found:
                raise UnsupportedError(
                    f"{graph.where(index)}: tensor '{graph.tensors[t].name}' has another FAKE_QUANT with another "
                    f"range; one is allowed: remove the other"
                )
    return stated


def _of(node: Node) -> FakeQuantized:
    attributes = node.attributes
    return FakeQuantized(
        attributes.real("min"),
        attributes.real("max"),
        attributes.integer("num_bits", 8),
        attributes.boolean("narrow_range", False),
    )


def _pads_with_the_lowest(value: Tensor) -> bool:
    """Whether a constant stands for minus infinity, as in front of a MAX_POOL_2D: its code is the lowest one."""
    return (
        value.data is not None
        and value.dtype is DType.FLOAT32
        and bool((value.data.astype(np.float32) < _MINUS_INFINITY).all())
    )
