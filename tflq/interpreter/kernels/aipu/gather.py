"""Gather, GatherND, ReverseSequence: codes are chosen by plain integers and pass their type (docs/aipu.md, 5).

The moves themselves are TFLite's (kernels/move). Compass differs at the edges: an index below 0 counts from the end,
GatherND takes the last place for an index beyond the axis, ReverseSequence the whole axis for a length beyond it.

Source: Compass Optimizer, ops/gather.py, gather_nd.py, reversesequence.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
from tflq.interpreter.kernels.move import gather, gather_nd, reverse_sequence
from tflq.interpreter.numerics.fixed_point import Integers

OPERATORS = ("gather", "gather_nd", "reverse_sequence")


@dataclass(frozen=True, eq=False)
class GatherParams:
    """One choice: the move, and the sizes of the axes that the indices are for."""

    move: gather.Gather | gather_nd.GatherNd | reverse_sequence.ReverseSequence
    sizes: tuple[int, ...]
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> GatherParams:
    """Take the axes.

    Raises:
        UnsupportedError: GatherND with batches.
    """
    shape, indices = operands.input(0).shape, operands.input(1).shape
    value = node.attributes.integer
    if node.operator == "reverse_sequence":
        axes = value("time_axis") % len(shape), value("batch_axis") % len(shape)
        return GatherParams(reverse_sequence.ReverseSequence(*axes), (shape[axes[0]],))
    batches = value("batch_dims", 0)
    if node.operator == "gather":
        axis = value("axis", 0) % len(shape)
        return GatherParams(gather.Gather(axis, batches % (len(indices) + 1)), (shape[axis],))
    if batches != 0:
        raise UnsupportedError(f"GatherND with batch_dims={batches}; allowed is 0")
    return GatherParams(gather_nd.GatherNd(indices[-1]), shape[: indices[-1]])


def run(params: GatherParams, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run the layer: codes [S, ...] and plain integers [S, ...] -> codes [S, ...].

    Raises:
        InputError: an index of Gather beyond the axis.
    """
    move, places = params.move, indices.astype(np.int64)
    if isinstance(move, reverse_sequence.ReverseSequence):
        return reverse_sequence.run(move, x, np.minimum(places, params.sizes[0]))
    if isinstance(move, gather.Gather):
        return gather.run(move, x, _from_start(places, params.sizes[0]))
    sizes = np.array(params.sizes, np.int64)
    return gather_nd.run(move, x, _from_start(np.minimum(places, sizes - 1), sizes))


def _from_start(places: Integers, size: int | Integers) -> Integers:
    counted: Integers = np.where(places < 0, places + size, places)
    return counted
