"""Table of arithmetic `float`."""

from __future__ import annotations

from tflq.interpreter.kernels.float import (
    convolution,
    lstm,
    pools,
    products,
    resize_bilinear,
    rnn,
    softmax,
    svdf,
    volumes,
)
from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.kernels.plain.operators import PLAIN, UNQUANTIZED
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **MOVERS,
    **PLAIN,
    **UNQUANTIZED,
    **convolution.KERNELS,
    **lstm.KERNELS,
    **pools.KERNELS,
    **products.KERNELS,
    **resize_bilinear.KERNELS,
    **rnn.KERNELS,
    **softmax.KERNELS,
    **svdf.KERNELS,
    **volumes.KERNELS,
}

ARITHMETIC = Arithmetic("float", KERNELS)
