"""Runs an LSTM of int8 over its sequence (docs/rules/tflite/index.md).

c = sat16(RDBP(f * c, 15) + RDBP(i * g, 30 + log2(scale of c))), clipped; hidden = sat8(MBQ(o * tanh(c)) + zero point);
the output is the hidden value, or its projection sat8(MBQ(P hidden) + zero point), clipped.

Source: TFLite kernels/lstm_eval.cc (LstmStepInteger8x8_16), internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers
from tflq.graph import Array
from tflq.interpreter.accumulate import accumulate_product
from tflq.interpreter.kernels.tflite.integer_lstm import IntegerGate, IntegerLstm, LayerNorm, ScaledProduct
from tflq.interpreter.numerics.fixed_point import (
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
    saturate,
    wrap_int16,
    wrap_int32,
)
from tflq.interpreter.numerics.integer_functions import inverse_square_root
from tflq.interpreter.numerics.lookup_tables import look_up
from tflq.interpreter.operands.lstm import CELL_STATE, OUTPUT_STATE

Codes = NDArray[np.int8]
_ONE = np.iinfo(np.int16).max


def run_integer(layer: IntegerLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it over the sequence.

    Args:
        layer: Result of `lower_integer`.
        arrays: the node's inputs: int8[S, B, T, I] or [S, T, B, I] (or [S, B, I]), weights, states.

    Returns:
        int8[S, B, T, O] or as the input, the new output state and cell state.
    """
    shapes = layer.shapes
    x, states = cast(Array, arrays[0]), [cast(Array, arrays[i]) for i in (OUTPUT_STATE, CELL_STATE)]
    samples = max(len(a) for a in (x, *states))
    x = np.broadcast_to(x, (samples, *x.shape[1:]))
    sequence = np.moveaxis(x, 1 if shapes.time_major else 2, 0) if shapes.has_time else x[None]
    hidden = np.broadcast_to(
        states[0].reshape(-1, shapes.batch, shapes.outputs), (samples, shapes.batch, shapes.outputs)
    )
    held = states[1].reshape(-1, shapes.batch, shapes.cells)
    cell: Integers = np.broadcast_to(held, (samples, *held.shape[1:])).astype(np.int64)
    from_input = {name: _multiply(gate.from_input, sequence) for name, gate in layer.gates.items()}
    outputs = []
    for t in range(shapes.steps):
        hidden, cell = _step(layer, {n: part[t] for n, part in from_input.items()}, hidden, cell)
        outputs.append(hidden)
    result = np.stack(outputs, axis=1 if shapes.time_major else 2) if shapes.has_time else outputs[0]
    return (
        result,
        hidden.reshape(samples, *states[0].shape[1:]),
        cell.astype(np.int16).reshape(samples, *states[1].shape[1:]),
    )


def _step(layer: IntegerLstm, from_input: dict[str, Integers], hidden: Array, cell: Integers) -> tuple[Array, Integers]:
    gates = layer.gates

    def gate(name: str) -> Integers:
        raw = _gate(gates[name], layer, from_input[name], hidden, cell)
        table = layer.tanh if name == "cell" else layer.logistic
        return look_up(table, raw.astype(np.int16)).astype(np.int64)

    forget, update = gate("forget"), gate("cell")
    enter = gate("input") if "input" in gates else _ONE - forget
    kept = rounding_divide_by_pot(forget * cell, 15)
    added = rounding_divide_by_pot(enter * update, 30 + layer.cell_scale)
    cell = saturate(wrap_int16(kept) + wrap_int16(added), 16)
    if layer.cell_clip:
        cell = np.clip(cell, -layer.cell_clip, layer.cell_clip)
    squashed = look_up(layer.squash, cell.astype(np.int16)).astype(np.int64)
    product = multiply_by_quantized_multiplier(gate("output") * squashed, *layer.hidden_scale)
    if layer.projection is None:
        return saturate(product + layer.hidden_zero_point, 8).astype(np.int8), cell
    shown = saturate(product - layer.hidden_zero_point, 8).astype(np.int8)
    projected = saturate(_apply_product(layer.projection, shown) + layer.output_zero_point, 8)
    if layer.projection_clip:
        projected = np.clip(projected, -layer.projection_clip, layer.projection_clip)
    return projected.astype(np.int8), cell


def _gate(gate: IntegerGate, layer: IntegerLstm, from_input: Integers, hidden: Array, cell: Integers) -> Integers:
    total = saturate(from_input + _apply_product(gate.recurrent, hidden), 16)
    if gate.peephole is not None:
        total = _look_through(gate.peephole, layer, total, cell)
    return total if gate.norm is None else _normalize(gate.norm, total)


def _look_through(
    peephole: tuple[Integers, tuple[int, int]], layer: IntegerLstm, total: Integers, cell: Integers
) -> Integers:
    """Add peephole weights times cells. TFLite uses O as the number of cells: with fewer outputs the rest stays.

    Over a sequence with the batch axis first each sequence runs on its own; else the places shift from batch to batch.
    """
    weights, scale = peephole
    shapes = layer.shapes
    together = shapes.time_major or not shapes.has_time
    rows = total.reshape(len(total), 1, -1) if together else total
    cells = cell.reshape(rows.shape)
    reach = shapes.outputs * (shapes.batch if together else 1)
    factor = np.zeros(rows.shape[-1], np.int64)
    factor[:reach] = np.tile(weights[: shapes.outputs], reach // shapes.outputs)
    added = multiply_by_quantized_multiplier(factor * cells, *scale)
    return saturate(rows + added, 16).reshape(total.shape)


def _normalize(norm: LayerNorm, x: Integers) -> Integers:
    """Normalize over the cells with 10 extra bits; sums int64, mean and 1/n cut toward zero, the product wraps."""
    count = x.shape[-1]
    total, squares = x.sum(axis=-1, keepdims=True), (x * x).sum(axis=-1, keepdims=True)
    mean = wrap_int32(_divide_toward_zero(total * 1024, count))
    variance = wrap_int32(_divide_toward_zero(squares * ((1 << 20) // count) - mean * mean, 1 << 20))
    multiplier, shift = inverse_square_root(np.where(variance < 1, norm.least_variance, variance))
    rescaled = multiply_by_quantized_multiplier(wrap_int32(1024 * x - mean), multiplier, shift)
    weighted = wrap_int32(rescaled * norm.weights + norm.bias)
    single = _divide_toward_zero(weighted + 512 * np.sign(weighted), 1024)
    scale, power = norm.scale
    return saturate(multiply_by_quantized_multiplier(single, scale, power + 12), 16)


def _multiply(part: ScaledProduct, x: Array) -> Integers:
    return saturate(_apply_product(part, x), 16)


def _apply_product(part: ScaledProduct, x: Array) -> Integers:
    total = accumulate_product(part.product, x).astype(np.int64) + part.bias
    return multiply_by_quantized_multiplier(wrap_int32(total), *part.scale)


def _divide_toward_zero(x: Integers, divisor: int) -> Integers:
    return np.asarray(np.sign(x) * (np.abs(x) // divisor), np.int64)
