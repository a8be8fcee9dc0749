"""Table of arithmetic `aipu_float`."""

from __future__ import annotations

from tflq.interpreter.kernels.aipu import indices, layout, rows
from tflq.interpreter.kernels.aipu.real import NAME, functions, linear, pairs, recurrent, spreads, windows
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **indices.KERNELS,
    **layout.KERNELS,
    **rows.KERNELS,
    **functions.KERNELS,
    **linear.KERNELS,
    **pairs.KERNELS,
    **recurrent.KERNELS,
    **spreads.KERNELS,
    **windows.KERNELS,
}

ARITHMETIC = Arithmetic(NAME, KERNELS)
