"""LSTM cells with gates summed up from 8-bit parts: LSTM with 12 intermediates (docs/rules/tflite/index.md).

Each gate: a = sat8(MBQ(sum of w (x - zx)) + za), b = sat8(MBQ(sum of r (h - zh)) + zb), sat16(MBQ(a - za) + MBQ(b -
zb)), then a layer normalization in float32. The input gate is 1 - forget, whether it has weights or not, and cells are
not looked at by the gates. As TFLite's kernel does, the output gate's b takes the zero point of the cell gate's a, and
for its last multiplier the shift of the forget gate's: an index that the kernel has wrong.

Source: TFLite kernels/lstm.cc (PopulateQuantizedLstmParams8x8_8).

The run of an LSTM cell with gates summed up from 8-bit parts (docs/rules/tflite/index.md).

g = round_half_away(4096 (n(x) w s + b s / 1024)), n(x) the sum brought to mean 0 and deviation 1 in float32; then
trunc(32768 / (1 + e^-x)), or trunc(32768 tanh(x)) for the cell gate, x = g / 4096 in float32. c = sat16(RDBP(f c, 15) +
RDBP((32767 - f) g, 15)), clipped; y = sat8(MBQ64(P RDBP(o trunc(32768 tanh(c / 32768)), 15) + bias) + zero point),
clipped.

Source: TFLite kernels/lstm_eval.cc (LstmStepInteger8x8_8), internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import accumulate_product, prepare_product
from tflq.interpreter.kernels.tflite.hybrid import LARGEST_CODE
from tflq.interpreter.kernels.tflite.integer_lstm import (
    IntegerCell,
    Scale,
    ScaledProduct,
    clip_code,
    require_integer_types,
)
from tflq.interpreter.numerics.fixed_point import (
    float_to_int32,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    round_half_away,
    rounding_divide_by_pot,
    saturate,
    scalar_multiplier,
    wrap_int32,
)
from tflq.interpreter.numerics.transcendental import exp, tanhf
from tflq.interpreter.operands.checks import per_tensor, require_sound_tensor
from tflq.interpreter.operands.lstm import (
    CELL_STATE,
    OUTPUT_STATE,
    PROJECTION,
    PROJECTION_BIAS,
    LstmTensors,
    lstm_tensors,
)

INTERMEDIATES = 12
_CELL_SCALE = np.float32(2.0**-15)
_PLACES = {"forget": (3, 4, 5), "cell": (6, 7, 8), "output": (9, 10, 11)}
"""Intermediates of a gate: its sum, the part of the input, the part of the output state."""


@dataclass(frozen=True, eq=False)
class Part:
    """One of two parts of a gate: quantized values sat8(MBQ(product) + zero_point), then MBQ(code - zero_point).

    Attributes:
        product: weights, with their multiplier; the zero point of the vectors in the bias.
        zero_point: Zero point of the quantized values.
        scale: (multiplier, shift) to the gate's sum.
    """

    product: ScaledProduct
    zero_point: int
    scale: Scale


@dataclass(frozen=True, eq=False)
class EightBitGate:
    """One gate.

    Attributes:
        from_input: part of the input.
        recurrent: part of the output state.
        norm: float32[C], weights of the normalization as plain numbers of their quantized values.
        norm_scale: scale of `norm`, rebuilt from a fixed-point multiplier.
        bias: float32[C], quantized values of scale norm_scale / 1024.
    """

    from_input: Part
    recurrent: Part
    norm: Singles
    norm_scale: np.float32
    bias: Singles


@dataclass(frozen=True, eq=False)
class EightBitLstm(IntegerCell):
    """The params of one cell.

    Attributes:
        gates: forget, cell and output.
        projection: weights; the unchanged bias; (multiplier, shift) of MBQ64.
    """

    gates: dict[str, EightBitGate]
    projection: ScaledProduct


def is_eight_bit(operands: Operands) -> bool:
    """Whether the cell has the twelve intermediates."""
    return len(operands.intermediates) == INTERMEDIATES


def lower_eight_bit(node: Node, operands: Operands) -> EightBitLstm:
    """Decide the params.

    Raises:
        UnsupportedError: types, or a cell state of another scale than 2^-15; no normalization, projection or bias.
        GraphError: shapes that contradict each other.
    """
    tensors = lstm_tensors(node, operands, sequence=False)
    require_integer_types(tensors, operands.output())
    if tensors.projection is None or tensors.projection_bias is None or tensors.gates["forget"].norm is None:
        raise UnsupportedError(
            "an LSTM of 12 intermediates without normalization, projection or bias of the projection"
        )
    scale = per_tensor(tensors.cell_state)[0]
    if scale != _CELL_SCALE:
        raise UnsupportedError(f"state '{tensors.cell_state.name}' has scale {scale}; the kernel takes 2^-15")
    inner = [_require_quantized(tensor) for tensor in operands.intermediates]
    gates = {name: _gate(name, tensors, operands, inner) for name in _PLACES}
    so, zo = per_tensor(tensors.output_state)
    real = np.float32(float(per_tensor(tensors.projection)[0]) * 2.0**-15 / float(so))
    return EightBitLstm(
        shapes=tensors.shapes,
        gates=gates,
        cell_clip=clip_code(node, "cell_clip", scale, 16),
        projection=ScaledProduct(
            prepare_product(operands.constant(PROJECTION), abs(np.iinfo(np.int16).min)),
            operands.constant(PROJECTION_BIAS).astype(np.int64),
            scalar_multiplier(real),
        ),
        output_zero_point=zo,
        projection_clip=clip_code(node, "proj_clip", per_tensor(operands.output())[0], 8),
    )


def _gate(name: str, tensors: LstmTensors, operands: Operands, inner: list[tuple[np.float32, int]]) -> EightBitGate:
    gate = tensors.gates[name]
    own, first, second = _PLACES[name]
    last, zero_point = scalar_multiplier(inner[second][0] / inner[own][0]), inner[second][1]
    if name == "output":
        forget = _PLACES["forget"]
        last = scalar_multiplier(inner[forget[2]][0] / inner[forget[0]][0])[1], last[1]
        zero_point = inner[_PLACES["cell"][1]][1]
    weights, recurrent, _, bias, norm = gate.positions
    from_input = Part(
        _product(operands, weights, gate.weights, tensors.x, inner[first][0]),
        inner[first][1],
        scalar_multiplier(inner[first][0] / inner[own][0]),
    )
    back = Part(_product(operands, recurrent, gate.recurrent, tensors.output_state, inner[second][0]), zero_point, last)
    return EightBitGate(
        from_input,
        back,
        operands.constant(norm).astype(np.float32),
        _rebuilt(cast(Tensor, gate.norm)),
        operands.constant(bias).astype(np.float32),
    )


def _product(operands: Operands, position: int, weights: Tensor, vectors: Tensor, result: np.float32) -> ScaledProduct:
    (sw, _), (sv, zv) = per_tensor(weights), per_tensor(vectors)
    codes = operands.constant(position)
    return ScaledProduct(
        prepare_product(codes, LARGEST_CODE),
        -zv * codes.astype(np.int64).sum(axis=1),
        scalar_multiplier(sw * sv / result),
    )


def _rebuilt(norm: Tensor) -> np.float32:
    """Return multiplier * 2^(shift - 31) of the normalization's scale, as float32."""
    multiplier, shift = scalar_multiplier(per_tensor(norm)[0])
    rebuilt: np.float32 = np.float32(multiplier * 2.0 ** (shift - 31))
    return rebuilt


