"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM with integers (docs/tflite.md).

The arithmetic is in integer_lstm.py and integer_lstm_step.py (int8 with int16 cells), eight_bit_lstm.py (the same with
gates of 8 bits, twelve intermediates), hybrid_lstm.py (float32 with int8 or uint8 weights) and basic_lstm.py (LSTM's
basic cell of uint8).

LSTM: one step of a full cell, int8 or float32 with int8 weights, or of a basic one of uint8. Source: TFLite
kernels/lstm.cc.
UNIDIRECTIONAL_SEQUENCE_LSTM: int8 with int16 cells, and float32 with int8 weights. Source: TFLite
kernels/unidirectional_sequence_lstm.cc.
BIDIRECTIONAL_SEQUENCE_LSTM: one LSTM forward, one backward, with float32 activations and int8 or uint8 weights. Source:
TFLite kernels/bidirectional_sequence_lstm.cc.
"""

from __future__ import annotations

from functools import partial

from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.lstm_constants import run_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatLstm, Matrix
from tflq.interpreter.kernels.float.two_lstms import TwoLstms, lower_two, run_two
from tflq.interpreter.kernels.tflite.basic_lstm import BasicLstm, lower_basic, run_basic
from tflq.interpreter.kernels.tflite.eight_bit_lstm import EightBitLstm, is_eight_bit, lower_eight_bit, run_eight_bit
from tflq.interpreter.kernels.tflite.hybrid_lstm import hybrid_matrix, lower_hybrid
from tflq.interpreter.kernels.tflite.integer_lstm import IntegerLstm, lower_integer
from tflq.interpreter.kernels.tflite.integer_lstm_step import run_integer
from tflq.interpreter.operands.checks import meets_integer_weights, require_type
from tflq.interpreter.operands.lstm import is_basic
from tflq.interpreter.registry import Kernel


def _lower_step(node: Node, operands: Operands) -> IntegerLstm | EightBitLstm | FloatLstm | BasicLstm:
    if is_basic(node):
        return lower_basic(operands)
    if meets_integer_weights(operands, 2):
        return lower_hybrid(node, operands, sequence=False)
    if is_eight_bit(operands):
        return lower_eight_bit(node, operands)
    return lower_integer(node, operands, sequence=False)


def _lower_sequence(node: Node, operands: Operands) -> IntegerLstm | FloatLstm:
    lower = lower_hybrid if meets_integer_weights(operands, 2) else lower_integer
    return lower(node, operands, sequence=True)


def _run(params: IntegerLstm | EightBitLstm | FloatLstm | BasicLstm, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it: [S, B, I], [S, B, T, I] or [S, T, B, I] -> the same with O, output state, cell state."""
    if isinstance(params, BasicLstm):
        return run_basic(params, arrays)
    if isinstance(params, FloatLstm):
        return run_float(params, *arrays)
    if isinstance(params, EightBitLstm):
        return run_eight_bit(params, arrays)
    return run_integer(params, arrays)


def _lower_both_ways(node: Node, operands: Operands) -> TwoLstms:
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)

    def matrix(tensor: Tensor, data: Array, together: bool) -> Matrix:  # noqa: ARG001  # as every MakeMatrix
        require_type(tensor, (DType.INT8, DType.UINT8))
        return hybrid_matrix(tensor, data, asymmetric)

    return lower_two(node, operands, partial(lower_hybrid, sequence=True), matrix)


KERNELS = {
    "lstm": Kernel(_lower_step, _run),
    "unidirectional_sequence_lstm": Kernel(_lower_sequence, _run),
    "bidirectional_sequence_lstm": Kernel(_lower_both_ways, run_two),
}
