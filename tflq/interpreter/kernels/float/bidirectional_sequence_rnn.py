"""BIDIRECTIONAL_SEQUENCE_RNN of float32. Equal to TFLite bit for bit.

Source: TFLite kernels/bidirectional_sequence_rnn.cc; the arithmetic is in rnn_cell.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.simple_rnn import float_addend
from tflq.interpreter.kernels.float.two_rnns import TwoRnns, lower_two, run_two


def lower(node: Node, operands: Operands) -> TwoRnns:
    """Gather the constants of BIDIRECTIONAL_SEQUENCE_RNN; raises as `lower_two`."""
    return lower_two(node, operands, float_addend, hybrid=False)


def run(params: TwoRnns, *arrays: Array | None) -> tuple[Array, ...]:
    """Run it; see `run_two`."""
    return run_two(params, arrays)
