"""Table of arithmetic `gap9`."""

from __future__ import annotations

from tflq.interpreter.kernels.gap9 import (
    activations,
    elementwise,
    linear,
    moves,
    pooling,
    softmax,
    unidirectional_sequence_lstm,
)
from tflq.interpreter.kernels.gap9.expressions import kernel
from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **MOVERS,
    **activations.KERNELS,
    **elementwise.KERNELS,
    **linear.KERNELS,
    **moves.KERNELS,
    **pooling.KERNELS,
    **softmax.KERNELS,
    **unidirectional_sequence_lstm.KERNELS,
    **kernel.KERNELS,
}

ARITHMETIC = Arithmetic("gap9", KERNELS)
