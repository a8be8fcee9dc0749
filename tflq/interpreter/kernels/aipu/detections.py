"""Layers that find boxes above a score: DetectionOutput of proposals, Proposal of anchors (docs/rules/aipu/boxes.md).

Source: Compass Optimizer, ops/detectionoutput.py and proposal.py.
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
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, is_imported, number_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import constant_codes, scale_of
from tflq.interpreter.kernels.aipu.tables import Table
from tflq.interpreter.registry import Kernel

CAFFE = "caffe_detection"
MULTIPLIER_BITS = 16
_TABLES = ("move_y", "move_x", "grow_y", "grow_x")


@dataclass(frozen=True, eq=False)
class DetectionParams:
    """The params of one DetectionOutput; pairs are for y and x.

    Attributes:
        x_first: whether deltas and proposals list x before y (Caffe).
        moves: tables of the deltas of a center at scale s_T.
        growths: tables of exp(delta) at scale s_B.
        grow: M1 and N1 of s_C / (s_B * s_p).
        move: M2 and N2 of s_C / (s_T * s_p).
        place: M3 and N3 of s_C / s_p.
        early: bits that a table's entry times M1 and M2 loses first.
        window: height and width.
        threshold: a score's code must be above it.
        limits: rows of the boxes and of the classes.
        dtypes: Storage types of the five outputs.
    """

    x_first: bool
    moves: tuple[Table, Table]
    growths: tuple[Table, Table]
    grow: Multiplier
    move: Multiplier
    place: Multiplier
    early: tuple[int, int]
    window: tuple[int, int]
    threshold: int
    limits: tuple[int, int]
    dtypes: tuple[np.dtype[np.generic], ...]


def lower(node: Node, operands: Operands) -> DetectionParams:
    """Decide tables, multipliers, the window and the threshold's code.

    Inputs: scores [N, K, C], deltas [N, K, C', 4], proposals [N, K, 4]. Outputs: scores [N, M], boxes int16[N, M, 4]
    (y0, x0, y1, x1), boxes of each class that occurs uint16[N, L], its number uint16[N, L], how many uint16[N, 1]. If C
    > 1, class 0 is the background and is left out.
    """
    real, deltas = node.attributes.real, operands.input(1)
    one = np.float32(1)
    s_b, s_t = (one, one) if is_imported(node) else (internal_scale(operands, k) for k in (1, 2))
    given = imported_multiplier(node, "box")
    multipliers = _multipliers(operands, s_b, s_t) if given is None else given.split()
    clip = np.float32(real("bbox_xform_clip", float("inf")))
    functions = ((identity, s_t), (identity, s_t), *((lambda x: exponential(np.minimum(x, clip)), s_b),) * 2)
    deviations = node.attributes.reals("variance")
    tables = [
        delta_table(node, key, deltas, f, d, s) for key, (f, s), d in zip(_TABLES, functions, deviations, strict=True)
    ]
    early = tuple(int(np.ceil(np.log2(f.first_m))) for f in multipliers[:2])
    height, width = (_side(node, operands, key) for key in ("height", "width"))
    threshold = score_threshold(node, operands.input(0))
    return DetectionParams(
        node.attributes.text("anchor_mode", "") == CAFFE,
        (tables[0], tables[1]),
        (tables[2], tables[3]),
        multipliers[0],
        multipliers[1],
        multipliers[2],
        (early[0], early[1]),
        (height, width),
        threshold,
        (operands.output(0).shape[1], operands.output(2).shape[1]),
        tuple(t.dtype.storage for t in operands.outputs),
    )


def _multipliers(operands: Operands, s_b: np.float32, s_t: np.float32) -> tuple[Multiplier, ...]:
    s_c, s_p = scale_of(operands.output(1)), scale_of(operands.input(2))
    ratios = (s_c / (s_b * s_p), s_c / (s_t * s_p), s_c / s_p)
    return tuple(find_multiplier(ratio, MULTIPLIER_BITS) for ratio in ratios)


def _side(node: Node, operands: Operands, key: str) -> int:
    scale = scale_of(operands.output(1))
    return number_of(node, key, lambda: int(np.float32(node.attributes.real(f"image_{key}")) * scale))


def run(params: DetectionParams, scores: Array, deltas: Array, proposals: Array) -> tuple[Array, ...]:
    """Run DetectionOutput: quantized [S, N, K, C], [S, N, K, C', 4], [S, N, K, 4] -> the five outputs."""
    scores, deltas, proposals = together(scores, deltas, proposals)
    scores = scores[..., 1:] if scores.shape[-1] > 1 else scores
    deltas = deltas[..., deltas.shape[-2] - scores.shape[-1] :, :]
    boxes = _boxes(params, deltas, proposals.astype(np.int64))
    by_class = np.swapaxes(scores, -1, -2)
    lead = by_class.shape[:-2]
    kept = np.greater(by_class, params.threshold).reshape(*lead, -1)
    order, count = first_rows(kept, params.limits[0])
    flat = np.swapaxes(boxes, -2, -3).reshape(*lead, -1, 4)
    reached = kept & (np.cumsum(kept, axis=-1) <= params.limits[0])
    sizes = reached.reshape(by_class.shape).sum(axis=-1)
    labels, classes = first_rows(np.greater(sizes, 0), params.limits[1])
    results = (
        take_rows(by_class.reshape(*lead, -1), order, count),
        take_rows(flat, order, count),
        take_rows(sizes, labels, classes),
        np.where(np.arange(params.limits[1]) < classes[..., None], labels, 0),
        classes[..., None],
    )
    return tuple(r.astype(d) for r, d in zip(results, params.dtypes, strict=True))


def _boxes(params: DetectionParams, deltas: Array, proposals: Integers) -> Array:
    """Return int64[S, N, K, C', 4]; the proposals' zp is not added, as in the Optimizer."""
    near, far = [], []
    for axis in range(2):
        place = 1 - axis if params.x_first else axis
        first, second = proposals[..., place, None], proposals[..., 2 + place, None]
        size, middle = second - first, (first + second) >> 1
        entry = params.growths[axis].lookup(deltas[..., 2 + place])
        half = _scale_size(entry, params.grow, params.early[0], size) >> 1
        moved = _scale_size(params.moves[axis].lookup(deltas[..., place]), params.move, params.early[1], size)
        center = moved + np.clip(params.place.apply(middle), *INT16).astype(np.int64)
        end = min(params.window[axis], INT16[1])
        near.append(np.clip(center - half, 0, end))
        far.append(np.clip(center + half, 0, end))
    return np.stack([*near, *far], axis=-1)


def _scale_size(entry: Integers, multiplier: Multiplier, early: int, size: Integers) -> Integers:
    """Return (clamp16((entry * M) >> p) * size + half) >> (N - p)."""
    late = multiplier.first_n - early
    kept = np.clip((entry * multiplier.first_m) >> early, *INT16)
    scaled: Integers = (kept * size + (1 << (late - 1))) >> late
    return scaled


DEVIATIONS = (10.0, 10.0, 5.0, 5.0)
ANCHORS = ("ha", "wa", "ycenter", "xcenter")


@dataclass(frozen=True, eq=False)
class ProposalParams:
    """The params of one Proposal.

    Attributes:
        sizes: ha and wa, int64[K] each.
        centers: ycenter and xcenter, int64[K] each.
        moves: tables of dy / 10 and dx / 10 at scale 2^shift.
        growths: tables of exp(dh / 5) and exp(dw / 5) at scale 2^shift.
        shift: Right shift of every product with a table's entry.
        window: height and width.
        threshold: a score's code must be above it.
        limit: boxes of the output.
        dtypes: Storage types of the four outputs.
    """

    sizes: tuple[Integers, Integers]
    centers: tuple[Integers, Integers]
    moves: tuple[Table, Table]
    growths: tuple[Table, Table]
    shift: int
    window: tuple[int, int]
    threshold: int
    limit: int
    dtypes: tuple[np.dtype[np.generic], ...]


def lower_proposal(node: Node, operands: Operands) -> ProposalParams:
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


def run_proposal(params: ProposalParams, scores: Array, deltas: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run Proposal: quantized [S, N, K, 2], [S, N, K, 4] -> scores, boxes, count, classes.

    h = (th * ha) >> shift, cy = ((ty * ha) >> shift) + ya; y0, y1 = RNE(clamp(cy -+ h / 2, 0, height)).
    """
    chosen, deltas = together(scores[..., 1], deltas)
    boxes = _moved_anchors(params, deltas)
    order, count = first_rows(np.greater(chosen, params.threshold), params.limit)
    results = (take_rows(chosen, order, count), take_rows(boxes, order, count), count[..., None])
    ones = np.ones((len(chosen), 1, 1))
    return tuple(r.astype(d) for r, d in zip((*results, ones), params.dtypes, strict=True))


def _moved_anchors(params: ProposalParams, deltas: Array) -> Array:
    near, far = [], []
    for axis in range(2):
        size, shift = params.sizes[axis], params.shift
        length = (params.growths[axis].lookup(deltas[..., 2 + axis]) * size) >> shift
        center = ((params.moves[axis].lookup(deltas[..., axis]) * size) >> shift) + params.centers[axis]
        end = min(params.window[axis], INT16[1])
        near.append(np.rint(np.clip(center - length / 2, 0, end)))
        far.append(np.rint(np.clip(center + length / 2, 0, end)))
    return np.stack([*near, *far], axis=-1)


KERNELS = {
    "detection_output": Kernel(lower, run,
        "proposals moved by the deltas of each class, those above a score class by class",
        "Compass Optimizer, ops/detectionoutput.py; docs/rules/aipu/boxes.md"),
    "proposal": Kernel(lower_proposal, run_proposal,
        "anchors moved by deltas, clamped to the window, those above a score in anchor order",
        "Compass Optimizer, ops/proposal.py; docs/rules/aipu/boxes.md"),
}  # fmt: skip
