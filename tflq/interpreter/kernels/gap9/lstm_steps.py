"""The steps of an LSTM over time in GAP9's two arithmetics (docs/gap9.md, 13)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product
from tflq.interpreter.kernels.gap9.mul_bias import MulBias
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.kernels.gap9.sigmoid_tanh import sigmoid_q15, tanh_q15
from tflq.interpreter.numerics.fixed_point import Integers

_LARGEST_ARGUMENT = 1 << 17


@dataclass(frozen=True, eq=False)
class LstmParams:
    """The integers of one layer; the gates i, f, c, o lie behind each other.

    Attributes:
        on_ne16: NE16's arithmetic, else SQ8's.
        time_major: whether the input is [T, N, I] instead of [N, T, I].
        input_product: W, [4H, I].
        recurrent_product: R, [4H, H].
        input_mul_bias: M_i, N_i, [4H].
        recurrent_mul_bias: M_r, N_r, [4H].
        input_bias: added behind M_i (NE16), int64[4H].
        bias: NE16: added behind M_r, with folded zero points and rounding; SQ8: added to R h.
        cell_in: M, N of c * f.
        cell_out: M, N of the new cell.
        state_out: M, N of the output.
        state_zero_point: 128 or 0.
        minimum: smallest code of the output.
        maximum: largest code.
        units: H.
        dtype: of the output.
    """

    on_ne16: bool
    time_major: bool
    input_product: MatrixProduct
    recurrent_product: MatrixProduct
    input_mul_bias: MulBias
    recurrent_mul_bias: MulBias
    input_bias: Integers
    bias: Integers
    cell_in: MulBias
    cell_out: MulBias
    state_out: MulBias
    state_zero_point: int
    minimum: int
    maximum: int
    units: int
    dtype: np.dtype[np.generic]


def run_lstm(params: LstmParams, x: Array) -> Array:
    """Run a layer: codes [S, N, T, I] or [S, T, N, I] -> codes of the output, likewise with H."""
    time_axis = 1 if params.time_major else 2
    steps = np.moveaxis(x, time_axis, 0)
    products = accumulate_product(params.input_product, steps).astype(np.int64)
    from_input = _input_part(params, products)
    h = np.full((*steps.shape[1:3], params.units), params.state_zero_point, params.dtype)
    c = np.zeros(h.shape, np.int64)
    outputs = []
    for part in from_input:
        recurrent = accumulate_product(params.recurrent_product, h).astype(np.int64)
        gates = _gates(params, part, recurrent)
        h, c = _cell(params, gates, c)
        outputs.append(h)
    return np.moveaxis(np.stack(outputs), 0, time_axis)


def _input_part(params: LstmParams, products: Integers) -> Integers:
    """Bring W x to the scale of R h: NE16 (p * M_i + bias) >> N_i, SQ8 norm(p * M_i, N_i)."""
    m = params.input_mul_bias
    if params.on_ne16:
        return np.asarray((products * m.multiplier + params.input_bias) >> m.shift, np.int64)
    return m.times(products)


def _gates(params: LstmParams, from_input: Integers, recurrent: Integers) -> list[Integers]:
    """Return i, f, g, o in Q15."""
    m = params.recurrent_mul_bias
    total = from_input + recurrent
    q12 = (total * m.multiplier + params.bias) >> m.shift if params.on_ne16 else m.times(total + params.bias)
    i, f, c, o = np.split(_clipped(q12), 4, axis=-1)
    return [sigmoid_q15(i), sigmoid_q15(f), tanh_q15(c), sigmoid_q15(o)]


def _cell(params: LstmParams, gates: list[Integers], c: Integers) -> tuple[Array, Integers]:
    """Return the new output and cell; tanh takes the cell before it is cut to 8 bits."""
    i, f, g, o = gates
    kept = params.cell_in.times(c * f)
    if params.on_ne16:
        total = kept + norm(i * g, 15)  # Q15
        curve = norm(o * tanh_q15(_clipped(norm(total, 3))), 15)
    else:
        total = kept + norm(i * g, 18)  # Q12
        curve = (o * tanh_q15(_clipped(total))) >> 15  # not rounded
    cell = np.clip(params.cell_out.times(total), -128, 127)
    h = np.clip(params.state_out.times(curve) + params.state_zero_point, params.minimum, params.maximum)
    return h.astype(params.dtype), np.asarray(cell, np.int64)


def _clipped(x: Integers) -> Integers:
    return np.clip(x, -_LARGEST_ARGUMENT, _LARGEST_ARGUMENT - 1)
