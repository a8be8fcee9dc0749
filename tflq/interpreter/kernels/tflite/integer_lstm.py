"""The params of an LSTM with int8 input, int8 weights and int16 cells (docs/rules/tflite/index.md).

Each gate: g = sat16(MBQ(W x + bias - zx * row sums)); g = sat16(g + MBQ(R h - zh * row sums)), with peephole
g = sat16(g + MBQ(p * c)), with layer normalization g = norm(g); then logistic, or tanh for the cell gate, of int16 with
3 integer bits. All effective scales are products and quotients in float32.

Source: TFLite kernels/unidirectional_sequence_lstm.cc (PopulateQuantizedLstmParams8x8_16,
PopulatePrecomputedZPTimesWeightsWithBias).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.accumulate import MatrixProduct, prepare_product
from tflq.interpreter.kernels.tflite.hybrid import LARGEST_CODE
from tflq.interpreter.numerics.fixed_point import round_half_away, scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.gemmlowp_int16 import Table, logistic_table, tanh_table
from tflq.interpreter.operands.checks import per_tensor, require_sound_tensor, require_type
from tflq.interpreter.operands.lstm import (
    PROJECTION,
    PROJECTION_BIAS,
    GateTensors,
    LstmShapes,
    LstmTensors,
    lstm_tensors,
)

Scale = tuple[int, int]

_GATE_SCALE = np.float32(2.0**-12)
_GATE_BITS = 3
_INTERMEDIATES = 5
_FINEST_CELL, _COARSEST_CELL = -15, -9
_GATE_ORDER = {"input": 0, "forget": 1, "cell": 2, "output": 3}


@dataclass(frozen=True, eq=False)
class ScaledProduct:
    """A matrix product with a bias and the multiplier after it.

    Attributes:
        product: Packed weights.
        bias: int64[rows], zero points folded in; int32 values.
        scale: (multiplier, shift).
    """

    product: MatrixProduct
    bias: Integers
    scale: Scale


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """Normalization of a gate over its cells.

    Attributes:
        weights: int64[C].
        bias: int64[C].
        scale: (multiplier, shift).
        least_variance: used if the variance vanishes.
    """

    weights: Integers
    bias: Integers
    scale: Scale
    least_variance: int


@dataclass(frozen=True, eq=False)
class IntegerGate:
    """One gate.

    Attributes:
        from_input: W.
        recurrent: R.
        peephole: int64[C] and its (multiplier, shift), or None.
        norm: or None.
    """

    from_input: ScaledProduct
    recurrent: ScaledProduct
    peephole: tuple[Integers, Scale] | None
    norm: LayerNorm | None


@dataclass(frozen=True, eq=False)
class IntegerCell:
    """The common params of every LSTM of int8.

    Attributes:
        shapes: sizes.
        cell_clip: bound of the cell state; 0 for none.
        output_zero_point: Zero point of output and output state.
        projection_clip: bound of the projection; 0 for none.
    """

    shapes: LstmShapes
    cell_clip: int
    output_zero_point: int
    projection_clip: int


@dataclass(frozen=True, eq=False)
class IntegerLstm(IntegerCell):
    """The params of one LSTM.

    Attributes:
        gates: Gates by name; without "input" it is 1 - forget.
        cell_scale: base-2 logarithm of the cell state's scale.
        hidden_scale: (multiplier, shift) from gate times tanh to the hidden value.
        hidden_zero_point: Zero point of the hidden value.
        projection: or None.
        logistic: Table of the gates, by raw bits of int16.
        tanh: Table of the cell gate.
        squash: tanh of the cell state.
    """

    gates: dict[str, IntegerGate]
    cell_scale: int
    hidden_scale: Scale
    hidden_zero_point: int
    projection: ScaledProduct | None
    logistic: Table
    tanh: Table
    squash: Table


def lower_integer(node: Node, operands: Operands, sequence: bool = True) -> IntegerLstm:
    """Decide the params.

    Raises:
        UnsupportedError: types or scales that the kernel does not take.
        GraphError: shapes that contradict each other, or intermediates that are missing.
    """
    tensors = lstm_tensors(node, operands, sequence)
    require_integer_types(tensors, operands.output())
    hidden = _intermediate(operands, 4)
    gates = {name: _gate(tensors, gate, operands) for name, gate in tensors.gates.items()}
    (sh, zh), (so, zo) = per_tensor(hidden), per_tensor(tensors.output_state)
    cell_scale = _log2(tensors.cell_state)
    hidden_scale = np.float32(2.0**-15 / float(sh) * 2.0**-15)
    projection = None
    if tensors.projection is not None:
        weights = operands.constant(PROJECTION)
        bias = None if tensors.projection_bias is None else operands.constant(PROJECTION_BIAS)
        projection = _product(weights, zh, bias, per_tensor(tensors.projection)[0] * sh / so)
    _check_peephole(tensors)
    output_scale = per_tensor(operands.output())[0]
    return IntegerLstm(
        shapes=tensors.shapes,
        gates=gates,
        cell_scale=cell_scale,
        cell_clip=clip_code(node, "cell_clip", per_tensor(tensors.cell_state)[0], 16),
        hidden_scale=scalar_multiplier(hidden_scale),
        hidden_zero_point=zh,
        projection=projection,
        output_zero_point=zo,
        projection_clip=clip_code(node, "proj_clip", output_scale, 8),
        logistic=logistic_table(_GATE_BITS),
        tanh=tanh_table(_GATE_BITS),
        squash=tanh_table(15 + cell_scale),
    )


def _gate(tensors: LstmTensors, gate: GateTensors, operands: Operands) -> IntegerGate:
    (sx, zx), (sh, zh) = per_tensor(tensors.x), per_tensor(tensors.output_state)
    divisor = _GATE_SCALE
    if gate.norm is not None:
        divisor = per_tensor(_intermediate(operands, _GATE_ORDER[gate.name]))[0]
    weights, recurrent, peephole, bias, norm = gate.positions
    own = operands.constant(bias).astype(np.int64)
    from_input = _product(
        operands.constant(weights),
        -zx,
        None if gate.norm is not None else own,
        per_tensor(gate.weights)[0] * sx / divisor,
    )
    back = _product(operands.constant(recurrent), -zh, None, per_tensor(gate.recurrent)[0] * sh / divisor)
    held = None
    if gate.peephole is not None:
        real = np.float32(2.0 ** _log2(tensors.cell_state) * float(per_tensor(gate.peephole)[0]) / float(divisor))
        held = operands.constant(peephole).astype(np.int64), scalar_multiplier(real)
    normalized = None
    if gate.norm is not None:
        ratio = per_tensor(gate.norm)[0]
        least = max(1, int(np.float32(10000) * ratio))
        normalized = LayerNorm(operands.constant(norm).astype(np.int64), own, scalar_multiplier(ratio), least)
    return IntegerGate(from_input, back, held, normalized)


def _product(weights: Array, zero_point: int, bias: Array | None, real: np.float32) -> ScaledProduct:
    """Prepare weights [rows, columns]; zero_point * row sums are folded into the bias."""
    folded = zero_point * weights.astype(np.int64).sum(axis=1)
    start = 0 if bias is None else bias.astype(np.int64)
    return ScaledProduct(prepare_product(weights, LARGEST_CODE), wrap_int32(folded + start), scalar_multiplier(real))


def require_integer_types(tensors: LstmTensors, output: Tensor) -> None:
    """Check the types of an LSTM of int8.

    Raises:
        UnsupportedError: another one, or recurrent weights that are a diagonal.
    """
    for tensor in (tensors.x, output, tensors.output_state):
        require_type(tensor, (DType.INT8,))
    require_type(tensors.cell_state, (DType.INT16,))
    for gate in tensors.gates.values():
        require_type(gate.weights, (DType.INT8,))
        require_type(gate.recurrent, (DType.INT8,))
        require_type(gate.bias, (DType.INT32,))
        if len(gate.recurrent.shape) != 2:
            raise UnsupportedError("recurrent weights of one axis (a diagonal); int8 takes a matrix only")
        for held in (gate.peephole, gate.norm):
            if held is not None:
                require_type(held, (DType.INT16,))
    if tensors.projection is not None:
        require_type(tensors.projection, (DType.INT8,))
    if tensors.projection_bias is not None:
        require_type(tensors.projection_bias, (DType.INT32,))


def _check_peephole(tensors: LstmTensors) -> None:
    has_peephole = tensors.gates["forget"].peephole is not None
    if has_peephole and tensors.shapes.outputs > tensors.shapes.cells:
        raise UnsupportedError(
            f"peephole weights with {tensors.shapes.outputs} outputs and {tensors.shapes.cells} cells; TFLite reads "
            f"beyond the cells there, outputs must not be more"
        )


def _intermediate(operands: Operands, position: int) -> Tensor:
    intermediates = operands.intermediates
    tensor = intermediates[position] if len(intermediates) == _INTERMEDIATES else None
    if tensor is None:
        raise GraphError(f"intermediate tensor {position} of {len(intermediates)} is missing; an LSTM of int8 needs 5")
    require_sound_tensor(tensor)
    return tensor


def _log2(cell_state: Tensor) -> int:
    scale = per_tensor(cell_state)[0]
    exact = np.log(scale) * (np.float32(1) / np.log(np.float32(2)))
    power = int(round_half_away(exact))
    if not abs(exact - np.float32(power)) < np.float32(1e-3) or not _FINEST_CELL <= power <= _COARSEST_CELL:
        raise UnsupportedError(
            f"state '{cell_state.name}' has scale {scale}; the kernel takes powers of two from 2^{_FINEST_CELL} to "
            f"2^{_COARSEST_CELL}"
        )
    return power


def clip_code(node: Node, name: str, scale: np.float32, bits: int) -> int:
    """Return a bound in quantized values, cut to the type; 0 for none.

    Raises:
        GraphError: it is negative.
    """
    bound = np.float32(node.attributes.real(name, 0.0))
    if bound < 0:
        raise GraphError(f"{name} is {bound}; it is 0 for none, or positive")
    return int(min(bound / scale, np.float32((1 << (bits - 1)) - 1)))
