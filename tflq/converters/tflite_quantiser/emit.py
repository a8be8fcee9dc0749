"""The file of a quantised graph."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.tflite import model_to_bytes
from tflq.graph import Graph, Model, Signature

FILE = "model.tflite"
_OURS = ("engine", "engine_reason")


def tflite_bytes(graph: Graph, source: Model) -> bytes:
    """Return the .tflite file of a quantised graph; signatures and metadata of the source stay."""
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        kept = {name: value for name, value in node.attributes.items() if name not in _OURS}
        attributes = type(node.attributes)(kept)
        result.nodes[index] = replace(node, attributes=attributes, arithmetic=None, integers=None)
    signatures = [_renumbered(s, source.main, graph) for s in source.signatures if s.graph == 0]
    metadata = {name: data for name, data in source.metadata.items() if name != "CONVERSION_METADATA"}
    return model_to_bytes(Model([result], signatures, metadata, source.description, source.version))


def _renumbered(signature: Signature, old: Graph, new: Graph) -> Signature:
    inputs, outputs = dict(zip(old.inputs, new.inputs, strict=True)), dict(zip(old.outputs, new.outputs, strict=True))
    return Signature(
        signature.key,
        0,
        {name: inputs[t] for name, t in signature.inputs.items() if t in inputs},
        {name: outputs[t] for name, t in signature.outputs.items() if t in outputs},
    )
