"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM of float32.

The arithmetic is in lstm_sequence.py, that of LSTM's basic cell in basic_lstm.py.

LSTM: float32: one step of a full cell, or of a basic one. Source: TFLite kernels/lstm.cc.
UNIDIRECTIONAL_SEQUENCE_LSTM: float32: [S, B, T, I] or [S, T, B, I] -> the same with O, output state, cell state.
Source: TFLite kernels/unidirectional_sequence_lstm.cc.
BIDIRECTIONAL_SEQUENCE_LSTM: float32: one LSTM forward, one backward. Source: TFLite
kernels/bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.basic_lstm import FloatBasicLstm, lower_basic, run_basic
from tflq.interpreter.kernels.float.lstm_constants import lower_float, run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm, FloatMatrix, Matrix
from tflq.interpreter.kernels.float.two_lstms import TwoLstms, lower_two, run_two
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.lstm import is_basic
from tflq.interpreter.registry import Kernel


def _lower_step(node: Node, operands: Operands) -> FloatLstm | FloatBasicLstm:
    return lower_basic(operands) if is_basic(node) else lower_float(node, operands, sequence=False)


def _run_step(params: FloatLstm | FloatBasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, B, I] -> [S, B, O], output state, cell state; the basic cell as basic_lstm.py says."""
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
