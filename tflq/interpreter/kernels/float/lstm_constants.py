"""Gathers the constants of an LSTM of float32, and runs it on the node's inputs (lstm_sequence.py)."""

from __future__ import annotations

from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.lstm_sequence import (
    FloatGate,
    FloatLstm,
    FloatMatrix,
    cell_activation,
    clip_of,
    run_lstm,
)
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.lstm import (
    CELL_STATE,
    OUTPUT_STATE,
    PROJECTION,
    PROJECTION_BIAS,
    GateTensors,
    LstmShapes,
    lstm_tensors,
)


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
