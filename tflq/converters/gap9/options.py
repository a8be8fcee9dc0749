"""The keys of GAP9's targets (docs/targets/gap9.md lists them)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflq.converters.settings import Settings, key, read_options
from tflq.graph import Graph


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer.

    Attributes:
        weight_bits_requested: whether a layer rule named weight_bits for this very layer.
    """

    use_ne16: bool = key(True, "run on the NE16 accelerator what it can take; false is the cluster (SQ8)")
    weight_bits: int = key(8, "bits of NE16 weights", minimum=2, maximum=8)
    weight_range: str = key(
        "narrow", "NE16's quantized weights without the lowest one, as the vendor's tool, or all", ("narrow", "full")
    )
    feature_bits: int = key(8, "bits of NE16 activations", choices=(8, 16), per_layer=False)
    allow_asymmetric_out: bool = key(False, "let graph inputs and outputs have any zero point", per_layer=False)
    softmax_out_8bits: bool = key(False, "softmax writes int8 (scale 2^-7) instead of int16 (2^-15)")
    max_precision_limit: int = key(
        2, "most bits that a 16-bit input gives up for its accumulator", minimum=0, maximum=8
    )
    sub: str = key("exact", "uint8 Sub: the correct sign of the zero points, or the vendor's", ("exact", "nntool"))
    numerics: str = key(
        "exact", "where NNTool is flawed: the right result, or NNTool's to the bit", ("exact", "nntool")
    )
    expressions: str = key(
        "auto",
        "NNTool's expression matcher: auto runs it where an operator needs it, and computes MUL and SUB by it, too",
        ("true", "false", "auto"),
        per_layer=False,
    )
    weight_bits_requested: bool = False


def layer_options(graph: Graph, settings: Settings) -> dict[str, LayerOptions]:
    """Return the options of each node by its name.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    layers = read_options(LayerOptions, graph, settings).layers
    return {
        name: replace(options, weight_bits_requested=settings.names(graph, index, ("weight_bits",)))
        for index, (name, options) in enumerate(layers.items())
    }
