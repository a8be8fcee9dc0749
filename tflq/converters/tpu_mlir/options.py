"""The keys of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.settings import key
from tflq.converters.tpu_mlir.tables import MODES
from tflq.errors import OptionError
from tflq.interpreter.kernels.tpu_mlir.multiplier import MANUAL

_MODE = "what a layer computes in; others than INT8 go into the quantization table"
_FORMULAS = (
    "as TPU-MLIR computes, or as its manual prints it: threshold/128, one shift in Add, normalized multipliers, "
    "LEAKY_RELU and PRELU in integers in the asymmetric mode"
)


CHIPS = ("bm1684x", "bm1684x2", "bm1688", "bm1690", "bm1690e", "cv184x", "cv186x", "sg2262", "sg2380", "sgtpuv8")
"""Chips of TPU-MLIR 1.30 that lower as BM1684X does, by their family; bm1684 and cv18xx before cv184x do not."""


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer."""

    asymmetric: bool = key(False, "zero points on int8 activations (--asymmetric of TPU-MLIR)", per_layer=False)
    mode: str = key("INT8", _MODE, MODES)
    formulas: str = key("tool", _FORMULAS, ("tool", MANUAL), per_layer=False)
    chip: str = key("bm1684x", "of the build script; the integers are those of bm1684x", CHIPS, per_layer=False)
    quant_input: bool = key(False, "the built model takes quantized inputs (--quant_input)", per_layer=False)
    quant_output: bool = key(False, "the built model gives quantized outputs (--quant_output)", per_layer=False)
    mean: str = key("", "of the pixels, subtracted by the built model, as 123.7,116.3,103.5", per_layer=False)
    scale: str = key("", "of the pixels minus their mean, as 0.017,0.017,0.017", per_layer=False)
    pixel_format: str = key(
        "", "of the pixels: rgb, bgr, gray, rgba", ("", "rgb", "bgr", "gray", "rgba"), per_layer=False
    )
    calibration_table: str = key("", "a calibration table of TPU-MLIR to take ranges from", per_layer=False)

    @property
    def manual(self) -> bool:
        """Whether the manual's own formulas are used."""
        return self.formulas == MANUAL

    def deployment(self) -> Deployment:
        """Return what the build script says beside the integers.

        Raises:
            OptionError: numbers that are none.
        """
        for what in ("mean", "scale"):
            text = getattr(self, what)
            try:
                _ = [float(part) for part in text.split(",")] if text else []
            except ValueError:
                raise OptionError(f"{what}={text}: numbers with commas between are needed, as 0.5,0.5,0.5") from None
        found = {what: getattr(self, what) for what in ("mean", "scale", "pixel_format") if getattr(self, what)}
        return Deployment(self.asymmetric, self.chip, self.quant_input, self.quant_output, found)


@dataclass(frozen=True)
class Deployment:
    """What the build script says beside the integers.

    Attributes:
        asymmetric: whether activations have zero points.
        chip: as TPU-MLIR calls it.
        quant_input: whether inputs stay integers.
        quant_output: whether outputs stay integers.
        preprocessing: options of model_transform.py -> values.
    """

    asymmetric: bool
    chip: str
    quant_input: bool
    quant_output: bool
    preprocessing: Mapping[str, str]
