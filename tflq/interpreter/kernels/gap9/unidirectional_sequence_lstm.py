"""UNIDIRECTIONAL_SEQUENCE_LSTM in GAP9's arithmetic, 8 bits: what is decided; lstm_steps.py runs it.

Source: docs/gap9.md, 13
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Affine, Array, Node, Operands
from tflq.graph.quantisation import FloatArray
from tflq.interpreter.accumulate import prepare_product
from tflq.interpreter.kernels.gap9.lstm_steps import LstmParams, run_lstm
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import round_half_up
from tflq.interpreter.numerics.fixed_point import Integers

GATES = ("i", "f", "c", "o")
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15)
"""Operands of the four gates, in this order."""
Q12, Q15 = 2.0**-12, 2.0**-15


def lower(node: Node, operands: Operands) -> LstmParams:
    """Decide M, N and biases of all gates and of the cell.

    Operands: input and output in GAP9's types, weights as codes with their scales, biases as real numbers in float32;
    attribute `cell_max` is the largest |c|. An unsigned output is NE16's arithmetic, a signed one SQ8's.

    Raises:
        UnsupportedError: a ratio of scales without M and N.
    """
    x, h = operands.input(0).affine, operands.output().affine
    on_ne16 = not h.signed
    inputs = [_codes(operands, i) for i in INPUT_WEIGHTS]
    recurrent = [_codes(operands, i) for i in RECURRENT_WEIGHTS]
    gates = [_gate(operands, g, x, h, on_ne16) for g in range(4)]
    cell_scale = node.attributes.real("cell_max") / 127
    middle = Q15 if on_ne16 else Q12
    cell_ratio = cell_scale if on_ne16 else cell_scale * Q15 / Q12
    w, r = np.concatenate(inputs), np.concatenate(recurrent)
    return LstmParams(
        on_ne16=on_ne16,
        time_major=node.attributes.boolean("time_major", False),
        input_product=prepare_product(w, 255),
        recurrent_product=prepare_product(r, 255),
        input_mul_bias=_joined([g[0] for g in gates], len(inputs[0])),
        recurrent_mul_bias=_joined([g[1] for g in gates], len(inputs[0])),
        input_bias=np.concatenate([g[2] for g in gates]),
        bias=np.concatenate([g[3] for g in gates]),
        cell_in=mul_bias(cell_ratio),
        cell_out=mul_bias(middle / cell_scale),
        state_out=mul_bias(Q15 / float(h.scale[0])),
        state_zero_point=int(h.zero_point[0]),
        minimum=0 if on_ne16 else h.minimum_code,
        maximum=h.maximum_code,
        units=len(inputs[0]),
        dtype=operands.output().dtype.storage,
    )


def run(params: LstmParams, x: Array, *_constants: Array | None) -> tuple[Array, ...]:
    """Run the layer: codes [S, N, T, I] (or [S, T, N, I]) -> codes [S, N, T, H]; h and c begin at 0 in each sample."""
    return (run_lstm(params, x),)


_Gate = tuple[MulBias, MulBias, Integers, Integers]


def _gate(operands: Operands, gate: int, x: Affine, h: Affine, on_ne16: bool) -> _Gate:
    """Return M, N of the input and of the recurrent product, and their two biases."""
    s_w = operands.input(INPUT_WEIGHTS[gate]).affine.scale
    s_r = operands.input(RECURRENT_WEIGHTS[gate]).affine.scale
    recurrent_scale: FloatArray = h.scale * s_r
    first = mul_bias(x.scale * s_w / recurrent_scale)
    second = mul_bias(recurrent_scale / recurrent_scale.dtype.type(Q12))
    real = operands.constant(BIASES[gate]).astype(np.float32)
    if not on_ne16:
        bias = round_half_up(real / recurrent_scale).astype(np.int64)
        return first, second, np.zeros(len(real), np.int64), bias
    w, r = _codes(operands, INPUT_WEIGHTS[gate]), _codes(operands, RECURRENT_WEIGHTS[gate])
    input_bias = -int(x.zero_point[0]) * w.sum(axis=1) * first.multiplier + _half(first.shift)
    # The bias is quantised at the scale divided by M: NE16 adds it behind the multiplication.
    quantised = round_half_up(real / (recurrent_scale / second.multiplier.astype(recurrent_scale.dtype)))
    folded = -int(h.zero_point[0]) * r.sum(axis=1) * second.multiplier + _half(second.shift)
    return first, second, input_bias, quantised.astype(np.int64) + folded


def _codes(operands: Operands, position: int) -> Integers:
    tensor = operands.input(position)
    return np.asarray(operands.constant(position).astype(np.int64) - tensor.affine.zero_point[0], np.int64)


def _half(shift: Integers) -> Integers:
    """2^(N-1), or 0 where N is 0."""
    return np.asarray((np.int64(1) << shift) >> 1, np.int64)


def _joined(parts: list[MulBias], units: int) -> MulBias:
    """Put the gates behind each other; those of one scale are repeated for each unit."""
    full = [[np.broadcast_to(a, (units,)) for a in (p.multiplier, p.shift, p.ratio)] for p in parts]
    multiplier, shift, ratio = (np.concatenate([p[k] for p in full]) for k in range(3))
    return MulBias(multiplier, shift, ratio)
