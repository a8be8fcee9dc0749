"""The params of an LSTM cell whose gates are summed up from 8-bit parts: LSTM with 12 intermediates (docs/tflite.md).

Each gate: a = sat8(MBQ(sum of w (x - zx)) + za), b = sat8(MBQ(sum of r (h - zh)) + zb), sat16(MBQ(a - za) + MBQ(b -
zb)), then a layer normalisation in float32. The input gate is 1 - forget, whether it has weights or not, and cells are
not looked at by the gates. As TFLite's kernel does, the output gate's b takes the zero point of the cell gate's a, and
for its last multiplier the shift of the forget gate's: an index that the kernel has wrong.

Source: TFLite kernels/lstm.cc (PopulateQuantizedLstmParams8x8_8).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Node, Operands, Tensor
from tflq.interpreter.accumulate import prepare_product
from tflq.interpreter.kernels.tflite.integer_lstm import Scale, ScaledProduct, clip_code, require_integer_types
from tflq.interpreter.numerics.fixed_point import scalar_multiplier
from tflq.interpreter.operands.checks import per_tensor
from tflq.interpreter.operands.lstm import (
    PROJECTION,
    PROJECTION_BIAS,
    GateTensors,
    LstmShapes,
    LstmTensors,
    lstm_tensors,
)
from tflq.interpreter.operands.sound_scales import require_sound_tensor

INTERMEDIATES = 12
_CELL_SCALE = np.float32(2.0**-15)
_PLACES = {"forget": (3, 4, 5), "cell": (6, 7, 8), "output": (9, 10, 11)}
"""Intermediates of a gate: its sum, the part of the input, the part of the output state."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Part:
    """One of two parts of a gate: quantized values sat8(MBQ(product) + zero_point), then MBQ(code - zero_point).

    Attributes:
        product: weights, with their multiplier; the zero point of the vectors in the bias.
        zero_point: of the quantized values.
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
        norm: float32[C], weights of the normalisation as plain numbers of their quantized values.
        norm_scale: scale of those quantized values, rebuilt from a fixed-point multiplier.
        bias: float32[C], quantized values of scale norm_scale / 1024.
    """

    from_input: Part
    recurrent: Part
    norm: Floats
    norm_scale: np.float32
    bias: Floats


@dataclass(frozen=True, eq=False)
class EightBitLstm:
    """The params of one cell.

    Attributes:
        shapes: sizes.
        gates: forget, cell and output.
        cell_clip: bound of the cell state; 0 for none.
        projection: weights; the bias as it is; (multiplier, shift) of MBQ64.
        output_zero_point: of output and output state.
        projection_clip: bound of the projection; 0 for none.
    """

    shapes: LstmShapes
    gates: dict[str, EightBitGate]
    cell_clip: int
    projection: ScaledProduct
    output_zero_point: int
    projection_clip: int


def is_eight_bit(operands: Operands) -> bool:
    """Whether the cell has the twelve intermediates."""
    return len(operands.intermediates) == INTERMEDIATES


def lower_eight_bit(node: Node, operands: Operands) -> EightBitLstm:
    """Decide the params.

    Raises:
        UnsupportedError: types, or a cell state of another scale than 2^-15; no normalisation, projection or bias.
        GraphError: shapes that contradict each other.
    """
    tensors = lstm_tensors(node, operands, sequence=False)
    require_integer_types(tensors, operands.output())
    if tensors.projection is None or tensors.projection_bias is None or tensors.gates["forget"].norm is None:
        raise UnsupportedError(
            "an LSTM of 12 intermediates without normalisation, projection or bias of the projection"
        )
    scale = per_tensor(tensors.cell_state)[0]
    if scale != _CELL_SCALE:
        raise UnsupportedError(f"state '{tensors.cell_state.name}' has scale {scale}; the kernel takes 2^-15")
    inner = [_quantised(tensor) for tensor in operands.intermediates]
    gates = {name: _gate(name, tensors, operands, inner) for name in _PLACES}
    so, zo = per_tensor(tensors.output_state)
    real = np.float32(float(per_tensor(tensors.projection)[0]) * 2.0**-15 / float(so))
    cell_clip = node.attributes.real("cell_clip", 0.0)
    return EightBitLstm(
        tensors.shapes,
        gates,
        clip_code(node, "cell_clip", scale, 16) if cell_clip < 1 else 0,
        ScaledProduct(
            prepare_product(operands.constant(PROJECTION), 1 << 15),
            operands.constant(PROJECTION_BIAS).astype(np.int64),
            scalar_multiplier(real),
        ),
        zo,
        clip_code(node, "proj_clip", per_tensor(operands.output())[0], 8),
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
        _rebuilt(gate),
        operands.constant(bias).astype(np.float32),
    )


def _product(operands: Operands, position: int, weights: Tensor, vectors: Tensor, result: np.float32) -> ScaledProduct:
    (sw, _), (sv, zv) = per_tensor(weights), per_tensor(vectors)
    codes = operands.constant(position)
    return ScaledProduct(
        prepare_product(codes, 128), -zv * codes.astype(np.int64).sum(axis=1), scalar_multiplier(sw * sv / result)
    )


def _rebuilt(gate: GateTensors) -> np.float32:
    """Return multiplier * 2^(shift - 31) of the normalisation's scale, as float32."""
    if gate.norm is None:
        raise GraphError(f"the {gate.name} gate has no normalisation")
    multiplier, shift = scalar_multiplier(per_tensor(gate.norm)[0])
    rebuilt: np.float32 = np.float32(multiplier * 2.0 ** (shift - 31))
    return rebuilt


def _quantised(tensor: Tensor | None) -> tuple[np.float32, int]:
    if tensor is None:
        raise GraphError(f"one of {INTERMEDIATES} intermediate tensors is missing")
    require_sound_tensor(tensor)
    return per_tensor(tensor)
