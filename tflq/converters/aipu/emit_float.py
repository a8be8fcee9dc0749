"""The graph of Compass's layers as float Compass IR, in the Parser's layout (docs/aipu.md, 6)."""

from __future__ import annotations

from tflq.converters.aipu.emit import constant_of, edge_of, value_of
from tflq.converters.aipu.operators import LAYERS
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.ranges import range_of
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Node, Tensor
from tflq.schemas.aipu import Entry, Layer, Network, Value

DOMAIN = "image_classification"
"""What the Parser writes unless it is told another domain; nothing reads it."""

_BEFORE_CONSTANTS = {"activation": ("method",), "batch_norm": ("axis",)}


def float_network_of(graph: Graph, name: str) -> Network:
    """Return the float IR of a graph of Compass's layers; ranges of tensors come along as layer_top_range.

    Args:
        graph: float, of `graph_of` or `translate`.
        name: of the model and of its binary file.

    Raises:
        UnsupportedError: another graph.
    """
    origin = graph.extra
    if not isinstance(origin, Origin):
        raise UnsupportedError("the graph has no layers of Compass IR: translate it for aipu first")
    layers = [
        Layer(origin.inputs[tensor.name], "Input", (), (edge_of(tensor),), _ranges((tensor,)))
        for tensor in (graph.tensors[t] for t in graph.inputs)
    ]
    layers += [_layer(graph, node, _ahead(origin, node)) for node in graph.nodes]
    place = {layer: i for i, layer in enumerate(origin.order)}
    layers.sort(key=lambda layer: place.get(layer.name, len(place)))
    header: dict[str, Value] = {
        "model_name": name,
        "model_domain": DOMAIN,
        "layer_number": len(layers),
        "precision": "float32",
        "compat_quantized_model": False,
        "model_bin": f"./{name}.bin",
        "input_tensors": tuple(origin.inputs),
        "output_tensors": tuple(graph.tensors[t].name for t in graph.outputs),
    }
    return Network(header, tuple(layers))


def _ahead(origin: Origin, node: Node) -> tuple[str, ...]:
    """Return the keys that stand in front of a layer's constants."""
    return _BEFORE_CONSTANTS.get(node.operator, ()) if origin.ahead is None else origin.ahead.get(node.name, ())


def _layer(graph: Graph, node: Node, ahead: tuple[str, ...]) -> Layer:
    operands = [graph.tensors[t] for t in node.inputs]
    own = f"{node.name}/"
    bottoms = tuple(edge_of(t) for t in operands if not t.name.startswith(own) or not t.is_constant)
    tops = tuple(graph.tensors[t] for t in node.outputs)
    entries = _ranges(tops)
    written = {key: value for key, a in node.attributes.items() if (value := value_of(a)) is not None}
    entries.update({key: written[key] for key in ahead if key in written})
    for t in operands:
        if t.is_constant and t.data is not None and t.name.startswith(own):
            entries[t.name.removeprefix(own)] = constant_of(t.data)
    entries.update(written)
    return Layer(node.name, LAYERS[node.operator].type, bottoms, tuple(map(edge_of, tops)), entries)


def _ranges(tops: tuple[Tensor, ...]) -> dict[str, Entry]:
    """Return layer_top_range where every top has one: what Compass's calibration `in_ir` reads."""
    if not all(t.range is not None for t in tops):
        return {}
    return {"layer_top_range": tuple(range_of(t) for t in tops)}