def _require_quantized(tensor: Tensor | None) -> tuple[np.float32, int]:
    if tensor is None:
        raise GraphError(f"one of {INTERMEDIATES} intermediate tensors is missing")
    require_sound_tensor(tensor)
    return per_tensor(tensor)


_ONE = np.iinfo(np.int16).max
_UNIT = np.float32(32768)
_GATE, _CELL = 12, 15
"""Fraction bits of gates and of cells."""


def run_eight_bit(layer: EightBitLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it: int8[S, B, I], output state int8[S or 1, B, O], cell state int16[S or 1, B, C] -> output, both states."""
    x, hidden, cell = (cast(Array, arrays[i]) for i in (0, OUTPUT_STATE, CELL_STATE))
    shapes = layer.shapes
    held = hidden.reshape(len(hidden), shapes.batch, shapes.outputs)
    cells = cell.reshape(len(cell), shapes.batch, shapes.cells).astype(np.int64)
    gates = {name: _run_gate(gate, x, held) for name, gate in layer.gates.items()}
    forget, update, leave = _logistic(gates["forget"]), _tanh(gates["cell"], _GATE), _logistic(gates["output"])
    kept, entered = (rounding_divide_by_pot(product, 15) for product in (forget * cells, (_ONE - forget) * update))
    new = kept + entered  # within +-32767: forget, from 0, and its complement add up to 32767
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


def _run_gate(gate: EightBitGate, x: Array, hidden: Array) -> Integers:
    total = saturate(_part(gate.from_input, x) + _part(gate.recurrent, hidden), 16).astype(np.float32)
    weighted = _normalize_rows(total) * gate.norm * gate.norm_scale + gate.bias * (
        np.float32(2.0**-10) * gate.norm_scale
    )
    return saturate(float_to_int32(round_half_away(weighted * np.float32(1 << _GATE))), 16)


def _part(part: Part, x: Array) -> Integers:
    total = wrap_int32(accumulate_product(part.product.product, x).astype(np.int64) + part.product.bias)
    codes = saturate(multiply_by_quantized_multiplier(total, *part.product.scale) + part.zero_point, 8)
    return multiply_by_quantized_multiplier(codes - part.zero_point, *part.scale)


def _normalize_rows(x: Singles) -> Singles:
    """Bring each row to mean 0 and deviation 1, sums in order; a row without variance is divided by 1e-4."""
    count = np.float32(x.shape[-1])
    mean: Singles = _in_order(x) / count
    variance: Singles = _in_order(x * x) / count - mean * mean
    with np.errstate(invalid="ignore"):
        inverse: Singles = np.float32(1) / np.sqrt(np.where(variance == 0, np.float32(1e-8), variance))
    return (x - mean) * inverse


def _in_order(x: Singles) -> Singles:
    return np.add.accumulate(x, axis=-1)[..., -1:]


def _logistic(codes: Integers) -> Integers:
    return _logistic_table()[codes + (1 << 15)]


def _tanh(codes: Integers, bits: int) -> Integers:
    return _tanh_table(bits)[codes + (1 << 15)]


@cache
def _logistic_table() -> Integers:
    """trunc(32768 / (1 + e^-x)) of each x = code / 4096; the C library's expf results in no other code anywhere."""
    one = np.float32(1)
    return _codes(one / (one + exp(-_reals(_GATE))))


@cache
def _tanh_table(bits: int) -> Integers:
    """trunc(32768 tanh(x)) of each x = code / 2^bits."""
    return _codes(tanhf(_reals(bits)))


def _reals(bits: int) -> Singles:
    return (np.arange(-(1 << 15), 1 << 15) * 2.0**-bits).astype(np.float32)


def _codes(real: Singles) -> Integers:
    return np.asarray(np.minimum(np.trunc(real * _UNIT), _ONE), np.int64)
