"""UNIDIRECTIONAL_SEQUENCE_RNN of float32. Equal to TFLite bit for bit.

Source: TFLite kernels/unidirectional_sequence_rnn.cc; the arithmetic is in rnn_cell.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.simple_rnn import SimpleRnn, float_addend, lower_simple, run_simple


def lower(node: Node, operands: Operands) -> SimpleRnn:
    """Gather the constants of UNIDIRECTIONAL_SEQUENCE_RNN; raises as `lower_simple`."""
    return lower_simple(node, operands, sequence=True, make=float_addend)


def run(params: SimpleRnn, *arrays: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, T, I] or [S, T, B, I] -> the same with U, and the hidden state."""
    return run_simple(params, arrays[0], arrays[4])
