"""The keys of the target."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.settings import key
from tflq.converters.tpu_mlir.tables import MODES
from tflq.interpreter.kernels.tpu_mlir.multiplier import MANUAL

_MODE = "what a layer computes in; others than INT8 go into the quantisation table"
_FORMULAS = "as TPU-MLIR computes, or as its manual prints it: threshold/128, one shift in Add, normalised multipliers"


@dataclass(frozen=True)
class LayerOptions:
    """Values of the keys for one layer."""

    asymmetric: bool = key(False, "zero points on int8 activations (--asymmetric of TPU-MLIR)", per_layer=False)
    mode: str = key("INT8", _MODE, MODES)
    formulas: str = key("tool", _FORMULAS, ("tool", MANUAL), per_layer=False)
    calibration_table: str = key("", "a calibration table of TPU-MLIR to take ranges from", per_layer=False)

    @property
    def manual(self) -> bool:
        """Whether the manual's own formulas are used."""
        return self.formulas == MANUAL
