"""The keys of the target `tflite` and their values for one layer."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import Setting, Settings
from tflq.graph import Graph

KINDS = ("int8", "int16x8", "weights", "hybrid", "float")

SETTINGS = (
    Setting(
        "type",
        "int8",
        "int8, or 16-bit activations with int8 weights; weights: int8, dequantised at load; hybrid: int8 weights, "
        "activations quantised at run time; float: leave as it is",
        choices=KINDS,
    ),
    Setting("per_channel", True, "a scale for each output channel of the weights; false is one for each tensor"),
    Setting("symmetric", False, "zero points of int8 activations are 0", per_layer=False),
    Setting(
        "inputs", "integer", "type of the graph's inputs; float inserts QUANTIZE", ("integer", "float"), per_layer=False
    ),
    Setting(
        "outputs",
        "integer",
        "type of the graph's outputs; float inserts DEQUANTIZE",
        ("integer", "float"),
        per_layer=False,
    ),
)


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer.

    Attributes:
        kind: one of KINDS.
        per_channel: whether each output channel has its own scale.
    """

    kind: str
    per_channel: bool


@dataclass(frozen=True)
class GraphOptions:
    """Values of the keys for the whole graph.

    Attributes:
        symmetric: whether zero points of int8 activations are 0.
        float_inputs: whether inputs stay float32.
        float_outputs: whether outputs stay float32.
    """

    symmetric: bool
    float_inputs: bool
    float_outputs: bool


def layer_options(graph: Graph, settings: Settings) -> dict[str, LayerOptions]:
    """Return the options of each node by its name.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    layers = settings.of_layers(graph)
    return {
        node.name: LayerOptions(str(values["type"]), bool(values["per_channel"]))
        for node, values in zip(graph.nodes, layers, strict=True)
    }


def graph_options(settings: Settings) -> GraphOptions:
    """Return the options of the whole graph."""
    values = settings.values
    return GraphOptions(bool(values["symmetric"]), values["inputs"] == "float", values["outputs"] == "float")
