"""ConvTranspose: each input pixel adds its products to the window of outputs that it reaches (docs/aipu.md, 3).

The stored bias holds zp_x * sum(w) as if every tap met a pixel. With x + zp_x in the sums it is taken off again, which
is the same as inserted zeros and a border of -zp_x.

Source: Compass Optimizer, ops/deconv.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window
from tflq.interpreter.accumulate.transposed import (
    Transposed,
    TransposedWindow,
    accumulate_transposed,
    prepare_transposed,
)
from tflq.interpreter.kernels.aipu.filter import FilterParams, lower_filter
from tflq.interpreter.kernels.aipu.scales import magnitude_of, offset_of
from tflq.interpreter.numerics.fixed_point import Integers


@dataclass(frozen=True, eq=False)
class ConvTransposeParams:
    """The integers of one transposed convolution.

    Attributes:
        filter: weights [O, KH, KW, C], bias, M and N.
        prepared: the weights packed for accumulation, and the window.
        input_offset: zp_x.
        folded: zp_x * sum(w), int64[O].
    """

    filter: FilterParams
    prepared: Transposed
    input_offset: int
    folded: Integers


def lower(node: Node, operands: Operands) -> ConvTransposeParams:
    """Decide the integers of ConvTranspose.

    Raises:
        UnsupportedError: as `lower_filter`; groups.
        GraphError: shapes that contradict each other.
    """
    x, output = operands.input(0), operands.output()
    value = node.attributes.integer
    if value("group", 1) != 1:
        raise UnsupportedError(f"group={value('group')}; allowed is 1")
    found = lower_filter(node, operands)
    weights = _spread(found.weights, (value("dilation_y", 1), value("dilation_x", 1)))
    stride = (value("stride_y"), value("stride_x"))
    kernel = (weights.shape[1], weights.shape[2])
    sides = (value(f"pad_{side}", 0) for side in ("top", "bottom", "left", "right"))
    place = TransposedWindow(Window(kernel, stride, (1, 1), *sides), (output.shape[1], output.shape[2]))
    zp = offset_of(x)
    prepared = prepare_transposed(weights, place, magnitude_of(x) + 2 * abs(zp))
    return ConvTransposeParams(found, prepared, zp, zp * weights.reshape(weights.shape[0], -1).sum(axis=1))


def run(params: ConvTransposeParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run ConvTranspose: codes [S, N, H, W, C] -> codes [S, N, OH, OW, O]."""
    accumulators = accumulate_transposed(params.prepared, x.astype(np.int64) + params.input_offset)
    return (params.filter.finish(accumulators - params.folded.astype(accumulators.dtype)),)


def _spread(weights: Integers, dilation: tuple[int, int]) -> Integers:
    """Return weights with zeros between the taps."""
    if dilation == (1, 1):
        return weights
    o, h, w, c = weights.shape
    spread = np.zeros((o, (h - 1) * dilation[0] + 1, (w - 1) * dilation[1] + 1, c), np.int64)
    spread[:, :: dilation[0], :: dilation[1]] = weights
    return spread
