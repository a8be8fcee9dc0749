"""BIDIRECTIONAL_SEQUENCE_RNN with float32 activations and int8 or uint8 weights (docs/tflite.md).

Source: TFLite kernels/bidirectional_sequence_rnn.cc; the arithmetic is in float/rnn_cell.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.two_rnns import TwoRnns, lower_two, run_two
from tflq.interpreter.kernels.tflite.hybrid_addend import addend_maker


def lower(node: Node, operands: Operands) -> TwoRnns:
    """Gather the constants of BIDIRECTIONAL_SEQUENCE_RNN; raises as `lower_two`."""
    return lower_two(node, operands, addend_maker(node), hybrid=True)


def run(params: TwoRnns, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it; see `run_two`."""
    return run_two(params, arrays)
