"""Target `tflite`: a float or quantized network as a .tflite of integers (docs/targets/tflite.md)."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.settings import settings_of
from tflq.converters.targets import Artifacts, Target
from tflq.converters.tflite import model_to_bytes
from tflq.converters.tflite_quantizer.options import LayerOptions
from tflq.converters.tflite_quantizer.quantize import ARITHMETIC, problems_of, quantize_graph
from tflq.converters.tflite_quantizer.rules import SPECIFICATION
from tflq.converters.tflite_quantizer.scales import codes
from tflq.graph import Attributes, Graph, Model, with_graphs

__all__ = ["TFLITE"]

FILE = "model.tflite"
_OURS = ("engine", "engine_reason")


def artifacts_of(graph: Graph, source: Model) -> Artifacts:
    """Return the .tflite file of a quantized graph, lowered or not; signatures and metadata of the source stay."""
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        attributes = Attributes({name: value for name, value in node.attributes.items() if name not in _OURS})
        result.nodes[index] = replace(node, attributes=attributes, arithmetic=None, params=None)
        for t in node.outputs:  # lowering has folded what does not depend on samples
            result.tensors[t] = replace(result.tensors[t], data=None)
    metadata = {name: data for name, data in source.metadata.items() if name != "CONVERSION_METADATA"}
    plain = replace(with_graphs(source, [result]), metadata=metadata, extra=None)
    return {FILE: model_to_bytes(plain)}


TFLITE = Target(
    name="tflite",
    summary="TFLite: int8 or 16x8 integers, weights only, or single operators in float",
    arithmetic=ARITHMETIC,
    keeps_variables=True,
    specification=SPECIFICATION,
    settings=settings_of(LayerOptions),
    check=lambda graph, _: problems_of(graph),
    quantize=quantize_graph,
    # clip(rha(f32(x / scale)) + zero_point), halves away from zero, as TFLite's QUANTIZE
    encode=lambda real, tensor: codes(real, tensor.affine),
    emit=artifacts_of,
    estimate="a host processor: measure it with `tflq bench`",
)
