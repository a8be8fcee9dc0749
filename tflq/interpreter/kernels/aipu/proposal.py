"""Proposal: anchors moved by deltas, clamped to the window, those above a score in anchor order (docs/aipu.md, 8).

Source: Compass Optimizer, ops/proposal.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import (
    INT16,
    delta_table,
    exponential,
    first_rows,
    identity,
    internal_scale,
    score_threshold,
    take_rows,
    together,
)
from tflq.interpreter.kernels.aipu.imported import is_imported, number_of
from tflq.interpreter.kernels.aipu.scales import constant_codes, scale_of
from tflq.interpreter.kernels.aipu.tables import Table

DEVIATIONS = (10.0, 10.0, 5.0, 5.0)
ANCHORS = ("ha", "wa", "ycenter", "xcenter")
_TABLES = ("move_y", "move_x", "grow_y", "grow_x")


@dataclass(frozen=True, eq=False)
class ProposalParams:
    """The params of one Proposal.

    Attributes:
        sizes: ha and wa, int64[K] each.
        centres: ycenter and xcenter, int64[K] each.
        moves: tables of dy / 10 and dx / 10 at scale 2^shift.
        growths: tables of exp(dh / 5) and exp(dw / 5) at scale 2^shift.
        shift: of every product with a table's entry.
        window: height and width.
        threshold: a score's code must be above it.
        limit: boxes of the output.
        dtypes: of the four outputs.
    """

    sizes: tuple[Integers, Integers]
    centres: tuple[Integers, Integers]
    moves: tuple[Table, Table]
    growths: tuple[Table, Table]
    shift: int
    window: tuple[int, int]
    threshold: int
    limit: int
    dtypes: tuple[np.dtype[np.generic], ...]


def lower(node: Node, operands: Operands) -> ProposalParams:
    """Decide tables at 2^floor(log2(s_B)), the window at the boxes' scale and the threshold's code.

    Inputs: scores [N, K, 2], deltas [N, K, 4] (dy, dx, dh, dw), constants wa, ha, xcenter, ycenter [K]. Outputs:
    scores [N, M], boxes int16[N, M, 4] (y0, x0, y1, x1), count uint16[N, 1], classes uint16[1, 1], always 1.
    """
    scores, deltas = operands.input(0), operands.input(1)
    shift = number_of(node, "shift", lambda: int(np.floor(np.log2(internal_scale(operands, 1)))))
    functions = (identity, identity, exponential, exponential)
    ty, tx, th, tw = (
        delta_table(node, key, deltas, f, d, 2.0**shift)
        for key, f, d in zip(_TABLES, functions, DEVIATIONS, strict=True)
    )
    ha, wa, ya, xa = (constant_codes(operands, key) for key in ANCHORS)
    scale = 1.0 if is_imported(node) else float(scale_of(operands.output(1)))
    height, width = (int(node.attributes.real(key) * scale) for key in ("height", "width"))
    threshold = score_threshold(node, scores)
    dtypes = tuple(t.dtype.storage for t in operands.outputs)
    limit = operands.output(0).shape[1]
    return ProposalParams((ha, wa), (ya, xa), (ty, tx), (th, tw), shift, (height, width), threshold, limit, dtypes)


def run(params: ProposalParams, scores: Array, deltas: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run Proposal: quantized [S, N, K, 2], [S, N, K, 4] -> scores, boxes, count, classes.

    h = (th * ha) >> shift, cy = ((ty * ha) >> shift) + ya; y0, y1 = RNE(clamp(cy -+ h / 2, 0, height)).
    """
    chosen, deltas = together(scores[..., 1], deltas)
    boxes = _boxes(params, deltas)
    order, count = first_rows(np.greater(chosen, params.threshold), params.limit)
    results = (take_rows(chosen, order, count), take_rows(boxes, order, count), count[..., None])
    ones = np.ones((len(chosen), 1, 1))
    return tuple(r.astype(d) for r, d in zip((*results, ones), params.dtypes, strict=True))


def _boxes(params: ProposalParams, deltas: Array) -> Array:
    near, far = [], []
    for axis in range(2):
        size, shift = params.sizes[axis], params.shift
        length = (params.growths[axis].lookup(deltas[..., 2 + axis]) * size) >> shift
        centre = ((params.moves[axis].lookup(deltas[..., axis]) * size) >> shift) + params.centres[axis]
        end = min(params.window[axis], INT16[1])
        near.append(np.rint(np.clip(centre - length / 2, 0, end)))
        far.append(np.rint(np.clip(centre + length / 2, 0, end)))
    return np.stack([*near, *far], axis=-1)
