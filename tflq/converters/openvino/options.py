"""The keys of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.settings import Setting, Settings, Value
from tflq.errors import OptionError
from tflq.graph import Graph

SYMMETRIC, ASYMMETRIC = "symmetric", "asymmetric"
PER_CHANNEL, PER_TENSOR = "per-channel", "per-tensor"
INT8, FLOAT = "int8", "float"

KNOWN = (
    Setting("activation_bits", 8, "levels of activations are 2^bits", minimum=1, maximum=16),
    Setting("levels", 0, "levels of activations where they are no power of two, such as 255; 0 for 2^activation_bits"),
    Setting("activation_scheme", ASYMMETRIC, "of ranges that are calibrated", (ASYMMETRIC, SYMMETRIC)),
    Setting("weight_bits", 8, "levels of weights are 2^bits; weights that the file quantised keep theirs", (8, 4)),
    Setting("weight_granularity", PER_CHANNEL, "of weights that are quantised here", (PER_CHANNEL, PER_TENSOR)),
    Setting("weight_scheme", SYMMETRIC, "asymmetric is refused: it runs in f32", (SYMMETRIC, ASYMMETRIC)),
    Setting("precision", INT8, "float leaves a layer's weights and output real (mixed precision)", (INT8, FLOAT)),
    Setting("input", FLOAT, "float: f32 NCHW; int8: as an int8 .tflite", (FLOAT, INT8), per_layer=False),
    Setting("output", FLOAT, "float: not quantised; int8: as an int8 .tflite", (FLOAT, INT8), per_layer=False),
)
_MOST_LEVELS = 1 << 16


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer.

    Attributes:
        levels: of its output.
        symmetric: whether calibrated ranges become symmetric.
        weight_bits: 8 or 4.
        per_channel: whether weights get a scale for each output channel.
        in_float: whether the layer stays float.
    """

    levels: int
    symmetric: bool
    weight_bits: int
    per_channel: bool
    in_float: bool


@dataclass(frozen=True)
class Options:
    """What was asked of the target.

    Attributes:
        whole: of the graph's inputs.
        layers: name of a node -> its values.
        input_codes: whether the network takes codes.
        output_codes: whether it returns codes.
    """

    whole: LayerOptions
    layers: Mapping[str, LayerOptions]
    input_codes: bool
    output_codes: bool


def options_of(graph: Graph, settings: Settings) -> Options:
    """Return the options of a graph.

    Raises:
        OptionError: a layer pattern that matches nothing; levels below 2; asymmetric weights.
    """
    values = settings.of_layers(graph)
    return Options(
        _layer(settings.values),
        {node.name: _layer(layer) for node, layer in zip(graph.nodes, values, strict=True)},
        settings.values["input"] == INT8,
        settings.values["output"] == INT8,
    )


def _layer(values: Mapping[str, Value]) -> LayerOptions:
    levels = int(values["levels"]) or 1 << int(values["activation_bits"])
    if not 2 <= levels <= _MOST_LEVELS or (levels & (levels + 1) and levels & (levels - 1)):
        raise OptionError(f"levels={levels}: allowed are 2^bits and 2^bits - 1 from 2 to {_MOST_LEVELS}, or 0")
    if values["weight_scheme"] == ASYMMETRIC:
        raise OptionError(
            "weight_scheme=asymmetric: OpenVINO's CPU plug-in executes a layer whose weights have zero points in f32, "
            "in whichever form they are written; use symmetric"
        )
    return LayerOptions(
        levels,
        values["activation_scheme"] == SYMMETRIC,
        int(values["weight_bits"]),
        values["weight_granularity"] == PER_CHANNEL,
        values["precision"] == FLOAT,
    )
