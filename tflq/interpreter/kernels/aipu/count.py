"""Count: the histogram of quantized values, between limits at the input's scale (docs/rules/aipu/operators.md).

The limits do not lose the zero point, so that an asymmetric input's bins are off by zp: the Optimizer's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.scales import scale_of
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class CountParams:
    """The params of one Count.

    Attributes:
        low: the smaller limit.
        high: the larger limit.
        bins: number of bins.
        falls: whether bins run from large to small.
        edges: Edges of half-open bins, float32[bins + 1]; None if bins are counted from the lower limit.
        dtype: Storage type of the output.
    """

    low: float
    high: float
    bins: int
    falls: bool
    edges: Singles | None
    dtype: np.dtype[np.generic]


def lower(node: Node, operands: Operands) -> CountParams:
    """Decide the limits: RNE(limit * s_x).

    Input [N, ...]; output uint16[N, bins].

    Raises:
        UnsupportedError: limits that are one quantized value, or descending limits of half-open bins.
    """
    limits = [np.float32(node.attributes.real(key)) for key in ("min", "max")]
    if not is_imported(node):
        limits = [np.rint(limit * scale_of(operands.input(0))) for limit in limits]
    return lower_limits(node, operands, *(float(limit) for limit in limits))


def lower_limits(node: Node, operands: Operands, first: float, last: float) -> CountParams:
    """Decide the bins between two limits, which are quantized values; raises as `lower`."""
    bins, discrete = node.attributes.integer("nbins"), node.attributes.boolean("discrete", True)
    if first == last or (first > last and not discrete):
        raise UnsupportedError(f"min and max become {first:g} and {last:g}; allowed is min below max")
    edges = None if discrete else _edges(first, last, bins)
    dtype = operands.output().dtype.storage
    return CountParams(min(first, last), max(first, last), bins, first > last, edges, dtype)


def run(params: CountParams, x: Array) -> tuple[Array, ...]:
    """Run Count: quantized [S, N, ...] -> counts [S, N, bins].

    bin = trunc((q - low) * bins / (high - low)), the upper limit in the last bin; quantized values outside are left
    out.
    """
    rows = x.reshape(*x.shape[:2], -1).astype(np.float32)
    if params.edges is None:
        width = np.float32(params.high - params.low)
        place = np.trunc((rows - np.float32(params.low)) * np.float32(params.bins) / width).astype(np.int64)
        place = np.minimum(place, params.bins - 1)
        place = params.bins - 1 - place if params.falls else place
        inside = (rows >= params.low) & (rows <= params.high)
    else:
        place = np.searchsorted(params.edges, rows, side="right") - 1
        inside = (place >= 0) & (place < params.bins)
    counts = np.stack([(inside & (place == k)).sum(axis=-1) for k in range(params.bins)], axis=-1)
    return (counts.astype(params.dtype),)


def _edges(first: float, last: float, bins: int) -> Singles:
    """Return evenly spaced edges in float32, the first half counted from the front, the rest from the end."""
    step = np.float32((last - first) / bins)
    i = np.arange(bins + 1, dtype=np.float32)
    front, back = np.float32(first) + step * i, np.float32(last) - step * (np.float32(bins) - i)
    edges: Singles = np.where(i < (bins + 1) // 2, front, back).astype(np.float32)
    return edges


KERNELS = {
    "count": Kernel(lower, run,
        "Count: the histogram of quantized values, between limits at the input's scale (docs/rules/aipu/operators.md)",
        "Compass Optimizer, ops/count.py"),
}  # fmt: skip
