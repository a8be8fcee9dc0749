"""LSTM of float32: one step of a full cell, without an axis of time.

Source: TFLite kernels/lstm.cc; the arithmetic is in lstm_sequence.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.lstm_constants import lower_float, run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm
from tflq.interpreter.kernels.lstm_operands import require_full_kernel


def lower(node: Node, operands: Operands) -> FloatLstm:
    """Gather the constants of LSTM; raises as `lower_float` and `require_full_kernel`."""
    require_full_kernel(node)
    return lower_float(node, operands, sequence=False)


def run(integers: FloatLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, B, I] -> [S, B, O], output state, cell state."""
    return run_float(integers, arrays)
