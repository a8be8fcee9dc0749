"""BIDIRECTIONAL_SEQUENCE_LSTM with float32 activations and int8 or uint8 weights (docs/tflite.md).

Source: TFLite kernels/bidirectional_sequence_lstm.cc; the arithmetic is in hybrid_lstm.py.
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.lstm_sequence import Matrix
from tflq.interpreter.kernels.float.two_lstms import TwoLstms, lower_two, run_two
from tflq.interpreter.kernels.tflite.hybrid_lstm import hybrid_matrix, lower_hybrid
from tflq.interpreter.operands.checks import require_type


def lower(node: Node, operands: Operands) -> TwoLstms:
    """Gather the constants of BIDIRECTIONAL_SEQUENCE_LSTM; raises as `lower_two` and `lower_hybrid`."""
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)

    def matrix(tensor: Tensor, data: Array, together: bool) -> Matrix:  # noqa: ARG001  # as every MakeMatrix
        require_type(tensor, (DType.INT8, DType.UINT8))
        return hybrid_matrix(tensor, data, asymmetric)

    return lower_two(node, operands, lambda n, o: lower_hybrid(n, o, sequence=True), matrix)


def run(params: TwoLstms, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it; see `run_two`."""
    return run_two(params, arrays)
