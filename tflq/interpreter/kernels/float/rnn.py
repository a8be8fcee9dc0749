"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN with float32 activations; the rule is in rnn_cell.py.

Weights are float32 here, integers in tflite/hybrid_addend.py.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.float.simple_rnn import MakeAddend, SimpleRnn, float_addend, lower_simple, run_simple
from tflq.interpreter.kernels.float.two_rnns import TwoRnns, lower_two, run_two
from tflq.interpreter.registry import Kernel


def rnn_kernels(make: Callable[[Node], MakeAddend], hybrid: bool, kind: str) -> dict[str, Kernel]:
    """Return the rows of the family.

    RNN: float32[S, B, I] -> [S, B, U], and the hidden state. UNIDIRECTIONAL_SEQUENCE_RNN: float32[S, B, T, I] or
    [S, T, B, I] -> the same with U, and the hidden state. BIDIRECTIONAL_SEQUENCE_RNN: as `run_two`.

    Args:
        make: returns what packs the weights of a node.
        hybrid: whether the weights are integers.
        kind: of the layers, for the summaries.
    """

    def lower_step(node: Node, operands: Operands) -> SimpleRnn:
        return lower_simple(node, operands, sequence=False, make=make(node))

    def lower_sequence(node: Node, operands: Operands) -> SimpleRnn:
        return lower_simple(node, operands, sequence=True, make=make(node))

    def lower_both_ways(node: Node, operands: Operands) -> TwoRnns:
        return lower_two(node, operands, make(node), hybrid)

    return {
        "rnn": Kernel(lower_step, run_simple, f"RNN {kind}: one step", "TFLite kernels/basic_rnn.cc"),
        "unidirectional_sequence_rnn": Kernel(
            lower_sequence,
            run_simple,
            f"UNIDIRECTIONAL_SEQUENCE_RNN {kind}",
            "TFLite kernels/unidirectional_sequence_rnn.cc",
        ),
        "bidirectional_sequence_rnn": Kernel(
            lower_both_ways,
            run_two,
            f"BIDIRECTIONAL_SEQUENCE_RNN {kind}",
            "TFLite kernels/bidirectional_sequence_rnn.cc",
        ),
    }


KERNELS = rnn_kernels(lambda _: float_addend, hybrid=False, kind="of float32, equal to TFLite bit for bit")
