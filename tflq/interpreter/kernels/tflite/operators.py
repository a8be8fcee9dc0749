"""Table of arithmetic `tflite`."""

from __future__ import annotations

from tflq.interpreter.kernels.float import volumes
from tflq.interpreter.kernels.move.operators import MOVERS
from tflq.interpreter.kernels.plain.operators import PLAIN
from tflq.interpreter.kernels.tflite import (
    activations,
    batch_matmul,
    comparison,
    concatenation,
    convolution,
    fully_connected,
    hybrid_rnn,
    l2_normalization,
    lstm,
    mul,
    pools,
    prelu,
    quantize,
    quantized_function,
    reduction,
    resize_bilinear,
    sigmoids,
    softmax,
    sums,
    svdf,
    transpose_conv,
)
from tflq.interpreter.registry import Arithmetic

KERNELS = {
    **MOVERS,
    **PLAIN,
    **activations.KERNELS,
    **batch_matmul.KERNELS,
    **comparison.KERNELS,
    **concatenation.KERNELS,
    **convolution.KERNELS,
    **fully_connected.KERNELS,
    **hybrid_rnn.KERNELS,
    **l2_normalization.KERNELS,
    **lstm.KERNELS,
    **mul.KERNELS,
    **pools.KERNELS,
    **prelu.KERNELS,
    **quantized_function.KERNELS,
    **quantize.KERNELS,
    **reduction.KERNELS,
    **resize_bilinear.KERNELS,
    **sigmoids.KERNELS,
    **softmax.KERNELS,
    **sums.KERNELS,
    **svdf.KERNELS,
    **transpose_conv.KERNELS,
    "conv_3d_transpose": volumes.KERNELS["conv_3d_transpose"],  # float32 only, but its first input is a shape: int32
}

ARITHMETIC = Arithmetic("tflite", KERNELS, floating="float")
