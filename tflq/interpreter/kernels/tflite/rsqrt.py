"""RSQRT: 1 / sqrt(x) of quantised tensors; negative numbers are refused at run time.

int8: v = x - z_i; 127 for v = 0, else (r, k) = 1 / sqrt(v) (inverse_square_root.py) and
y = clamp(MBQ(MBQ(1, r, k + 20), m, e - 20) + z_o), (m, e) of 1 / f32(f32(sqrt(s_i)) s_o) in float64.
int16: a table of 513 points in float32 (quantised_function.py), where numbers up to 0 count as f32(32767 s_o).

Source: TFLite kernels/elementwise.cc (RsqrtEvalQuantizedInt8, RsqrtEvalQuantizedInt16).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.kernels.tflite.non_negative import NonNegative, run_non_negative
from tflq.interpreter.kernels.tflite.quantised_function import lower_function
from tflq.interpreter.kernels.tflite.undefined_shifts import rounding_divide_by_pot_x86
from tflq.interpreter.numerics.fixed_point import Integers, quantize_multiplier, wrap_int32
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.inverse_square_root import inverse_square_root
from tflq.interpreter.numerics.lookup_tables import FloatFunction, make_table
from tflq.interpreter.operands.checks import per_tensor

SHIFT = 20
"""Keeps the intermediate value an integer."""


def lower(node: Node, operands: Operands) -> NonNegative:  # noqa: ARG001
    """Make the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = lower_unary(operands, (DType.INT8, DType.INT16)).dtype
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    if dtype is DType.INT16:
        return NonNegative("rsqrt", zi, lower_function(operands, (dtype,), _real(so)).table)
    multiplier, shift = (int(part) for part in quantize_multiplier(1.0 / float(np.sqrt(si) * so)))

    def entry(code: Integers) -> Integers:
        root, root_shift = inverse_square_root(np.maximum(code - zi, 1))
        data = mbq(1, root, root_shift + SHIFT)
        scaled = _rescale(data, multiplier, shift - SHIFT)
        result = np.where(code == zi, 127, wrap_int32(scaled + zo))
        return np.clip(result, dtype.minimum, dtype.maximum)

    return NonNegative("rsqrt", zi, make_table(entry, dtype, dtype), multiplier, shift)


def run(params: NonNegative, x: Array) -> tuple[Array, ...]:
    """Run RSQRT: T[S, *shape] -> T[S, *shape]; raises as `run_non_negative`."""
    return run_non_negative(params, x)


def _rescale(data: Integers, multiplier: int, shift: int) -> Integers:
    """MBQ whose right shift may exceed 31: x86's result then."""
    high = srdhm(wrap_int32(data << max(shift, 0)), multiplier)
    return rounding_divide_by_pot_x86(high, max(-shift, 0))


def _real(output_scale: np.float32) -> FloatFunction:
    def function(x: NDArray[np.floating]) -> NDArray[np.floating]:
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.float32(1) / np.sqrt(x.astype(np.float32))
        return np.asarray(np.where(x <= 0, np.float32(32767) * output_scale, root))

    return function
