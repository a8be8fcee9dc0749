"""LSTM of float32: one step of a full cell, without an axis of time, or of a basic one.

Source: TFLite kernels/lstm.cc; the arithmetic is in lstm_sequence.py and basic_lstm.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.basic_lstm import FloatBasicLstm, lower_basic, run_basic
from tflq.interpreter.kernels.float.lstm_constants import lower_float, run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm
from tflq.interpreter.operands.basic_lstm import is_basic


def lower(node: Node, operands: Operands) -> FloatLstm | FloatBasicLstm:
    """Gather the constants of LSTM; raises as `lower_float` and `lower_basic`."""
    return lower_basic(operands) if is_basic(node) else lower_float(node, operands, sequence=False)


def run(params: FloatLstm | FloatBasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, B, I] -> [S, B, O], output state, cell state; the basic cell as basic_lstm.py says."""
    return run_basic(params, arrays) if isinstance(params, FloatBasicLstm) else run_float(params, arrays)
