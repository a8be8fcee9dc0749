"""Table of arithmetic `tpu_mlir`."""

from __future__ import annotations

from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.kernels.tpu_mlir import activations, conversions, elementwise, linear, pooling, reals, scalars
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **MOVERS,
    **activations.KERNELS,
    **conversions.KERNELS,
    **elementwise.KERNELS,
    **linear.KERNELS,
    **pooling.KERNELS,
    **reals.KERNELS,
    **scalars.KERNELS,
}

ARITHMETIC = Arithmetic("tpu_mlir", KERNELS)
