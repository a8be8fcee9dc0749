"""REDUCE_MAX over height and width in GAP9's arithmetic: a global max pool, one type in and out (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands


@dataclass(frozen=True)
class GlobalMaxParams:
    """Where to look.

    Attributes:
        axes: of the model's own shape.
        shape: of the output.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> GlobalMaxParams:  # noqa: ARG001
    """Decide the axes."""
    rank = len(operands.input(0).shape)
    axes = tuple(sorted(int(a) % rank for a in operands.constant(1).reshape(-1)))
    return GlobalMaxParams(axes, operands.output().shape)


def run(params: GlobalMaxParams, x: Array, _axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_MAX: codes [S, *shape] -> codes [S, *reduced shape]."""
    largest = x.max(axis=tuple(a + 1 for a in params.axes))
    return (largest.reshape(x.shape[0], *params.shape),)
