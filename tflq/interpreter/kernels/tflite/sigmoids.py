"""LOGISTIC and TANH in TFLite's integer arithmetic (docs/rules/tflite/index.md).

LOGISTIC and TANH of int16: straight lines in the sigmoid table, made into a table of all 65536 quantized values.

The input is rescaled to steps of 1 / (3 * 2^12): x' = (x * multiplier + half) >> left_shift. For scales of 2^-12 (and
2^-11 for TANH) multiplier is 3 << (exponent + 12) and there is no shift; else it is trunc(s_i * 12288 * 2^left_shift)
with the least left_shift that makes it more than 16383.5.

8 bits: a function of the dequantized value in float32 (`lut256`); exponentials and tanh are computed in float64 and
rounded once. LOGISTIC is f32(1 / f32(1 + exp(f32(-t)))) and its output scale 1/256; TANH takes any output quantization.

int16: x' as for int16 above, output scale 1/32768. LOGISTIC interpolates the magnitude of x' with 9 fraction bits,
from point 255 on 0x7FFF << 10; y = (r + 2^9) >> 10 for x' >= 0, else (2^25 - r + 2^9 - 1) >> 10. TANH is
2 sigmoid(2x) - 1: 8 fraction bits, from point 255 on 0xFFFF << 8; y = (r - 2^23 + 2^7) >> 8 for x' >= 0, else
(-r + 2^23 + 2^7 - 1) >> 8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.tflite.sums import power_of_two_exponent
from tflq.interpreter.numerics.fixed_point import wrap_int32
from tflq.interpreter.numerics.integer_functions import SIGMOID_TABLE
from tflq.interpreter.numerics.lookup_tables import FloatFunction, Table, look_up, lut256, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_symmetric, require_type
from tflq.interpreter.recording.primitive import entries
from tflq.interpreter.registry import Kernel


def input_rescale(operands: Operands, exact_shifts: Collection[int]) -> tuple[int, int]:
    """Return (multiplier, left_shift) for the input.

    Args:
        operands: Operands of the node.
        exact_shifts: values of 12 + log2(scale) that need no multiplier.

    Raises:
        UnsupportedError: a zero point other than 0, or an output scale other than 2^-15 (within 1e-3 of its logarithm).
    """
    source, output = operands.input(0), operands.output()
    require_symmetric(source, output)
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
        fraction_bits: Number of fraction bits: 9 for LOGISTIC, 8 for TANH.
    """
    whole, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    whole = np.minimum(whole, 254)
    here, following = entries(SIGMOID_TABLE, whole), entries(SIGMOID_TABLE, whole + 1)
    return np.asarray((here << fraction_bits) + fraction * (following - here))


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """The params of one LOGISTIC or TANH.

    Attributes:
        table: T[256] or int16[65536], by the raw bits of the quantized value.
        multiplier: Multiplier of the int16 input; 0 for 8 bits.
        left_shift: Left shift of the int16 input.
    """

    table: Table
    multiplier: int = 0
    left_shift: int = 0


def _lower_logistic(node: Node, operands: Operands) -> Sigmoid:  # noqa: ARG001
    """Decide the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or an output quantization that it refuses.
        GraphError: a tensor without scale.
    """
    source, output = _operands(operands)
    scale = float(per_tensor(output)[0])
    wanted = 1.0 / 32768 if source.dtype is DType.INT16 else 1.0 / 256
    if scale != wanted:
        raise UnsupportedError(
            f"the output scale is {per_tensor(output)[0]}; TFLite's {source.dtype.value} logistic takes {wanted}"
        )
    return _table(operands, _logistic, _logistic_int16, (0,))


def _lower_tanh(node: Node, operands: Operands) -> Sigmoid:  # noqa: ARG001
    """Decide the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or an int16 quantization that it refuses.
        GraphError: a tensor without scale.
    """
    _operands(operands)
    return _table(operands, _tanh, _tanh_int16, (0, 1))


def _operands(operands: Operands) -> tuple[Tensor, Tensor]:
    source, output = operands.input(0), operands.output()
    require_type(source, (*EIGHT_BITS, DType.INT16))
    require_same_type(source, output)
    per_tensor(source)
    return source, output


def _table(
    operands: Operands, function: FloatFunction, int16: Callable[[Integers], Integers], exact_shifts: Collection[int]
) -> Sigmoid:
    source, output = operands.input(0), operands.output()
    dtype = source.dtype
    if dtype is not DType.INT16:
        return Sigmoid(lut256(function, dtype, *per_tensor(source), per_tensor(output)))
    multiplier, left_shift = input_rescale(operands, exact_shifts)
    table = make_table(lambda value: int16(rescaled_input(value, multiplier, left_shift)), dtype, dtype)
    return Sigmoid(table, multiplier, left_shift)


def _run(params: Sigmoid, x: Array) -> tuple[Array, ...]:
    return (look_up(params.table, x),)


def _logistic(x: Reals) -> Reals:
    one = np.float32(1)
    with np.errstate(over="ignore"):
        exponential = np.exp(-x.astype(np.float64)).astype(np.float32)  # rounded once: docs/rules/tflite/index.md
    return np.asarray(one / (one + exponential))


def _logistic_int16(x: Integers) -> Integers:
    magnitude = np.abs(x)
    r = np.where(magnitude >> 9 >= 255, 0x7FFF << 10, interpolate(magnitude, 9))
    return np.where(x >= 0, r + (1 << 9), (1 << 25) - r + (1 << 9) - 1) >> 10


def _tanh(x: Reals) -> Reals:
    return np.tanh(x.astype(np.float64)).astype(np.float32)  # rounded once: docs/rules/tflite/index.md


def _tanh_int16(x: Integers) -> Integers:
    magnitude = np.abs(x)
    r = np.where(magnitude >> 8 >= 255, 0xFFFF << 8, interpolate(magnitude, 8))
    return np.where(x >= 0, r - (1 << 23) + (1 << 7), -r + (1 << 23) + (1 << 7) - 1) >> 8


KERNELS = {
    "logistic": Kernel(_lower_logistic, _run,
        "1 / (1 + exp(-x)), as a table",
        "TFLite kernels/activations.cc (SigmoidPrepare), internal/reference/integer_ops/logistic.h"),
    "tanh": Kernel(_lower_tanh, _run,
        "TANH, as a table", "TFLite kernels/activations.cc (TanhPrepare), internal/reference/integer_ops/tanh.h"),
}  # fmt: skip
