"""NMS in whole numbers against tensorflow's in float: which boxes stay, from the largest to the smallest."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine
from tflq.interpreter.kernels.aipu.scales import affine_of

ONE = 32767
SAFE_SHIFT = 8
"""Unions of 15-bit coordinates, times a threshold of 8 bits, fit 31 bits."""


def kept_by_kernel(boxes: np.ndarray, scores: np.ndarray, overlap: float, shift: int, least: float = 0.0) -> list[int]:
    count = len(boxes)
    builder = GraphBuilder()
    plain, unit = affine_of(np.float32(1), 0, 16, False), affine_of(np.float32(ONE), 0, 16)
    x = builder.input("boxes", (1, count, 4), DType.INT16, unit)
    ranks = builder.input("scores", (1, count), DType.UINT16, affine_of(np.float32(65535), 0, 16, False))
    sizes = builder.constant("counts", np.array([[count]], np.uint16), plain)
    classes = builder.constant("classes", np.array([[1]], np.uint16), plain)
    outputs = [
        builder.tensor("kept", (1, count, 4), DType.INT16, unit),
        builder.tensor("number", (1, 1), DType.UINT16, plain),
        builder.tensor("values", (1, count), DType.UINT16, affine_of(np.float32(65535), 0, 16, False)),
        builder.tensor("indices", (1, count), DType.UINT16, plain),
    ]
    keys = {"method": "HARD", "max_output_size": count, "iou_threshold": overlap, "areas_shift": shift}
    keys |= {"score_threshold": least / 65535} if least else {}
    builder.node("nms", [x, sizes, classes, ranks], outputs, 1, None, **keys)
    graph = builder.build(outputs)
    run = Engine(graph, "aipu").run([boxes[None, None].astype(np.int16), scores[None, None].astype(np.uint16)])
    number = int(run[outputs[1]][0, 0, 0])
    rows = [int(i) for i in run[outputs[3]][0, 0, :number]]
    assert np.array_equal(run[outputs[0]][0, 0, :number], boxes[rows])
    return rows


def kept_by_tensorflow(boxes: np.ndarray, scores: np.ndarray, overlap: float, least: float = -np.inf) -> list[int]:
    tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed (tflq[tensorflow])")
    values = (boxes.astype(np.float32), scores.astype(np.float32))
    return [int(i) for i in tf.image.non_max_suppression(*values, len(boxes), overlap, least).numpy()]


def overlaps(boxes: np.ndarray) -> np.ndarray:
    wide = boxes.astype(np.float64)
    low = np.maximum(wide[:, None, :2], wide[None, :, :2])
    shared = np.maximum(np.minimum(wide[:, None, 2:], wide[None, :, 2:]) - low, 0).prod(axis=-1)
    areas = (wide[:, 2:] - wide[:, :2]).prod(axis=1)
    return shared / (areas[:, None] + areas[None] - shared)


def clear_boxes(rng: np.random.Generator, sides: tuple[int, int], overlap: float, band: float) -> np.ndarray:
    """Groups of boxes around a few centers, none of whose overlaps is within `band` of the limit."""
    kept: list[np.ndarray] = []
    while len(kept) < 60:
        side = np.exp(rng.uniform(*np.log(sides), 2))
        if not kept or rng.random() < 0.3:
            low = rng.uniform(0, ONE - side, 2)
        else:
            source = kept[rng.integers(len(kept))]
            side = (source[2:] - source[:2]) * rng.uniform(0.7, 1.4, 2)
            low = source[:2] + (source[2:] - source[:2]) * rng.uniform(-0.4, 0.4, 2)
        box = np.rint(np.clip(np.concatenate([low, low + side]), 0, ONE))
        table = overlaps(np.array([*kept, box]))[-1, :-1]
        if np.all(box[2:] > box[:2]) and np.all(np.abs(table - overlap) > band):
            kept.append(box)
    return np.array(kept).astype(np.int64)


@pytest.mark.parametrize(
    ("sides", "shift", "band"),
    [
        ((8000, 32000), SAFE_SHIFT, 0.01),
        ((500, 8000), SAFE_SHIFT, 0.02),
        ((200, 600), SAFE_SHIFT, 0.05),
        ((20, 60), 0, 0.02),
    ],
)
@pytest.mark.parametrize("overlap", [0.3, 0.7])
def test_the_same_boxes_stay(sides: tuple[int, int], shift: int, band: float, overlap: float) -> None:
    rng = np.random.default_rng(sides[0])
    boxes = clear_boxes(rng, sides, overlap, band)
    scores = rng.permutation(len(boxes)) * 100 + 1
    expected = kept_by_tensorflow(boxes, scores, overlap)
    assert 1 < len(expected) < len(boxes)
    assert kept_by_kernel(boxes, scores, overlap, shift) == expected


def test_a_small_box_beside_large_ones_is_not_lost() -> None:
    boxes = np.array([[0, 0, ONE, ONE], [100, 100, 140, 150], [0, 0, ONE, ONE - 1], [101, 100, 140, 150]])
    scores = np.array([400, 300, 200, 100])
    assert kept_by_kernel(boxes, scores, 0.5, SAFE_SHIFT) == [0, 1]
    # Compass's 13 bits leave these small boxes no area: none is dropped, not even the double one.
    assert kept_by_kernel(boxes, scores, 0.5, 13) == [0, 1, 3]


def test_equal_scores_stay_in_order() -> None:
    boxes = np.array([[0, 0, 1000, 1000], [0, 0, 1000, 1010], [5000, 5000, 6000, 6000]])
    assert kept_by_kernel(boxes, np.array([7, 7, 7]), 0.5, SAFE_SHIFT) == [0, 2]


def test_a_score_at_the_threshold_is_dropped() -> None:
    boxes = np.array([[i * 2000, 0, i * 2000 + 1000, 1000] for i in range(5)])
    scores = np.array([400, 301, 300, 299, 500])
    assert kept_by_kernel(boxes, scores, 0.5, SAFE_SHIFT, 300) == kept_by_tensorflow(boxes, scores, 0.5, 300.0)


def _area(box: list[int], shift: int) -> int:
    return abs((box[2] - box[0]) * (box[3] - box[1])) >> shift


def _shared(a: list[int], b: list[int], shift: int) -> int:
    sides = []
    for k in (0, 1):
        low = max(min(a[k], a[k + 2]), min(b[k], b[k + 2]))
        sides.append(max(min(max(a[k], a[k + 2]), max(b[k], b[k + 2])) - low, 0))
    return (sides[0] * sides[1]) >> shift


def _soft_by_hand(
    boxes: list[list[int]], scores: list[int], sigma: float, shift: int, least: int, limit: int
) -> list[tuple[int, int]]:
    """GAUSSIAN in Python's integers: the best; lowered by each box kept since its last turn, it goes back."""
    waiting = {i: score for i, score in enumerate(scores) if score > least}
    seen, kept = dict.fromkeys(waiting, 0), list[tuple[int, int]]()
    while waiting and len(kept) < limit:
        best = min(waiting, key=lambda i: (-waiting[i], i))
        score = waiting[best]
        for other, _ in kept[seen[best] :]:
            inter = _shared(boxes[best], boxes[other], shift)
            union = _area(boxes[best], shift) + _area(boxes[other], shift) - inter
            place = inter * 255 // union if union else 0
            factor = math.exp(-0.5 / sigma * (place / 255) ** 2)
            down = min(int(math.log2(32767 / factor)), 31)
            s, h = (1, 0) if place == 0 else (int(factor * 2.0**down + 0.5), down)
            score = (score * s) >> h
            if score <= least:
                break
        seen[best] = len(kept)
        if score == waiting[best]:
            kept.append((best, score))
            del waiting[best]
        elif score > least:
            waiting[best] = score
        else:
            del waiting[best]
    return kept


