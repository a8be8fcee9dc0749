"""The keys of the target `tflite`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflq.converters.settings import Options, Settings, key, read_options
from tflq.graph import Graph

KINDS = ("int8", "int16x8", "weights", "hybrid", "float")
_ENDS = ("integer", "float")
_TYPE = (
    "int8, or 16-bit activations with int8 weights; weights: int8, dequantised at load; hybrid: int8 weights, "
    "activations quantised at run time; float: leave as it is"
)


RECIPES = {
    "dynamic_wi8_afp32": ("hybrid", 8),
    "dynamic_wi4_afp32": ("hybrid", 4),
    "weight_only_wi8_afp32": ("weights", 8),
    "weight_only_wi4_afp32": ("weights", 4),
    "static_wi8_ai8": ("int8", 8),
    "static_wi4_ai8": ("int8", 4),
    "static_wi8_ai16": ("int16x8", 8),
}
"""Names that ai-edge-quantizer has for them -> type, weight_bits."""
_RECIPE = "type and weight_bits by the name that ai-edge-quantizer has for them; `type` or `weight_bits` of a layer win"


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer."""

    kind: str = key("int8", _TYPE, choices=KINDS, name="type")
    weight_bits: int = key(8, "of weights; 4 where TFLite has a kernel", choices=(8, 4))
    recipe: str = key("", _RECIPE, choices=("", *RECIPES), per_layer=False)
    per_channel: bool = key(True, "a scale for each output channel of the weights; false is one for each tensor")
    symmetric: bool = key(False, "zero points of int8 activations are 0", per_layer=False)
    inputs: str = key("integer", "type of the graph's inputs; float inserts QUANTIZE", _ENDS, per_layer=False)
    outputs: str = key("integer", "type of the graph's outputs; float inserts DEQUANTIZE", _ENDS, per_layer=False)


def options_of(graph: Graph, settings: Settings) -> Options[LayerOptions]:
    """Return the options of a graph; a recipe gives the type and the bits that no rule names for a layer.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    options = read_options(LayerOptions, graph, settings)
    if not options.whole.recipe:
        return options
    kind, bits = RECIPES[options.whole.recipe]
    layers = {}
    for index, node in enumerate(graph.nodes):
        layer = options.layers[node.name]
        if not settings.names(graph, index, ("type",)):
            layer = replace(layer, kind=kind)
        if not settings.names(graph, index, ("weight_bits",)):
            layer = replace(layer, weight_bits=bits)
        layers[node.name] = layer
    return Options(options.whole, layers)
