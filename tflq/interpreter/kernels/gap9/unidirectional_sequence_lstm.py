"""UNIDIRECTIONAL_SEQUENCE_LSTM in GAP9's arithmetic, 8 bits: NE16's and SQ8's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Reals
from tflq.graph import Affine, Array, DType, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import round_half_up
from tflq.interpreter.numerics.fixed_point import norm
from tflq.interpreter.numerics.q15 import sigmoid_q15, tanh_q15
from tflq.interpreter.registry import Kernel

GATES = ("i", "f", "c", "o")
INPUT_WEIGHTS, RECURRENT_WEIGHTS, BIASES = (1, 2, 3, 4), (5, 6, 7, 8), (12, 13, 14, 15)
"""Operands of the four gates, in this order."""
Q12, Q15 = 2.0**-12, 2.0**-15
_LARGEST_ARGUMENT = 1 << 17


@dataclass(frozen=True, eq=False)
class LstmParams:
    """The params of one layer; arrays contain the gates in the order i, f, c, o.

    Attributes:
        on_ne16: NE16's arithmetic, else SQ8's.
        time_major: whether the input is [T, N, I] instead of [N, T, I].
        input_product: W, [4H, I].
        recurrent_product: R, [4H, H].
        input_mul_bias: M_i, N_i, [4H].
        recurrent_mul_bias: M_r, N_r, [4H].
        input_bias: Addend after M_i (NE16), int64[4H].
        bias: NE16: addend after M_r, with folded zero points and rounding; SQ8: added to R h.
        cell_in: M, N of c * f.
        cell_out: M, N of the new cell.
        state_out: M, N of the output.
        state_zero_point: 128 or 0.
        minimum: smallest quantized value of the output.
        maximum: largest quantized value.
        units: H.
        dtype: Storage type of the output.
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


def lower(node: Node, operands: Operands) -> LstmParams:
    """Decide M, N and biases of all gates and of the cell.

    Operands: input and output in GAP9's types, weights as quantized values with their scales, biases in float32;
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
    units = operands.output().shape[-1]
    return LstmParams(
        on_ne16=on_ne16,
        time_major=node.attributes.boolean("time_major", False),
        input_product=prepare_product(w, DType.UINT8.maximum),
        recurrent_product=prepare_product(r, DType.UINT8.maximum),
        input_mul_bias=_join_gates([g[0] for g in gates], units),
        recurrent_mul_bias=_join_gates([g[1] for g in gates], units),
        input_bias=np.concatenate([g[2] for g in gates]),
        bias=np.concatenate([g[3] for g in gates]),
        cell_in=mul_bias(cell_ratio),
        cell_out=mul_bias(middle / cell_scale),
        state_out=mul_bias(Q15 / float(h.scale[0])),
        state_zero_point=int(h.zero_point[0]),
        minimum=0 if on_ne16 else h.minimum_code,
        maximum=h.maximum_code,
        units=units,
        dtype=operands.output().dtype.storage,
    )


def run(params: LstmParams, x: Array, *_constants: Array | None) -> tuple[Array, ...]:
    """Run the layer: quantized [S, N, T, I] (or [S, T, N, I]) -> quantized [S, N, T, H].

    H and c begin at 0 in each sample.
    """
    time_axis = 1 if params.time_major else 2
    steps = np.moveaxis(x, time_axis, 0)
    products = accumulate_product(params.input_product, steps).astype(np.int64)
    from_input = _input_part(params, products)
    h = np.full((1, 1, params.units), params.state_zero_point, params.dtype)
    c = np.zeros(h.shape, np.int64)
    outputs = []
    for part in from_input:
        recurrent = accumulate_product(params.recurrent_product, h).astype(np.int64)
        gates = _gates(params, part, recurrent)
        h, c = _cell(params, gates, c)
        outputs.append(h)
    return (np.moveaxis(np.stack(outputs), 0, time_axis),)


_Gate = tuple[MulBias, MulBias, Integers, Integers]


def _gate(operands: Operands, gate: int, x: Affine, h: Affine, on_ne16: bool) -> _Gate:
    """Return M, N of the input and of the recurrent product, and their two biases."""
    s_w = operands.input(INPUT_WEIGHTS[gate]).affine.scale
    s_r = operands.input(RECURRENT_WEIGHTS[gate]).affine.scale
    recurrent_scale: Reals = h.scale * s_r
    first = mul_bias(x.scale * s_w / recurrent_scale)
    second = mul_bias(recurrent_scale / recurrent_scale.dtype.type(Q12))
    real = operands.constant(BIASES[gate]).astype(np.float32)
    if not on_ne16:
        bias = round_half_up(real / recurrent_scale).astype(np.int64)
        return first, second, np.zeros(len(real), np.int64), bias
    w, r = _codes(operands, INPUT_WEIGHTS[gate]), _codes(operands, RECURRENT_WEIGHTS[gate])
    input_bias = -int(x.zero_point[0]) * w.sum(axis=1) * first.multiplier + _half(first.shift)
    # The bias is quantized at the scale divided by M: NE16 adds it after the multiplication.
    quantized = round_half_up(real / (recurrent_scale / second.multiplier.astype(recurrent_scale.dtype)))
    folded = -int(h.zero_point[0]) * r.sum(axis=1) * second.multiplier + _half(second.shift)
    return first, second, input_bias, quantized.astype(np.int64) + folded


def _codes(operands: Operands, position: int) -> Integers:
    tensor = operands.input(position)
    return np.asarray(operands.constant(position).astype(np.int64) - tensor.affine.zero_point[0], np.int64)


def _half(shift: Integers) -> Integers:
    """Return 2^(N-1), or 0 if N is 0."""
    return np.asarray((np.int64(1) << shift) >> 1, np.int64)


def _join_gates(parts: list[MulBias], units: int) -> MulBias:
    """Concatenate the gates; values with one scale for a gate are repeated for each unit."""
    full = [[np.broadcast_to(a, (units,)) for a in (p.multiplier, p.shift, p.ratio)] for p in parts]
    multiplier, shift, ratio = (np.concatenate([p[k] for p in full]) for k in range(3))
    return MulBias(multiplier, shift, ratio)


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
    i, f, c, o = np.split(_clip_argument(q12), 4, axis=-1)
    return [sigmoid_q15(i), sigmoid_q15(f), tanh_q15(c), sigmoid_q15(o)]


def _cell(params: LstmParams, gates: list[Integers], c: Integers) -> tuple[Array, Integers]:
    """Return the new output and cell; tanh takes the cell before it is cut to 8 bits."""
    i, f, g, o = gates
    kept = params.cell_in.times(c * f)
    if params.on_ne16:
        total = kept + norm(i * g, 15)  # Q15
        curve = norm(o * tanh_q15(_clip_argument(norm(total, 3))), 15)
    else:
        total = kept + norm(i * g, 18)  # Q12
        curve = (o * tanh_q15(_clip_argument(total))) >> 15  # not rounded
    cell = np.clip(params.cell_out.times(total), -128, 127)
    h = np.clip(params.state_out.times(curve) + params.state_zero_point, params.minimum, params.maximum)
    return h.astype(params.dtype), np.asarray(cell, np.int64)


def _clip_argument(x: Integers) -> Integers:
    return np.clip(x, -_LARGEST_ARGUMENT, _LARGEST_ARGUMENT - 1)


KERNELS = {
    "unidirectional_sequence_lstm": Kernel(lower, run,
        "UNIDIRECTIONAL_SEQUENCE_LSTM in GAP9's arithmetic, 8 bits: NE16's and SQ8's",
            "docs/rules/gap9/operators.md#lstm"),
}  # fmt: skip
