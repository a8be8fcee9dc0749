"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM of float32 (docs/tflite.md).

The arithmetic is in lstm_sequence.py. LSTM's basic cell: a = clamp(W [x, h] + b, the finite numbers), the product in
the order of eigen.py; c = s(a_input) tanh(a_cell) + s(a_forget) c; h = s(a_output) tanh(c), s and tanh those of
eigen.py. Elements of a row that do not fill registers of four use the C library's exp, whose last bit depends on the
host.

LSTM: float32: one step of a full cell, or of a basic one. Source: TFLite kernels/lstm.cc.
UNIDIRECTIONAL_SEQUENCE_LSTM: float32: [S, B, T, I] or [S, T, B, I] -> the same with O, output state, cell state.
Source: TFLite kernels/unidirectional_sequence_lstm.cc.
BIDIRECTIONAL_SEQUENCE_LSTM: float32: one LSTM forward, one backward. Source: TFLite
kernels/bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.convolution import LARGEST
from tflq.interpreter.kernels.float.eigen import eigen_product, logistic, scalars_of, tanh
from tflq.interpreter.kernels.float.lstm_sequence import (
    FloatGate,
    FloatLstm,
    FloatMatrix,
    Matrix,
    cell_activation,
    clip_of,
    run_lstm,
)
from tflq.interpreter.kernels.float.two_lstms import TwoLstms, lower_two, run_two
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.lstm import (
    CELL_STATE,
    INPUTS,
    OUTPUT_STATE,
    OUTPUTS,
    PROJECTION,
    PROJECTION_BIAS,
    GateTensors,
    LstmShapes,
    basic_results,
    is_basic,
    lstm_tensors,
    require_basic,
)
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class FloatBasicLstm:
    """What the basic cell of float32 needs.

    Attributes:
        weights: float32[4 * U, I + U].
        bias: float32[4 * U].
        keeps: whether last output and state are variables, which get their new values.
    """

    weights: Singles
    bias: Singles
    keeps: tuple[bool, bool]


def lower_basic(operands: Operands) -> FloatBasicLstm:
    """Gather the constants; raises as `require_basic`."""
    keeps = require_basic(operands, [DType.FLOAT32] * INPUTS, [DType.FLOAT32] * OUTPUTS)
    weights, bias = (operands.constant(i).astype(np.float32) for i in (2, 3))
    return FloatBasicLstm(weights, bias.reshape(-1), keeps)


def run_basic(layer: FloatBasicLstm, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """Run it: float32[S, B, I], last output and state [S, B, U] -> output, state, both inputs, sums of the gates."""
    x, last, state = (cast(Singles, arrays[i]) for i in (0, 1, 4))
    samples = max(len(x), len(last), len(state))
    together = np.concatenate([np.broadcast_to(a, (samples, *a.shape[1:])) for a in (x, last)], axis=-1)
    with np.errstate(all="ignore"):
        sums = eigen_product(together, layer.weights, together=True) + layer.bias
        gates = np.minimum(np.maximum(sums, -LARGEST), LARGEST)
        enter, update, forget, leave = np.split(gates, 4, axis=-1)
        new: Singles = _logistic(enter) * tanh(update) + _logistic(forget) * state
        output: Singles = _logistic(leave) * tanh(new)
    return basic_results(output, new, together, gates, layer.keeps)


def _logistic(x: Singles) -> Singles:
    """Apply the logistic function to float32[S, B, U], whose rows lie behind each other in aligned memory."""
    batch, units = x.shape[1:]
    scalars = np.concatenate([scalars_of(units, row * units) for row in range(batch)])
    return logistic(x.reshape(len(x), -1), scalars).reshape(x.shape)


def lower_float(node: Node, operands: Operands, sequence: bool) -> FloatLstm:
    """Gather the constants of an LSTM of float32.

    Args:
        node: with clips and activation.
        operands: as in operands/lstm.py.
        sequence: whether the input has an axis of time.

    Raises:
        UnsupportedError: a type other than float32, or an activation that TFLite does not have.
        GraphError: shapes that contradict each other.
    """
    for tensor in (*operands.inputs, operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    tensors = lstm_tensors(node, operands, sequence)
    together = runs_together(tensors.shapes)
    projection = constant(operands, PROJECTION if tensors.projection is not None else -1)
    return FloatLstm(
        tensors.shapes,
        {name: _gate(gate, operands, together) for name, gate in tensors.gates.items()},
        cell_activation(node),
        clip_of(node, "cell_clip"),
        None if projection is None else FloatMatrix(projection, together),
        constant(operands, PROJECTION_BIAS if tensors.projection_bias is not None else -1),
        clip_of(node, "proj_clip"),
    )


def runs_together(shapes: LstmShapes) -> bool:
    """Whether the sequences of a batch run side by side; else one after the other."""
    return shapes.time_major or not shapes.has_time


def run_float(params: FloatLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it on the node's inputs; states come back in their own shapes."""
    x, hidden, cell = (cast(Singles, arrays[i]) for i in (0, OUTPUT_STATE, CELL_STATE))
    result, new_hidden, new_cell = run_lstm(params, x, None, hidden, cell)
    count = len(result)
    return result, new_hidden.reshape(count, *hidden.shape[1:]), new_cell.reshape(count, *cell.shape[1:])


def constant(operands: Operands, position: int) -> Singles | None:
    """Return a constant as float32; None for position -1."""
    return None if position < 0 else operands.constant(position).astype(np.float32)


def _gate(gate: GateTensors, operands: Operands, together: bool) -> FloatGate:
    weights, recurrent, peephole, bias, norm = gate.positions
    back = operands.constant(recurrent).astype(np.float32)
    return FloatGate(
        FloatMatrix(operands.constant(weights).astype(np.float32), together),
        back if back.ndim == 1 else FloatMatrix(back, together),
        operands.constant(bias).astype(np.float32),
        None,
        constant(operands, peephole if gate.peephole is not None else -1),
        constant(operands, norm if gate.norm is not None else -1),
    )


def _lower_step(node: Node, operands: Operands) -> FloatLstm | FloatBasicLstm:
    return lower_basic(operands) if is_basic(node) else lower_float(node, operands, sequence=False)


def _run_step(params: FloatLstm | FloatBasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, B, I] -> [S, B, O], output state, cell state; or a basic cell."""
    return run_basic(params, arrays) if isinstance(params, FloatBasicLstm) else run_float(params, *arrays)


def _lower_both_ways(node: Node, operands: Operands) -> TwoLstms:
    return lower_two(node, operands, partial(lower_float, sequence=True), _matrix)


def _matrix(tensor: Tensor, data: Array, together: bool) -> Matrix:
    require_type(tensor, (DType.FLOAT32,))
    return FloatMatrix(cast(Singles, data), together)


KERNELS = {
    "lstm": Kernel(_lower_step, _run_step),
    "unidirectional_sequence_lstm": Kernel(partial(lower_float, sequence=True), run_float),
    "bidirectional_sequence_lstm": Kernel(_lower_both_ways, run_two),
}
