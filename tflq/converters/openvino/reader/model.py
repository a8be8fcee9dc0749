"""From files to a model."""

from __future__ import annotations

from pathlib import Path

from tflq.converters.openvino.ir import network_from_bytes
from tflq.converters.openvino.reader.biases import fold_biases
from tflq.converters.openvino.reader.graph import Reading
from tflq.converters.openvino.reader.layers import read_layer
from tflq.errors import FormatError, GraphError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Graph, Model, validate


def read_model(path: str | Path) -> Model:
    """Read an .xml and the .bin of the same name beside it.

    Raises:
        InputError: a file that cannot be read.
        FormatError: what does not follow the format, with its line.
        UnsupportedError: layers that are not known, all at once.
    """
    weights = Path(path).with_suffix(".bin")
    return model_from_bytes(read_bytes(path), read_bytes(weights) if weights.exists() else b"", str(path))


def model_from_bytes(xml: bytes | memoryview, weights: bytes | memoryview, where: str) -> Model:
    """Return the model of an IR: float32 with FakeQuantize nodes, weights as codes behind a Dequantize.

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
