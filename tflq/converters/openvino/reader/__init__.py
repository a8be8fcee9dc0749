"""Reads IR v10 and v11 with FakeQuantize as graphs.

An Add of one number a channel behind a filter becomes its bias.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tflq.converters.openvino.ir.files import network_from_bytes
from tflq.converters.openvino.passes import FILTERS
from tflq.converters.openvino.reader.graph import Reading
from tflq.converters.openvino.reader.layers import read_layer
from tflq.converters.passes.rewrite import without_nodes
from tflq.errors import FormatError, GraphError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Graph, Model, Node, Tensor, validate


def read_model(path: str | Path) -> Model:
    """Read an .xml and the .bin of the same name beside it.

    Raises:
        InputError: a file that cannot be read.
        FormatError: what does not follow the format, with its line.
        UnsupportedError: layers that are not known, all at once.
    """
    weights = Path(path).with_suffix(".bin")
    has_weights = weights.exists() and weights.stat().st_size > 0  # OpenVINO writes an empty file for no constants
    return model_from_bytes(read_bytes(path), read_bytes(weights) if has_weights else b"", str(path))


def model_from_bytes(xml: bytes | memoryview, weights: bytes | memoryview, where: str) -> Model:
    """Return the model of an IR: float32 with FakeQuantize nodes, weights as quantized values behind a Dequantize.

    Inputs and outputs keep the layout of the file (N C H W); between them tensors of four axes are N H W C. Raises as
    `read_model`.
    """
    network = network_from_bytes(xml, weights, where)
    reading, problems = Reading(network, Graph([], [], (), (), network.name)), list[str]()
    lost = set[int]()
    for number, layer in enumerate(network.layers):
        if any(source.layer in lost for source in layer.sources):
            lost.add(number)
            continue
        try:
            read_layer(reading, number)
        except UnsupportedError as error:
            problems.append(f"line {layer.line}, layer '{layer.name}' ({layer.type}): {error}")
            lost.add(number)
        except (GraphError, ValueError) as error:
            raise FormatError(f"{where}, line {layer.line}: layer '{layer.name}' ({layer.type}): {error}") from None
    if problems:
        raise UnsupportedError(f"{where}: " + "; ".join(problems))
    graph = fold_biases(reading.graph)
    try:
        validate(graph, where)
    except GraphError as error:
        raise FormatError(str(error)) from None
    return Model([graph], source=where)


def fold_biases(graph: Graph) -> Graph:
    """Return the graph whose filters have their biases."""
    result, readers, writers, gone = graph.copy(), graph.consumers(), graph.producers(), set[int]()
    for index, node in enumerate(graph.nodes):
        found = _bias(graph, node, readers, writers)
        if found is None:
            continue
        position, given = found
        values = np.ascontiguousarray(given.data, np.float32).reshape(-1)
        bias = result.add_tensor(replace(given, shape=values.shape, data=values))
        linear = graph.nodes[position]
        result.nodes[position] = replace(linear, inputs=(*linear.inputs, bias), outputs=node.outputs)
        gone.add(index)
    return without_nodes(result, gone)


def _bias(
    graph: Graph, node: Node, readers: dict[int, list[int]], writers: dict[int, int]
) -> tuple[int, Tensor] | None:
    """Return the filter and the constant that an Add adds to it alone."""
    if node.operator != "add":
        return None
    for t, other in (node.inputs, node.inputs[::-1]):
        constant, position = graph.tensors[other], writers.get(t)
        if position is None or constant.data is None or len(readers[t]) != 1 or t in graph.outputs:
            continue
        linear, channels = graph.nodes[position], graph.tensors[t].shape[-1]
        is_one_each = constant.data.size == channels and (not constant.shape or constant.shape[-1] == channels)
        if linear.operator in FILTERS and len(linear.inputs) == 2 and is_one_each:
            return position, constant
    return None


__all__ = ["model_from_bytes", "read_model"]
