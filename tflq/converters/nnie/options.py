"""The keys of the NNIE target."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import key
from tflq.interpreter.kernels.nnie.logarithm import FORMULAS

_FORMULA = "HiSilicon's library, the published page, or MQBench's code (docs/nnie.md, 4)"


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer; those of the mapper only stand in its cfg."""

    bits: int = key(8, "width of the logarithmic quantized values of weights and activations", choices=(8, 16))
    formula: str = key("library", _FORMULA, choices=FORMULAS, per_layer=False)
    internal_stride: int = key(16, "mapper: alignment of rows in the chip's memory", choices=(16, 32), per_layer=False)
    compress_mode: int = key(0, "mapper: 1 compresses the parameters", choices=(0, 1), per_layer=False)
    is_simulation: int = key(0, "mapper: 0 for the chip, 1 for the simulation on a PC", choices=(0, 1), per_layer=False)
    batch_num: int = key(1, "mapper: frames of one inference", minimum=0, maximum=256, per_layer=False)


MAPPER_KEYS = ("internal_stride", "compress_mode", "is_simulation", "batch_num")
