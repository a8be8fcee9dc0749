"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN with float32 activations; the rule is in rnn_cell.py.

Weights are float32 here, integers in tflite/hybrid_rnn.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.rnn_cell import (
    Addend,
    FloatAddend,
    MakeAddend,
    RnnCell,
    check_cell,
    run_cell,
    spread,
)
from tflq.interpreter.kernels.float.two_rnns import TwoRnns, lower_two, run_two
from tflq.interpreter.kernels.float.vector_functions import require_activation
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel

_POSITIONS = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class SimpleRnn:
    """What a simple recurrent layer needs.

    Attributes:
        cell: the cell.
        batch: sequences.
        time: axis of time among [S, ...] of the input; None for an input without one.
    """

    cell: RnnCell
    batch: int
    time: int | None


def _lower_simple(node: Node, operands: Operands, sequence: bool, make: MakeAddend) -> SimpleRnn:
    """Check the operands and pack the weights.

    Args:
        node: with activation and time_major.
        operands: input, weights [U, I], recurrent weights [U, U], bias [U], hidden state [B, U].
        sequence: whether the input has an axis of time.
        make: packs weights; it checks their type.

    Raises:
        UnsupportedError: types or an activation that the kernel does not take.
        GraphError: shapes that contradict each other.
    """
    x = operands.input(0)
    for tensor in (x, operands.input(3), operands.input(4), operands.output()):
        require_type(tensor, (DType.FLOAT32,))
    if len(x.shape) != (3 if sequence else 2):
        raise GraphError(f"input {x.shape} must have {3 if sequence else 2} axes")
    time_major = sequence and node.attributes.boolean("time_major", False)
    batch = x.shape[1] if time_major else x.shape[0]
    weights, recurrent, _ = check_cell(operands, _POSITIONS, batch, x.shape[-1])
    activation = require_activation(node.attributes.text("fused_activation_function", "none"))
    cell = RnnCell(
        make(weights, operands.constant(1)),
        make(recurrent, operands.constant(2)),
        operands.constant(3).astype(np.float32),
        activation,
    )
    return SimpleRnn(cell, batch, None if not sequence else 1 if time_major else 2)


def _run_simple(params: SimpleRnn, x: Array, *others: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, T, I], [S, T, B, I] or [S, B, I] -> the same with U, and the new hidden state."""
    hidden = others[3]
    samples = max(len(x), len(hidden))
    wide = cast(Singles, np.broadcast_to(x, (samples, *x.shape[1:])))
    steps = wide[None] if params.time is None else np.moveaxis(wide, params.time, 0)
    outputs, last = run_cell(params.cell, steps, spread(hidden, params.batch, samples))
    result = outputs[0] if params.time is None else np.moveaxis(outputs, 0, params.time)
    return result, last.reshape(samples, *hidden.shape[1:])


def _float_addend(tensor: Tensor, data: Array) -> Addend:
    """Pack weights of float32.

    Raises:
        UnsupportedError: they have another type.
    """
    require_type(tensor, (DType.FLOAT32,))
    return FloatAddend(cast(Singles, data))


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
        return _lower_simple(node, operands, sequence=False, make=make(node))

    def lower_sequence(node: Node, operands: Operands) -> SimpleRnn:
        return _lower_simple(node, operands, sequence=True, make=make(node))

    def lower_both_ways(node: Node, operands: Operands) -> TwoRnns:
        return lower_two(node, operands, make(node), hybrid)

    return {
        "rnn": Kernel(lower_step, _run_simple, f"one step {kind}", "TFLite kernels/basic_rnn.cc"),
        "unidirectional_sequence_rnn": Kernel(
            lower_sequence,
            _run_simple,
            f"a sequence {kind}",
            "TFLite kernels/unidirectional_sequence_rnn.cc",
        ),
        "bidirectional_sequence_rnn": Kernel(
            lower_both_ways,
            run_two,
            f"a sequence forward and backward {kind}",
            "TFLite kernels/bidirectional_sequence_rnn.cc",
        ),
    }


KERNELS = rnn_kernels(lambda _: _float_addend, hybrid=False, kind="of float32, equal to TFLite bit for bit")
