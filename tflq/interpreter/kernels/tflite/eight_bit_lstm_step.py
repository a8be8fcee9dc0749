"""Runs an LSTM cell whose gates are summed up from 8-bit parts (docs/tflite.md).

g = round_half_away(4096 (n(x) w s + b s / 1024)), n(x) the sum brought to mean 0 and deviation 1 in float32; then
trunc(32768 / (1 + e^-x)), or trunc(32768 tanh(x)) for the cell gate, x = g / 4096 in float32. c = sat16(RDBP(f c, 15) +
RDBP((32767 - f) g, 15)), clipped; y = sat8(MBQ64(P RDBP(o trunc(32768 tanh(c / 32768)), 15) + bias) + zero point),
clipped.

Source: TFLite kernels/lstm_eval.cc (LstmStepInteger8x8_8), internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.accumulate import accumulate_product
from tflq.interpreter.kernels.tflite.eight_bit_lstm import EightBitGate, EightBitLstm, Part
from tflq.interpreter.numerics.c_library_tanh import tanhf
from tflq.interpreter.numerics.fixed_point import (
    Integers,
    float_to_int32,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    round_half_away,
    rounding_divide_by_pot,
    saturate,
    wrap_int32,
)
from tflq.interpreter.numerics.transcendental import exp
from tflq.interpreter.operands.lstm import CELL_STATE, OUTPUT_STATE

Floats = NDArray[np.float32]
_ONE = 32767
_UNIT = np.float32(32768)
_GATE, _CELL = 12, 15
"""Fraction bits of gates and of cells."""


def run_eight_bit(layer: EightBitLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it: int8[S, B, I], output state int8[S or 1, B, O], cell state int16[S or 1, B, C] -> output, both states."""
    x, hidden, cell = (cast(Array, arrays[i]) for i in (0, OUTPUT_STATE, CELL_STATE))
    shapes = layer.shapes
    held = hidden.reshape(len(hidden), shapes.batch, shapes.outputs)
    cells = cell.reshape(len(cell), shapes.batch, shapes.cells).astype(np.int64)
    gates = {name: _gate(gate, x, held) for name, gate in layer.gates.items()}
    forget, update, leave = _logistic(gates["forget"]), _tanh(gates["cell"], _GATE), _logistic(gates["output"])
    new = saturate(
        rounding_divide_by_pot(forget * cells, 15) + rounding_divide_by_pot((_ONE - forget) * update, 15), 16
    )
    if layer.cell_clip:
        new = np.clip(new, -layer.cell_clip, layer.cell_clip)
    shown = rounding_divide_by_pot(leave * _tanh(new, _CELL), 15)
    projection = layer.projection
    total = accumulate_product(projection.product, shown).astype(np.int64) + projection.bias
    output = saturate(multiply_by_quantized_multiplier_64(total, *projection.scale) + layer.output_zero_point, 8)
    if layer.projection_clip:
        output = np.clip(output, -layer.projection_clip, layer.projection_clip)
    codes = output.astype(np.int8)
    return (
        codes,
        codes.reshape(len(codes), *hidden.shape[1:]),
        new.astype(np.int16).reshape(len(new), *cell.shape[1:]),
    )


def _gate(gate: EightBitGate, x: Array, hidden: Array) -> Integers:
    total = saturate(_part(gate.from_input, x) + _part(gate.recurrent, hidden), 16).astype(np.float32)
    weighted = _normalised(total) * gate.norm * gate.norm_scale + gate.bias * (np.float32(2.0**-10) * gate.norm_scale)
    return saturate(float_to_int32(round_half_away(weighted * np.float32(1 << _GATE))), 16)


def _part(part: Part, x: Array) -> Integers:
    total = wrap_int32(accumulate_product(part.product.product, x).astype(np.int64) + part.product.bias)
    codes = saturate(multiply_by_quantized_multiplier(total, *part.product.scale) + part.zero_point, 8)
    return multiply_by_quantized_multiplier(codes - part.zero_point, *part.scale)


def _normalised(x: Floats) -> Floats:
    """Bring each row to mean 0 and deviation 1, sums in order; a row without variance is divided by 1e-4."""
    count = np.float32(x.shape[-1])
    mean: Floats = _in_order(x) / count
    variance: Floats = _in_order(x * x) / count - mean * mean
    with np.errstate(invalid="ignore"):
        inverse: Floats = np.float32(1) / np.sqrt(np.where(variance == 0, np.float32(1e-8), variance))
    return (x - mean) * inverse


def _in_order(x: Floats) -> Floats:
    return np.add.accumulate(x, axis=-1)[..., -1:]


def _logistic(codes: Integers) -> Integers:
    return _logistic_table()[codes + (1 << 15)]


def _tanh(codes: Integers, bits: int) -> Integers:
    return _tanh_table(bits)[codes + (1 << 15)]


@cache
def _logistic_table() -> Integers:
    """trunc(32768 / (1 + e^-x)) of each x = code / 4096; the C library's expf gives no other code anywhere."""
    one = np.float32(1)
    return _codes(one / (one + exp(-_reals(_GATE))))


@cache
def _tanh_table(bits: int) -> Integers:
    """trunc(32768 tanh(x)) of each x = code / 2^bits."""
    return _codes(tanhf(_reals(bits)))


def _reals(bits: int) -> Floats:
    return (np.arange(-(1 << 15), 1 << 15) * 2.0**-bits).astype(np.float32)


def _codes(real: Floats) -> Integers:
    return np.asarray(np.minimum(np.trunc(real * _UNIT), _ONE), np.int64)
