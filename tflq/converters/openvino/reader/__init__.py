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
from tflq.errors import FormatError, GraphError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Graph, Model, validate
from tflq.graph.rewriting import Constant, GraphEditor, Pass, find_matches, op, rewrite_graph


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
    fold_biases = Pass(
        "fold_biases", _fold_biases, "IR has biases as Add layers", "docs/targets/openvino.md#reading-ir"
    )
    graph = rewrite_graph(reading.graph, [fold_biases])
    try:
        validate(graph, where)
    except GraphError as error:
        raise FormatError(str(error)) from None
    return Model([graph], source=where)


_BIASED = op(
    "add", op(FILTERS, name="filter", where=lambda node: len(node.inputs) == 2), Constant("bias", single=False)
)


def _fold_biases(editor: GraphEditor) -> None:
    """Fold an Add of one number per channel into the filter, its only producer."""
    for place in find_matches(editor, _BIASED):
        linear, tensor = place.nodes["filter"], editor.tensors[place.values["bias"]]
        channels = editor.shape(linear.outputs[0])[-1]
        if tensor.size == channels and (not tensor.shape or tensor.shape[-1] == channels):
            values = np.ascontiguousarray(tensor.data, np.float32).reshape(-1)
            bias = editor.add_tensor(replace(tensor, shape=values.shape, data=values))
            editor.remove(place.root)
            editor.change(linear, inputs=(*linear.inputs, bias), outputs=place.root.outputs)


__all__ = ["model_from_bytes", "read_model"]
