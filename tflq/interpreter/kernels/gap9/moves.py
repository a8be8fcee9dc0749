"""CONCATENATION, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR and TILE in GAP9's arithmetic.

Source: docs/rules/gap9/operators.md, docs/differences/gap9.md.

The options align_corners and half_pixel_centers are ignored, as NNTool does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.rounding import same_scales
from tflq.interpreter.kernels.move.parts import Concatenation, check_shapes, run_concatenation
from tflq.interpreter.kernels.move.repeat import KERNELS as REPEATS
from tflq.interpreter.kernels.move.resize_nearest_neighbor import ResizeNearestNeighbor
from tflq.interpreter.kernels.move.resize_nearest_neighbor import run as run_nearest
from tflq.interpreter.operands.movable import resized_shape
from tflq.interpreter.registry import Kernel

_ONE = 128


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of the output's rows, or columns, between the rows or columns of the input.

    Attributes:
        low: the one before, int64[n].
        part: Distance from it, in 128ths, int64[n].
    """

    low: Integers
    part: Integers


@dataclass(frozen=True, eq=False)
class ResizeBilinear:
    """Positions of rows and columns."""

    rows: Positions
    columns: Positions


@dataclass(frozen=True)
class Repetition:
    """NNTool's TILE: each element n times in its place.

    Attributes:
        axis: Axis in the model's own shape.
        times: n.
    """

    axis: int
    times: int


def lower_bilinear(node: Node, operands: Operands) -> ResizeBilinear:  # noqa: ARG001
    """Decide positions: step = ((in - 1) << 16) // out, at i * step; the part has 7 bits."""
    shape, sizes = operands.input(0).shape, resized_shape(operands)
    return ResizeBilinear(*(_positions(shape[1 + a], sizes[a]) for a in range(2)))


def _positions(size: int, wanted: int) -> Positions:
    at = np.arange(wanted, dtype=np.int64) * (((size - 1) << 16) // wanted)
    return Positions(at >> 16, (at >> 9) & (_ONE - 1))


def run_bilinear(params: ResizeBilinear, x: Array, *_size: Array) -> tuple[Array, ...]:
    """Run RESIZE_BILINEAR: T[S, N, H, W, C] -> T[S, N, rows, columns, C]; the weighted sum >> 14, not rounded."""
    down, right = params.rows.part[:, None, None], params.columns.part[:, None]
    wide = x.astype(np.int64)
    rows = _blend(wide, params.rows.low, down, 2)
    return ((_blend(rows, params.columns.low, right, 3) >> 14).astype(x.dtype),)


def _blend(x: Integers, low: Integers, part: Integers, axis: int) -> Integers:
    high = np.minimum(low + 1, x.shape[axis] - 1)
    return np.asarray(np.take(x, low, axis) * (_ONE - part) + np.take(x, high, axis) * part, np.int64)


def lower_nearest(node: Node, operands: Operands) -> ResizeNearestNeighbor:  # noqa: ARG001
    """Decide rows and columns: step = ((in - 1) << 16) // (out - 1), index = (step * i + 2^15) >> 16.

    Raises:
        UnsupportedError: an output one row high or one column wide, for which NNTool divides by 0.
    """
    shape, sizes = operands.input(0).shape, resized_shape(operands)
    if min(sizes) == 1:
        raise UnsupportedError(f"the output is {sizes[0]}x{sizes[1]}; GAP9's nearest neighbor takes 2 and more")
    steps = [((shape[1 + a] - 1) << 16) // (sizes[a] - 1) for a in range(2)]
    indices = [tuple((step * i + (1 << 15)) >> 16 for i in range(n)) for step, n in zip(steps, sizes, strict=True)]
    return ResizeNearestNeighbor(*indices)


_TILE = REPEATS["tile"]


def lower_tile(node: Node, operands: Operands) -> object:
    """Decide the repetitions; with the attribute numerics "nntool" as NNTool does, along one axis."""
    if node.attributes.text("numerics", "exact") == "exact":
        return _TILE.lower(node, operands)
    times = operands.constant(1).reshape(-1).tolist()
    axis = next((a for a, n in enumerate(times) if n != 1), 0)
    return Repetition(axis, int(times[axis]))


def run_tile(params: object, x: Array, *multiples: Array) -> tuple[Array, ...]:
    """Run TILE: T[S, *shape] -> T[S, *shape * multiples]."""
    if isinstance(params, Repetition):
        return (np.repeat(x, params.times, axis=params.axis + 1),)
    return _TILE.run(params, x, *multiples)


def lower_concatenation(node: Node, operands: Operands) -> Concatenation:
    """Decide the axis; scales may differ within NNTool's tolerance, |S - S'| <= 1e-8 + 1e-5 S'.

    Raises:
        UnsupportedError: a fused activation, or inputs of another type than the output.
        GraphError: shapes that do not fit.
    """
    output = operands.output()
    for tensor in (operands.input(i) for i in range(len(operands.inputs))):
        x, y = tensor.affine, output.affine
        same = tensor.dtype is output.dtype and np.array_equal(x.zero_point, y.zero_point)
        if not same or not same_scales(x.scale, y.scale):
            raise UnsupportedError(f"input '{tensor.name}' is quantized otherwise than the output '{output.name}'")
    return check_shapes(node, operands)


_SOURCE = "docs/rules/gap9/operators.md#add-mul-pools"
KERNELS = {
    "concatenation": Kernel(
        lower_concatenation, run_concatenation, "the same quantized values", "docs/rules/gap9/types.md#types"
    ),
    "resize_bilinear": Kernel(lower_bilinear, run_bilinear, "four neighbors in 128ths, >> 14", _SOURCE),
    "resize_nearest_neighbor": Kernel(lower_nearest, run_nearest, "the element at (step * i + 2^15) >> 16", _SOURCE),
    "tile": Kernel(
        lower_tile, run_tile, "repeated along an axis; NNTool repeats each element", "docs/differences/gap9.md"
    ),
}
