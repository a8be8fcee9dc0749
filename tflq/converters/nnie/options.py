"""The keys of the NNIE target and their values for one layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.settings import Setting, Settings, Value
from tflq.graph import Graph
from tflq.interpreter.kernels.nnie.logarithm import FORMULAS

SETTINGS = (
    Setting("bits", 8, "width of the logarithmic codes of weights and activations", choices=(8, 16)),
    Setting(
        "formula",
        "library",
        "HiSilicon's library, the published page, or MQBench's code (docs/nnie.md, 4)",
        choices=FORMULAS,
        per_layer=False,
    ),
    Setting("internal_stride", 16, "mapper: alignment of rows in the chip's memory", choices=(16, 32), per_layer=False),
    Setting("compress_mode", 0, "mapper: 1 compresses the parameters", choices=(0, 1), per_layer=False),
    Setting(
        "is_simulation", 0, "mapper: 0 for the chip, 1 for the simulation on a PC", choices=(0, 1), per_layer=False
    ),
    Setting("batch_num", 1, "mapper: frames of one inference", minimum=0, maximum=256, per_layer=False),
)


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer.

    Attributes:
        bits: 8 or 16.
        formula: "library", "page" or "mqbench".
    """

    bits: int
    formula: str


@dataclass(frozen=True)
class MapperOptions:
    """Values that only stand in the mapper's cfg.

    Attributes:
        internal_stride: 16 or 32.
        compress_mode: 0 or 1.
        is_simulation: 0 or 1.
        batch_num: 0..256.
    """

    internal_stride: int = 16
    compress_mode: int = 0
    is_simulation: int = 0
    batch_num: int = 1


def layer_options(graph: Graph, settings: Settings) -> dict[str, LayerOptions]:
    """Return the options of each node by its name.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    layers = settings.of_layers(graph)
    return {
        node.name: LayerOptions(int(values["bits"]), str(values["formula"]))
        for node, values in zip(graph.nodes, layers, strict=True)
    }


def mapper_options(values: Mapping[str, Value]) -> MapperOptions:
    """Return the mapper's values."""
    names = ("internal_stride", "compress_mode", "is_simulation", "batch_num")
    return MapperOptions(**{name: int(values[name]) for name in names})
