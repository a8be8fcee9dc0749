"""Rows that indices, counts or a selector choose: Gather, GatherND, ReverseSequence, Repeat, Filter.

Source: docs/rules/aipu/operators.md.

Gather, GatherND, ReverseSequence: quantized values are chosen by plain integers and pass their type.
The moves themselves are TFLite's (kernels/move). Compass differs at the edges: an index below 0 counts from the end,
GatherND clamps an index beyond the axis, ReverseSequence reverses the whole axis for a length beyond it. Source:
Compass Optimizer, ops/gather.py, gather_nd.py, reversesequence.py.

Repeat: each slice as often as its count, in a row; the code 0 after them.

Filter: the slices that a selector keeps move to the front; the code 0 after them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import InputError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import first_rows, take_rows, together
from tflq.interpreter.kernels.move.gather import Gather, GatherNd, run_gather_nd
from tflq.interpreter.kernels.move.gather import run_gather as run_from_start
from tflq.interpreter.kernels.move.order import ReverseSequence, run_reverse_sequence
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class GatherParams:
    """One choice: the move, and the sizes of the axes that the indices are for."""

    move: Gather | GatherNd | ReverseSequence
    sizes: tuple[int, ...]


def lower_gather(node: Node, operands: Operands) -> GatherParams:
    """Take the axes.

    Raises:
        UnsupportedError: GatherND with batches.
    """
    shape, indices = operands.input(0).shape, operands.input(1).shape
    value = node.attributes.integer
    if node.operator == "reverse_sequence":
        axes = value("time_axis") % len(shape), value("batch_axis") % len(shape)
        return GatherParams(ReverseSequence(*axes), (shape[axes[0]],))
    batches = value("batch_dims", 0)
    if node.operator == "gather":
        axis = value("axis") % len(shape)
        return GatherParams(Gather(axis, batches % (len(indices) + 1)), (shape[axis],))
    if batches != 0:
        raise UnsupportedError(f"GatherND with batch_dims={batches}; allowed is 0")
    return GatherParams(GatherNd(indices[-1]), shape[: indices[-1]])


def run_gather(params: GatherParams, x: Array, indices: Array) -> tuple[Array, ...]:
    """Run the layer: quantized [S, ...] and plain integers [S, ...] -> quantized [S, ...].

    Raises:
        InputError: an index of Gather beyond the axis.
    """
    move, places = params.move, indices.astype(np.int64)
    if isinstance(move, ReverseSequence):
        return run_reverse_sequence(move, x, np.minimum(places, params.sizes[0]))
    if isinstance(move, Gather):
        return run_from_start(move, x, _from_start(places, params.sizes[0]))
    sizes = np.array(params.sizes, np.int64)
    return run_gather_nd(move, x, _from_start(np.minimum(places, sizes - 1), sizes))


def _from_start(places: Integers, size: int | Integers) -> Integers:
    counted: Integers = np.where(places < 0, places + size, places)
    return counted


@dataclass(frozen=True, eq=False)
class RepeatParams:
    """The params of one Repeat: the axis, None for the flattened input; the output's shape; words for errors."""

    axis: int | None
    shape: tuple[int, ...]
    where: str


def lower_repeat(node: Node, operands: Operands) -> RepeatParams:
    """Take the axis. Inputs: data, repeats int32, one for each slice."""
    rank = len(operands.input(0).shape)
    axis = node.attributes.integer("axis") % rank if "axis" in node.attributes else None
    return RepeatParams(axis, operands.output().shape, operands.where)


def run_repeat(params: RepeatParams, x: Array, repeats: Array) -> tuple[Array, ...]:
    """Run Repeat: quantized [S, ...], [S, L] -> quantized [S, *shape].

    Raises:
        InputError: more slices than the output has.
    """
    x, repeats = together(x, repeats)
    result = np.zeros((len(x), *params.shape), x.dtype)
    room = params.shape[params.axis or 0]
    for s, values in enumerate(x):
        counts = repeats[s].reshape(-1).astype(np.int64)
        if counts.sum() > room:
            raise InputError(f"{params.where}: {counts.sum()} slices in sample {s}; allowed are {room}")
        part = np.repeat(values, counts, axis=params.axis)
        result[s][tuple(slice(n) for n in part.shape)] = part
    return (result,)


@dataclass(frozen=True, eq=False)
class FilterRowsParams:
    """The params of one Filter: the axis of each input after the sample axis, the type of the count, the IR's part."""

    axes: tuple[int, ...]
    dtype: np.dtype[np.generic]


def lower_filter(node: Node, operands: Operands) -> FilterRowsParams:
    """Take the axis.

    Inputs: `num` tensors, then the selector [L]; slices with a non-zero selector are kept. Outputs: the tensors, the
    count.

    Raises:
        UnsupportedError: inputs that do not have the selector's length on the axis.
    """
    axis, inputs = node.attributes.integer("axis"), [t for t in operands.inputs if t is not None]
    *data, selector = inputs
    for tensor in data:
        if tensor.shape[axis] != selector.shape[0]:
            raise UnsupportedError(
                f"'{tensor.name}' has {tensor.shape[axis]} slices on axis {axis}; allowed are the selector's "
                f"{selector.shape[0]}"
            )
    axes = tuple(axis % len(t.shape) + 1 for t in data)
    return FilterRowsParams(axes, operands.output(len(data)).dtype.storage)


def run_filter(params: FilterRowsParams, *inputs: Array) -> tuple[Array, ...]:
    """Run Filter: quantized [S, ...], selector [S, L] -> quantized [S, ...], count [S]."""
    *data, selector = together(*inputs)
    order, count = first_rows(selector != 0, selector.shape[1])
    results = []
    for values, axis in zip(data, params.axes, strict=True):
        taken = take_rows(np.moveaxis(values, axis, 1), order, count)
        results.append(np.moveaxis(taken, 1, axis).astype(values.dtype))
    return (*results, count.astype(params.dtype))


KERNELS = {
    **dict.fromkeys(
        ("gather", "gather_nd", "reverse_sequence"),
        Kernel(
            lower_gather,
            run_gather,
            "values chosen by plain integers",
            "Compass Optimizer, ops/gather.py, gather_nd.py, reversesequence.py; docs/rules/aipu/operators.md",
        ),
    ),
    "repeat": Kernel(lower_repeat, run_repeat,
        "each slice as often as told", "Compass Optimizer, ops/repeat.py; docs/rules/aipu/operators.md"),
    "filter": Kernel(lower_filter, run_filter,
        "the slices that a selector keeps, to the front", "Compass Optimizer, ops/filter.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip
