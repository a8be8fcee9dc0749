"""BIDIRECTIONAL_SEQUENCE_LSTM of float32.

Source: TFLite kernels/bidirectional_sequence_lstm.cc; the arithmetic is in lstm_sequence.py.
"""

from __future__ import annotations

from typing import cast

from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.lstm_constants import lower_float
from tflq.interpreter.kernels.float.lstm_sequence import FloatMatrix, Floats, Matrix
from tflq.interpreter.kernels.float.two_lstms import TwoLstms, lower_two, run_two
from tflq.interpreter.operands.checks import require_type


def lower(node: Node, operands: Operands) -> TwoLstms:
    """Gather the constants of BIDIRECTIONAL_SEQUENCE_LSTM; raises as `lower_two` and `lower_float`."""
    return lower_two(node, operands, lambda n, o: lower_float(n, o, sequence=True), _matrix)


def run(params: TwoLstms, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it; see `run_two`."""
    return run_two(params, arrays)


def _matrix(tensor: Tensor, data: Array, together: bool) -> Matrix:
    require_type(tensor, (DType.FLOAT32,))
    return FloatMatrix(cast(Floats, data), together)
