"""LOGISTIC and TANH of int16: straight lines in the sigmoid table, made into a table of all 65536 quantized values.

The input comes to steps of 1 / (3 * 2^12): x' = (x * multiplier + half) >> left_shift. For scales of 2^-12 (and 2^-11
for TANH) multiplier is 3 << (exponent + 12) and there is no shift; else it is trunc(s_i * 12288 * 2^left_shift) with
the least left_shift that makes it more than 16383.5.

Source: TFLite kernels/activations.cc (SigmoidPrepare, TanhPrepare), internal/reference/integer_ops/logistic.h, tanh.h.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Operands
from tflq.interpreter.kernels.tflite.power_of_two_sum import power_of_two_exponent
from tflq.interpreter.numerics.fixed_point import Integers, wrap_int32
from tflq.interpreter.numerics.sigmoid_table import SIGMOID_TABLE
from tflq.interpreter.operands.checks import per_tensor, require_zero_points_of_zero
from tflq.interpreter.recording.primitive import entries


def input_rescale(operands: Operands, exact_shifts: Collection[int]) -> tuple[int, int]:
    """Return (multiplier, left_shift) for the input.

    Args:
        operands: of the node.
        exact_shifts: values of 12 + log2(scale) that need no multiplier.

    Raises:
        UnsupportedError: a zero point other than 0, or an output scale other than 2^-15 (within 1e-3 of its logarithm).
    """
    source, output = operands.input(0), operands.output()
    require_zero_points_of_zero(source, output)
    scale, output_scale = per_tensor(source)[0], per_tensor(output)[0]
    if power_of_two_exponent(output_scale) != -15:
        raise UnsupportedError(f"the output scale is {output_scale}; for int16 the kernel takes 1/32768")
    exponent = power_of_two_exponent(scale)
    if exponent is not None and exponent + 12 in exact_shifts:
        return 3 << (exponent + 12), 0
    multiplier, left_shift = float(scale) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and left_shift <= 30:
        left_shift, multiplier = left_shift + 1, multiplier * 2.0
    if multiplier >= 2.0**31:
        raise UnsupportedError(f"the input scale {scale} is too large: its multiplier does not fit int32")
    return int(multiplier), left_shift


def rescaled_input(code: Integers, multiplier: int, left_shift: int) -> Integers:
    """Return (code * multiplier + half) >> left_shift, in an int32 that wraps."""
    half = (1 << left_shift) >> 1
    return wrap_int32(code * multiplier + half) >> left_shift


def interpolate(magnitude: Integers, fraction_bits: int) -> Integers:
    """Return 2^fraction_bits * sigmoid between the table's points; magnitude has `fraction_bits` bits below a point.

    Args:
        magnitude: not negative, whole part below 255.
        fraction_bits: 9 for LOGISTIC, 8 for TANH.
    """
    whole, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    whole = np.minimum(whole, 254)
    here, following = entries(SIGMOID_TABLE, whole), entries(SIGMOID_TABLE, whole + 1)
    return np.asarray((here << fraction_bits) + fraction * (following - here))
