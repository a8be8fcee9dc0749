"""Kernel of NMS.

Areas and overlaps are int64 to avoid overflow; the Optimizer's own are int32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import score_threshold, together
from tflq.interpreter.kernels.aipu.imported import multiplier_of, number_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multipliers
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of, scale_of
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel

HARD, GAUSSIAN = "HARD", "GAUSSIAN"
AREAS_SHIFT = 13
OVERLAP_BITS = 8
MULTIPLIER_BITS = 16


@dataclass(frozen=True, eq=False)
class NmsParams:
    """The params of one NMS.

    Attributes:
        box_offset: zp of the boxes.
        rescale: M and N of s_y / s_box.
        minimum: smallest quantized value of a box.
        maximum: largest quantized value of a box.
        overlap: int(iou_threshold * 256).
        areas_shift: bits that areas and intersections lose.
        threshold: a score's code must be above it.
        decay: S and H of exp(-0.5 / sigma * (i / 255)^2), i = 0..255; None for HARD.
        class_limit: the most boxes of one class.
        limit: the most boxes of all: rows of the output.
        dtypes: Storage types of the four outputs.
    """

    box_offset: int
    rescale: Multiplier
    minimum: int
    maximum: int
    overlap: int
    areas_shift: int
    threshold: int
    decay: Multiplier | None
    class_limit: int
    limit: int
    dtypes: tuple[np.dtype[np.generic], ...]


def lower(node: Node, operands: Operands) -> NmsParams:
    """Decide the thresholds, M and N of the boxes and the table of GAUSSIAN.

    Inputs: boxes [N, B, 4] of two opposite corners, boxes of each class [N, K], number of classes [N, 1], scores [N,
    B]. Outputs: boxes [N, M, 4], kept of each class uint16[N, K], scores [N, M], indices within the class uint16[N, M].
    `areas_shift` is 13 unless the node specifies another value: small boxes need less.

    Raises:
        UnsupportedError: another method.
    """
    method = require_choice(node, "method", (HARD, GAUSSIAN), HARD)
    boxes, output = operands.input(0), operands.output(0)
    decay = _decay(node.attributes.real("soft_nms_sigma")) if method == GAUSSIAN else None
    multiplier = multiplier_of(node, scale_of(output) / scale_of(boxes), MULTIPLIER_BITS)
    overlap = number_of(node, "overlap", lambda: _overlap(node))
    shift = number_of(node, "areas_shift", lambda: node.attributes.integer("areas_shift", AREAS_SHIFT))
    threshold = _threshold(node, operands)
    limit = output.shape[-2]
    return NmsParams(
        offset_of(boxes),
        multiplier,
        *code_limits(output),
        overlap,
        shift,
        threshold,
        decay,
        node.attributes.integer("max_output_size", limit),
        limit,
        tuple(t.dtype.storage for t in operands.outputs),
    )


def run(params: NmsParams, boxes: Array, counts: Array, classes: Array, scores: Array) -> tuple[Array, ...]:
    """Run NMS: quantized [S, N, B, 4], [S, N, K], [S, N, 1], [S, N, B] -> boxes, kept, scores, indices."""
    boxes, counts, classes, scores = together(boxes, counts, classes, scores)
    lead, rows = boxes.shape[:2], params.limit
    shapes = ((rows, 4), counts.shape[2:], (rows,), (rows,))
    results = [np.zeros((*lead, *shape), dtype) for shape, dtype in zip(shapes, params.dtypes, strict=True)]
    flat = scores.reshape(*lead, -1).astype(np.int64)
    values = boxes.astype(np.int64) + params.box_offset
    for place in np.ndindex(*lead):
        sizes = counts[place][: int(classes[place].reshape(-1)[0])]
        kept, kept_counts, indices, final = _image(params, values[place], flat[place], sizes)
        moved = (values[place][kept] * params.rescale.first_m) >> params.rescale.first_n
        results[0][place][: len(kept)] = np.clip(moved, params.minimum, params.maximum)
        results[1][place][: len(kept_counts)] = kept_counts
        results[2][place][: len(kept)] = final
        results[3][place][: len(kept)] = indices
    return tuple(results)


def _image(
    params: NmsParams, boxes: Integers, scores: Integers, sizes: Array
) -> tuple[Integers, list[int], Integers, Integers]:
    """Return the rows that stay, how many each class keeps, their numbers within the class and their scores."""
    select = _hard if params.decay is None else _soft
    rows: list[int] = []
    indices: list[int] = []
    final: list[int] = []
    counts: list[int] = []
    start = 0
    for size in (int(n) for n in sizes):
        part = slice(start, start + size)
        kept, values = select(params, boxes[part], scores[part])
        free = params.limit - len(rows)
        counts.append(min(len(kept), free))
        rows += [start + k for k in kept[:free]]
        indices += kept[:free]
        final += values[:free]
        start += size
    return np.asarray(rows, np.int64), counts, np.asarray(indices, np.int64), np.asarray(final, np.int64)


def _hard(params: NmsParams, boxes: Integers, scores: Integers) -> tuple[list[int], list[int]]:
    """Keep the best box, drop the boxes that overlap it by more than the limit, and repeat."""
    areas, overlap = _areas(boxes, params.areas_shift), _overlaps(boxes, params.areas_shift)
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > params.threshold]
    kept: list[int] = []
    while order.size and len(kept) < params.class_limit:
        best, rest = int(order[0]), order[1:]
        kept.append(best)
        shared = overlap(best, rest)
        union = areas[best] + areas[rest] - shared
        order = rest[shared <= (union * params.overlap) >> OVERLAP_BITS]
    return kept, [int(s) for s in scores[kept]]


def _soft(params: NmsParams, boxes: Integers, scores: Integers) -> tuple[list[int], list[int]]:
    """Keep the best box; lower a candidate's score by each kept box since its last turn, and put it back."""
    decay = params.decay
    assert decay is not None
    areas, overlap = _areas(boxes, params.areas_shift), _overlaps(boxes, params.areas_shift)
    waiting = {int(i): int(scores[i]) for i in np.flatnonzero(scores > params.threshold)}
    seen = dict.fromkeys(waiting, 0)
    kept: list[int] = []
    final: list[int] = []
    while waiting and len(kept) < params.class_limit:
        best = max(waiting, key=lambda i: (waiting[i], -i))
        score = waiting[best]
        for other in kept[seen[best] :]:
            shared = int(overlap(best, np.asarray([other]))[0])
            union = int(areas[best] + areas[other]) - shared
            share = shared * ((1 << OVERLAP_BITS) - 1) // union if union else 0
            score = (score * int(decay.m[share])) >> int(decay.n[share])
            if score <= params.threshold:
                break
        seen[best] = len(kept)
        if score == waiting[best]:
            kept.append(best)
            final.append(score)
            del waiting[best]
        elif score <= params.threshold:
            del waiting[best]
        else:
            waiting[best] = score
    return kept, final