def _hard_by_hand(
    boxes: list[list[int]], scores: list[int], overlap: float, shift: int, least: int, limit: int
) -> list[tuple[int, int]]:
    order = [i for i in sorted(range(len(scores)), key=lambda i: -scores[i]) if scores[i] > least]
    kept: list[tuple[int, int]] = []
    while order and len(kept) < limit:
        best, *rest = order
        kept.append((best, scores[best]))
        order = []
        for other in rest:
            inter = _shared(boxes[best], boxes[other], shift)
            union = _area(boxes[best], shift) + _area(boxes[other], shift) - inter
            if inter <= (union * int(overlap * 256)) >> 8:
                order.append(other)
    return kept


@pytest.mark.parametrize("method", ["HARD", "GAUSSIAN"])
@pytest.mark.parametrize("case", range(12))
def test_classes_in_integers(method: str, case: int) -> None:
    """Three classes, crossed corners, rows that run out: the rules of docs/rules/aipu/boxes.md, in Python's
    integers."""
    draw = np.random.default_rng(case)
    sizes = [[5, 0, 9], [14, 0, 0], [1, 6, 7]][case % 3]
    count, rows, limit = sum(sizes), [14, 9, 6][case % 3], [3, 14, 5][case // 3 % 3]
    shift, least = [8, 13, 0][case % 3], [0, 30, 120][case // 4]
    side = [32000, 32000, 250][case % 3]
    centers = draw.integers(0, side, (4, 4))
    boxes = np.clip(centers[draw.integers(0, 4, count)] + draw.integers(-side // 9, side // 9, (count, 4)), 0, side)
    scores = draw.integers(0, 256, count)
    builder = GraphBuilder()
    plain, unit = affine_of(np.float32(1), 0, 16, False), affine_of(np.float32(ONE), 0, 16)
    likely = affine_of(np.float32(255), 0, 8, False)
    operands = [
        builder.input("boxes", (1, count, 4), DType.INT16, unit),
        builder.constant("counts", np.array([sizes], np.uint16), plain),
        builder.constant("classes", np.array([[3]], np.uint16), plain),
        builder.input("scores", (1, count), DType.UINT8, likely),
    ]
    shapes = {"kept": ((1, rows, 4), DType.INT16, unit), "number": ((1, 3), DType.UINT16, plain)}
    shapes |= {"values": ((1, rows), DType.UINT8, likely), "indices": ((1, rows), DType.UINT16, plain)}
    outputs = [builder.tensor(name, *kind) for name, kind in shapes.items()]
    keys = {"method": method, "max_output_size": limit, "iou_threshold": 0.4, "areas_shift": shift}
    keys |= {"soft_nms_sigma": 0.35, "score_threshold": least / 255}
    builder.node("nms", operands, outputs, 1, None, **keys)
    run = Engine(builder.build(outputs), "aipu").run(
        [boxes[None, None].astype(np.int16), scores[None, None].astype(np.uint8)]
    )
    wanted, counts, start = list[tuple[int, int, int]](), list[int](), 0
    for size in sizes:
        part = boxes[start : start + size].tolist(), scores[start : start + size].tolist()
        last = (shift, least, limit)
        kept = _soft_by_hand(*part, 0.35, *last) if method == "GAUSSIAN" else _hard_by_hand(*part, 0.4, *last)
        counts.append(min(len(kept), rows - len(wanted)))
        wanted += [(start + i, i, score) for i, score in kept[: rows - len(wanted)]]
        start += size
    blank = [0] * (rows - len(wanted))
    assert run[outputs[1]][0, 0].tolist() == counts
    assert run[outputs[3]][0, 0].tolist() == [i for _, i, _ in wanted] + blank
    assert run[outputs[2]][0, 0].tolist() == [score for _, _, score in wanted] + blank
    assert run[outputs[0]][0, 0].tolist() == [boxes[k].tolist() for k, _, _ in wanted] + [[0] * 4 for _ in blank]
