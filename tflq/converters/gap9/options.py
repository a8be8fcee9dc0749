"""The keys of GAP9's targets and their values for one layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.settings import Setting, Settings, Value
from tflq.graph import Graph


def known_settings(use_ne16: bool) -> tuple[Setting, ...]:
    """Return the keys; the two targets differ in the default of `use_ne16` only."""
    return (
        Setting("use_ne16", use_ne16, "run on the NE16 accelerator what it can take; false is the cluster (SQ8)"),
        Setting("weight_bits", 8, "bits of NE16 weights", minimum=2, maximum=8),
        Setting("feature_bits", 8, "bits of NE16 activations", choices=(8, 16), per_layer=False),
        Setting("allow_asymmetric_out", False, "let graph inputs and outputs have any zero point", per_layer=False),
        Setting("softmax_out_8bits", False, "softmax writes int8 (scale 2^-7) instead of int16 (2^-15)"),
        Setting(
            "max_precision_limit", 2, "most bits that a 16-bit input gives up for its accumulator", minimum=0, maximum=8
        ),
        Setting("sub", "exact", "uint8 Sub: the correct sign of the zero points, or the vendor's", ("exact", "nntool")),
    )


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer (docs/gap9.md lists them).

    Attributes:
        use_ne16: whether NE16 may be used.
        weight_bits: bits of the weights.
        weight_bits_asked: whether a layer rule named weight_bits for this very layer.
        feature_bits: bits of NE16's activations.
        allow_asymmetric_out: for graph inputs and outputs.
        softmax_out_8bits: int8 instead of int16.
        max_precision_limit: for 16-bit inputs.
        sub: "exact" or "nntool".
    """

    use_ne16: bool
    weight_bits: int
    weight_bits_asked: bool
    feature_bits: int
    allow_asymmetric_out: bool
    softmax_out_8bits: bool
    max_precision_limit: int
    sub: str


def layer_options(graph: Graph, settings: Settings) -> dict[str, LayerOptions]:
    """Return the options of each node by its name.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    layers = settings.of_layers(graph)
    return {
        node.name: _options(values, _asked(settings, index, node.name, node.operator))
        for index, (node, values) in enumerate(zip(graph.nodes, layers, strict=True))
    }


def _asked(settings: Settings, index: int, name: str, operator: str) -> bool:
    return any("weight_bits" in rule.values and rule.matches(index, name, operator) for rule in settings.rules)


def _options(values: Mapping[str, Value], asked: bool) -> LayerOptions:
    return LayerOptions(
        use_ne16=bool(values["use_ne16"]),
        weight_bits=int(values["weight_bits"]),
        weight_bits_asked=asked,
        feature_bits=int(values["feature_bits"]),
        allow_asymmetric_out=bool(values["allow_asymmetric_out"]),
        softmax_out_8bits=bool(values["softmax_out_8bits"]),
        max_precision_limit=int(values["max_precision_limit"]),
        sub=str(values["sub"]),
    )
