"""UNIDIRECTIONAL_SEQUENCE_LSTM of float32.

Source: TFLite kernels/unidirectional_sequence_lstm.cc; the arithmetic is in lstm_sequence.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.lstm_constants import lower_float, run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm


def lower(node: Node, operands: Operands) -> FloatLstm:
    """Gather the constants of UNIDIRECTIONAL_SEQUENCE_LSTM; raises as `lower_float`."""
    return lower_float(node, operands, sequence=True)


def run(params: FloatLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, B, T, I] or [S, T, B, I] -> [S, B, T, O] or [S, T, B, O], output state, cell state."""
    return run_float(params, arrays)
