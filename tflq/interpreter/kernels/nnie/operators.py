"""Table of arithmetic `nnie`."""

from __future__ import annotations

from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.kernels.nnie import layers
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **MOVERS,
    **layers.KERNELS,
}

ARITHMETIC = Arithmetic("nnie", KERNELS, floating="float")