def _areas(boxes: Integers, shift: int) -> Integers:
    areas: Integers = np.abs((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])) >> shift
    return areas


def _overlaps(boxes: Integers, shift: int) -> Callable[[int, Integers], Integers]:
    """Return the function (box, rest) -> intersections; corners are sorted first."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])

    def overlap(box: int, others: Integers) -> Integers:
        sides = np.maximum(np.minimum(high[box], high[others]) - np.maximum(low[box], low[others]), 0)
        shared: Integers = (sides[:, 0] * sides[:, 1]) >> shift
        return shared

    return overlap


def _decay(sigma: float) -> Multiplier:
    steps = np.arange(1 << OVERLAP_BITS, dtype=np.float32) / np.float32((1 << OVERLAP_BITS) - 1)
    squares = (np.float32(-0.5 / sigma) * steps * steps).astype(np.float32)
    return find_multipliers(np.exp(squares.astype(np.float64)).astype(np.float32), MULTIPLIER_BITS)


def _overlap(node: Node) -> int:
    return int(node.attributes.real("iou_threshold") * (1 << OVERLAP_BITS))


def _threshold(node: Node, operands: Operands) -> int:
    if "score_threshold" in node.attributes:
        return score_threshold(node, operands.input(3))
    return operands.output(2).dtype.minimum - 1


KERNELS = {
    "nms": Kernel(lower, run,
        "HARD and GAUSSIAN, class by class, in integers (docs/rules/aipu/boxes.md)", "Compass Optimizer, ops/nms.py"),
}  # fmt: skip
