"""Compass IR -> graph of Compass's layers: one node a layer, its keys as attributes.

Compass IR as a model file: the text and the binary file beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tflq.converters.aipu.operators import LAYERS, OPERATORS
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.quantized import attribute_of, lower_as_imported, quantized_node, quantized_tensors
from tflq.errors import FormatError, GraphError, UnsupportedError
from tflq.files import read_bytes
from tflq.graph import Attributes, DType, Graph, Model, Node, Range, Tensor, validate
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.real import NAME as REAL
from tflq.schemas.aipu import STORAGE, Constant, Edge, Entry, Layer, Network, Value, read_network

INPUT = "Input"
_RANGES = ("layer_top_range", "weights_range", "biases_range")


def graph_of(network: Network) -> Graph:
    """Return the graph of a network; that of a quantized one is lowered, and runs the integers of the file.

    Args:
        network: as `tflq.schemas.aipu.read_network` returns it.

    Raises:
        UnsupportedError: layers without a kernel, all at once; integers that no kernel here would run; an IR of the
            Parser's mode compat_quantized_model.
        FormatError: scales or zero points of a quantized network that are none.
        GraphError: a graph that contradicts itself.
    """
    _refuse(network)
    quantized = network.is_quantized
    written = {layer.tops[0].name: layer.name for layer in network.layers if layer.type == INPUT}
    names = {name: written[name] for name in _names(network, "input_tensors") if name in written}
    graph = Graph([], [], (), (), network.name)
    ahead = {layer.name: _ahead(layer) for layer in network.layers}
    graph.extra = Origin(network.name, names, tuple(layer.name for layer in network.layers), ahead=ahead)
    places: dict[str, int] = {}
    for layer in network.layers:
        tensors = quantized_tensors(layer) if quantized else _float_tensors(layer)
        for tensor in tensors:
            places[tensor.name] = graph.add_tensor(tensor)
        if layer.type != INPUT:
            graph.nodes.append((quantized_node if quantized else _node)(graph, layer, places))
    graph.inputs = tuple(places[name] for name in _names(network, "input_tensors"))
    graph.outputs = tuple(places[name] for name in _names(network, "output_tensors"))
    if not quantized:
        graph.extra = replace(graph.extra, sources=places)
    validate(graph, "Compass IR")
    return lower_as_imported(graph) if quantized else graph


def _ahead(layer: Layer) -> tuple[str, ...]:
    """Return the keys in front of a layer's constants."""
    keys = list(layer.entries)
    first = min((keys.index(key) for key in layer.constants), default=0)
    return tuple(key for key in keys[:first] if key not in _RANGES)


def _refuse(network: Network) -> None:
    if network.header.get("compat_quantized_model") is True:
        raise UnsupportedError(
            "compat_quantized_model=true: the IR has TFLite's integers, for Compass' closed core; allowed is false: "
            "parse the model with compat_quantized_model = false, or give its .tflite"
        )
    missing: dict[str, list[str]] = {}
    for index, layer in enumerate(network.layers):
        if layer.type != INPUT and layer.type not in OPERATORS:
            missing.setdefault(layer.type, []).append(str(index))
    if missing:
        found = "; ".join(f"{kind} (layer {', '.join(numbers)})" for kind, numbers in missing.items())
        raise UnsupportedError(f"no kernel in arithmetic 'aipu' for {found}; it has {', '.join(sorted(OPERATORS))}")


def _names(network: Network, key: str) -> tuple[str, ...]:
    value = network.header[key]
    return tuple(str(name) for name in value) if isinstance(value, tuple) else ()


def _float_tensors(layer: Layer) -> list[Tensor]:
    """Return the tensors that a layer writes, with the ranges of layer_top_range where it has them.

    Raises:
        FormatError: ranges that are none.
    """
    stated = layer.entries.get("layer_top_range")
    ranges: Sequence[Value | None] = stated if isinstance(stated, tuple) else [None] * len(layer.tops)
    if len(ranges) != len(layer.tops):
        raise FormatError(
            f"layer '{layer.name}': layer_top_range has {len(ranges)} ranges; allowed is one for each of its "
            f"{len(layer.tops)} tops"
        )
    return [_tensor(layer, edge, limits) for edge, limits in zip(layer.tops, ranges, strict=True)]


def _tensor(layer: Layer, edge: Edge, limits: Value | None) -> Tensor:
    tensor = Tensor(edge.name, edge.shape, DType.of(np.dtype(STORAGE[edge.dtype])))
    if limits is None:
        return tensor
    pair = [x for x in limits if isinstance(x, (int, float))] if isinstance(limits, tuple) else []
    if len(pair) != 2 or not np.isfinite(pair).all() or pair[0] > pair[1]:
        raise FormatError(
            f"layer '{layer.name}': layer_top_range: {limits} is no range; allowed are two finite numbers that rise"
        )
    return replace(tensor, range=Range(np.array(pair[:1], np.float32), np.array(pair[1:], np.float32)))


def _node(graph: Graph, layer: Layer, places: Mapping[str, int]) -> Node:
    constants = tuple(_constant(graph, layer, key, constant) for key, constant in layer.constants.items())
    inputs = tuple(places[edge.name] for edge in layer.bottoms)
    outputs = tuple(places[edge.name] for edge in layer.tops)
    operator, attributes = OPERATORS[layer.type], _attributes(layer.entries)
    internal = tuple(
        graph.add_tensor(Tensor(f"{layer.name}/{name}", (), DType.FLOAT32))
        for name in _internal_names(operator, attributes)
    )
    return Node(
        operator, inputs + constants, outputs, attributes, layer.name, arithmetic=REAL, intermediates=internal or None
    )


def _internal_names(operator: str, attributes: Attributes) -> tuple[str, ...]:
    """Return the names of a layer's intermediates, in order: by its method, of a recurrent layer by its time steps."""
    found = LAYERS[operator].internal
    if found is None or (found.methods and attributes.text("method", "") not in found.methods):
        return ()
    steps = attributes.integer("time_steps", 0) if found.each_step else 0
    return (*found.names, *(f"{found.each_step}_{t}" for t in range(steps)))


def _constant(graph: Graph, layer: Layer, key: str, constant: Constant) -> int:
    dtype = DType.of(constant.data.dtype)
    return graph.add_tensor(Tensor(f"{layer.name}/{key}", constant.data.shape, dtype, data=constant.data))


def _attributes(entries: Mapping[str, Entry]) -> Attributes:
    kept: dict[str, Attribute] = {}
    for key, entry in entries.items():
        if not isinstance(entry, Constant) and key not in _RANGES:
            kept[key] = attribute_of(entry)
    return Attributes(kept)


def read_model(path: str | os.PathLike[str]) -> Model:
    """Return the model of NAME.txt and NAME.bin, float or quantized.

    A quantized one runs as it is, in the integers of the file; a float one is what target `aipu` quantizes, by the
    ranges that it states.

    Raises:
        InputError: a file that is missing or empty; the binary file may be.
        FormatError: damage; the message begins with the file, the line and the key.
        UnsupportedError: layers without a kernel.
        GraphError: a graph that contradicts itself.
    """
    text, binary = Path(path), Path(path).with_suffix(".bin")
    content = bytes(read_bytes(text))
    constants = bytes(read_bytes(binary)) if not binary.exists() or binary.stat().st_size else b""
    try:
        network = read_network(content.decode("utf-8"), constants)
        return Model([graph_of(network)], source=str(path))
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is no text in UTF-8: {error.reason} at byte {error.start}") from None
    except (FormatError, GraphError, UnsupportedError) as error:
        raise type(error)(f"{path}: {error}") from None
