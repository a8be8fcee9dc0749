"""Table of arithmetic `openvino`."""

from __future__ import annotations

from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.kernels.openvino import levels, linear, pairs, pooling
from tflq.interpreter.kernels.plain.operators import PLAIN
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **MOVERS,
    **PLAIN,
    **levels.KERNELS,
    **linear.KERNELS,
    **pairs.KERNELS,
    **pooling.KERNELS,
}

ARITHMETIC = Arithmetic("openvino", KERNELS, floating="float")
