"""What RNN and UNIDIRECTIONAL_SEQUENCE_RNN share: one cell, with or without an axis of time, float32 or hybrid.

Source: TFLite kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.float.rnn_cell import (
    Addend,
    FloatAddend,
    Floats,
    RnnCell,
    check_cell,
    run_cell,
    spread,
)
from tflq.interpreter.kernels.float.vector_activation import require_activation
from tflq.interpreter.operands.checks import require_type

MakeAddend = Callable[[Tensor, Array], Addend]
"""Packs constant weights."""

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


def lower_simple(node: Node, operands: Operands, sequence: bool, make: MakeAddend) -> SimpleRnn:
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


def run_simple(params: SimpleRnn, x: Array, *others: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, T, I], [S, T, B, I] or [S, B, I] -> the same with U, and the new hidden state."""
    hidden = others[3]
    samples = max(len(x), len(hidden))
    wide = cast(Floats, np.broadcast_to(x, (samples, *x.shape[1:])))
    steps = wide[None] if params.time is None else np.moveaxis(wide, params.time, 0)
    outputs, last = run_cell(params.cell, steps, spread(hidden, params.batch, samples))
    result = outputs[0] if params.time is None else np.moveaxis(outputs, 0, params.time)
    return result, last.reshape(samples, *hidden.shape[1:])


def float_addend(tensor: Tensor, data: Array) -> Addend:
    """Pack weights of float32.

    Raises:
        UnsupportedError: they have another type.
    """
    require_type(tensor, (DType.FLOAT32,))
    return FloatAddend(cast(Floats, data))
