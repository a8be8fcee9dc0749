"""Shapes and state of SVDF, the same in every arithmetic.

Source: TFLite kernels/svdf.cc, Prepare.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True)
class SvdfShapes:
    """Sizes of one SVDF.

    Attributes:
        rank: filters of one unit.
        units: outputs.
        memory: steps that the state remembers.
    """

    rank: int
    units: int
    memory: int

    @property
    def filters(self) -> int:
        """Number of filters."""
        return self.rank * self.units


def svdf_shapes(node: Node, operands: Operands) -> SvdfShapes:
    """Check the shapes of input [B, I], feature weights [F, I], time weights [F, M], bias [U], state [B, M * F].

    Raises:
        GraphError: they contradict each other, or the state is no variable.
    """
    x, feature, time, bias, state = (*(operands.input(i) for i in range(3)), operands.optional(3), operands.input(4))
    rank = node.attributes.integer("rank")
    if not len(x.shape) == len(feature.shape) == len(time.shape) == 2 or feature.shape[1] != x.shape[1]:
        raise GraphError(f"input {x.shape}, feature weights {feature.shape} and time weights {time.shape} do not fit")
    filters, memory = time.shape
    if rank < 1 or filters != feature.shape[0] or filters % rank or memory < 1:
        raise GraphError(f"{feature.shape[0]} and {filters} filters do not fit rank {rank}; they are a multiple of it")
    require_state(state, (x.shape[0], memory * filters))
    if bias is not None and bias.size != filters // rank:
        raise GraphError(f"the bias has {bias.size} elements, there are {filters // rank} units")
    return SvdfShapes(rank, filters // rank, memory)


def require_state(state: Tensor, shape: tuple[int, ...], dtype: DType | None = None) -> None:
    """Check a tensor that keeps state.

    Raises:
        GraphError: it is no variable, or has another shape.
        UnsupportedError: it has another type.
    """
    if not state.is_variable:
        raise GraphError(f"tensor '{state.name}' keeps the state and must be a variable")
    if int(np.prod(state.shape)) != int(np.prod(shape)):
        raise GraphError(f"state '{state.name}' has shape {state.shape}, it needs {shape}")
    if dtype is not None:
        require_type(state, (dtype,))


def shift_state(state: Array, newest: Array) -> Array:
    """Drop the oldest step of each filter and append the newest.

    Args:
        state: T[S or 1, B, F * M].
        newest: T[S, B, F].

    Returns:
        T[S, B, F, M].
    """
    old = state.reshape(len(state), *newest.shape[1:], -1)[..., 1:]
    return np.concatenate([np.broadcast_to(old, (len(newest), *old.shape[1:])), newest[..., None]], axis=-1)
