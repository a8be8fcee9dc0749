"""The file of a quantised graph."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.tflite import model_to_bytes
from tflq.graph import Graph, Model, with_graphs

FILE = "model.tflite"
_OURS = ("engine", "engine_reason")


def tflite_bytes(graph: Graph, source: Model) -> bytes:
    """Return the .tflite file of a quantised graph, lowered or not; signatures and metadata of the source stay."""
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        kept = {name: value for name, value in node.attributes.items() if name not in _OURS}
        attributes = type(node.attributes)(kept)
        result.nodes[index] = replace(node, attributes=attributes, arithmetic=None, params=None)
        for t in node.outputs:  # lowering has folded what does not depend on samples
            result.tensors[t] = replace(result.tensors[t], data=None)
    metadata = {name: data for name, data in source.metadata.items() if name != "CONVERSION_METADATA"}
    plain = replace(with_graphs(source, [result]), metadata=metadata, extra=None)
    return model_to_bytes(plain)
