"""The keys of the target."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import Options, Settings, key, read_options
from tflq.errors import OptionError
from tflq.graph import Graph

SYMMETRIC, ASYMMETRIC = "symmetric", "asymmetric"
PER_CHANNEL, PER_TENSOR = "per-channel", "per-tensor"
INT8, FLOAT = "int8", "float"
STATIC, DYNAMIC = "static", "dynamic"
_LEVELS = "levels of activations where they are no power of two, such as 255; 0 for 2^activation_bits"
_WEIGHT_SCHEME = "asymmetric: zero points; the plug-in runs such a layer in f32"
_MOST_LEVELS = 1 << 16


@dataclass(frozen=True)
class OpenBatch:
    """What a quantized graph carries for batch=dynamic.

    Attributes:
        twice: the same network, quantized alike, for twice the batch.
    """

    twice: Graph


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer."""

    activation_bits: int = key(8, "levels of activations are 2^bits", minimum=1, maximum=16)
    given_levels: int = key(0, _LEVELS, name="levels")
    activation_scheme: str = key(ASYMMETRIC, "of ranges that are calibrated", (ASYMMETRIC, SYMMETRIC))
    weight_bits: int = key(8, "levels of weights are 2^bits; weights that the file quantized keep theirs", (8, 4))
    weight_granularity: str = key(PER_CHANNEL, "of weights that are quantized here", (PER_CHANNEL, PER_TENSOR))
    weight_scheme: str = key(SYMMETRIC, _WEIGHT_SCHEME, (SYMMETRIC, ASYMMETRIC))
    precision: str = key(INT8, "float leaves a layer's weights and output real (mixed precision)", (INT8, FLOAT))
    input: str = key(FLOAT, "float: f32 NCHW; int8: as an int8 .tflite", (FLOAT, INT8), per_layer=False)
    output: str = key(FLOAT, "float: not quantized; int8: as an int8 .tflite", (FLOAT, INT8), per_layer=False)

    batch: str = key(STATIC, "dynamic: the first axis of inputs is open", (STATIC, DYNAMIC), per_layer=False)

    @property
    def levels(self) -> int:
        """Of the layer's output."""
        return self.given_levels or 1 << self.activation_bits

    @property
    def symmetric(self) -> bool:
        """Whether calibrated ranges become symmetric."""
        return self.activation_scheme == SYMMETRIC

    @property
    def per_channel(self) -> bool:
        """Whether weights get a scale for each output channel."""
        return self.weight_granularity == PER_CHANNEL

    @property
    def asymmetric_weights(self) -> bool:
        """Whether weights may have zero points."""
        return self.weight_scheme == ASYMMETRIC

    @property
    def in_float(self) -> bool:
        """Whether the layer stays float."""
        return self.precision == FLOAT


def options_of(graph: Graph, settings: Settings) -> Options[LayerOptions]:
    """Return the options of a graph.

    Raises:
        OptionError: a layer pattern that matches nothing; levels below 2.
    """
    options = read_options(LayerOptions, graph, settings)
    for layer in (options.whole, *options.layers.values()):
        _check(layer)
    return options


def _check(layer: LayerOptions) -> None:
    levels = layer.levels
    if not 2 <= levels <= _MOST_LEVELS or (levels & (levels + 1) and levels & (levels - 1)):
        raise OptionError(f"levels={levels}: allowed are 2^bits and 2^bits - 1 from 2 to {_MOST_LEVELS}, or 0")
