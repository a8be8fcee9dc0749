"""Simple recurrent cells with float32 activations, over a sequence (docs/tflite.md).

h = act(((b + W x) + A a) + R h), each product added as vector_functions.py does, or as hybrid.py where the weights
are integers.

Source: TFLite kernels/internal/kernel_utils.cc (RnnBatchStep).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Array, Operands, Tensor
from tflq.interpreter.kernels.float.vector_functions import activate, lane_product
from tflq.interpreter.operands.products import require_state


class Addend(Protocol):
    """Weights whose product with vectors is added to a sum."""

    def added(self, start: Singles, x: Singles) -> Singles:
        """Return start + W x: float32[S, B, U] and float32[S, B, K] -> float32[S, B, U]."""


MakeAddend = Callable[[Tensor, Array], Addend]
"""Packs constant weights; it checks their type."""


@dataclass(frozen=True, eq=False)
class FloatAddend:
    """Weights of float32.

    Attributes:
        weights: [U, K].
    """

    weights: Singles

    def added(self, start: Singles, x: Singles) -> Singles:
        """Return start + W x in four lanes."""
        return lane_product(x, self.weights, np.broadcast_to(start, (*x.shape[:-1], len(self.weights))))


@dataclass(frozen=True, eq=False)
class RnnCell:
    """One cell.

    Attributes:
        weights: [U, I].
        recurrent: [U, U].
        bias: float32[U].
        activation: fused.
        second: [U, A] of the second input, or None.
    """

    weights: Addend
    recurrent: Addend
    bias: Singles
    activation: str
    second: Addend | None = None


def run_cell(
    cell: RnnCell, steps: Singles, hidden: Singles, second: Singles | None = None, backward: bool = False
) -> tuple[Singles, Singles]:
    """Run a cell over a sequence.

    Args:
        cell: the cell.
        steps: float32[T, S, B, I].
        hidden: float32[S, B, U].
        second: float32[T, S, B, A], or None.
        backward: whether to begin at the end.

    Returns:
        Outputs float32[T, S, B, U] and the new hidden state.
    """
    count = len(steps)
    outputs = np.empty((count, *hidden.shape), np.float32)
    with np.errstate(all="ignore"):
        for t in range(count)[:: -1 if backward else 1]:
            total = cell.weights.added(cell.bias, steps[t])
            if cell.second is not None and second is not None:
                total = cell.second.added(total, second[t])
            hidden = activate(cell.recurrent.added(total, hidden), cell.activation)
            outputs[t] = hidden
    return outputs, hidden


def check_cell(
    operands: Operands, positions: tuple[int, int, int, int], batch: int, inputs: int
) -> tuple[Tensor, Tensor, int]:
    """Check the shapes of a cell.

    Args:
        operands: of the node.
        positions: of weights, recurrent weights, bias and hidden state.
        batch: B.
        inputs: I.

    Returns:
        Weights, recurrent weights, and the number of units.

    Raises:
        GraphError: they contradict each other, or the state is no variable.
    """
    weights, recurrent, bias, hidden = (operands.input(p) for p in positions)
    units = weights.shape[0] if weights.shape else 0
    if weights.shape != (units, inputs) or recurrent.shape != (units, units) or bias.shape != (units,):
        raise GraphError(
            f"weights {weights.shape}, recurrent weights {recurrent.shape} and bias {bias.shape} do not fit "
            f"{inputs} inputs"
        )
    require_state(hidden, (batch, units))
    return weights, recurrent, units


def spread(state: object, batch: int, samples: int) -> Singles:
    """Bring a hidden state [S or 1, B * U elements] to float32[S, B, U]."""
    held = cast(Singles, state)
    flat = held.reshape(len(held), batch, -1)
    return np.broadcast_to(flat, (samples, *flat.shape[1:]))
