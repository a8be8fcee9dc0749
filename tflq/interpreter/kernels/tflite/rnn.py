"""RNN with float32 activations and int8 or uint8 weights (docs/tflite.md).

Source: TFLite kernels/basic_rnn.cc; the arithmetic is in float/rnn_cell.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.simple_rnn import SimpleRnn, lower_simple, run_simple
from tflq.interpreter.kernels.tflite.hybrid_addend import addend_maker


def lower(node: Node, operands: Operands) -> SimpleRnn:
    """Gather the constants of RNN; raises as `lower_simple`."""
    return lower_simple(node, operands, sequence=False, make=addend_maker(node))


def run(params: SimpleRnn, *arrays: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, I] -> [S, B, U], and the hidden state."""
    return run_simple(params, arrays[0], arrays[4])
